// Package wire is what the dialogues over lines of JSON have in common: the
// cutting of output into lines, the parser of a turn's events, the questions
// that wait, and the way of outputs to whoever drives the dialogue.
//
// There are no locks: a Talk belongs to one goroutine.
//
// # Invariants
//
//   - An output that came of a line has the line's end; one of a call has the
//     count of all bytes taken.
//   - The parser is a new one after each Ended, so that no turn is told what
//     another one said.
//   - The questions that wait are at most dialogue.MaxAsks, of MaxAsked bytes
//     together.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// MaxAsked is how many bytes of requests of an agent are kept while they wait.
const MaxAsked = 32 << 20

// maxNote is how many characters a remark has.
const maxNote = 300

// Talk is the part of a dialogue that does not depend on its protocol.
type Talk struct {
	state
	agent  *agent.Agent
	format string
	parser agent.Parser
	emit   dialogue.Emit
	end    int64
}

// state is what a Talk is besides its parser's own state.
type state struct {
	Lines   agent.Lines `json:"lines"`
	Waiting []waiting   `json:"asks,omitempty"`
	Asked   uint64      `json:"asked,omitempty"`   // how many asks there were
	Told    string      `json:"session,omitempty"` // the agent's session, as far as it is known
	Over    bool        `json:"over,omitempty"`
}

// waiting is an ask that waits. The request stands beside it as bytes, because
// JSON within JSON would not come back as it was.
type waiting struct {
	Ask     dialogue.Ask `json:"ask"`
	Request []byte       `json:"request"`
	Wire    string       `json:"wire"` // its id in the protocol
}

// New returns the talk with an agent whose lines a parser of the format reads.
func New(a *agent.Agent, format string) *Talk {
	like := *a
	like.Via, like.UTF8 = agent.ViaStdin, true // for what Check says of a text
	t := &Talk{agent: &like, format: format}
	t.parser = like.NewParserOf(format)
	return t
}

// Do makes a call: what f puts out goes to emit.
func (t *Talk) Do(emit dialogue.Emit, f func()) {
	was, end := t.emit, t.end
	t.emit, t.end = emit, t.Lines.Offset
	f()
	t.emit, t.end = was, end
}

// Feed cuts output into lines and hands over those that are not blank.
func (t *Talk) Feed(p []byte, emit dialogue.Emit, line func(text []byte)) {
	t.emit = emit
	t.Lines.Feed(p, func(end int64, text []byte, skipped int64) { t.line(end, text, skipped, line) })
	t.emit = nil
}

func (t *Talk) line(end int64, text []byte, skipped int64, line func([]byte)) {
	t.end = end
	if skipped > 0 {
		t.Note(fmt.Sprintf("a line of %d bytes was skipped: at most %d are read", skipped, agent.MaxLine))
	} else if text = bytes.TrimSpace(text); len(text) > 0 {
		line(text)
	}
}

// Finish takes what has no newline after it for a line, withdraws what waits,
// and ends the dialogue.
func (t *Talk) Finish(emit dialogue.Emit, line func(text []byte)) {
	t.emit = emit
	t.Lines.Flush(func(end int64, text []byte, skipped int64) { t.line(end, text, skipped, line) })
	t.end = t.Lines.Offset
	t.WithdrawAll()
	t.parser.Finish(t.event)
	t.Over = true
	t.emit = nil
}

// Parse hands a line to the parser of the turn.
func (t *Talk) Parse(text []byte) {
	t.parser.Parse(text, t.event)
	t.parser.Parse([]byte{'\n'}, t.event)
	if id := t.parser.Session(); id != "" {
		t.Told = id
	}
}

func (t *Talk) event(_ int64, e agent.Event) { t.Event(e.Kind, e.Text) }

// Event puts out a line of the log.
func (t *Talk) Event(kind agent.EventKind, text string) {
	t.emit(t.end, dialogue.Output{Event: &agent.Event{Kind: kind, Text: text}})
}

// Note puts out a remark.
func (t *Talk) Note(text string) { t.Event(agent.Note, agent.OneLine(agent.Redact(text), maxNote)) }

// Send puts out a message.
func (t *Talk) Send(message any) { t.SendRaw(JSON(message)) }

// SendRaw puts out a message that is JSON already, on one line.
func (t *Talk) SendRaw(message []byte) {
	t.emit(t.end, dialogue.Output{Send: append(message, '\n')})
}

// End puts out the end of a turn, as its parser judges it.
func (t *Talk) End() {
	t.parser.Finish(t.event)
	t.EndAs(t.outcome(agent.Exit{}, nil))
}

// EndAs puts out the end of a turn.
func (t *Talk) EndAs(o agent.Outcome) {
	t.parser = t.agent.NewParserOf(t.format)
	t.emit(t.end, dialogue.Output{Ended: &o})
}

// EndUnsent puts out the end of a turn that was interrupted before its prompt
// was sent.
func (t *Talk) EndUnsent() {
	t.EndAs(agent.Outcome{Status: agent.StatusFailed, Error: t.agent.Name + " failed: it was interrupted before its prompt was sent", Session: t.Told})
}

// Outcome is how the turn ended that Finish cut off.
func (t *Talk) Outcome(exit agent.Exit, stderr []byte) agent.Outcome { return t.outcome(exit, stderr) }

func (t *Talk) outcome(exit agent.Exit, stderr []byte) agent.Outcome {
	o := t.parser.Outcome(exit, stderr)
	if o.Session == "" {
		o.Session = t.Told
	}
	return o
}

// Session is the agent's own session id as far as it is known.
func (t *Talk) Session() string { return t.Told }

// Learn takes the agent's session id.
func (t *Talk) Learn(id string) {
	if agent.ValidSession(id) {
		t.Told = id
	}
}

// Ask puts out a question, whose id in the protocol is wire. It gives it its
// own ID. It is false when too much waits already; an earlier one of the same
// wire is withdrawn.
func (t *Talk) Ask(wire string, q dialogue.Ask) bool {
	t.Withdraw(wire)
	size := len(q.Request)
	for i := range t.Waiting {
		size += len(t.Waiting[i].Request)
	}
	if len(t.Waiting) >= dialogue.MaxAsks || size > MaxAsked {
		t.Note("what the agent asked was denied, as too much waits already: " + q.Summary)
		return false
	}
	t.Asked++
	q.ID = strconv.FormatUint(t.Asked, 10)
	w := waiting{Ask: q, Request: slices.Clone(q.Request), Wire: wire}
	w.Ask.Request = nil
	t.Waiting = append(t.Waiting, w)
	whole := w.whole()
	t.emit(t.end, dialogue.Output{Ask: &whole})
	return true
}

func (w *waiting) whole() dialogue.Ask {
	q := w.Ask
	q.Request = slices.Clone(w.Request)
	return q
}

// Asks are the questions that wait, in the order they came.
func (t *Talk) Asks() []dialogue.Ask {
	all := make([]dialogue.Ask, len(t.Waiting))
	for i := range t.Waiting {
		all[i] = t.Waiting[i].whole()
	}
	return all
}

// Take takes the question of that ID out of those that wait, to be answered.
// fault.Done when it is not among them.
func (t *Talk) Take(id string) (wire string, q dialogue.Ask, err error) {
	for i := range t.Waiting {
		if w := &t.Waiting[i]; w.Ask.ID == id {
			wire, q = w.Wire, w.whole()
			t.Waiting = slices.Delete(t.Waiting, i, i+1)
			return wire, q, nil
		}
	}
	return "", q, fault.New(fault.Done, "the request %s of %s is answered already, or was withdrawn", agent.OneLine(id, 32), t.agent.Name)
}

// Withdraw withdraws the question whose id in the protocol is wire, if it
// waits.
func (t *Talk) Withdraw(wire string) {
	for i := range t.Waiting {
		if t.Waiting[i].Wire == wire {
			id := t.Waiting[i].Ask.ID
			t.Waiting = slices.Delete(t.Waiting, i, i+1)
			t.emit(t.end, dialogue.Output{Gone: id})
			return
		}
	}
}

// WithdrawAll withdraws all questions, and returns their ids in the protocol
// and what was asked.
func (t *Talk) WithdrawAll() (wires []string, requests [][]byte) {
	for len(t.Waiting) > 0 {
		wires, requests = append(wires, t.Waiting[0].Wire), append(requests, t.Waiting[0].Request)
		t.Withdraw(t.Waiting[0].Wire)
	}
	return wires, requests
}

// Check tells whether a text can be sent: fault.Gone once the dialogue is
// over, else what agent.Check says of it.
func (t *Talk) Check(text []byte) error {
	if t.Over {
		return t.ErrGone()
	}
	return t.agent.Check(text, "", "")
}

// ErrGone says that the dialogue is over.
func (t *Talk) ErrGone() error {
	return fault.New(fault.Gone, "%s has ended: its next turn needs a new process", t.agent.Name)
}

// ErrBusy says that a turn runs.
func (t *Talk) ErrBusy() error {
	return fault.New(fault.Busy, "%s works on a turn: wait for its end, or steer it", t.agent.Name)
}

// ErrIdle says that no turn runs.
func (t *Talk) ErrIdle() error {
	return fault.New(fault.NotFound, "no turn of %s runs: begin one", t.agent.Name)
}

// ErrDeaf says that the turn takes no text now.
func (t *Talk) ErrDeaf() error {
	return fault.New(fault.Unsupported, "the turn of %s takes no text now: it has not begun, or is at its end", t.agent.Name)
}

type saved struct {
	Format string `json:"format"`
	state
	Parser json.RawMessage `json:"parser"`
	Own    json.RawMessage `json:"own"` // the protocol's part
}

// State returns the talk's state, with the protocol's own part.
func (t *Talk) State(own any) (json.RawMessage, error) {
	s := saved{Format: t.format, state: t.state}
	var err error
	if s.Parser, err = t.parser.State(); err == nil {
		if s.Own, err = json.Marshal(own); err == nil {
			return json.Marshal(&s)
		}
	}
	return nil, err
}

// Restore takes what State returned. It changes nothing when that is none.
func (t *Talk) Restore(from json.RawMessage, own any) error {
	var s saved
	err := json.Unmarshal(from, &s)
	parser := t.agent.NewParserOf(t.format)
	if err == nil {
		switch {
		case s.Format != t.format:
			err = fault.New(fault.Invalid, "it is of the format %q", agent.OneLine(s.Format, 32))
		case len(s.Lines.Part) > agent.MaxLine || s.Lines.Offset < 0 || s.Lines.Skipped < 0:
			err = fault.New(fault.Invalid, "it holds no line")
		default:
			if err = parser.Restore(s.Parser); err == nil {
				err = json.Unmarshal(s.Own, own)
			}
		}
	}
	if err != nil {
		return fault.New(fault.Invalid, "the saved state is none of a dialogue with %s: stop the run and begin its turn again: %w", t.agent.Name, err)
	}
	t.state, t.parser = s.state, parser
	return nil
}
