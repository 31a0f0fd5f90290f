package workbench

import (
	"encoding/json"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/dialogue"
)

// resolution decides some requests of one job: it holds their last records,
// and those that say how the run stands then. All of it is one commit with the
// job's record.
type resolution struct {
	w    *Workbench
	asks []*approval
	recs []*ledger.Approval
	run  *ledger.Run // nil: it is recorded otherwise
}

// resolving prepares to decide requests of a job, each as how says. The caller
// holds s.tr.
func (w *Workbench) resolving(asks []*approval, at time.Time, how func(*ledger.Approval)) *resolution {
	r := &resolution{w: w, asks: asks}
	for _, a := range asks {
		rec := *a.record()
		rec.Decided = at
		how(&rec)
		keepRequest(&rec, decidedRequestBytes)
		r.recs = append(r.recs, &rec)
	}
	return r
}

// withdrawing prepares to withdraw all that waits of a job; nil when nothing
// does. The caller holds s.tr.
func (w *Workbench) withdrawing(j *job, at time.Time, why string) *resolution {
	asks := j.waiting()
	if len(asks) == 0 {
		return nil
	}
	return w.resolving(asks, at, (&end{ledger.DecidedByEnd, why}).withdraw)
}

// put adds the records to a batch.
func (r *resolution) put(b *ledger.Batch) {
	if r == nil {
		return
	}
	for _, rec := range r.recs {
		b.PutApproval(rec)
	}
	if r.run != nil {
		b.PutRun(r.run)
	}
}

// then publishes what put made durable. The caller holds s.tr.
func (r *resolution) then() {
	if r == nil {
		return
	}
	for i, a := range r.asks {
		a.rec.Store(r.recs[i])
		if a.timer != nil {
			a.timer.Stop()
		}
		r.w.approvals.put(a)
		r.w.resolved(r.recs[i])
	}
	if r.run != nil {
		r.w.showRun(r.run)
	}
}

// resolved tells of a decision that is published.
func (w *Workbench) resolved(rec *ledger.Approval) {
	w.approvals.count(rec)
	w.announce(approvalChange(ApprovalResolved, rec))
}

// decide commits how requests of a job were decided, and with it how the job
// and its run stand then: still waiting for what is left, or working. The
// caller holds s.tr, and hands the decisions over.
func (w *Workbench) decide(j *job, asks []*approval, at time.Time, how func(*ledger.Approval)) error {
	r := w.resolving(asks, at, how)
	if j.record().State != ledger.AwaitingInput { // in a ledger that contradicts itself
		err := w.commit(r.put)
		if err == nil {
			r.then()
		}
		return err
	}
	over := map[*approval]bool{}
	for _, a := range asks {
		over[a] = true
	}
	var left []*ledger.Approval
	for _, a := range j.waiting() {
		if !over[a] {
			left = append(left, a.record())
		}
	}
	state, detail := ledger.Working, ""
	if len(left) > 0 {
		state, detail = ledger.AwaitingInput, waitingFor(left)
	}
	rec := j.next(state, detail)
	r.run = w.runStands(rec)
	return w.advance(j, rec, also{put: r.put, then: r.then})
}

// runStands returns the next record of the run that serves a job: it stands as
// the job does. It is nil when the run's record is gone.
func (w *Workbench) runStands(rec *ledger.Job) *ledger.Run {
	now, ok := w.Run(rec.Run)
	if !ok || now.State.Terminal() {
		return nil
	}
	run := *now
	run.State, run.Detail, run.Updated = rec.State, rec.Detail, rec.Updated
	return &run
}

// hand returns what tells the turn whose agent asked of a decision, once. The
// caller holds s.tr, and calls it without.
func (a *approval) hand() (tell func()) {
	rec, from := a.record(), a.from
	if from == nil || a.given || rec.State == ledger.ApprovalWaiting || rec.State == ledger.ApprovalWithdrawn {
		return func() {}
	}
	a.given = true
	d := decisionOf(rec)
	return func() { from.answered(rec.Ask, rec.Number, d.Answer, d.How) }
}

// decided is what was decided about a request.
type decided struct {
	dialogue.Answer
	How string // who decided, and how, as the log has it
}

// decisionOf reads a decision back out of its record. What was withdrawn is
// denied, should anybody still want to know.
func decisionOf(rec *ledger.Approval) *decided {
	d := &decided{How: decidedBy(rec)}
	switch rec.State {
	case ledger.ApprovalApproved:
		d.Answer = dialogue.Answer{Allow: true, Words: rec.Words}
	case ledger.ApprovalWithdrawn:
		d.Reason = rec.How
	default:
		d.Reason = rec.Reason
	}
	return d
}

// asAsk is the part of a request that the gate looks at.
func asAsk(rec *ledger.Approval) dialogue.Ask {
	return dialogue.Ask{Kind: dialogue.Kind(rec.Kind), Risk: dialogue.Risk(rec.Risk)}
}

// approvalChange is the line of /events for a request.
func approvalChange(kind ChangeKind, rec *ledger.Approval) Change {
	c := Change{
		Kind: kind, Session: rec.Session, Job: JobName(rec.Job), Run: rec.Run, Agent: rec.Agent, Approval: rec.Number,
		Outcome: rec.State, Detail: rec.Summary,
	}
	if kind == ApprovalResolved {
		c.Detail = Outcome(rec)
	}
	return c
}

const (
	// requestBytes is the longest request that is kept while it waits.
	requestBytes = 256 << 10
	// decidedRequestBytes is the longest that is kept afterwards.
	decidedRequestBytes = 16 << 10
	// questionsBytes is how long the questions of a request may be together.
	questionsBytes = 128 << 10
)

// keepRequest bounds the request of a record to limit bytes, as the ledger
// writes it. A longer one becomes a text of its beginning, and one that is no
// JSON a text of all of it.
func keepRequest(rec *ledger.Approval, limit int) {
	whole := string(rec.Request)
	if rec.RequestBytes > 0 { // it was cut before
		if json.Unmarshal(rec.Request, &whole) != nil {
			whole = ""
		}
	} else if whole = strings.ToValidUTF8(whole, "\ufffd"); json.Valid([]byte(whole)) {
		if stored, err := json.Marshal(json.RawMessage(whole)); err == nil && len(stored) <= limit {
			rec.Request = stored
			return
		}
	}
	if whole == "" {
		rec.Request = nil
		return
	}
	for n := len(whole); ; n = min(n, 2*limit) / 2 {
		start := strings.ToValidUTF8(whole[:n], "")
		stored, err := json.Marshal(start)
		if err != nil || len(stored) > limit {
			continue
		}
		if len(start) < len(whole) && rec.RequestBytes == 0 {
			rec.RequestBytes = len(rec.Request)
		}
		rec.Request = stored
		return
	}
}
