package workbench

import (
	"context"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench/run"
)

// TakeTerminal gives the terminal of a takeover to a process, which takes it
// from whoever held it. who names the process for people.
func (k *Takeover) TakeTerminal(pid int, who string) *takeover.Hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holder, k.held = pid, k.terminal.Hold(who)
	return k.held
}

// MayType tells whether a process that does not have input open may press keys
// or resize: nobody holds the terminal, or it does itself, by another
// descriptor. fault.Busy when another one holds it.
func (k *Takeover) MayType(pid int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if who := k.terminal.Holder(); who != "" && pid != k.holder {
		return fault.New(fault.Busy, "refused: %s holds the terminal; write to input to take it", who)
	}
	return nil
}

// By does something with the terminal for a process that may, as its holder
// does, or holding it for that moment.
func (k *Takeover) By(pid int, who string, do func(*takeover.Hold) error) error {
	if err := k.MayType(pid); err != nil {
		return err
	}
	if h := k.current(); h != nil {
		return do(h)
	}
	h := k.TakeTerminal(pid, who)
	defer h.Release()
	return do(h)
}

// current is the hold in force; nil for none.
func (k *Takeover) current() *takeover.Hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terminal.Holder() == "" {
		return nil
	}
	return k.held
}

// Detach takes the terminal from whoever holds it; the program goes on.
func (k *Takeover) Detach() {
	if h := k.current(); h != nil {
		h.Release()
	}
}

// end hangs the terminal up, for why; it does not wait.
func (k *Takeover) end(why string) {
	k.w.spawn(func() {
		<-k.ready
		if k.failed != nil {
			return
		}
		k.mu.Lock()
		if k.why == "" {
			k.why = why
		}
		k.mu.Unlock()
		if err := k.proc.HangUp(k.w.ctx); err != nil && k.w.ctx.Err() == nil {
			k.w.log.Error("a takeover's process could not be ended", "run", k.id, "err", err)
		}
	})
}

// EndTakeover ends the takeover of a conversation: it hangs the terminal up,
// stops its process, and gives the conversation back. It returns once that is
// done, with our note and the final screen. fault.NotFound when there is none.
func (w *Workbench) EndTakeover(ctx context.Context, session, id string) (note, screen string, err error) {
	k, ok := w.Takeover(session, id)
	if !ok {
		return "", "", fault.New(fault.NotFound, "conversation %s of session %s is not taken over", id, session)
	}
	k.end("the owner")
	if !patient(ctx, k.over) {
		return "", "", fault.New(fault.Interrupted, "interrupted while the takeover was ending; it ends all the same")
	}
	return k.terminalNote(), k.terminal.Text(), nil
}

// EndTakeovers ends all takeovers, waiting for each, and has none start any
// more: the daemon is stopping.
func (w *Workbench) EndTakeovers(ctx context.Context) {
	w.mu.Lock()
	w.noTakeovers = true
	all := make([]*Takeover, 0, len(w.taken))
	for k := range w.taken {
		all = append(all, k)
	}
	w.mu.Unlock()
	for _, k := range all {
		k.end("the daemon, which stops")
	}
	for _, k := range all {
		select {
		case <-k.over:
		case <-ctx.Done():
			return
		}
	}
}

// endTakeover ends the conversation's takeover, if there is one. The caller
// holds s.tr.
func (c *conversation) endTakeover(why string) {
	if k := c.taken.Load(); k != nil {
		k.end(why)
	}
}

// recoverTakeovers ends what a daemon that died left of its takeovers: their
// terminals are gone with it. Their lanes are held until nothing of them lives.
// The caller holds s.tr.
func (w *Workbench) recoverTakeovers(s *session) {
	id := s.record().ID
	for _, rec := range w.Runs() {
		if rec.Session != id || rec.Transport != transportTerminal || rec.State.Terminal() {
			continue
		}
		c := s.conversation(rec.Conversation)
		if c == nil {
			c = &conversation{rec: &ledger.Conversation{ID: rec.Conversation, Session: id}}
		}
		k := &Takeover{w: w, s: s, conv: c, id: rec.ID, ready: make(chan struct{}), over: make(chan struct{})}
		c.taken.Store(k)
		w.spawn(k.bury)
	}
}

// bury stops what is left of a takeover whose daemon died.
func (k *Takeover) bury() {
	k.failed = fault.New(fault.Gone, "the daemon stopped while conversation %s was taken over", k.conv.rec.ID)
	close(k.ready)
	proc, standing, err := k.w.adoptRun(k.id)
	if err == nil && standing == run.Live {
		t := &turn{w: k.w, rec: &ledger.Run{ID: k.id}}
		if t.halt(proc) != nil {
			return
		}
	}
	k.release(ledger.Interrupted, "the daemon died while it was taken over; its terminal was hung up")
}

// Conversation returns the session and the conversation that is taken over.
func (k *Takeover) Conversation() (session, id string) {
	rec := k.s.convRecord(k.conv)
	return rec.Session, rec.ID
}

// terminalNote is the note that the terminal ended with.
func (k *Takeover) terminalNote() string {
	e, _ := k.Terminal().Ending()
	return e.Note
}
