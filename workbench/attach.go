package workbench

import "scvfs/ledger"

// AttachState tells whether a conversation can be taken over now. The words
// are the seed's.
type AttachState string

// The states. A word that this program does not know reads as AttachUnknown.
const (
	AttachReady      AttachState = "ready"      // attach takes it over
	AttachTakenOver  AttachState = "taken_over" // attach joins the takeover that runs
	AttachBusy       AttachState = "busy"       // a turn runs or waits
	AttachIneligible AttachState = "ineligible" // its agent's terminal is not offered
	AttachNoSession  AttachState = "no_session" // its agent has no session to open yet
	AttachReviewed   AttachState = "reviewed"   // a reviewed job holds it
	AttachFull       AttachState = "full"       // limits.takeovers run
	AttachUnknown    AttachState = "unknown"
)

// UnmarshalText decodes a state; an unknown word becomes AttachUnknown.
func (s *AttachState) UnmarshalText(b []byte) error {
	switch *s = AttachState(b); *s {
	case AttachReady, AttachTakenOver, AttachBusy, AttachIneligible, AttachNoSession, AttachReviewed, AttachFull:
	default:
		*s = AttachUnknown
	}
	return nil
}

// Attach tells whether a conversation can be taken over now, and why not.
type Attach struct {
	State     AttachState `json:"state"`
	Detail    string      `json:"detail,omitempty"` // what attach would be refused with
	Interrupt bool        `json:"interrupt"`        // attach with interrupt would stop Job first
	Job       string      `json:"job,omitempty"`    // that runs its turn
}

// noTerminals is why no conversation is taken over yet.
const noTerminals = "this version opens no terminal yet"

// attachOf tells whether a conversation can be taken over; nil for one that is
// forgotten. It goes by published records and takes no lock for long.
func (w *Workbench) attachOf(session, id string) *Attach {
	conv, ok := w.Conversation(session, id)
	if !ok {
		return nil
	}
	a, err := w.agent(conv.Agent)
	if err != nil {
		return &Attach{State: AttachIneligible, Detail: err.Error()}
	}
	if why := a.TerminalOffered(); why != "" {
		return &Attach{State: AttachIneligible, Detail: why}
	}
	state, job := w.ConversationState(session, id)
	n, _ := ParseJobName(job)
	rec, running := w.Job(session, n)
	switch {
	case running && rec.Reviewed:
		return &Attach{State: AttachReviewed, Detail: job + ", a reviewed job, holds the conversation", Job: job}
	case conv.Vendor == "" && !a.Stateless:
		return &Attach{State: AttachNoSession, Detail: "the agent has told no session of its own yet", Job: job}
	case state == ledger.Queued:
		return &Attach{State: AttachBusy, Detail: "prompts wait for the conversation"}
	case state != ledger.Idle:
		return &Attach{State: AttachBusy, Detail: job + " runs a turn of the conversation", Job: job}
	}
	return &Attach{State: AttachIneligible, Detail: noTerminals}
}
