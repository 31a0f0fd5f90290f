package activity

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"scvfs/workbench/agent"
)

// firstRunes is how much of a prompt's first line log shows, in characters.
const firstRunes = 200

// Render returns an event's line of log, without its newline.
//
//	-- run started: sh in /home/u/shop
//	turn 1 (job-3): build and test
//	I will run the tests first.               text of the agent, as it is
//	$ make test                               a tool call
//	tool failed: exit 2: make test
//	plan: fix the failing test
//	approval 17 asked (process): run rm -rf build
//	approval 17 approved by owner
//	steered by owner: leave the docs alone
//	note: the agent's process left 2 children
//	turn 1 ended: completed
//	-- run ended: completed: exit 0
//
// The number of an approval is what its text begins with, up to a colon. A line
// of the agent's text can look like any of these; events tells them apart.
func Render(e Event) string {
	switch e.Kind {
	case agent.Text:
		return oneLine(e.Text)
	case agent.Tool:
		if strings.HasPrefix(e.Text, "$ ") {
			return oneLine(e.Text)
		}
	}
	before, after := subject(e)
	return oneLine(join(before, after))
}

// subject returns what a line says before its colon, and after it.
func subject(e Event) (before, after string) {
	switch e.Kind {
	case agent.RunStarted:
		return "-- run started", e.Text
	case agent.RunEnded:
		return "-- run ended", join(e.Status, e.Text)
	case agent.Truncated:
		return "-- truncated", e.Text
	case agent.TurnStarted:
		return turn(e) + paren(e.Job), firstLine(e.Text)
	case agent.TurnEnded:
		return turn(e) + " ended", join(e.Status, e.Text)
	case agent.ToolFailed:
		return "tool failed", e.Text
	case agent.ApprovalRequested:
		number, text := numbered(e.Text)
		return "approval" + number + " asked" + paren(e.Risk), text
	case agent.ApprovalResolved:
		number, text := numbered(e.Text)
		return "approval" + number + " " + e.Status + by(e), text
	case agent.Steered:
		return "steered" + by(e), firstLine(e.Text)
	}
	return string(e.Kind), e.Text
}

// numbered takes the number off a text such as "17: run make", with a space
// before it.
func numbered(s string) (number, text string) {
	number, text, _ = strings.Cut(s, ":")
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		return "", s
	}
	return " " + number, strings.TrimLeft(text, " ")
}

func turn(e Event) string {
	if e.Turn == 0 {
		return "turn"
	}
	return "turn " + strconv.Itoa(e.Turn)
}

func by(e Event) string {
	if e.By == "" {
		return ""
	}
	return " by " + e.By
}

func paren(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// join puts a colon between two parts unless one is empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// firstLine is the first line of a prompt that says something, with an
// ellipsis when that is not all of it.
func firstLine(s string) string {
	s = strings.TrimSpace(s)
	line, rest, _ := strings.Cut(s, "\n")
	line = strings.TrimSpace(line)
	if utf8.RuneCountInString(line) > firstRunes {
		return string([]rune(line)[:firstRunes-1]) + "…"
	}
	if rest != "" {
		return line + " …"
	}
	return line
}
