package workbench

import (
	"fmt"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// AttachState says whether a conversation can be taken over now.
type AttachState string

// The states, in the words of a snapshot.
const (
	AttachReady      AttachState = "ready"
	AttachTakenOver  AttachState = "taken_over"
	AttachBusy       AttachState = "busy"       // a turn runs
	AttachIneligible AttachState = "ineligible" // its agent's terminal is not offered
	AttachNoSession  AttachState = "no_session" // its agent has told no session yet
	AttachReviewed   AttachState = "reviewed"   // a reviewed job holds it
	AttachFull       AttachState = "full"       // as many takeovers run as may
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

// Attach is what an attach would say now, and what an interrupt would do: the
// file attach-state, and a run's attach in a snapshot.
type Attach struct {
	State     AttachState `json:"state"`
	Detail    string      `json:"detail,omitempty"` // why not, in a sentence
	Interrupt bool        `json:"interrupt"`        // an interrupt could take it over
	Job       string      `json:"job,omitempty"`    // the one that an interrupt would stop
}

// refuse is an attach that is not ready, with the kind of its error.
func (a Attach) refuse(kind fault.Kind) attachable { return attachable{Attach: a, kind: kind} }

// attachable is an Attach with what an error about it is.
type attachable struct {
	Attach
	kind fault.Kind
}

// err is the refusal of an attach; nil when it is ready.
func (a attachable) err() error {
	if a.State == AttachReady {
		return nil
	}
	return fault.New(a.kind, "refused: %s", a.Detail)
}

// AttachState tells whether a conversation can be taken over now.
func (w *Workbench) AttachState(session, id string) Attach {
	s := w.session(session)
	if s == nil {
		return Attach{State: AttachUnknown, Detail: "there is no session " + session}
	}
	c := s.conversation(id)
	if c == nil {
		return Attach{State: AttachUnknown, Detail: noConversation(s, id).Error()}
	}
	var turn *ledger.Job
	for _, j := range s.lane(id) {
		if rec := j.record(); !rec.State.Terminal() && rec.State != ledger.Queued {
			turn = rec
		}
	}
	return w.attachable(s, s.convRecord(c), c.taken.Load(), turn).Attach
}

// attachable makes the checks of an attach to a conversation with a takeover
// and the job of a running turn, both nil for none, in the order of what mends
// them.
func (w *Workbench) attachable(s *session, rec *ledger.Conversation, taken *Takeover, turn *ledger.Job) attachable {
	why := func(state AttachState, kind fault.Kind, format string, args ...any) attachable {
		return Attach{State: state, Detail: fmt.Sprintf(format, args...)}.refuse(kind)
	}
	if s.record().Closed {
		return why(AttachIneligible, fault.Closed, "session %s is closed", rec.Session)
	}
	if taken != nil {
		return why(AttachTakenOver, fault.Busy, "conversation %s is taken over already, in run %s", rec.ID, taken.id)
	}
	a, err := w.agent(rec.Agent)
	if err != nil {
		return why(AttachIneligible, fault.Unsupported, "%v", err)
	}
	if no := a.TerminalOffered(); no != "" {
		return why(AttachIneligible, fault.Unsupported, "%s", no)
	}
	if _, no := a.TerminalProgram(w.look); no != "" {
		return why(AttachIneligible, fault.Unsupported, "%s is not offered: %s", rec.Agent, no)
	}
	if turn != nil && turn.Reviewed {
		return why(AttachReviewed, fault.Busy, "conversation %s is held by %s, a reviewed job: wait for it or cancel it", rec.ID, address(turn.Session, turn.Number))
	}
	if !a.Stateless && rec.Vendor == "" {
		return why(AttachNoSession, fault.Unsupported, "conversation %s has no session of its agent's yet: let a turn begin first", rec.ID)
	}
	if n := w.takeovers(); n >= w.limits.Takeovers {
		return why(AttachFull, fault.Limit, "%d takeovers run, as many as limits.takeovers allows: end one (echo end > …/takeover/ctl)", n)
	}
	if turn != nil {
		return busyTurn(turn, why)
	}
	if err := w.diskFloor(); err != nil {
		return why(AttachFull, fault.KindOf(err), "%v", err)
	}
	return attachable{Attach: Attach{State: AttachReady, Interrupt: true}}
}

// busyTurn is the state of a conversation that runs a turn.
func busyTurn(job *ledger.Job, why func(AttachState, fault.Kind, string, ...any) attachable) attachable {
	name, at := JobName(job.Number), address(job.Session, job.Number)
	if job.State == ledger.AwaitingInput {
		busy := why(AttachBusy, fault.Busy, "%s waits for an approval, which a takeover neither answers nor withdraws: answer it first", at)
		busy.Job = name
		return busy
	}
	busy := why(AttachBusy, fault.Busy, "conversation %s runs the turn of %s: wait for it, or write interrupt, which stops it", job.Conversation, at)
	busy.Job, busy.Interrupt = name, true
	return busy
}

// terminalOf is how the agent's own terminal is started on a conversation.
func (w *Workbench) terminalOf(rec *ledger.Conversation) (*agent.Agent, []string, error) {
	a, err := w.agent(rec.Agent)
	if err != nil {
		return nil, nil, err
	}
	path, no := a.TerminalProgram(w.look)
	if no != "" {
		return nil, nil, fault.New(fault.Unsupported, "refused: %s is not offered: %s", rec.Agent, no)
	}
	argv, err := a.TerminalArgv(path, rec.Vendor, w.opt.Shell)
	return a, argv, err
}
