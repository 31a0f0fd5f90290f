package workbench

import (
	"fmt"
	"slices"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/run"
)

// Caller is who asks for something. The zero value is the owner.
type Caller struct {
	// Agent says that it is a process of a run, or one that the daemon itself
	// started. What is known of that run:
	Agent        bool
	Run          string
	Session      string
	Conversation string
	Job          uint64 // that the run serves now; 0 for none
	Depth        int    // of that job

	// Unclear is why it cannot be told who asks, as the end of a sentence.
	Unclear string
}

// Owner tells whether it is the owner who asks.
func (c Caller) Owner() bool { return !c.Agent && c.Unclear == "" }

// Same tells whether two callers are one: the owner, or processes of one run.
// Of whom that cannot be told, nobody is the same.
func (c Caller) Same(o Caller) bool {
	return c.Unclear == "" && o.Unclear == "" && c.Agent == o.Agent && c.Run == o.Run
}

// String names the caller in a sentence.
func (c Caller) String() string {
	switch {
	case c.Owner():
		return "the owner"
	case c.Unclear != "":
		return "a process of which cannot be told whose it is (" + c.Unclear + ")"
	case c.Job != 0:
		return fmt.Sprintf("the agent of %s (run %s)", address(c.Session, c.Job), c.Run)
	case c.Run != "":
		return "an agent (run " + c.Run + ")"
	}
	return "a program that the daemon or an agent started"
}

// Caller tells who a process is: by whom it descends from, never by what it
// says. 0 is a process without a number here.
func (w *Workbench) Caller(pid int) Caller {
	o := w.opt.Runs.Origin(pid)
	switch o.Place {
	case run.Outside:
		return Caller{}
	case run.Inside:
		return w.agentOf(o.Run)
	}
	return Caller{Unclear: o.Why}
}

// agentOf is the caller that a process of a run is.
func (w *Workbench) agentOf(id string) Caller {
	c := Caller{Agent: true, Run: id}
	r, ok := w.Run(id)
	if !ok {
		return c
	}
	c.Session, c.Conversation = r.Session, r.Conversation
	if len(r.Jobs) == 0 {
		return c
	}
	c.Job, c.Depth = r.Jobs[len(r.Jobs)-1], maxDepth
	if rec, ok := w.Job(r.Session, c.Job); ok {
		c.Depth = rec.Depth
	}
	return c
}

// Reads tells whether the caller may read what belongs to a session; "" is
// what belongs to none.
func (c Caller) Reads(session string) bool {
	return !c.Agent || session != "" && session == c.Session
}

// OwnersAlone refuses what only the owner may do.
func OwnersAlone(c Caller) error {
	if c.Owner() {
		return nil
	}
	return fault.New(fault.Denied, "this is for the owner alone, and not for %s: ask the owner to do it", c)
}

// MayStart refuses a caller that may start no job in a session. An agent may
// in its own, unless it is limits.delegation_depth levels below the owner.
func (w *Workbench) MayStart(c Caller, session string) error {
	switch {
	case c.Owner():
		return nil
	case !c.Agent:
		return OwnersAlone(c)
	case !c.Reads(session):
		return fault.New(fault.Denied, "%s may start jobs in its own session alone, not in %s: ask the owner to do it", c, session)
	case c.Depth >= w.limits.DelegationDepth:
		return fault.New(fault.Denied, "%s is as many jobs below the owner as limits.delegation_depth allows, %d, so it starts none: do the work yourself", c, w.limits.DelegationDepth)
	}
	return nil
}

// MayDirect refuses a caller that may not tell a job what to do: an agent that
// did not start it.
func (w *Workbench) MayDirect(c Caller, rec *ledger.Job) error {
	switch {
	case c.Owner():
		return nil
	case !c.Agent:
		return OwnersAlone(c)
	case !w.began(c, rec):
		return fault.New(fault.Denied, "%s did not start %s, and directs only jobs that it started: ask the owner to do it", c, address(rec.Session, rec.Number))
	}
	return nil
}

// began tells whether an agent started a job, in this turn or an earlier one
// of its conversation, or a job that it started did.
func (w *Workbench) began(c Caller, rec *ledger.Job) bool {
	if !c.Reads(rec.Session) {
		return false
	}
	for range maxDepth {
		switch {
		case rec.Parent == "":
			return false
		case rec.Parent == c.Run, rec.Thread != "" && rec.Thread == c.Conversation:
			return true
		}
		r, ok := w.Run(rec.Parent)
		if !ok || r.Session != c.Session || len(r.Jobs) == 0 {
			return false
		}
		if rec, ok = w.Job(r.Session, r.Jobs[len(r.Jobs)-1]); !ok {
			return false
		}
	}
	return false
}

// maxDepth is more than limits.delegation_depth can be.
const maxDepth = 64

// delegate checks who asks for a job, and enters it in the plan. An agent goes
// on only with conversations that it began.
func (w *Workbench) delegate(session string, p *plan) error {
	by := p.draft.By
	if by.Owner() {
		return nil
	}
	if err := w.MayStart(by, session); err != nil {
		return err
	}
	p.parent, p.depth = by.Run, by.Depth+1
	conv := p.draft.Call.Session
	mine := func(rec *ledger.Job) bool { return w.began(by, rec) }
	if conv != "" && !slices.ContainsFunc(w.ConversationJobs(session, conv), mine) {
		return fault.New(fault.Denied, "%s did not begin conversation %s, and goes on only with those that it began: ask the owner to do it", by, conv)
	}
	return nil
}

// admitDelegated refuses a job of an agent's that would wait for a slot: the
// agent may be what holds it. One that waits for a turn of its own conversation
// has that turn's slot to come. The caller holds s.tr.
func (w *Workbench) admitDelegated(s *session, p *plan) error {
	by, id := p.draft.By, s.record().ID
	if by.Owner() {
		return nil
	}
	if c := s.conversation(p.draft.Call.Session); c != nil && c.turn != nil && c.turn.number != by.Job {
		return nil
	}
	stop := "wait until one has ended"
	for _, j := range s.unfinished() {
		if rec := j.record(); w.began(by, rec) {
			stop = fmt.Sprintf("wait until one has ended, or stop one of yours: echo cancel > sessions/%s/jobs/%s/ctl", id, JobName(rec.Number))
			break
		}
	}
	return fault.New(fault.Limit, "session %s runs %d jobs and %d wait; at most %d (limits.jobs) run, and an agent's jobs do not wait: %s",
		id, s.running, len(s.queue), w.limits.Jobs, stop)
}
