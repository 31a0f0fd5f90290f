package workbench

import (
	"slices"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// load reads the ledger into memory. A record that cannot be read is told of
// and left alone.
func (w *Workbench) load() error {
	contents, bad, err := w.opt.Ledger.Load()
	if err != nil {
		return err
	}
	for key, err := range bad {
		w.log.Error("a ledger record cannot be read; it is left as it is", "key", key, "err", err)
	}
	w.bad = len(bad)
	w.serial = contents.Serial
	for _, rec := range contents.Sessions {
		w.sessions[rec.ID] = newSession(rec)
	}
	for _, rec := range contents.Conversations {
		if s := w.sessions[rec.Session]; s != nil {
			s.convs[rec.ID] = &conversation{rec: rec}
		}
	}
	for _, rec := range contents.Runs {
		w.runs[rec.ID] = rec
	}
	for _, rec := range contents.Jobs { // by session, then number
		s := w.sessions[rec.Session]
		if s == nil {
			w.log.Error("a job's session cannot be read; the job is left as it is", "job", address(rec.Session, rec.Number))
			continue
		}
		s.add(newJob(s, rec))
	}
	w.loadApprovals(contents)
	return nil
}

// recover goes on where the daemon before stopped: it adopts the runs that
// have not ended, and queues again what waited.
func (w *Workbench) recover() {
	for _, s := range w.allSessions() {
		s.tr.Lock()
		w.recoverServers(s)
		w.recoverTakeovers(s)
		for _, j := range s.unfinished() {
			w.recoverJob(j)
		}
		for _, j := range s.list() {
			s.owes(j)
		}
		w.startNext(s)
		s.tr.Unlock()
	}
}

// recoverJob takes up an unfinished job. The caller holds s.tr.
func (w *Workbench) recoverJob(j *job) {
	rec := j.record()
	if rec.State == ledger.Queued {
		j.s.queue = append(j.s.queue, j)
		return
	}
	runRec, ok := w.Run(rec.Run)
	if !ok {
		j.s.running++
		w.spawn(func() { w.lose(j) })
		return
	}
	a, err := w.agent(runRec.Agent)
	if err != nil {
		a = &agent.Agent{Name: runRec.Agent, Output: agent.FormatText} // its configuration is gone: the output is kept as text
	}
	t := newTurn(w, j, a, runRec)
	if t.lane = j.s.conversation(rec.Conversation); t.lane != nil {
		t.lane.turn = j
	}
	if !reviews(rec) {
		t.conv = t.lane
	}
	if runRec.Transport != agent.TransportCLI {
		c := t.conv
		if c == nil && !reviews(rec) {
			c = &conversation{rec: &ledger.Conversation{ID: rec.Conversation, Session: rec.Session}}
		}
		t.srv = w.newServer(j.s, c, a, runRec)
		if t.srv.kept = t.srv.kept && rec.Review == nil; t.srv.kept {
			c.server = t.srv
		}
	}
	t.stopping = rec.Cancel != nil
	j.turn = t
	j.s.running++
	w.spawn(t.adopt)
}

// lose ends a job whose run's record cannot be read, once nothing of the run
// lives any more.
func (w *Workbench) lose(j *job) {
	t := &turn{w: w, j: j, rec: &ledger.Run{ID: j.record().Run}}
	if proc, standing, err := w.opt.Runs.Adopt(t.rec.ID); err == nil && standing == run.Live && t.halt(proc) != nil {
		return
	}
	_ = t.untilDone("end", func() error {
		j.s.tr.Lock()
		defer j.s.tr.Unlock()
		return w.advance(j, j.next(ledger.Interrupted, "its run's record cannot be read"), also{then: func() { j.s.running-- }})
	})
}

// adoptTries is how often a run is tried to be adopted, a second apart, before
// its job is given up.
const adoptTries = 10

// adopt takes over a run that an earlier daemon started.
func (t *turn) adopt() {
	defer t.guard()
	var proc run.Process
	var standing run.Standing
	var err error
	tries := 0
	if t.untilDone("adoption", func() error {
		proc, standing, err = t.w.opt.Runs.Adopt(t.rec.ID)
		if tries++; fault.Is(err, fault.NotFound) {
			standing, err = run.Never, nil // the daemon died before it made the directory
		}
		if tries == adoptTries {
			return nil
		}
		return err
	}) != nil {
		return
	}
	if err != nil {
		t.settle(ending{state: ledger.Interrupted, detail: "its run cannot be adopted: " + err.Error(), exit: "unknown"})
		return
	}
	if standing == run.Never {
		if t.rec.State == ledger.Starting {
			t.again()
			return
		}
		t.settle(ending{state: ledger.Interrupted, detail: "the files of its run are gone; its processes were stopped", exit: "unknown"})
		return
	}
	if t.srv != nil {
		t.adoptServer(proc)
		return
	}
	if err := t.restore(); err != nil {
		if t.halt(proc) != nil {
			return
		}
		t.settle(ending{state: ledger.Interrupted, detail: "its output cannot be read again: " + err.Error(), exit: "unknown"})
		return
	}
	if t.begun(proc) == nil {
		t.attend(proc)
	}
}

// restore opens the log and puts the parser where the last checkpoint left it.
func (t *turn) restore() error {
	if err := t.open(); err != nil {
		return err
	}
	point := t.log.Resume()
	if point.Offset == 0 {
		return nil
	}
	if err := t.parser.Restore(point.Parser); err != nil {
		if point.Offset > int64(t.w.limits.RawBytes) {
			return err // the output's head was given back to the disk
		}
		t.parser = t.agent.NewParser() // a newer version of ours: read all of it again
		t.log.Restart()
		return nil
	}
	t.read, t.saved = point.Offset, point.Offset
	return nil
}

// again starts the job afresh when no shim ever took its run: nothing was
// sent, and the run is void, so nothing is sent twice.
func (t *turn) again() {
	next := t.newRun(true)
	if next == nil {
		return
	}
	if t.j.record().Worktree != t.rec.ID { // else the job goes on in it
		t.dropWorktree()
	}
	if err := t.w.opt.Runs.Remove(t.rec.ID); err != nil {
		t.w.log.Warn("files of a void run stay behind", "run", t.rec.ID, "err", err)
	}
	next.serve()
}

// anew gives a job whose prompt was not handed over a run of its own: the
// server that was to take it has ended.
func (t *turn) anew() {
	if next := t.newRun(false); next != nil {
		next.serve()
	}
}

// newRun has the job served by a new run, as replace does, and returns its
// turn; nil when the job was cancelled meanwhile, which it settles, or the
// daemon stops.
func (t *turn) newRun(void bool) (next *turn) {
	if t.untilDone("new start", func() (err error) {
		next, err = t.replace(void)
		return err
	}) != nil {
		return nil
	}
	if next == nil {
		t.settle(ending{state: ledger.Cancelled, detail: "by " + t.cancelled().By + ", before it ran", exit: "not started"})
	}
	return next
}

// replace commits a new run in place of the job's, which is forgotten when it
// is void; nil when the job was cancelled meanwhile.
func (t *turn) replace(void bool) (*turn, error) {
	w, s := t.w, t.j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	if t.stopping {
		return nil, nil
	}
	rec, sess := t.j.next(ledger.Starting, ""), s.touched()
	if last := t.j.record(); last.Review != nil && len(last.Review.Runs) > 1 {
		rec.State, rec.Detail = last.State, last.Detail
	}
	if void && t.conv != nil && t.conv.server == t.srv {
		t.conv.server = nil // it never began
	}
	old := t.runWithout()
	g := w.grant(t.j, rec, sess, t.agent)
	if r := rec.Review; r != nil && len(r.Runs) > 0 {
		review := *r
		review.Runs = append(slices.Clone(r.Runs[:len(r.Runs)-1]), rec.Run)
		rec.Review = &review
	}
	err := w.advance(t.j, rec, also{
		sess: sess,
		put: func(b *ledger.Batch) {
			g.put(b)
			if void {
				b.DeleteRun(t.rec.ID)
			} else if old != nil {
				b.PutRun(old)
			}
		},
		then: func() {
			g.then()
			if t.j.turn = g.turn; void {
				w.dropRun(t.rec.ID)
			} else if old != nil {
				w.showRun(old)
			}
		},
	})
	if err != nil {
		g.drop()
		return nil, err
	}
	return g.turn, nil
}

// runWithout is the record of the turn's run without the turn's job.
func (t *turn) runWithout() *ledger.Run {
	now, ok := t.w.Run(t.rec.ID)
	if !ok {
		return nil
	}
	rec := *now
	rec.Jobs = slices.DeleteFunc(slices.Clone(rec.Jobs), func(n uint64) bool { return n == t.j.number })
	return &rec
}

// adoptRun adopts a run that serves no job, trying again for what passes, such
// as a limit of open files.
func (w *Workbench) adoptRun(id string) (proc run.Process, standing run.Standing, err error) {
	t := &turn{w: w, rec: &ledger.Run{ID: id}}
	tries := 0
	_ = t.untilDone("adoption", func() error {
		if proc, standing, err = w.opt.Runs.Adopt(id); fault.Is(err, fault.NotFound) {
			standing, err = run.Never, nil
		}
		if tries++; tries == adoptTries {
			return nil
		}
		return err
	})
	return proc, standing, err
}
