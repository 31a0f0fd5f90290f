package workbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// summaryRunes is the longest summary of a request, in characters.
const summaryRunes = 500

// asker is the turn whose agent asks.
type asker interface {
	// answered hands a decision over: how says who decided and by what, for the log. It is
	// called from any goroutine, holding no lock, and at most once for a
	// request; it never blocks. It may come before ask has returned.
	answered(ask string, number uint64, a dialogue.Answer, how string)
}

// ask lets the gate decide about a request of the agent of the job's run, which
// is also how a request of an earlier ask is asked again. It returns the
// decision when there is one at once; nil when the request waits: then a
// record of it is durable, job and run await input, and from.answered comes
// later, unless it is withdrawn first. The number is its own in both cases. An
// error says that nothing could be recorded: the answer is no, and the error
// is the reason. The caller holds no lock.
func (w *Workbench) ask(j *job, run *ledger.Run, from asker, q dialogue.Ask) (number uint64, d *decided, err error) {
	if run == nil {
		return 0, nil, fault.New(fault.Gone, "the record of the run that serves %s is gone", j.address())
	}
	g := w.ruleOn(run.Agent, q)
	watched := w.watching() // as the request comes
	s := j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	if a := j.asked(run.ID, q.ID); a != nil {
		return a.record().Number, a.bind(from), nil
	}
	if s.job(j.number) != j || j.record().Run != run.ID {
		return 0, nil, fault.New(fault.Gone, "run %s does not serve %s any more", run.ID, j.address())
	}
	rec := w.newRequest(j, run, q)
	switch why := cannotWait(j.record(), q); {
	case g.allow:
		rec.State, rec.By, rec.How = ledger.ApprovalApproved, ledger.DecidedByGate, g.why
	case !g.waits:
		g.deny(rec, q.Kind, g.why, "nobody is asked")
	case why != "":
		g.deny(rec, q.Kind, why, why)
	case !watched:
		g.deny(rec, q.Kind, g.why+", nobody watches", "nobody watches for requests now")
	default:
		if err := w.wait(j, from, rec); err != nil {
			return 0, nil, err
		}
		return rec.Number, nil, nil
	}
	return w.decideAtOnce(j, rec)
}

// cannotWait says why a request of the job cannot be put before the owner;
// empty when it can.
func cannotWait(rec *ledger.Job, q dialogue.Ask) string {
	size, err := json.Marshal(q.Questions)
	switch {
	case rec.State.Terminal():
		return "its job " + ended(rec.State)
	case rec.Cancel != nil:
		return "its job is being cancelled"
	case err != nil || len(size) > questionsBytes:
		return fmt.Sprintf("its questions are longer than %d KiB", questionsBytes>>10)
	}
	return ""
}

// deny makes rec a denial by the gate.
func (r ruling) deny(rec *ledger.Approval, kind dialogue.Kind, how, because string) {
	rec.State, rec.By, rec.How, rec.Reason = ledger.ApprovalDenied, ledger.DecidedByGate, how, r.denial(kind, because)
	rec.Questions = nil
}

// newRequest makes the record of a request, with a number.
func (w *Workbench) newRequest(j *job, run *ledger.Run, q dialogue.Ask) *ledger.Approval {
	rec := &ledger.Approval{
		Number: w.approvals.take(), Session: run.Session, Job: j.number, Run: run.ID, Conversation: run.Conversation, Agent: run.Agent,
		Ask: q.ID, Kind: string(q.Kind), Risk: agent.OneLine(string(q.Risk), 40), Tool: agent.OneLine(q.Tool, 80),
		Summary: agent.OneLine(cmp.Or(q.Summary, "use "+cmp.Or(q.Tool, "a tool")), summaryRunes),
		CWD:     agent.OneLine(cmp.Or(q.CWD, run.CWD), 4096), Request: q.Request, State: ledger.ApprovalWaiting, Created: time.Now(),
	}
	for _, c := range q.Questions {
		rec.Questions = append(rec.Questions, ledger.Question(c))
	}
	keepRequest(rec, requestBytes)
	return rec
}

// wait makes a request wait. The caller holds s.tr.
func (w *Workbench) wait(j *job, from asker, rec *ledger.Approval) error {
	rec.Deadline = rec.Created.Add(w.limits.AttendedWait.Duration())
	var all []*ledger.Approval
	for _, a := range j.waiting() {
		all = append(all, a.record())
	}
	next := j.next(ledger.AwaitingInput, waitingFor(append(all, rec)))
	run, gone := w.runStands(next), j.surplus()
	return w.advance(j, next, also{
		put: func(b *ledger.Batch) {
			b.PutApproval(rec)
			for _, a := range gone {
				b.DeleteApproval(a.record().Number)
			}
			if run != nil {
				b.PutRun(run)
			}
		},
		then: func() {
			a := newApproval(j, rec)
			a.from = from
			w.addApproval(a, gone)
			w.arm(a)
			if run != nil {
				w.showRun(run)
			}
			w.announce(approvalChange(ApprovalRaised, rec))
		},
	})
}

// decideAtOnce records a request that never waits. The caller holds s.tr.
func (w *Workbench) decideAtOnce(j *job, rec *ledger.Approval) (uint64, *decided, error) {
	rec.Decided = rec.Created
	keepRequest(rec, decidedRequestBytes)
	gone := j.surplus()
	if err := w.commit(func(b *ledger.Batch) {
		b.PutApproval(rec)
		for _, a := range gone {
			b.DeleteApproval(a.record().Number)
		}
	}); err != nil {
		return 0, nil, err
	}
	a := newApproval(j, rec)
	a.given = true
	w.addApproval(a, gone)
	w.resolved(rec)
	return rec.Number, decisionOf(rec), nil
}

// bind makes from the turn that the decision goes to, and returns the decision
// when there is one. The caller holds s.tr.
func (a *approval) bind(from asker) *decided {
	a.from, a.given = from, !a.waits()
	if a.waits() {
		return nil
	}
	return decisionOf(a.record())
}

// reask binds a turn to the records of its run after a restart: open are the
// requests that its agent still waits for. A decision that was recorded is
// handed over (again), a request without a record is asked, and a record whose
// request is not open any more is withdrawn. It returns the numbers of those
// that wait, by the agent's name for them. The caller holds no lock.
func (w *Workbench) reask(j *job, run *ledger.Run, from asker, open []dialogue.Ask) map[string]uint64 {
	w.withdrawBut(j, run, open)
	numbers := map[string]uint64{}
	for _, q := range open {
		number, d, err := w.ask(j, run, from, q)
		switch {
		case err != nil:
			w.log.Error("an agent's request cannot be recorded; it is denied", "run", run.ID, "err", err)
			from.answered(q.ID, 0, dialogue.Answer{Reason: err.Error()}, ledger.DecidedByGate+" (it could not be recorded)")
		case d != nil:
			from.answered(q.ID, number, d.Answer, d.How)
		default:
			numbers[q.ID] = number
		}
	}
	return numbers
}

// withdrawBut withdraws what waits of a run beside what is open.
func (w *Workbench) withdrawBut(j *job, run *ledger.Run, open []dialogue.Ask) {
	still := map[string]bool{}
	for _, q := range open {
		still[q.ID] = true
	}
	w.withdrawIf(j, end{ledger.DecidedByAgent, "the agent took it back"}, func(rec *ledger.Approval) bool {
		return rec.Run == run.ID && !still[rec.Ask]
	})
}

// withdraw says that the agent of a run took a request back.
func (w *Workbench) withdraw(run, ask, why string) {
	w.withdrawOf(run, end{ledger.DecidedByAgent, why}, func(rec *ledger.Approval) bool { return rec.Ask == ask })
}

// withdrawAll says that nothing that a run asked needs an answer any more: its
// turn ended, was cancelled, or died.
func (w *Workbench) withdrawAll(run, why string) {
	w.withdrawOf(run, end{ledger.DecidedByEnd, why}, func(*ledger.Approval) bool { return true })
}

func (w *Workbench) withdrawOf(run string, e end, pick func(*ledger.Approval) bool) {
	mine := func(rec *ledger.Approval) bool { return rec.Run == run && pick(rec) }
	jobs := map[*job]bool{}
	for _, a := range w.approvals.pending(mine) {
		jobs[a.j] = true
	}
	for j := range jobs {
		w.withdrawIf(j, e, mine)
	}
}

// withdrawIf withdraws what waits of a job and is picked. What the ledger
// cannot take now is answered by nobody any more, and recorded later.
func (w *Workbench) withdrawIf(j *job, e end, pick func(*ledger.Approval) bool) {
	j.s.tr.Lock()
	defer j.s.tr.Unlock()
	var asks []*approval
	for _, a := range j.waiting() {
		if pick(a.record()) {
			asks = append(asks, a)
		}
	}
	if len(asks) == 0 {
		return
	}
	if err := w.decide(j, asks, time.Now(), e.withdraw); err != nil {
		w.log.Error("withdrawn approvals cannot be recorded yet; trying again", "job", j.address(), "err", err)
		withdrawLater(asks, e)
	}
}

// withdrawLater withdraws requests for whoever would answer them, and lets
// their clocks record it. The caller holds s.tr.
func withdrawLater(asks []*approval, e end) {
	for _, a := range asks {
		a.gone = &e
		a.timer.Reset(retryEvery)
	}
}
