package workbench

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"scvfs/ledger"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// checkpointBytes is how much output is parsed between two checkpoints, and so
// at most how much a restarted daemon parses again.
const checkpointBytes = 4 << 20

// errLeft ends a turn whose daemon stops: its run goes on without us.
var errLeft = errors.New("the daemon stops")

// turn is one run serving one job: it launches or adopts the run, follows its
// output, and settles the job. Its goroutine owns all fields but those said
// otherwise.
type turn struct {
	w       *Workbench
	j       *job
	agent   *agent.Agent
	rec     *ledger.Run   // its record as the turn began
	lane    *conversation // that it holds: the same, but a builder's for its reviewer
	late    atomic.Bool   // its time limit was reached, which its server keeps
	outcome string        // of a review that is over
	conv    *conversation // whose turn this is; nil when its record is gone
	parser  agent.Parser  // of a CLI; nil with srv
	srv     *server       // whose turn it is, of an agent that is one; nil for a CLI
	log     *activity.Recorder
	read    int64           // offset up to which stdout has been parsed
	saved   int64           // offset of the last checkpoint
	notes   []string        // for the log, once it is open
	told    string          // the agent's own session id, as far as it is recorded
	served  bool            // by a server that ran already
	before  <-chan struct{} // closed when the conversation's process before is gone; nil for none

	// Guarded by j.s.tr.
	proc     run.Process
	stopping bool           // somebody asked for a stop
	launched func()         // ends what launching waits for; nil before and after
	unsaved  *ledger.Cancel // a cancel that could not be recorded on a full disk
}

func newTurn(w *Workbench, j *job, a *agent.Agent, rec *ledger.Run) *turn {
	t := &turn{w: w, j: j, agent: a, rec: rec}
	if rec.Transport == agent.TransportCLI {
		t.parser = a.NewParser()
	}
	return t
}

// serve runs the job's prompt from its start to its end.
func (t *turn) serve() {
	defer t.guard()
	proc, err := t.launch()
	if err != nil && t.w.ctx.Err() != nil {
		t.close() // the next daemon starts it
		return
	}
	if err != nil {
		end := ending{state: ledger.Failed, detail: err.Error(), exit: "not started"}
		if cancel := t.cancelled(); cancel != nil {
			end.state, end.detail = ledger.Cancelled, "by "+cancel.By+", before it ran"
		}
		t.settle(end)
		return
	}
	switch {
	case t.srv != nil:
		t.srv.serve(proc, t)
	case t.begun(proc) == nil:
		t.attend(proc)
	}
}

// session is the agent's own session id as far as its output told it.
func (t *turn) session() string {
	if t.srv != nil {
		return t.srv.session()
	}
	return t.parser.Session()
}

// attend follows a run that has a process, and settles it.
func (t *turn) attend(proc run.Process) {
	if err := t.follow(proc); err != nil {
		if errors.Is(err, errLeft) {
			t.checkpoint()
			t.close()
			return
		}
		t.w.log.Error("a run's output cannot be followed; it is stopped", "run", t.rec.ID, "err", err)
		t.log.Record(activity.Event{Kind: agent.Note, Text: "the run is stopped, its output could not be read: " + err.Error()})
		if t.halt(proc) != nil {
			return
		}
	}
	t.settle(t.judge(proc))
}

// guard keeps a fault of ours from taking the daemon down with it.
func (t *turn) guard() {
	if r := recover(); r != nil {
		t.w.log.Error("panic in a turn", "job", t.j.address(), "panic", r, "stack", string(debug.Stack()))
		if t.proc != nil && t.halt(t.proc) != nil {
			return
		}
		t.settle(ending{state: ledger.Failed, detail: fmt.Sprintf("internal error: %v", r), exit: "unknown"})
	}
}

// halt stops a run that cannot be followed and waits until nothing of it
// lives: a job whose agent goes on unwatched must not seem to have ended. It
// fails when the daemon stops first.
func (t *turn) halt(proc run.Process) error {
	for {
		if err := proc.Stop(t.w.ctx); err != nil && t.w.ctx.Err() == nil {
			t.w.log.Error("a run could not be stopped", "run", t.rec.ID, "err", err)
		}
		select {
		case <-proc.Done():
			return nil
		case <-t.w.ctx.Done():
			t.close()
			return errLeft
		}
	}
}

// cancelled returns who asked the job to stop; nil for nobody.
func (t *turn) cancelled() *ledger.Cancel {
	t.j.s.tr.Lock()
	defer t.j.s.tr.Unlock()
	return cmp.Or(t.j.record().Cancel, t.unsaved)
}

// open opens the activity log, going on after what it holds already.
func (t *turn) open() (err error) {
	t.log, err = activity.Open(t.w.opt.Runs.Path(t.rec.ID, ""), activity.Options{
		MaxBytes: int64(t.w.limits.LogBytes),
		Failed: func(err error) {
			t.w.log.Warn("the activity log cannot be written", "run", t.rec.ID, "err", err)
		},
	})
	return err
}

// begun records that the run has a process, and stops it at once when somebody
// asked for that meanwhile. It fails only when the daemon stops before that
// could be recorded.
func (t *turn) begun(proc run.Process) error {
	t.live(proc)
	return t.untilDone("start", func() error {
		s := t.j.s
		s.tr.Lock()
		defer s.tr.Unlock()
		last := t.j.record()
		if last.State != ledger.Starting && last.Review == nil {
			return nil // adopted at work
		}
		rec := t.j.next(ledger.Working, last.Detail)
		if last.State == ledger.AwaitingInput {
			rec.State = last.State
		}
		runRec := t.runRecord(rec.State, "")
		return t.w.advance(t.j, rec, also{
			put:  func(b *ledger.Batch) { b.PutRun(runRec) },
			then: func() { t.w.showRun(runRec) },
		})
	})
}

// live makes the process known to whoever stops the job.
func (t *turn) live(proc run.Process) {
	t.j.s.tr.Lock()
	defer t.j.s.tr.Unlock()
	t.proc = proc
	t.w.setLive(t.rec.ID, proc)
	if t.stopping {
		t.kill()
	}
}

// runRecord returns a copy of the run's record in a new state.
func (t *turn) runRecord(state ledger.AgentState, detail string) *ledger.Run {
	rec := *t.rec
	if now, ok := t.w.Run(rec.ID); ok {
		rec = *now
	}
	last := t.j.record()
	rec.State, rec.Detail, rec.Updated = state, detail, last.Updated
	if id := t.session(); id != "" {
		rec.Vendor = id
	}
	return &rec
}

// stop empties the run's process tree, now or as soon as it has one. The
// caller holds s.tr.
func (t *turn) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	switch {
	case t.proc != nil && t.srv != nil:
		t.srv.stopTurn(t, t.proc)
	case t.proc != nil:
		t.kill()
	case t.launched != nil:
		t.launched()
	}
}

// stopUnrecorded stops for a cancel that the ledger could not take; settling
// records it. The caller holds s.tr.
func (t *turn) stopUnrecorded(c *ledger.Cancel) {
	t.unsaved = c
	t.stop()
}

// kill asks the shim to stop the tree, beside the turn's own goroutine, which
// learns of the end as of any other.
func (t *turn) kill() {
	proc := t.proc
	t.w.spawn(func() {
		if err := proc.Stop(t.w.ctx); err != nil && t.w.ctx.Err() == nil {
			t.w.log.Error("a run could not be stopped", "run", t.rec.ID, "err", err)
		}
	})
}

// follow parses the run's output as it grows, until the run is over.
func (t *turn) follow(proc run.Process) error {
	out, err := t.w.openTail(t.rec.ID, t.read, proc)
	if out == nil {
		return err
	}
	defer out.close()
	for over := false; ; {
		if err := out.drain(t.w.ctx, t.parse); err != nil || over {
			return err
		}
		select {
		case <-out.growth.C():
		case <-proc.Done():
			over = true // one more look: what was written last is there now
		case <-t.w.ctx.Done():
			return errLeft
		}
	}
}

// parse takes the next bytes of the output.
func (t *turn) parse(p []byte) {
	t.read += int64(len(p))
	t.parser.Parse(p, t.log.Parsed)
	t.log.Flush()
	t.keepSession()
	if t.read-t.saved >= checkpointBytes {
		t.checkpoint()
	}
}

// keepSession records the agent's own session id as soon as its output told
// it, so that a job which is cut off can go on with it whatever becomes of the
// output.
func (t *turn) keepSession() {
	id := t.session()
	if id == "" || id == t.told {
		return
	}
	s := t.j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	runRec := t.runRecord(t.j.record().State, t.j.record().Detail)
	var convRec *ledger.Conversation
	if t.conv != nil {
		convRec = t.conv.touched(s, runRec.Updated)
		convRec.Vendor = id
	}
	if err := t.w.commit(func(b *ledger.Batch) {
		b.PutRun(runRec)
		if convRec != nil {
			b.PutConversation(convRec)
		}
	}); err != nil {
		return // tried again with the next output, and at the end
	}
	t.told = id
	t.w.showRun(runRec)
	if convRec != nil {
		s.putConversation(t.conv, convRec)
	}
}

// checkpoint saves how far the output is parsed, and gives what lies far
// behind back to the disk.
func (t *turn) checkpoint() {
	state, err := t.parser.State()
	if err == nil {
		err = t.log.Save(t.read, state)
	}
	if err != nil {
		t.w.log.Warn("no checkpoint could be saved", "run", t.rec.ID, "err", err)
		return
	}
	t.saved = t.read
	t.w.punch(t.rec.ID, t.read)
}

// punch gives the output of a run that lies far behind what was read back to
// the disk, once it is more than limits.raw_bytes.
func (w *Workbench) punch(id string, read int64) {
	keep := max(int64(w.limits.ResultBytes), checkpointBytes)
	if read > int64(w.limits.RawBytes) && read > keep {
		if err := w.opt.Runs.Punch(id, read-keep); err != nil {
			w.log.Warn("raw output could not be given back to the disk", "run", id, "err", err)
		}
	}
}

// close ends the turn's use of files, leaving the run alone.
func (t *turn) close() {
	if t.log != nil {
		t.log.Close()
		t.log = nil
	}
}
