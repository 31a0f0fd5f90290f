package activity

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"scvfs/workbench/agent"
)

// maxWord is the longest of an event's other strings, in bytes.
const maxWord = 256

// newlineMark stands in log for a newline within an event.
const newlineMark = " ⏎ "

// texts returns the texts of the lines that an event becomes, safe to keep:
// credentials masked, control characters and invalid UTF-8 gone, each at most
// limit bytes. A message, a plan or a note is one event a line, without blank
// lines at its ends; all else stays one event. How many there are must never
// change for a text, since a replay counts them.
func texts(kind agent.EventKind, text string, limit int) []string {
	parts := []string{agent.Redact(agent.Printable(text))}
	switch kind {
	case agent.Text, agent.Plan, agent.Note:
		parts = strings.Split(parts[0], "\n")
	}
	for len(parts) > 1 && blank(parts[0]) {
		parts = parts[1:]
	}
	for len(parts) > 1 && blank(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	for i, part := range parts {
		parts[i] = cut(part, limit)
	}
	return parts
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// words makes an event's other strings safe to keep.
func words(e Event) Event {
	for _, s := range []*string{&e.Status, &e.Job, &e.Risk, &e.By} {
		*s = cut(oneLine(*s), maxWord)
	}
	return e
}

// oneLine makes s safe to stand on one line of log.
func oneLine(s string) string {
	s = agent.Printable(s)
	if !strings.Contains(s, "\n") {
		return s
	}
	var parts []string
	for part := range strings.SplitSeq(s, "\n") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, newlineMark)
}

// cut shortens s to at most limit bytes and says what it left out.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:end], len(s)-end)
}
