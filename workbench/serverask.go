package workbench

import (
	"context"
	"fmt"

	"scvfs/ledger/fault"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

var _ asker = (*server)(nil)

// asked has a request of the agent decided, at once or by whom it waits for.
// What an earlier daemon was asked is bound by rebind.
func (v *server) asked(end int64, q dialogue.Ask) {
	if v.adopted {
		return
	}
	if v.turn == nil {
		v.answer(q.ID, dialogue.Answer{Reason: "there is no turn that this belongs to"})
		return
	}
	rec, _ := v.w.Run(v.id)
	number, decided, err := v.w.ask(v.turn.j, rec, v, q)
	if err != nil {
		v.w.log.Error("a request for approval could not be recorded; it is denied", "run", v.id, "err", err)
		v.record(end, activity.Event{Kind: agent.Note, Text: "a request was denied, as it could not be recorded: " + q.Summary})
		v.answer(q.ID, dialogue.Answer{Reason: "the request could not be recorded: " + err.Error()})
		return
	}
	v.record(end, activity.Event{Kind: agent.ApprovalRequested, Text: fmt.Sprintf("%d: %s", number, q.Summary), Risk: string(q.Risk)})
	if decided != nil {
		v.decide(q.ID, number, decided.Answer, decided.How)
		return
	}
	v.decisions[q.ID] = number
}

// answered implements asker.
func (v *server) answered(ask string, number uint64, a dialogue.Answer, how string) {
	v.box.post(func() { v.decide(ask, number, a, how) })
}

// decide logs a decision and hands it to the agent.
func (v *server) decide(ask string, number uint64, a dialogue.Answer, how string) {
	delete(v.decisions, ask)
	status := "denied"
	if a.Allow {
		status = "approved"
	}
	text := fmt.Sprintf("%d: %s", number, status)
	if why := a.Reason; why != "" && !a.Allow {
		text += ": " + why
	}
	v.log.Record(activity.Event{Kind: agent.ApprovalResolved, Text: text, Status: status, By: how})
	v.answer(ask, a)
}

// answer hands an answer to the agent. One that came too late is of no use to
// anybody.
func (v *server) answer(ask string, a dialogue.Answer) {
	if err := v.d.Answer(ask, a, v.done); err != nil && !fault.Is(err, fault.Done) {
		v.log.Record(activity.Event{Kind: agent.Note, Text: "an answer could not be handed over: " + err.Error()})
	}
}

// withdrawn takes back a request that the agent needs no answer to.
func (v *server) withdrawn(end int64, ask string) {
	if number, waits := v.decisions[ask]; waits {
		delete(v.decisions, ask)
		v.record(end, activity.Event{Kind: agent.ApprovalResolved, Text: fmt.Sprintf("%d: withdrawn", number), Status: "withdrawn", By: "the agent"})
	}
	v.w.withdraw(v.id, ask, "its agent took it back")
}

// withdrawAll takes back all requests that wait.
func (v *server) withdrawAll(why string) {
	for ask, number := range v.decisions {
		v.log.Record(activity.Event{Kind: agent.ApprovalResolved, Text: fmt.Sprintf("%d: withdrawn", number), Status: "withdrawn", By: why})
		delete(v.decisions, ask)
	}
	v.w.withdrawAll(v.id, why)
}

// rebind binds what an earlier daemon was asked, once all that the agent said
// meanwhile is read.
func (v *server) rebind() {
	if !v.adopted {
		return
	}
	v.adopted = false
	if v.turn == nil {
		for _, q := range v.d.Asks() {
			v.answer(q.ID, dialogue.Answer{Reason: "there is no turn that this belongs to"})
		}
		v.carryOut()
		return
	}
	rec, _ := v.w.Run(v.id)
	for ask, number := range v.w.reask(v.turn.j, rec, v, v.d.Asks()) {
		v.decisions[ask] = number
	}
}

// steer puts a text into the turn that runs. It waits for the server's
// goroutine, and is called with no lock held. fault.Unsupported when the agent
// cannot take it, fault.NotFound when no turn runs.
func (v *server) steer(ctx context.Context, text []byte) (job string, err error) {
	reply := make(chan struct{})
	if !v.box.post(func() {
		defer close(reply)
		if v.settled || isClosed(v.proc.Done()) {
			err = v.errGone()
			return
		}
		if v.turn == nil || v.ending != nil {
			err = fault.New(fault.NotFound, "no turn runs that could take a prompt")
			return
		}
		if err = v.d.Steer(text, v.done); err == nil {
			job = v.turn.j.address()
		}
	}) {
		return "", v.errGone()
	}
	select {
	case <-reply:
		return job, err
	case <-v.over:
		return "", v.errGone()
	case <-ctx.Done():
		return "", fault.New(fault.Interrupted, "interrupted while the agent was given the prompt; it may get it all the same")
	case <-v.w.ctx.Done():
		return "", fault.New(fault.Gone, "the daemon is stopping")
	}
}

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
