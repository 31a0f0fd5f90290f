package workbench

import (
	"fmt"
	"os"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// hand gives a turn to a server that has a process, or to a new one when it
// has none any more. It never waits.
func (v *server) hand(t *turn) {
	if !v.box.post(func() { v.begin(t) }) {
		v.w.spawn(t.anew)
	}
}

// begin takes a turn up: its prompt goes to the dialogue.
func (v *server) begin(t *turn) {
	if v.retired != "" || v.turn != nil || !v.fits(t) {
		v.retire("its next turn needs a new one")
		v.w.spawn(func() {
			select {
			case <-v.over:
				t.anew()
			case <-v.w.ctx.Done(): // the next daemon does
			}
		})
		return
	}
	t.log = v.log
	t.live(v.proc)
	job := t.j.record()
	v.log.Record(activity.Event{Kind: agent.TurnStarted, Text: phaseTask(job), Turn: t.rec.Turn, Job: JobName(job.Number), By: string(job.StartedBy)})
	if cancel := t.cancelled(); cancel != nil {
		t.settle(ending{state: ledger.Cancelled, detail: "by " + cancel.By + ", before it ran", exit: "not started", lives: true})
		return
	}
	prompt, err := os.ReadFile(t.w.JobFile(job, promptName(job)))
	if err == nil {
		err = v.d.Prompt(prompt, v.done)
	}
	v.turn, v.began, v.unsent = t, time.Now(), t.served && err == nil
	if err != nil {
		v.turnEnded(agent.Outcome{Status: agent.StatusFailed, Error: "the prompt could not be handed over: " + err.Error()})
		return
	}
	v.fresh = t
	v.arm(t)
	v.carryOut()
}

// arm begins the time limit of a turn of a server that is kept. The shim keeps
// that of a run that is one turn.
func (v *server) arm(t *turn) {
	if !v.kept {
		return
	}
	proc := v.proc // the server's goroutine may wait for an agent that does not read
	v.limit = time.AfterFunc(time.Until(v.began.Add(phaseTimeout(t.j.record()))), func() {
		t.late.Store(true)
		v.stopTurn(t, proc)
	})
}

// goOn follows a turn that has its prompt.
func (v *server) goOn(t *turn) {
	_ = t.begun(v.proc) // fails only when the daemon stops
}

// stopTurn has the agent end its turn, and stops its whole tree when that has
// ended, or after the grace. It may be called by any goroutine.
func (v *server) stopTurn(t *turn, proc run.Process) {
	v.w.spawn(func() {
		v.box.post(func() {
			if v.turn == t && v.ending == nil {
				v.withdrawAll("the turn was stopped")
				v.d.Interrupt(v.done)
			}
		})
		grace := time.NewTimer(v.w.limits.Grace.Duration())
		defer grace.Stop()
		select {
		case <-t.j.done:
			return
		case <-v.over:
			return
		case <-grace.C:
		case <-v.w.ctx.Done():
			return
		}
		if err := proc.Stop(v.w.ctx); err != nil && v.w.ctx.Err() == nil {
			v.w.log.Error("a run could not be stopped", "run", v.id, "err", err)
		}
	})
}

// turnEnded carries out the end of a turn that the agent told. The process
// goes on for the next turn, or ends with this one: then the job has ended when
// its tree is empty.
func (v *server) turnEnded(out agent.Outcome) {
	t := v.turn
	if t == nil || v.ending != nil {
		return
	}
	v.fresh = nil
	v.withdrawAll("its turn ended")
	v.ending, v.endedAt = &out, time.Now()
	switch {
	case t.late.Load() || t.cancelled() != nil:
		v.kill()
	case v.kept && v.retired == "":
		v.settleTurn(t, out)
	default:
		v.endProcess()
	}
}

// endProcess lets the agent leave by itself, and stops it after the grace.
func (v *server) endProcess() {
	if v.input != nil {
		v.input.Close()
		v.input = nil
	}
	if err := v.w.opt.Runs.EndInput(v.id); err != nil && !fault.Is(err, fault.Gone) {
		v.w.log.Warn("the input of a run could not be ended", "run", v.id, "err", err)
	}
	proc := v.proc
	v.w.spawn(func() {
		grace := time.NewTimer(v.w.limits.Grace.Duration())
		defer grace.Stop()
		select {
		case <-proc.Done():
			return
		case <-v.w.ctx.Done():
			return
		case <-grace.C:
		}
		if err := proc.Stop(v.w.ctx); err != nil && v.w.ctx.Err() == nil {
			v.w.log.Error("a run could not be stopped", "run", v.id, "err", err)
		}
	})
}

// settleTurn settles a turn whose process goes on.
func (v *server) settleTurn(t *turn, out agent.Outcome) {
	v.stopTimers()
	end := verdict(nil, run.Exit{}, true, out)
	end.exit, end.usage, end.ran, end.lives = "server goes on", out.Usage, true, true
	t.noteUnknown(out.Unknown)
	t.reply(&end, out)
	v.turn, v.ending = nil, nil
	t.settle(end)
	v.checkpoint(false)
}

// retire has the server serve no turn after the one that runs. It is called by
// its own goroutine.
func (v *server) retire(why string) {
	if v.retired != "" {
		return
	}
	v.retired = why
	if v.turn == nil {
		v.endProcess()
	}
}

// retireServer has a conversation's server end once it serves no turn, and
// returns what is closed when it has; nil when there is none. The caller holds
// s.tr.
func (c *conversation) retireServer(why string) <-chan struct{} {
	v := c.server
	if v == nil {
		return nil
	}
	c.server = nil
	v.box.post(func() { v.retire(why) })
	return v.over
}

// settle records the end of a run whose process is gone, and of the turn that
// it served.
func (v *server) settle() {
	v.stopTimers()
	if v.retired == "" {
		v.retired = "it has ended"
	}
	for _, f := range v.box.take() { // what was decided before may concern the turn
		f()
	}
	v.d.Finish(v.told)
	v.carryOut()
	v.log.Flush()
	v.settleEnd()
}

// settleEnd is settle once the dialogue is over.
func (v *server) settleEnd() {
	if v.settled {
		return
	}
	v.settled = true
	defer v.finish()
	v.withdrawAll("its agent has ended")
	exit, known := v.proc.Exit()
	if t := v.turn; t != nil && v.unsent && !t.late.Load() && t.cancelled() == nil {
		v.turn, t.log = nil, nil
		v.settleAlone(exit, known)
		v.w.spawn(t.anew)
	} else if t != nil {
		t.settle(v.judge(t, exit, known))
	} else {
		v.settleAlone(exit, known)
	}
	v.turn = nil
}

// finish lets go of what the server has, and of those who wait for its end.
func (v *server) finish() {
	if v.retired == "" {
		v.retired = "it has ended"
	}
	for _, f := range v.box.close() { // which find the server at its end
		f()
	}
	v.turn = nil
	v.close()
	close(v.over)
}

// judge tells how a turn ended whose process is gone.
func (v *server) judge(t *turn, exit run.Exit, known bool) ending {
	out := v.ending
	if out == nil {
		cut := v.d.Outcome(agent.Exit{Code: exit.Code, Signal: exit.Signal}, t.tail("stderr", stderrTail))
		out = &cut
	}
	cancel := t.cancelled()
	if v.ending != nil && cancel != nil && v.endedAt.Before(cancel.At) {
		cancel = nil // it had ended by itself when somebody asked
	}
	var end ending
	switch {
	case cancel == nil && t.late.Load():
		end = ending{state: ledger.TimedOut, detail: fmt.Sprintf("stopped at its time limit of %s", phaseTimeout(t.j.record()))}
	case cancel == nil && v.ending != nil:
		end = verdict(nil, run.Exit{}, true, *out) // the process was ended by us
	default:
		end = verdict(cancel, exit, known, *out)
	}
	end.exit, end.usage, end.ran = exitWords(exit, known), out.Usage, exit.StartError == ""
	t.noteUnknown(out.Unknown)
	t.reply(&end, *out)
	return end
}

// settleAlone records the end of a run that served no turn when its process
// went.
func (v *server) settleAlone(exit run.Exit, known bool) {
	state, detail := ledger.Completed, v.retired
	if !known {
		state, detail = ledger.Interrupted, "its shim was killed between two turns"
	}
	v.log.Record(activity.Event{Kind: agent.RunEnded, Status: string(state), Text: exitWords(exit, known)})
	t := &turn{w: v.w, rec: &ledger.Run{ID: v.id}}
	_ = t.untilDone("run's end", func() error { return v.commitAlone(state, detail) })
}

func (v *server) commitAlone(state ledger.AgentState, detail string) error {
	v.s.tr.Lock()
	defer v.s.tr.Unlock()
	now, ok := v.w.Run(v.id)
	if !ok {
		return nil
	}
	rec := *now
	rec.State, rec.Detail, rec.Updated = state, detail, time.Now()
	rec.Ended = rec.Updated
	forgotten := len(rec.Jobs) == 0 // all its jobs were dismissed
	if err := v.w.commit(func(b *ledger.Batch) {
		if forgotten {
			b.DeleteRun(rec.ID)
		} else {
			b.PutRun(&rec)
		}
	}); err != nil {
		return err
	}
	if v.conv.server == v {
		v.conv.server = nil
	}
	if forgotten {
		v.w.dropRun(rec.ID)
		return nil
	}
	v.w.setLive(v.id, nil)
	v.w.showRun(&rec)
	return nil
}
