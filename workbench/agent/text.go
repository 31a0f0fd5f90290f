package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText is the longest text of an event; a longer line or message becomes
// several.
const maxText = 64 << 10

// lastLine is how much of the last line of output is kept for the error.
const lastLine = 300

// textParser reads plain output: every line is an event, the end of it all is
// the reply, and the exit code decides. It is the parser of shell scripts and
// of agents that print nothing but their answer.
type textParser struct {
	a *Agent
	textState
}

type textState struct {
	Format string `json:"format"`
	Offset int64  `json:"offset"`
	Part   []byte `json:"part,omitempty"` // of the line that has not ended
	Cut    bool   `json:"cut,omitempty"`  // events hold the beginning of that line
	Last   []byte `json:"last,omitempty"` // the start of the last line that is not blank
}

var _ Parser = (*textParser)(nil)

func (t *textParser) Parse(p []byte, emit func(int64, Event)) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			t.take(p, emit)
			return
		}
		t.take(p[:n], emit)
		t.Offset++
		t.endLine(emit)
		p = p[n+1:]
	}
}

func (t *textParser) Finish(emit func(int64, Event)) {
	if len(t.Part) > 0 {
		t.endLine(emit)
	}
}

// take adds to the line, and hands over as much of it as an event can hold
// once a byte more than that has come.
func (t *textParser) take(p []byte, emit func(int64, Event)) {
	for len(t.Part)+len(p) > maxText {
		n := maxText - len(t.Part)
		t.Part = append(t.Part, p[:n]...)
		t.Offset += int64(n)
		p = p[n:]
		whole := wholeRunes(t.Part)
		t.say(t.Offset+1, t.Part[:whole], emit)
		t.Part = append(t.Part[:0], t.Part[whole:]...)
		t.Cut = true
	}
	t.Part = append(t.Part, p...)
	t.Offset += int64(len(p))
}

func (t *textParser) endLine(emit func(int64, Event)) {
	line := trimReturn(t.Part)
	if len(line) > 0 || !t.Cut {
		t.say(t.Offset, line, emit)
	}
	t.Part, t.Cut = t.Part[:0], false
}

func (t *textParser) say(end int64, line []byte, emit func(int64, Event)) {
	if len(bytes.TrimSpace(line)) > 0 {
		t.Last = append(t.Last[:0], line[:min(len(line), lastLine)]...)
	}
	emit(end, Event{Kind: Text, Text: string(line)})
}

func (t *textParser) Outcome(exit Exit, stderr []byte) Outcome {
	o := Outcome{ReplyTail: true, Status: StatusCompleted}
	if exit.Code == 0 && exit.Signal == "" {
		return o
	}
	o.Status = StatusFailed
	what := ending(exit)
	if t.a.Name == shell {
		o.Error = "the script " + what
		if last := OneLine(Redact(string(t.Last)), lastLine); last != "" && exit.Signal == "" {
			o.Error += "; its last line: " + last
		}
		return o
	}
	reason := complaint(stderr)
	if reason == "" {
		reason = string(t.Last)
	}
	o.Error = t.a.Name + " " + what
	if reason != "" && exit.Signal == "" {
		o.Error = problem{reason: reason}.sentence(t.a)
	}
	return o
}

func (t *textParser) Session() string { return "" }

func (t *textParser) State() (json.RawMessage, error) { return json.Marshal(t.textState) }

func (t *textParser) Restore(state json.RawMessage) error {
	var s textState
	if err := json.Unmarshal(state, &s); err != nil || s.Format != t.Format || len(s.Part) > maxText {
		return unusable(t.Format, err)
	}
	t.textState = s
	return nil
}

// ending says how a process ended, to go after its name.
func ending(exit Exit) string {
	switch {
	case exit.Signal == "KILL":
		return "was killed by signal KILL (by hand, or by the kernel when memory ran out)"
	case exit.Signal != "":
		return "was ended by signal " + exit.Signal
	}
	return fmt.Sprintf("exited with %d", exit.Code)
}

// wholeRunes returns the length of p without a UTF-8 sequence that has only
// begun at its end.
func wholeRunes(p []byte) int {
	for n := len(p) - 1; n >= 0 && n >= len(p)-utf8.UTFMax; n-- {
		if utf8.RuneStart(p[n]) {
			if !utf8.FullRune(p[n:]) {
				return n
			}
			break
		}
	}
	return len(p)
}

// pieces cuts a message into texts that an event can hold, at ends of lines
// where it can.
func pieces(s string) []string {
	var all []string
	for len(s) > maxText {
		n := strings.LastIndexByte(s[:maxText], '\n') + 1
		if n == 0 {
			n = wholeRunes([]byte(s[:maxText]))
		}
		all = append(all, strings.TrimSuffix(s[:n], "\n"))
		s = s[n:]
	}
	return append(all, s)
}
