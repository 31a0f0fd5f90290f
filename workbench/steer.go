package workbench

import (
	"context"

	"scvfs/ledger/fault"
)

// steering is how a prompt for a conversation goes into the turn that runs
// there.
const steering = "steer"

// runningServer is the server that runs a turn of the conversation; nil when
// none runs, or one over a transport that takes nothing meanwhile. busy tells
// whether a turn runs.
func (s *session) runningServer(id string) (v *server, busy bool) {
	c := s.conversation(id)
	if c == nil {
		return nil, false
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	if c.turn == nil {
		return nil, false
	}
	if t := c.turn.turn; t != nil {
		return t.srv, true
	}
	return nil, true
}

// steer hands a draft that asks for it to the running turn of its conversation,
// and returns the job that runs it. It is empty, without an error, when the
// draft is to go on as a job of its own: no turn runs, or the agent cannot take
// it and the call has another policy for that.
func (w *Workbench) steer(ctx context.Context, session string, p *plan) (job string, err error) {
	call := p.draft.Call
	if call.OnBusy != steering {
		return "", nil
	}
	s, err := w.open(session)
	if err != nil {
		return "", err
	}
	v, busy := s.runningServer(call.Session)
	switch {
	case v != nil:
		job, err = v.steer(ctx, p.draft.Prompt)
	case busy:
		err = cannotSteer(p)
	default:
		err = fault.New(fault.NotFound, "no turn of conversation %s runs", call.Session)
	}
	switch {
	case err == nil || p.draft.steerOnly:
		return job, err
	case fault.Is(err, fault.Unsupported), fault.Is(err, fault.NotFound), fault.Is(err, fault.Gone):
		return "", nil
	}
	return "", err
}

func cannotSteer(p *plan) error {
	transport, _ := p.agent.Carrier()
	return fault.New(fault.Unsupported, "%s takes no prompt into a running turn over the transport %s: write to queue", p.agent.Name, transport)
}

// checkSteer refuses what cannot go into a running turn, as far as that can be
// known without asking the agent.
func (w *Workbench) checkSteer(session string, p *plan) error {
	if !p.draft.steerOnly {
		return nil
	}
	s, err := w.open(session)
	if err != nil {
		return err
	}
	switch v, busy := s.runningServer(p.draft.Call.Session); {
	case !busy:
		return fault.New(fault.NotFound, "no turn of conversation %s runs: write to queue", p.draft.Call.Session)
	case v == nil:
		return cannotSteer(p)
	}
	return nil
}

// deliver starts a plan's job, or hands its prompt to the turn that runs.
func (w *Workbench) deliver(ctx context.Context, session string, p *plan) (string, error) {
	job, err := w.steer(ctx, session, p)
	if job != "" || err != nil {
		return job, err
	}
	return w.submit(session, p)
}

// steerable tells whether a run serves a turn that takes a prompt now.
func (w *Workbench) steerable(run string) bool {
	w.mu.RLock()
	v := w.servers[run]
	w.mu.RUnlock()
	return v != nil && v.steers.Load()
}
