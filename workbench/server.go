package workbench

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/run"
)

// server is the run of an agent that is spoken with while it works: it serves
// the turns of one conversation, one after the other when it is kept, and asks
// for approvals. Its goroutine owns all fields but those said otherwise; others
// leave it what they want in its inbox.
//
// What it sends is never sent twice, whoever dies when: a checkpoint that holds
// the messages goes before they are written, and one without them after. A
// daemon that finds the first alone cannot tell whether they arrived, and lets
// the turn be interrupted rather than send them again.
type server struct {
	w     *Workbench
	s     *session
	conv  *conversation
	agent *agent.Agent
	id    string // of its run
	kept  bool   // it goes on after a turn, for the next one
	box   *inbox

	vendor atomic.Pointer[string] // the agent's own session id
	steers atomic.Bool            // its turn takes a prompt now
	over   chan struct{}          // closed when the run is settled

	d         dialogue.Dialogue
	log       *activity.Recorder
	proc      run.Process
	input     *os.File
	model     string // what it was started with
	effort    string
	read      int64             // offset up to which its output was fed
	saved     int64             // offset of the last checkpoint
	outputs   []output          // of the dialogue, that are still to be carried out
	outbox    []byte            // messages that are still to be written
	fresh     *turn             // it, until its prompt is on its way
	unsent    bool              // the prompt of a turn that it served not from its start is still to be written
	doubtful  bool              // a daemon went away while it wrote
	adopted   bool              // and what it asked before is still to be bound
	turn      *turn             // that it serves now
	began     time.Time         // when that began
	limit     *time.Timer       // of its time; nil for none
	settled   bool              // the end was recorded, or is being
	ending    *agent.Outcome    // the turn's, while the process ends with it
	endedAt   time.Time         // when the turn ended so
	retired   string            // why it serves no turn any more; empty while it does
	retry     *time.Timer       // a checkpoint had no room
	decisions map[string]uint64 // numbers of the approvals that wait, by the ask
}

// output is one output of the dialogue, and where in the agent's it was known;
// end is -1 for what came of the daemon's own doing.
type output struct {
	end int64
	dialogue.Output
}

// newServer makes the server of a run, which is kept between turns when it has a
// conversation and its transport goes on. It does nothing yet.
func (w *Workbench) newServer(s *session, c *conversation, a *agent.Agent, rec *ledger.Run) *server {
	kept := c != nil && rec.Transport == agent.TransportACP
	if c == nil {
		c = &conversation{rec: &ledger.Conversation{Session: rec.Session}}
	}
	return &server{
		w: w, s: s, conv: c, agent: a, id: rec.ID, kept: kept, box: newInbox(),
		over: make(chan struct{}), decisions: map[string]uint64{},
	}
}

// session is the agent's own session id as far as it told one.
func (v *server) session() string {
	if id := v.vendor.Load(); id != nil {
		return *id
	}
	return ""
}

// serve runs the server from when it has a process until that is gone, or the
// daemon stops. t is its first turn; nil for one that was adopted idle.
func (v *server) serve(proc run.Process, t *turn) {
	defer v.guard()
	v.proc = proc
	v.w.setServer(v.id, v)
	defer v.w.setServer(v.id, nil)
	switch {
	case t == nil:
		v.w.setLive(v.id, proc)
	case v.turn == t:
		t.live(proc)
		v.arm(t)
		v.goOn(t)
	default:
		t.live(proc)
		v.box.post(func() { v.begin(t) }) // behind what it says of the time before
	}
	err := v.attend()
	if errors.Is(err, errLeft) {
		v.leave()
		return
	}
	if err != nil {
		v.w.log.Error("a run's output cannot be followed; it is stopped", "run", v.id, "err", err)
		v.log.Record(activity.Event{Kind: agent.Note, Text: "the run is stopped, its output could not be read: " + err.Error()})
		if v.halt() != nil {
			v.leave()
			return
		}
	}
	v.settle()
}

// attend reads what the agent says and does what others want, until the
// process is gone.
func (v *server) attend() error {
	out, err := v.w.openTail(v.id, v.read, v.proc)
	if out == nil {
		return err
	}
	defer out.close()
	defer v.stopTimers()
	for over := false; ; {
		if err := out.drain(v.w.ctx, v.feed); err != nil || over {
			return err
		}
		v.rebind()
		v.pump()
		select {
		case <-out.growth.C():
		case <-v.box.wake:
			for _, f := range v.box.take() {
				f()
			}
			v.carryOut()
		case <-after(v.retry):
			v.retry = nil
		case <-v.proc.Done():
			over = true
		case <-v.w.ctx.Done():
			return errLeft
		}
	}
}

// after is the channel of a timer, of one that is nil too.
func after(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (v *server) stopTimers() {
	for _, t := range []**time.Timer{&v.limit, &v.retry} {
		if *t != nil {
			(*t).Stop()
			*t = nil
		}
	}
}

// feed takes the next bytes of the agent's output.
func (v *server) feed(p []byte) {
	v.read += int64(len(p))
	v.d.Feed(p, v.told)
	v.carryOut()
	v.log.Flush()
	if v.read-v.saved >= checkpointBytes {
		v.checkpoint(false)
	}
}

// told takes what came of the agent's output, and done what came of our own
// doing.
func (v *server) told(end int64, o dialogue.Output) { v.outputs = append(v.outputs, output{end, o}) }
func (v *server) done(_ int64, o dialogue.Output)   { v.outputs = append(v.outputs, output{-1, o}) }

// carryOut does what the dialogue said, in its order. What it says of that in
// turn comes behind.
func (v *server) carryOut() {
	if id := v.d.Session(); id != "" && id != v.session() {
		v.vendor.Store(&id)
	}
	for len(v.outputs) > 0 {
		o := v.outputs[0]
		v.outputs = v.outputs[1:]
		switch {
		case o.Event != nil:
			v.record(o.end, activity.Event{Kind: o.Event.Kind, Text: o.Event.Text, By: byWhom(o.Event.Kind)})
		case o.Send != nil:
			v.outbox = append(v.outbox, o.Send...)
		case o.Ask != nil:
			v.asked(o.end, *o.Ask)
		case o.Gone != "":
			v.withdrawn(o.end, o.Gone)
		case o.Ended != nil:
			v.turnEnded(*o.Ended)
		}
	}
	v.steers.Store(v.d.Steerable())
	if v.turn != nil {
		v.turn.keepSession()
	}
}

// byWhom names who is behind an event of a dialogue: only the owner steers.
func byWhom(kind agent.EventKind) string {
	if kind == agent.Steered {
		return string(ledger.ByOwner)
	}
	return ""
}

// record writes an event to the log; one of the agent's output once, whatever
// is replayed.
func (v *server) record(end int64, e activity.Event) {
	if end < 0 {
		v.log.Record(e)
		return
	}
	v.log.ParsedAs(end, e)
}

// leave lets the daemon go; the run goes on.
func (v *server) leave() {
	if v.log != nil && v.d != nil && !v.doubtful {
		v.checkpoint(false)
	}
	v.close()
}

func (v *server) close() {
	if v.input != nil {
		v.input.Close()
		v.input = nil
	}
	if v.log != nil {
		v.log.Close()
		v.log = nil
	}
	if v.turn != nil {
		v.turn.log = nil
	}
}

// kill empties the process tree, beside this goroutine.
func (v *server) kill() {
	proc := v.proc
	v.w.spawn(func() {
		if err := proc.Stop(v.w.ctx); err != nil && v.w.ctx.Err() == nil {
			v.w.log.Error("a run could not be stopped", "run", v.id, "err", err)
		}
	})
}

// halt stops the run and waits until nothing of it lives.
func (v *server) halt() error {
	for {
		if err := v.proc.Stop(v.w.ctx); err != nil && v.w.ctx.Err() == nil {
			v.w.log.Error("a run could not be stopped", "run", v.id, "err", err)
		}
		select {
		case <-v.proc.Done():
			return nil
		case <-v.w.ctx.Done():
			return errLeft
		}
	}
}

// guard keeps a fault of ours from taking the daemon down with it.
func (v *server) guard() {
	r := recover()
	if r == nil {
		return
	}
	v.w.log.Error("panic in a server", "run", v.id, "panic", r, "stack", string(debug.Stack()))
	if v.proc != nil && v.halt() != nil {
		return
	}
	v.ending = &agent.Outcome{Status: agent.StatusFailed, Error: fmt.Sprintf("internal error: %v", r)}
	v.outputs = nil
	v.settleEnd()
}

// open makes the dialogue of a new server.
func (v *server) open(t *turn, o dialogue.Options) error {
	d, err := v.w.opt.dialogue(t.rec.Transport, o)
	if err != nil {
		return err
	}
	v.d, v.model, v.effort = d, o.Model, o.Effort
	v.d.Open(v.done)
	return nil
}

// fits tells whether a turn can be served by the process as it was started.
func (v *server) fits(t *turn) bool {
	return v.agent == t.agent && v.model == t.model() && v.effort == t.effort()
}

// errGone is what a server that serves no more turns says.
func (v *server) errGone() error {
	return fault.New(fault.Gone, "the server of conversation %s has ended", v.s.convRecord(v.conv).ID)
}
