package workbench

import (
	"encoding/json"
	"errors"

	"scvfs/ledger"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/run"
)

// doubt is why a turn is interrupted whose daemon died while it wrote.
const doubt = "the daemon died while it wrote to its agent, so it is not known what arrived; nothing is sent twice"

// dialogueOptions is how the agent of a turn is spoken with.
func (t *turn) dialogueOptions() dialogue.Options {
	o := dialogue.Options{
		Agent: t.agent, CWD: t.rec.CWD, Full: t.agent.FullPermissions(), Mode: t.agent.Mode, Version: t.w.opt.Version,
		Model: t.model(), Effort: t.effort(),
	}
	if t.conv != nil {
		o.Session = t.j.s.convRecord(t.conv).Vendor
	}
	return o
}

// restore puts a server where the last checkpoint of an earlier daemon left
// it. t is the turn that it serves by the ledger; nil for none.
func (v *server) restore(t *turn, o dialogue.Options) error {
	v.adopted = true
	cp := v.log.Resume()
	var p point
	if cp.Parser != nil {
		if err := json.Unmarshal(cp.Parser, &p); err != nil {
			return err
		}
	}
	transport := agent.TransportACP
	if t != nil {
		transport = t.rec.Transport
	}
	d, err := v.w.opt.dialogue(transport, o)
	if err != nil {
		return err
	}
	v.d, v.model, v.effort = d, o.Model, o.Effort
	if cp.Parser == nil { // nothing was ever written to it
		v.d.Open(v.done)
		v.carryOut()
		return nil
	}
	if err := v.d.Restore(p.Dialogue); err != nil {
		return err
	}
	v.read, v.saved, v.outbox, v.doubtful = cp.Offset, cp.Offset, p.Outbox, p.Writing
	v.model, v.effort = p.Model, p.Effort
	if t != nil && p.Job == t.j.number {
		v.turn, v.began = t, p.Began
	}
	v.carryOut()
	return nil
}

// adoptServer goes on with a turn that an earlier daemon handed to a server.
func (t *turn) adoptServer(proc run.Process) {
	v := t.srv
	v.proc = proc
	err := t.open()
	if err == nil {
		v.log = t.log
		err = v.restore(t, t.dialogueOptions())
	}
	if err == nil && v.doubtful {
		select {
		case <-proc.Done(): // what arrived shows in what it said
		default:
			err = errors.New(doubt)
		}
	}
	if err != nil {
		if v.halt() != nil {
			return
		}
		t.settle(ending{state: ledger.Interrupted, detail: err.Error(), exit: "unknown"})
		v.abandon()
		return
	}
	v.serve(proc, t)
}

// abandon ends a server whose run was settled without it.
func (v *server) abandon() {
	v.retired, v.settled = "it could not be adopted", true
	v.turn = nil
	v.finish()
}

// recoverServers adopts the servers that an earlier daemon left between two
// turns. The caller holds s.tr.
func (w *Workbench) recoverServers(s *session) {
	busy := map[string]bool{}
	for _, j := range s.unfinished() {
		busy[j.record().Run] = true
	}
	id := s.record().ID
	for _, rec := range w.Runs() {
		if rec.Session != id || rec.Transport != agent.TransportACP || rec.State.Terminal() || busy[rec.ID] {
			continue
		}
		c := s.conversation(rec.Conversation)
		a, err := w.agent(rec.Agent)
		if err != nil {
			a = &agent.Agent{Name: rec.Agent}
		}
		forgotten := c == nil
		if forgotten {
			c = &conversation{rec: &ledger.Conversation{ID: rec.Conversation, Session: id}}
		}
		v := w.newServer(s, c, a, rec)
		switch {
		case forgotten || s.record().Closed || c.server != nil:
			v.box.post(func() { v.retire("its conversation is forgotten, closed, or has a newer one") })
		default:
			c.server = v
		}
		w.spawn(func() { v.adopt(rec) })
	}
}

// adopt takes over a server between two turns.
func (v *server) adopt(rec *ledger.Run) {
	defer v.guard()
	proc, standing, err := v.w.adoptRun(v.id)
	if err != nil || standing == run.Never {
		v.w.log.Error("a server cannot be adopted", "run", v.id, "err", err)
		v.proc = gone{}
		v.abandonAlone()
		return
	}
	v.proc = proc
	t := &turn{w: v.w, rec: rec}
	if err = t.open(); err == nil {
		v.log = t.log
		err = v.restore(nil, dialogue.Options{Agent: v.agent, CWD: rec.CWD, Session: rec.Vendor, Version: v.w.opt.Version})
	}
	if err == nil && v.doubtful {
		err = errors.New(doubt)
	}
	if err != nil {
		v.w.log.Warn("a server between two turns cannot go on; it is stopped", "run", v.id, "err", err)
		if v.halt() != nil {
			return
		}
		v.abandonAlone()
		return
	}
	v.serve(proc, nil)
}

// abandonAlone records the end of a server that could not be adopted.
func (v *server) abandonAlone() {
	t := &turn{w: v.w, rec: &ledger.Run{ID: v.id}}
	_ = t.untilDone("run's end", func() error { return v.commitAlone(ledger.Interrupted, "it could not be adopted") })
	v.abandon()
}

// gone stands for the process of a run that has none.
type gone struct{ run.Process }
