package workbench

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// serve is the whole of a takeover: it waits for the turn and the server
// before, runs the terminal, and gives the lane back.
func (k *Takeover) serve(turn *job, before <-chan struct{}, rec *ledger.Run, size takeover.Size) {
	if !k.await(turn, before) {
		k.fail(fault.New(fault.Gone, "the daemon stopped before the terminal was opened"))
		return
	}
	if err := k.start(rec, size); err != nil {
		k.fail(err)
		return
	}
	k.publish(rec)
	close(k.ready)
	select {
	case <-k.terminal.Gone():
	case <-k.proc.Done():
	}
	k.hangUp()
	k.settle()
}

// await waits until nothing else works in the conversation.
func (k *Takeover) await(turn *job, before <-chan struct{}) bool {
	if turn != nil {
		select {
		case <-turn.done:
		case <-k.w.ctx.Done():
			return false
		}
	}
	if before != nil {
		select {
		case <-before:
		case <-k.w.ctx.Done():
			return false
		}
	}
	return true
}

// start opens the agent's terminal.
func (k *Takeover) start(rec *ledger.Run, size takeover.Size) error {
	w := k.w
	conv := k.s.convRecord(k.conv) // the turn before may have told the session
	if _, err := w.sameDir(conv.CWD); err != nil {
		return err
	}
	a, argv, err := w.terminalOf(conv)
	if err != nil {
		return err
	}
	spec := run.Spec{
		Run: k.id, Argv: argv, Dir: conv.CWD, Stdin: run.StdinTTY, Cols: size.Cols, Rows: size.Rows, Umask: w.opt.Umask,
		Grace: w.limits.Grace.Duration(),
		Env: agent.Environ(takeover.Environ(os.Environ()), a, append(a.TerminalEnv(),
			"SCV_MOUNT="+w.opt.Mount, "SCV_SESSION="+conv.Session, "SCV_RUN="+k.id, "SCV_DEPTH="+strconv.Itoa(1), "TMPDIR="+w.opt.Runs.Path(k.id, "tmp"))...),
	}
	if err := w.opt.Runs.Create(spec, nil); err != nil {
		return err
	}
	log, err := activity.Open(w.opt.Runs.Path(k.id, ""), activity.Options{MaxBytes: int64(w.limits.LogBytes)})
	if err != nil {
		return err
	}
	k.log = log
	log.Record(activity.Event{Kind: agent.RunStarted, Text: a.Name + "'s terminal in " + conv.CWD},
		activity.Event{Kind: agent.Note, Text: "conversation " + conv.ID + " is taken over" + k.because()})
	proc, master, err := w.opt.Runs.StartTerminal(k.id)
	if err != nil {
		return err
	}
	terminal, err := takeover.New(master, takeover.Options{
		Size: size, Scrollback: w.limits.Scrollback, KittyKeys: true,
		Subject: takeover.Subject{Session: conv.Session, Conversation: conv.ID, Agent: a.Name, Run: k.id},
	})
	if err != nil {
		_ = proc.HangUp(w.ctx)
		return err
	}
	k.mu.Lock()
	k.proc, k.terminal = proc, terminal
	k.mu.Unlock()
	return nil
}

func (k *Takeover) because() string {
	if k.note == "" {
		return ""
	}
	return "; " + k.note
}

// publish shows a takeover whose terminal is there.
func (k *Takeover) publish(rec *ledger.Run) {
	w := k.w
	k.s.tr.Lock()
	defer k.s.tr.Unlock()
	next := *rec
	next.State, next.Updated = ledger.Working, time.Now()
	if err := w.commit(func(b *ledger.Batch) { b.PutRun(&next) }); err != nil {
		w.log.Warn("a takeover's start could not be recorded; it goes on", "run", k.id, "err", err)
	}
	w.showRun(&next)
	w.setLive(k.id, k.proc)
	k.conv.shown.Store(k)
	w.announce(Change{Kind: TakeoverStarted, Session: rec.Session, Run: k.id, Agent: rec.Agent, Detail: rec.Conversation})
}

// fail gives the lane back when the terminal could not be opened.
func (k *Takeover) fail(err error) {
	if k.log != nil {
		k.log.Record(activity.Event{Kind: agent.RunEnded, Status: string(ledger.Failed), Text: "not started: " + err.Error()})
		k.log.Close()
	}
	k.failed = err
	close(k.ready)
	k.release(ledger.Failed, err.Error())
}

// hangUp ends the process behind the terminal, and waits until its tree is
// empty or the daemon is gone.
func (k *Takeover) hangUp() {
	for {
		if err := k.proc.HangUp(k.w.ctx); err != nil && k.w.ctx.Err() == nil {
			k.w.log.Error("a takeover's process could not be ended", "run", k.id, "err", err)
		}
		select {
		case <-k.proc.Done():
			return
		case <-k.w.ctx.Done():
			return
		}
	}
}

// settle writes what is left of a takeover to its log, and gives the lane back.
func (k *Takeover) settle() {
	exit, known := k.proc.Exit()
	words := exitWords(exit, known)
	note := k.endNote(words)
	k.terminal.End(takeover.Ending{Exit: words, Note: note})
	state := ledger.Completed
	if !known {
		state = ledger.Interrupted // its shim was killed
	}
	k.log.Record(
		activity.Event{Kind: agent.Note, Text: note},
		activity.Event{Kind: agent.Text, Text: "the screen as it was left:\n" + k.terminal.Text()},
		activity.Event{Kind: agent.RunEnded, Status: string(state), Text: words},
	)
	k.log.Close()
	k.release(state, note)
}

// endNote is our sentence on how it ended.
func (k *Takeover) endNote(exit string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.why == "" {
		return fmt.Sprintf("the takeover of %s ended by itself (%s); the conversation goes on", k.s.convRecord(k.conv).ID, exit)
	}
	return fmt.Sprintf("the takeover of %s was ended by %s; the conversation goes on", k.s.convRecord(k.conv).ID, k.why)
}

// release records the end of the run, takes the files away, and gives the lane
// to whoever waits.
func (k *Takeover) release(state ledger.AgentState, detail string) {
	w := k.w
	t := &turn{w: w, rec: &ledger.Run{ID: k.id}}
	_ = t.untilDone("takeover's end", func() error { return k.commitEnd(state, detail) })
	if err := w.opt.Runs.RemoveTmp(k.id); err != nil {
		w.log.Warn("a run's temporary directory stays behind", "run", k.id, "err", err)
	}
	close(k.over)
}

func (k *Takeover) commitEnd(state ledger.AgentState, detail string) error {
	w := k.w
	k.s.tr.Lock()
	defer k.s.tr.Unlock()
	if rec, ok := w.Run(k.id); ok {
		next := *rec
		next.State, next.Detail, next.Updated = state, detail, time.Now()
		next.Ended = next.Updated
		conv := k.conv.touched(k.s, next.Updated)
		known := k.s.conversation(conv.ID) == k.conv && w.session(rec.Session) == k.s
		if err := w.commit(func(b *ledger.Batch) {
			b.PutRun(&next)
			if known {
				b.PutConversation(conv)
			}
		}); err != nil {
			return err
		}
		w.showRun(&next)
		if known {
			k.s.putConversation(k.conv, conv)
		}
		defer w.announce(Change{Kind: TakeoverEnded, Session: rec.Session, Run: k.id, Agent: rec.Agent, Detail: detail})
	}
	w.setLive(k.id, nil)
	k.conv.shown.Store(nil)
	k.conv.taken.Store(nil)
	w.leaveTaken(k)
	w.startNext(k.s)
	return nil
}
