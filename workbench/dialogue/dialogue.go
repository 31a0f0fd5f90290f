// Package dialogue speaks with agents that are servers: that take prompts,
// answers and interrupts while they work, and ask before they act.
//
// A Dialogue is one side of such a conversation as a pure state machine: bytes
// of the agent's output go in, events, questions and the messages to send come
// out. It has no clock, no process and no file, so an adopted run is rebuilt
// from a checkpoint and the output after it, as with the parsers of package
// agent. The protocols are packages below this one.
//
// There are no locks: a Dialogue belongs to one goroutine.
//
// # Invariants
//
//   - A dialogue gives the same outputs with the same ends for the same bytes
//     and calls, however the bytes are cut and wherever State and Restore came
//     between. Ends never go back.
//   - A message is whole, and is given out once; whoever drives the dialogue
//     keeps a checkpoint before and after it is written, so that it is never
//     sent twice.
//   - Each turn that was begun ends by exactly one Ended, or by Outcome after
//     the agent's output is over.
//   - Each Ask is answered, or withdrawn, exactly once, and none outlives its
//     turn.
//   - What is kept is bounded, whatever the agent says: a line of 16 MiB, an
//     answer of 16 MiB, MaxAsks questions.
package dialogue

import (
	"encoding/json"

	"scvfs/workbench/agent"
)

// MaxAsks is how many questions of an agent wait at once; what it asks beyond
// is denied.
const MaxAsks = 64

// Options are what a dialogue begins with.
type Options struct {
	Agent   *agent.Agent
	CWD     string // absolute directory that the agent works in
	Session string // the agent's own session to continue; empty for a new one
	Model   string // empty: the agent's own
	Effort  string
	Mode    string // the agent's mode to work in, by its own name; empty: its own
	Full    bool   // full permissions: it is to ask nothing
	Version string // of scvfs, for the greeting
}

// Kind is what an agent wants.
type Kind string

// The kinds of an Ask.
const (
	Permission Kind = "permission" // may it do this: yes or no
	Question   Kind = "question"   // which of these, or in the owner's words
)

// Risk is what an act can harm, by the word that approvals show.
type Risk string

// The risks.
const (
	ReadOnly   Risk = "read-only"
	Filesystem Risk = "filesystem"
	Process    Risk = "process"
	Network    Risk = "network"
	Delegate   Risk = "delegate" // anything: what it does is not known
)

// Ask is a request of an agent that waits for an answer. Its texts are the
// agent's own, and may hold any bytes: whoever shows them makes them safe.
type Ask struct {
	ID        string          `json:"id"` // unique in the dialogue
	Kind      Kind            `json:"kind"`
	Risk      Risk            `json:"risk"`
	Tool      string          `json:"tool,omitempty"` // what it wants to use, by the agent's name
	Summary   string          `json:"summary"`        // what it wants to do, in a line: "run `rm -rf build`"
	CWD       string          `json:"cwd,omitempty"`  // where, when it says so
	Request   json.RawMessage `json:"request"`        // all of it, as it came
	Questions []Choice        `json:"questions,omitempty"`
}

// Choice is one question of an Ask of the kind Question.
type Choice struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"` // what may be chosen; empty: free words only
	Multi   bool     `json:"multi,omitempty"`   // more than one may be chosen
}

// Answer is what was decided.
type Answer struct {
	Allow bool `json:"allow"`
	// Words are the answers to the questions of a Question, in their order; an
	// option's text or free words. They come with Allow.
	Words  []string `json:"words,omitempty"`
	Reason string   `json:"reason,omitempty"` // why not, for the agent to read
}

// Output is one thing that came of what was put in. Exactly one field is set.
type Output struct {
	Event *agent.Event   // a line of the activity log
	Send  []byte         // a message to write to the agent now, whole, with its newline
	Ask   *Ask           // the agent asks
	Gone  string         // the Ask of this id needs no answer any more
	Ended *agent.Outcome // the turn ended
}

// Emit takes an output, with the count of bytes of the agent's whole output
// after which it was known.
type Emit func(end int64, o Output)

// Dialogue is a conversation with one agent process. It is not safe for
// concurrent use.
type Dialogue interface {
	// Open gives out the greeting. It is called once, before all else, unless
	// Restore is.
	Open(emit Emit)
	// Feed takes the next bytes of the agent's output.
	Feed(p []byte, emit Emit)
	// Prompt begins a turn. What it sends may wait for the greeting to be
	// answered. fault.Busy while a turn runs, fault.Invalid for a text that
	// the protocol cannot carry, fault.Gone once the dialogue is over.
	Prompt(text []byte, emit Emit) error
	// Steer puts a text into the running turn. fault.Unsupported when the
	// agent cannot take it, fault.NotFound when no turn runs.
	Steer(text []byte, emit Emit) error
	// Steerable tells whether a running turn takes a text now.
	Steerable() bool
	// Asks are the questions that wait, in the order they came.
	Asks() []Ask
	// Answer answers one of them. fault.Done when it is answered or withdrawn.
	Answer(ask string, a Answer, emit Emit) error
	// Interrupt asks the agent to end its turn. Its Asks are withdrawn. It
	// does nothing when no turn runs.
	Interrupt(emit Emit)
	// Busy tells whether a turn runs or waits for the greeting.
	Busy() bool
	// Finish says that the agent's output is over; the Asks are withdrawn.
	Finish(emit Emit)
	// Outcome is how a turn ended that Finish cut off; asked for after Finish
	// and only then. stderr is the end of that stream.
	Outcome(exit agent.Exit, stderr []byte) agent.Outcome
	// Session is the agent's own session id as far as it told one.
	Session() string
	// State and Restore carry a dialogue over a restart of the daemon.
	State() (json.RawMessage, error)
	Restore(json.RawMessage) error
}
