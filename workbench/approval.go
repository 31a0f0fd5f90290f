package workbench

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// approvalsKept is how many decided requests of a job are kept; an agent can
// ask without end.
const approvalsKept = 256

// approvals are the requests of agents, and whether somebody watches for them.
// Its lock is a leaf.
type approvals struct {
	mu       sync.RWMutex
	last     uint64               // the last number given
	all      map[uint64]*approval // as long as their jobs are there
	waiting  map[uint64]*approval
	counts   map[outcome]uint64 // since the daemon started
	watchers int                // that hold approvals/watch open
	looked   time.Time          // when the owner last looked
}

// outcome is how a request was decided, and by whom.
type outcome struct {
	state ledger.ApprovalState
	by    string
}

func newApprovals() approvals {
	return approvals{all: map[uint64]*approval{}, waiting: map[uint64]*approval{}, counts: map[outcome]uint64{}}
}

// approval is one request. Its record is published, and never changed.
type approval struct {
	j   *job
	rec atomic.Pointer[ledger.Approval]

	// Guarded by j.s.tr.
	from  asker // whose agent asks; nil until a turn of this daemon has bound it
	given bool  // the decision is on its way to from
	gone  *end  // it was taken back, and the ledger could not take that yet
	timer *time.Timer
}

// end is why a request needs no answer any more.
type end struct{ by, why string }

func newApproval(j *job, rec *ledger.Approval) *approval {
	a := &approval{j: j}
	a.rec.Store(rec)
	return a
}

func (a *approval) record() *ledger.Approval { return a.rec.Load() }

func (a *approval) waits() bool { return a.record().State == ledger.ApprovalWaiting }

// take gives a number. It is durable with the record that has it.
func (s *approvals) take() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// put publishes a request.
func (s *approvals) put(a *approval) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := a.record()
	s.all[rec.Number] = a
	if rec.State == ledger.ApprovalWaiting {
		s.waiting[rec.Number] = a
		return
	}
	delete(s.waiting, rec.Number)
}

// drop forgets requests.
func (s *approvals) drop(gone []*approval) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range gone {
		delete(s.all, a.record().Number)
		delete(s.waiting, a.record().Number)
	}
}

func (s *approvals) count(rec *ledger.Approval) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[outcome{rec.State, rec.By}]++
}

// find returns a request; nil when there is none of that number.
func (s *approvals) find(n uint64) *approval {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[n]
}

// pending returns those that wait and that pick wants, oldest first.
func (s *approvals) pending(pick func(*ledger.Approval) bool) []*approval {
	s.mu.RLock()
	all := slices.Collect(maps.Values(s.waiting))
	s.mu.RUnlock()
	all = slices.DeleteFunc(all, func(a *approval) bool { return !a.waits() || !pick(a.record()) })
	slices.SortFunc(all, func(a, b *approval) int { return cmp.Compare(a.record().Number, b.record().Number) })
	return all
}

// Approvals returns the requests that wait, oldest first: those of a session,
// or of all with an empty one, and of one job of it unless job is 0.
func (w *Workbench) Approvals(session string, job uint64) []*ledger.Approval {
	var recs []*ledger.Approval
	for _, a := range w.approvals.pending(func(rec *ledger.Approval) bool {
		return (session == "" || rec.Session == session) && (job == 0 || rec.Job == job)
	}) {
		recs = append(recs, a.record())
	}
	return recs
}

// Approval returns one request, also one that was decided, as long as its job
// is kept. It is shared and not to be changed.
func (w *Workbench) Approval(n uint64) (*ledger.Approval, bool) {
	a := w.approvals.find(n)
	if a == nil {
		return nil, false
	}
	return a.record(), true
}

// Outcome is how a request was decided, in words; "waiting" before.
func Outcome(rec *ledger.Approval) string {
	switch rec.State {
	case ledger.ApprovalApproved, ledger.ApprovalDenied:
		return string(rec.State) + " by " + decidedBy(rec)
	case ledger.ApprovalWithdrawn:
		return string(rec.State) + ": " + rec.How
	}
	return string(rec.State)
}

// decidedBy is who decided and how, as the log tells it.
func decidedBy(rec *ledger.Approval) string { return rec.By + " (" + rec.How + ")" }

// waitingFor is what state says of a job that waits.
func waitingFor(asks []*ledger.Approval) string {
	text := "approval " + strconv.FormatUint(asks[0].Number, 10) + ": " + asks[0].Summary
	if n := len(asks) - 1; n > 0 {
		text += " (and " + strconv.Itoa(n) + " more)"
	}
	return text
}

// waiting returns the records of the job's requests that wait, oldest first.
// The caller holds s.tr.
func (j *job) waiting() []*approval {
	return slices.DeleteFunc(slices.Clone(j.asks), func(a *approval) bool { return !a.waits() })
}

// asked returns the request that a run knows by the name ask; nil when there
// is none. The caller holds s.tr.
func (j *job) asked(run, ask string) *approval {
	for _, a := range slices.Backward(j.asks) {
		if rec := a.record(); rec.Run == run && rec.Ask == ask {
			return a
		}
	}
	return nil
}

// surplus is what goes of a job's decided requests when one more comes. The
// caller holds s.tr.
func (j *job) surplus() []*approval {
	over := len(j.asks) + 1 - approvalsKept
	var gone []*approval
	for _, a := range j.asks {
		if over--; over < 0 {
			break
		}
		if !a.waits() {
			gone = append(gone, a)
		}
	}
	return gone
}

// addApproval publishes a request whose record is committed, in place of gone. The
// caller holds s.tr.
func (w *Workbench) addApproval(a *approval, gone []*approval) {
	a.j.asks = append(slices.DeleteFunc(slices.Clone(a.j.asks), func(o *approval) bool { return slices.Contains(gone, o) }), a)
	w.approvals.drop(gone)
	w.approvals.put(a)
}

// loadApprovals takes up what the ledger holds.
func (w *Workbench) loadApprovals(contents ledger.Contents) {
	w.approvals.last = contents.Approval
	for _, rec := range contents.Approvals { // by number
		var j *job
		if s := w.sessions[rec.Session]; s != nil {
			j = s.job(rec.Job)
		}
		if j == nil {
			w.log.Error("an approval's job cannot be read; the approval is left as it is", "approval", rec.Number, "job", address(rec.Session, rec.Job))
			continue
		}
		a := newApproval(j, rec)
		j.asks = append(j.asks, a)
		w.approvals.put(a)
	}
}

// armAll starts the clocks of the requests that waited when the last daemon
// stopped. A deadline that has passed is due at once.
func (w *Workbench) armAll() {
	for _, a := range w.approvals.pending(func(*ledger.Approval) bool { return true }) {
		a.j.s.tr.Lock()
		if a.waits() {
			w.arm(a)
		}
		a.j.s.tr.Unlock()
	}
}

// disarmAll stops the clocks. The workbench is closing.
func (w *Workbench) disarmAll() {
	for _, a := range w.approvals.pending(func(*ledger.Approval) bool { return true }) {
		a.j.s.tr.Lock()
		if a.timer != nil {
			a.timer.Stop()
		}
		a.j.s.tr.Unlock()
	}
}

// arm starts the clock of a request. The caller holds s.tr.
func (w *Workbench) arm(a *approval) {
	a.timer = time.AfterFunc(time.Until(a.record().Deadline), func() { w.spawn(func() { w.due(a) }) })
}

// checkDeadlines looks at all clocks again: those that timers go by stand still
// while the machine sleeps.
func (w *Workbench) checkDeadlines() {
	now := time.Now().Round(0)
	for _, a := range w.approvals.pending(func(rec *ledger.Approval) bool { return !now.Before(rec.Deadline) }) {
		w.due(a)
	}
}

// due decides a request whose time has come: by the gate, or, when it was taken
// back and that could not be recorded yet, so.
func (w *Workbench) due(a *approval) {
	s := a.j.s
	s.tr.Lock()
	tell := w.dueLocked(a)
	s.tr.Unlock()
	tell()
}

// dueLocked is due under s.tr. It returns what is to be called without.
func (w *Workbench) dueLocked(a *approval) (tell func()) {
	left := time.Until(a.record().Deadline.Round(0))
	how := w.denyLate
	switch {
	case !a.waits():
		return func() {}
	case a.gone != nil:
		how = a.gone.withdraw
	case left > 0: // the clock was set
		a.timer.Reset(left)
		return func() {}
	}
	if err := w.decide(a.j, []*approval{a}, time.Now(), how); err != nil {
		w.log.Error("an approval's end cannot be recorded yet; trying again", "approval", a.record().Number, "err", err)
		a.timer.Reset(retryEvery)
		return func() {}
	}
	return a.hand()
}

// denyLate is the gate's answer to a request that nobody answered.
func (w *Workbench) denyLate(rec *ledger.Approval) {
	waited := rec.Deadline.Sub(rec.Created).Round(time.Second)
	rec.State, rec.By, rec.How = ledger.ApprovalDenied, ledger.DecidedByGate, "nobody answered in "+waited.String()
	rec.Reason = w.ruleOn(rec.Agent, asAsk(rec)).denial(asAsk(rec).Kind, rec.How)
}

func (e *end) withdraw(rec *ledger.Approval) {
	rec.State, rec.By, rec.How = ledger.ApprovalWithdrawn, e.by, e.why
}

// noApproval is the error for a number that nothing has.
func noApproval(n uint64) error {
	return fault.New(fault.NotFound, "there is no approval %d, or its job was forgotten; ls approvals shows those that wait", n)
}
