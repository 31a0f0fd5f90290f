// Package agent is the table of agents, their launch lines and environments,
// and the parsers of what they print.
//
// Everything here is pure: no clock, no process, no file but the look-up of an
// executable. There are no locks: a Table and its Agents are never changed, and
// a Parser belongs to one goroutine.
//
// # Invariants
//
//   - A parser gives the same events with the same ends for the same bytes,
//     however they are cut and wherever State and Restore came between, so an
//     adopted run is rebuilt by replaying its output. Ends never go back.
//   - A parser keeps one line of at most 16 MiB and one answer of at most
//     16 MiB, whatever it is fed; so does its state.
//   - How a turn ended is judged by its output; the exit counts only where the
//     output has no ending.
//   - A prompt is never an option, never shell text, and never an argument of
//     more than 64 KiB.
//   - An agent gets no key and no other agent's variable but those that its
//     entry passes on.
//   - What a tool printed is never in an event, except that of a script.
package agent

import "encoding/json"

// EventKind is the kind of a line of a run's activity log (DESIGN 7).
type EventKind string

// The kinds. The last one stands for what a later version may write.
const (
	RunStarted        EventKind = "run_started"
	TurnStarted       EventKind = "turn_started"
	Text              EventKind = "text"
	Tool              EventKind = "tool"
	ToolFailed        EventKind = "tool_failed"
	Plan              EventKind = "plan"
	ApprovalRequested EventKind = "approval_requested"
	ApprovalResolved  EventKind = "approval_resolved"
	Steered           EventKind = "steered"
	TurnEnded         EventKind = "turn_ended"
	RunEnded          EventKind = "run_ended"
	Note              EventKind = "note"
	Truncated         EventKind = "truncated"
	UnknownEvent      EventKind = "unknown"
)

// Event is what a parser read out of a run's output. Text may hold any bytes;
// whoever logs it makes it safe to show.
type Event struct {
	Kind EventKind
	Text string
}

// Status is how an agent's own output says a turn ended. Empty: it did not
// say, so the process's exit decides.
type Status string

// The statuses.
const (
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusDeclined  Status = "declined"
)

// Usage counts what a turn consumed, or for agents that count a whole
// conversation, what it consumed until now (Total). InputTokens counts all that
// the model read, also what it had cached.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
	CostUSD      float64
	Total        bool
}

// Outcome is what the output of one turn came to.
type Outcome struct {
	Status Status
	Reply  []byte // nil with ReplyTail: take the end of stdout instead
	// ReplyTail says that the reply is the last of stdout, as it is (sh and
	// the plain-text agents).
	ReplyTail bool
	Error     string // a sentence a user can act on, when failed or declined
	Session   string // the agent's own session id, when the output told it
	Usage     *Usage
	Unknown   map[string]int // unknown event kinds, counted
}

// Exit is how a run's process ended, as a parser needs it.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // "KILL", …; empty when it exited
}

// Parser reads the output of one turn. It is not safe for concurrent use.
type Parser interface {
	// Parse takes the next bytes of stdout and calls emit for each event,
	// with the count of bytes of the whole output after which it was known.
	// It keeps what it has not understood yet, within a bound of its own.
	Parse(p []byte, emit func(end int64, e Event))
	// Finish says that the output is over.
	Finish(emit func(end int64, e Event))
	// Outcome is asked for after Finish. stderr is the end of that stream.
	Outcome(exit Exit, stderr []byte) Outcome
	// Session is the agent's own session id as far as the output told it.
	Session() string
	// State and Restore carry a parser over a restart of the daemon: a new
	// one, restored, goes on where the old one was.
	State() (json.RawMessage, error)
	Restore(json.RawMessage) error
}
