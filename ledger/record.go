package ledger

import (
	"encoding/json"
	"time"
)

// Version is the schema version written into each record.
const Version = 2

// AgentState is where a run, a job or a conversation stands (DESIGN 6).
type AgentState string

// The states. A value that this program does not know reads as StateUnknown.
const (
	Starting      AgentState = "starting"
	Working       AgentState = "working"
	AwaitingInput AgentState = "awaiting_input"
	Idle          AgentState = "idle"
	Queued        AgentState = "queued"
	Completed     AgentState = "completed"
	Failed        AgentState = "failed"
	Declined      AgentState = "declined"
	TimedOut      AgentState = "timeout"
	Cancelled     AgentState = "cancelled"
	Interrupted   AgentState = "interrupted"
	StateUnknown  AgentState = "unknown"
)

// Terminal tells whether nothing follows the state any more.
func (s AgentState) Terminal() bool {
	switch s {
	case Completed, Failed, Declined, TimedOut, Cancelled, Interrupted:
		return true
	}
	return false
}

// known tells whether s is one of the states above.
func (s AgentState) known() bool {
	switch s {
	case Starting, Working, AwaitingInput, Idle, Queued, StateUnknown:
		return true
	}
	return s.Terminal()
}

// UnmarshalText decodes a state; an unknown word becomes StateUnknown.
func (s *AgentState) UnmarshalText(b []byte) error {
	if *s = AgentState(b); !s.known() {
		*s = StateUnknown
	}
	return nil
}

// JobStatus is a job's state in the seed's smaller vocabulary, as the status
// file shows it.
type JobStatus string

// StatusRunning is the status of each job that has not ended; the others are
// spelled as the terminal states.
const (
	StatusRunning JobStatus = "running"
	StatusUnknown JobStatus = "unknown"
)

// Status returns the state as a JobStatus.
func (s AgentState) Status() JobStatus {
	switch {
	case s.Terminal():
		return JobStatus(s)
	case s == StateUnknown:
		return StatusUnknown
	}
	return StatusRunning
}

// Origin says who started a job.
type Origin string

// The origins.
const (
	ByOwner Origin = "owner"
	ByModel Origin = "model"
)

// Session is a named workspace that jobs run in. Key: ID.
type Session struct {
	V         int               `json:"v"`
	ID        string            `json:"id"`
	Serial    uint64            `json:"serial"` // unique for ever: a name can be used again once the ledger forgot it
	Label     string            `json:"label,omitempty"`
	Workspace string            `json:"workspace"`
	Agent     string            `json:"agent,omitempty"` // default agent; empty: the configuration's
	Closed    bool              `json:"closed,omitempty"`
	Epoch     uint64            `json:"epoch,omitempty"` // how often it was closed
	NextJob   uint64            `json:"next_job"`        // number of the next job; never goes back
	NextConv  map[string]uint64 `json:"next_conversation,omitempty"`
	Created   time.Time         `json:"created"`
	Updated   time.Time         `json:"updated"`
}

// Call is what a job was asked to do, beside its prompt (DESIGN 5).
type Call struct {
	Agent         string          `json:"agent,omitempty"`
	CWD           string          `json:"cwd,omitempty"`
	Session       string          `json:"session,omitempty"` // conversation to continue
	Model         string          `json:"model,omitempty"`
	Effort        string          `json:"effort,omitempty"`
	Timeout       int64           `json:"timeout_seconds,omitempty"`
	Worktree      bool            `json:"worktree,omitempty"`
	OnBusy        string          `json:"on_busy,omitempty"`
	SteerFallback string          `json:"steer_fallback,omitempty"`
	Review        json.RawMessage `json:"review,omitempty"`
}

// Review is how a reviewed job stands: an agent works, another one looks at the
// work, and so on until it approves or the rounds are over.
type Review struct {
	Agent   string        `json:"agent"` // the reviewer
	Rounds  int           `json:"rounds"`
	Focus   string        `json:"focus,omitempty"`
	Model   string        `json:"model,omitempty"` // the reviewer's
	Effort  string        `json:"effort,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // of the reviewer's turns; 0: as the job's
	Round   int           `json:"round"`             // from 1
	Phase   string        `json:"phase"`             // builder or reviewer
	Runs    []string      `json:"runs,omitempty"`    // of all phases until now, oldest first
	Outcome string        `json:"outcome,omitempty"` // approved unresolved escalated no_verdict stopped
}

// Usage is what a job alone consumed.
type Usage struct {
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
}

// Cancel records who asked a job to stop, and when.
type Cancel struct {
	By string    `json:"by"` // "owner", "session closed", …
	At time.Time `json:"at"`
}

// Job is one prompt handed to one agent. Key: Session, Number.
type Job struct {
	V            int           `json:"v"`
	Session      string        `json:"session"`
	Number       uint64        `json:"number"`
	Serial       uint64        `json:"serial"` // order of creation over all sessions
	Agent        string        `json:"agent"`
	Task         string        `json:"task"`
	Call         Call          `json:"call"`
	Workspace    string        `json:"workspace"`
	CWD          string        `json:"cwd"`
	Timeout      time.Duration `json:"timeout"` // time limit in force, in nanoseconds
	StartedBy    Origin        `json:"started_by"`
	Parent       string        `json:"parent,omitempty"` // run of the agent that started it
	Thread       string        `json:"thread,omitempty"` // conversation of that run, if it is of the job's own session
	Origin       *TurnOrigin   `json:"origin,omitempty"` // why the workbench started it by itself; nil for all other jobs
	Depth        int           `json:"depth,omitempty"`
	Reviewed     bool          `json:"reviewed,omitempty"`
	State        AgentState    `json:"state"`
	Detail       string        `json:"detail,omitempty"` // our words for the state
	Exit         string        `json:"exit,omitempty"`   // how its process ended: "exit 0", "signal KILL", …
	Cancel       *Cancel       `json:"cancel,omitempty"`
	Conversation string        `json:"conversation,omitempty"`
	Vendor       string        `json:"vendor,omitempty"` // agent's own session id that its new conversation begins with
	Run          string        `json:"run,omitempty"`
	Worktree     string        `json:"worktree,omitempty"`
	Base         string        `json:"base,omitempty"` // commit that diff compares with; empty outside git
	ResumedAs    string        `json:"resumed_as,omitempty"`
	ResumedFrom  string        `json:"resumed_from,omitempty"`
	Reported     bool          `json:"reported,omitempty"` // the agent that started it knows how it ended, or is not to be told
	Review       *Review       `json:"review,omitempty"`   // how a reviewed job stands
	Usage        *Usage        `json:"usage,omitempty"`
	ResultBytes  int64         `json:"result_bytes,omitempty"` // whole length; more than the file holds when it was cut
	Created      time.Time     `json:"created"`
	Updated      time.Time     `json:"updated"`
	Ended        time.Time     `json:"ended,omitzero"`
}

// Conversation is a thread of turns with one agent. Key: Session, ID.
type Conversation struct {
	V        int       `json:"v"`
	Session  string    `json:"session"`
	ID       string    `json:"id"` // <agent>-<n>
	Agent    string    `json:"agent"`
	CWD      string    `json:"cwd"`
	Worktree string    `json:"worktree,omitempty"`
	Vendor   string    `json:"vendor,omitempty"` // the agent's own session id
	Turns    int       `json:"turns"`
	Total    *Usage    `json:"total,omitempty"` // consumed by all turns, for agents that count so
	Created  time.Time `json:"created"`
	Used     time.Time `json:"used"`
}

// Run is one agent process that the daemon started. Key: ID.
type Run struct {
	V            int        `json:"v"`
	ID           string     `json:"id"` // <agent>-<6 hex>
	Agent        string     `json:"agent"`
	Session      string     `json:"session"`
	Transport    string     `json:"transport"`
	Conversation string     `json:"conversation,omitempty"`
	Turn         int        `json:"turn,omitempty"`
	Jobs         []uint64   `json:"jobs,omitempty"` // numbers of all jobs it served, oldest first; the last is the current one
	CWD          string     `json:"cwd"`
	State        AgentState `json:"state"`
	Detail       string     `json:"detail,omitempty"`
	Vendor       string     `json:"vendor,omitempty"`
	Created      time.Time  `json:"created"`
	Updated      time.Time  `json:"updated"`
	Ended        time.Time  `json:"ended,omitzero"`
}
