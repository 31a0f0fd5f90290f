package fs

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
	"scvfs/workbench/dialogue"
)

// raise lets a job's agent ask for something, which waits ten minutes.
func (f *fake) raise(session string, n uint64, risk, summary string) uint64 {
	return f.wait(session, n, &ledger.Approval{
		Kind: string(dialogue.Permission), Risk: risk, Summary: summary, CWD: "/src/web", Request: json.RawMessage(`{"command":["rm","-rf","\u202ebuild"]}`),
	})
}

// question lets it ask one that has options, and one that has none, in the
// lines of a text.
func (f *fake) question(session string, n uint64, texts string) uint64 {
	a := &ledger.Approval{Kind: string(dialogue.Question), Risk: "delegate", Summary: "asks you", CWD: "/src"}
	for text := range strings.Lines(texts) {
		text, options, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "|")
		q := ledger.Question{Text: text}
		if options != "" {
			q.Options = strings.Split(options, "|")
		}
		a.Questions = append(a.Questions, q)
	}
	return f.wait(session, n, a)
}

func (f *fake) wait(session string, n uint64, a *ledger.Approval) uint64 {
	f.mu.Lock()
	j := f.jobs[session][f.index(session, n)]
	now := f.tick()
	a.Number, a.Session, a.Job, a.Run, a.Conversation, a.Agent = uint64(len(f.approvals)+17), session, n, j.Run, j.Conversation, j.Agent
	a.State, a.Created, a.Deadline = ledger.ApprovalWaiting, now, now.Add(10*time.Minute)
	f.approvals = append(f.approvals, a)
	f.askedBy[a.Number] = j.Serial
	f.publish(f.approvalChange(workbench.ApprovalRaised, a))
	f.mu.Unlock()
	f.edit(session, n, func(j *ledger.Job) { j.State, j.Detail = ledger.AwaitingInput, "approval "+number(a)+": "+a.Summary })
	return a.Number
}

func number(a *ledger.Approval) string {
	text, _ := json.Marshal(a.Number)
	return string(text)
}

func (f *fake) approvalChange(kind workbench.ChangeKind, a *ledger.Approval) workbench.Change {
	return workbench.Change{
		Kind: kind, Session: a.Session, Job: workbench.JobName(a.Job), Approval: a.Number, Outcome: a.State, Detail: a.Summary,
	}
}

// resolve decides a request.
func (f *fake) resolve(n uint64, state ledger.ApprovalState, by, how string) {
	f.mu.Lock()
	a := *f.approvals[n-17]
	a.State, a.By, a.How, a.Decided = state, by, how, f.tick()
	f.approvals[n-17] = &a
	f.publish(f.approvalChange(workbench.ApprovalResolved, &a))
	f.mu.Unlock()
	if len(f.Approvals(a.Session, a.Job)) == 0 {
		f.edit(a.Session, a.Job, func(j *ledger.Job) {
			if !j.State.Terminal() {
				j.State, j.Detail = ledger.Working, ""
			}
		})
	}
}

func (f *fake) Approvals(session string, job uint64) []*ledger.Approval {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.approvals), func(a *ledger.Approval) bool {
		return !f.kept(a) || a.State != ledger.ApprovalWaiting || session != "" && a.Session != session || job != 0 && a.Job != job
	})
}

func (f *fake) Approval(n uint64) (*ledger.Approval, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n < 17 || n-17 >= uint64(len(f.approvals)) || !f.kept(f.approvals[n-17]) {
		return nil, false
	}
	return f.approvals[n-17], true
}

// kept tells whether the job of a request is still there.
func (f *fake) kept(a *ledger.Approval) bool {
	i := f.index(a.Session, a.Job)
	return i >= 0 && f.jobs[a.Session][i].Serial == f.askedBy[a.Number]
}

func (f *fake) Answer(n uint64, text string, by workbench.Answerer) error {
	a, ok := f.Approval(n)
	switch {
	case !ok:
		return fault.New(fault.NotFound, "there is no approval %d", n)
	case a.State != ledger.ApprovalWaiting:
		return fault.New(fault.Done, "approval %d was %s", n, workbench.Outcome(a))
	}
	answer, err := workbench.ParseAnswer(a, text)
	if err != nil {
		return err
	}
	f.mu.Lock()
	said := *a
	said.Words, said.Reason = answer.Words, answer.Reason
	f.approvals[n-17] = &said
	f.mu.Unlock()
	state := ledger.ApprovalDenied
	if answer.Allow {
		state = ledger.ApprovalApproved
	}
	f.resolve(n, state, ledger.DecidedByOwner, by.String())
	return nil
}

func (f *fake) Approve(session string, job uint64, line string, by workbench.Answerer) error {
	text, n := workbench.CutNumber(line)
	waiting := f.Approvals(session, job)
	switch {
	case n == 0 && len(waiting) != 1:
		return fault.New(fault.Invalid, "%d requests wait", len(waiting))
	case n == 0:
		n = waiting[0].Number
	}
	return f.Answer(n, text, by)
}

func (f *fake) Watch() func() {
	f.set(func(f *fake) { f.watchers++ })
	return func() { f.set(func(f *fake) { f.watchers-- }) }
}

func (f *fake) Looked() { f.set(func(f *fake) { f.looks++ }) }

// watched tells how many hold watch open, and how often somebody has looked
// since it was asked last.
func (f *fake) watched() (watchers, looks int) {
	f.set(func(f *fake) { watchers, looks, f.looks = f.watchers, f.looks, 0 })
	return watchers, looks
}
