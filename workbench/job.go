package workbench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// job is one prompt handed to one agent.
type job struct {
	s      *session
	number uint64
	rec    atomic.Pointer[ledger.Job]
	done   chan struct{} // closed when a terminal state is published
	turn   *turn         // what runs it; guarded by s.tr
	asks   []*approval   // requests of its agent that are kept, oldest first; guarded by s.tr

	// link is held while the job is being resumed, which links it to a job of
	// another session maybe, or forgotten. It is only ever tried, so it has no
	// place in the lock order.
	link sync.Mutex
	// after is held over each change of the record that comes after the job's
	// end, as one may come from another session.
	after sync.Mutex
}

func newJob(s *session, rec *ledger.Job) *job {
	j := &job{s: s, number: rec.Number, done: make(chan struct{})}
	j.rec.Store(rec)
	if rec.State.Terminal() {
		close(j.done)
	}
	return j
}

// record returns the published record; it is shared and not to be changed.
func (j *job) record() *ledger.Job { return j.rec.Load() }

func (j *job) address() string { return address(j.record().Session, j.number) }

// follows tells whether a job may go from one state to another (DESIGN 6).
// Terminal states have no way out.
func follows(from, to ledger.AgentState) bool {
	switch {
	case from.Terminal():
		return false
	case to.Terminal():
		return true
	}
	switch to {
	case ledger.Starting:
		return from == ledger.Queued || from == ledger.Starting // again, when no run ever took it
	case ledger.Working:
		return from == ledger.Starting || from == ledger.AwaitingInput
	case ledger.AwaitingInput:
		return from == ledger.Working || from == ledger.AwaitingInput // another request came, or went
	}
	return false
}

// next returns a copy of the job's record in a new state, dated now.
func (j *job) next(state ledger.AgentState, detail string) *ledger.Job {
	rec := *j.record()
	rec.State, rec.Detail, rec.Updated = state, detail, time.Now()
	if state.Terminal() {
		rec.Ended = rec.Updated
	}
	return &rec
}

// also is what goes along with a job's change of state.
type also struct {
	sess *ledger.Session     // the session's next record; nil: only dated anew
	put  func(*ledger.Batch) // joins the same commit
	then func()              // runs once it is durable, before anyone can see it
}

// advance commits rec as the job's next record and publishes it. The caller
// holds s.tr.
func (w *Workbench) advance(j *job, rec *ledger.Job, a also) error {
	if from := j.record().State; !follows(from, rec.State) && (from != rec.State || rec.Review == nil || from.Terminal()) {
		return fault.New(fault.Internal, "%s cannot go from %s to %s", j.address(), from, rec.State)
	}
	sess := a.sess
	if sess == nil {
		sess = j.s.touched()
	}
	var gone *resolution
	if rec.State.Terminal() {
		gone = w.withdrawing(j, rec.Updated, "its job "+ended(rec.State))
	}
	if err := w.commit(func(b *ledger.Batch) {
		b.PutJob(rec)
		b.PutSession(sess)
		gone.put(b)
		if a.put != nil {
			a.put(b)
		}
	}); err != nil {
		return err
	}
	gone.then()
	if a.then != nil {
		a.then()
	}
	j.s.publish(sess)
	w.show(j, rec)
	return nil
}

// show publishes a committed record and tells whoever listens.
func (w *Workbench) show(j *job, rec *ledger.Job) {
	j.rec.Store(rec)
	if rec.State.Terminal() {
		w.countEnded(rec.State)
		j.s.ended(j)
		j.s.owes(j)
		close(j.done)
	}
	w.announce(jobChange(JobChanged, rec))
}

func jobChange(kind ChangeKind, rec *ledger.Job) Change {
	return Change{
		Kind: kind, Session: rec.Session, Job: JobName(rec.Number), Run: rec.Run, Agent: rec.Agent,
		State: rec.State, Status: rec.State.Status(), Task: rec.Task, Detail: rec.Detail,
	}
}

// find returns a job, or why there is none.
func (w *Workbench) find(session string, n uint64) (*job, error) {
	s := w.session(session)
	if s == nil {
		return nil, fault.New(fault.NotFound, "there is no session %q", session)
	}
	j := s.job(n)
	if j == nil {
		return nil, fault.New(fault.NotFound, "there is no job %s", address(session, n))
	}
	return j, nil
}

// Jobs returns the records of a session's jobs, oldest first.
func (w *Workbench) Jobs(session string) []*ledger.Job {
	s := w.session(session)
	if s == nil {
		return nil
	}
	return records(s.list())
}

func records(jobs []*job) []*ledger.Job {
	recs := make([]*ledger.Job, len(jobs))
	for i, j := range jobs {
		recs[i] = j.record()
	}
	return recs
}

// Job returns one job's record; it is shared and not to be changed.
func (w *Workbench) Job(session string, n uint64) (*ledger.Job, bool) {
	j, err := w.find(session, n)
	if err != nil {
		return nil, false
	}
	return j.record(), true
}

// Active returns the jobs that have not ended, of all sessions, oldest first.
func (w *Workbench) Active() []*ledger.Job {
	var all []*ledger.Job
	for _, s := range w.allSessions() {
		all = append(all, records(s.unfinished())...)
	}
	slices.SortFunc(all, func(a, b *ledger.Job) int { return int(int64(a.Serial - b.Serial)) })
	return all
}

// Wait returns a job's status once it has ended.
func (w *Workbench) Wait(ctx context.Context, session string, n uint64) (ledger.JobStatus, error) {
	j, err := w.find(session, n)
	if err != nil {
		return "", err
	}
	select {
	case <-j.done:
		return j.record().State.Status(), nil
	case <-ctx.Done():
		return "", fault.New(fault.Interrupted, "interrupted while waiting for %s", j.address())
	}
}

// stop is a decision that a job is to stop: the record that says so.
type stop struct {
	j    *job
	rec  *ledger.Job
	gone *resolution // its requests that waited, withdrawn; nil for none
}

// put adds the records to a batch.
func (st stop) put(b *ledger.Batch) {
	b.PutJob(st.rec)
	st.gone.put(b)
}

// stop decides how an unfinished job stops: one that has no turn ends here, one
// that runs is marked and ends when its process tree is empty. The caller
// holds s.tr.
func (w *Workbench) stop(j *job, by string, at time.Time) stop {
	rec := *j.record()
	gone := w.withdrawing(j, at, "its job is being cancelled by "+by)
	if j.turn == nil {
		rec = *j.next(ledger.Cancelled, "by "+by+", before it ran")
	} else {
		rec.Updated, rec.Detail = at, "being cancelled by "+by
	}
	if gone != nil && !rec.State.Terminal() {
		rec.State = ledger.Working
		gone.run = w.runStands(&rec)
	}
	rec.Cancel = &ledger.Cancel{By: by, At: at}
	return stop{j, &rec, gone}
}

// stopped carries out a stop that is committed. The caller holds s.tr.
func (w *Workbench) stopped(st stop) {
	st.gone.then()
	w.show(st.j, st.rec)
	if st.j.turn != nil {
		st.j.turn.stop()
		return
	}
	st.j.s.unqueue(st.j)
}

// Cancel stops a job. It returns once that is recorded; the job says cancelled
// when its whole process tree is empty. A full disk does not stop it.
func (w *Workbench) Cancel(by Caller, session string, n uint64) error {
	j, err := w.find(session, n)
	if err == nil {
		err = w.MayDirect(by, j.record())
	}
	if err != nil {
		return err
	}
	j.s.tr.Lock()
	defer j.s.tr.Unlock()
	rec := j.record()
	switch {
	case rec.State.Terminal():
		return fault.New(fault.Done, "refused: %s already %s", j.address(), ended(rec.State))
	case rec.Cancel != nil:
		return fault.New(fault.Done, "refused: %s is being cancelled already, asked %s", j.address(), rec.Cancel.At.Format(time.RFC3339))
	}
	st, sess := w.stop(j, by.String(), time.Now()), j.s.touched()
	err = w.commit(func(b *ledger.Batch) { st.put(b); b.PutSession(sess) })
	switch {
	case err == nil:
		j.s.publish(sess)
		w.stopped(st)
		w.reportEnded(j.s) // a conversation that it waited for may be idle now
	case j.turn != nil:
		w.log.Warn("a cancel could not be recorded; the job is stopped all the same", "job", j.address(), "err", err)
		withdrawLater(j.waiting(), end{ledger.DecidedByEnd, st.rec.Detail})
		j.turn.stopUnrecorded(st.rec.Cancel)
	default:
		return err
	}
	return nil
}

// ended puts a terminal state as a sentence does: "completed", "timed out".
func ended(s ledger.AgentState) string {
	if s == ledger.TimedOut {
		return "timed out"
	}
	return string(s)
}

// Dismiss forgets a job that has ended.
func (w *Workbench) Dismiss(by Caller, session string, n uint64) error {
	j, err := w.find(session, n)
	if err == nil {
		err = w.MayDirect(by, j.record())
	}
	if err != nil {
		return err
	}
	j.s.tr.Lock()
	defer j.s.tr.Unlock()
	switch {
	case j.s.record().Closed:
		return closedFault(session)
	case !j.record().State.Terminal():
		return fault.New(fault.Busy, "refused: %s has not ended; cancel it first: echo cancel > its ctl", j.address())
	}
	_, err = w.forget(j)
	return err
}
