package workbench

import (
	"errors"
	"slices"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/worktree"
)

// reportJobs is how many jobs one turn reports.
const reportJobs = 4

// Unreported tells whether a job has ended that an agent started, and that
// agent may not know yet how it ended.
func Unreported(rec *ledger.Job) bool {
	return rec.StartedBy == ledger.ByModel && rec.Parent != "" && rec.State.Terminal() && !rec.Reported
}

// owes enters a job that its agent is to be told of. The caller holds s.tr.
func (s *session) owes(j *job) {
	if Unreported(j.record()) {
		s.due = append(s.due, j)
	}
}

// Seen says that a process was shown how a job ended. When it belongs to the
// conversation of the agent that started the job, that agent is not told of it
// any more.
func (w *Workbench) Seen(session string, n uint64, pid int) {
	j, err := w.find(session, n)
	if err != nil || !Unreported(j.record()) {
		return
	}
	id := w.Caller(pid).Run
	if run, ok := w.Run(id); !ok || run.Session != session || run.Conversation != j.record().Thread {
		return
	}
	j.s.tr.Lock()
	defer j.s.tr.Unlock()
	if j.s.job(n) != j || !Unreported(j.record()) {
		return
	}
	w.settleDue(j.s, map[*job]string{j: "its result was read in run " + id})
}

// report is a turn in which the agent of a conversation is told of background
// jobs that ended.
type report struct {
	conv    *conversation
	parent  *ledger.Job // whose agent started the newest of them; nil once it was dismissed
	jobs    []*job
	settled []*ledger.Job // their next records, which go into the turn's own commit
	origin  *TurnOrigin
	task    string
}

// put adds the records of the reported jobs to the batch that makes the turn.
func (r *report) put(b *ledger.Batch) {
	if r == nil {
		return
	}
	for _, rec := range r.settled {
		b.PutJob(rec)
	}
}

// reported publishes what put made durable with the turn j. The caller holds
// s.tr.
func (w *Workbench) reported(j *job, r *report) {
	if r == nil {
		return
	}
	rec := j.record()
	turn := jobChange(TurnStarted, rec)
	turn.Conversation, turn.Origin = rec.Conversation, rec.Origin
	w.announce(turn)
	for i, told := range r.jobs {
		w.settled(told, r.settled[i], "reported by "+JobName(j.number))
	}
}

// settled publishes that a job's agent is not to be told of it any more.
func (w *Workbench) settled(j *job, rec *ledger.Job, why string) {
	j.rec.Store(rec)
	c := jobChange(JobSettled, rec)
	c.Detail = why
	w.announce(c)
}

// told returns the record of a job whose agent was told of it.
func (j *job) told(at time.Time) *ledger.Job {
	rec := *j.record()
	rec.Reported, rec.Updated = true, at
	return &rec
}

// settleDue records of jobs, by the reason, that their agents are not to be
// told of them. The caller holds s.tr.
func (w *Workbench) settleDue(s *session, why map[*job]string) {
	if len(why) == 0 {
		return
	}
	sess := s.touched()
	recs := map[*job]*ledger.Job{}
	for j := range why {
		j.after.Lock()
		defer j.after.Unlock()
		recs[j] = j.told(sess.Updated)
	}
	if err := w.commit(func(b *ledger.Batch) {
		b.PutSession(sess)
		for _, rec := range recs {
			b.PutJob(rec)
		}
	}); err != nil {
		w.log.Warn("it could not be recorded that an agent knows how its jobs ended; it may be told again", "session", sess.ID, "err", err)
		return
	}
	s.publish(sess)
	for j, rec := range recs {
		w.settled(j, rec, why[j])
	}
	s.due = slices.DeleteFunc(s.due, func(j *job) bool { return recs[j] != nil })
}

// reportEnded starts what turns are due: it is called whenever a job ended or
// a conversation may have become idle. The caller holds s.tr.
func (w *Workbench) reportEnded(s *session) {
	if s.reporting || len(s.due) == 0 {
		return
	}
	if r := w.nextReport(s, nil); r != nil {
		s.reporting = w.spawn(func() { w.reportAll(s, r) })
	}
}

// nextReport picks an idle conversation, none of those tried, and the jobs
// that its agent is to be told of; nil when there is nothing to do now. Jobs
// whose agent cannot be told any more it settles. The caller holds s.tr.
func (w *Workbench) nextReport(s *session, tried []*conversation) *report {
	s.due = slices.DeleteFunc(s.due, func(j *job) bool { return s.job(j.number) != j || !Unreported(j.record()) })
	over := map[*job]string{}
	var r *report
	for _, j := range s.due {
		conv, parent, why := w.addressee(s, j.record())
		switch {
		case why != "":
			over[j] = why
		case r == nil && !slices.Contains(tried, conv) && w.atRest(s, conv):
			r = &report{conv: conv, parent: parent, jobs: []*job{j}}
		case r != nil && r.conv == conv && len(r.jobs) < reportJobs:
			r.jobs, r.parent = append(r.jobs, j), parent
		}
	}
	w.settleDue(s, over)
	return r
}

// addressee finds whom to tell of a job: the conversation of the agent that
// started it, and the turn in which it did, nil once that was dismissed; or
// why there is nobody.
func (w *Workbench) addressee(s *session, rec *ledger.Job) (conv *conversation, parent *ledger.Job, why string) {
	switch {
	case s.record().Closed:
		return nil, nil, "its session is closed"
	case rec.Thread == rec.Conversation:
		return nil, nil, "it was a turn of the conversation that started it"
	}
	if conv = s.conversation(rec.Thread); conv == nil {
		return nil, nil, "the conversation that started it is forgotten"
	}
	if run, ok := w.Run(rec.Parent); ok {
		for _, n := range run.Jobs { // the last one before it is the one that started it
			if j := s.job(n); n < rec.Number && j != nil {
				parent = j.record()
			}
		}
	}
	thread := s.convRecord(conv)
	a, err := w.agent(thread.Agent)
	switch {
	case parent != nil && parent.State == ledger.Cancelled:
		why = JobName(parent.Number) + ", which started it, was cancelled"
	case err == nil && (!a.Resumes() || cannotContinue(thread, a) != ""):
		why = "conversation " + thread.ID + ", which started it, cannot be continued"
	}
	return conv, parent, why
}

// atRest tells whether the workbench may start a turn in a conversation: no
// turn runs or waits in it, and the last one was not cut off. After one that
// was, the owner decides how it goes on. The caller holds s.tr.
func (w *Workbench) atRest(s *session, c *conversation) bool {
	id := s.convRecord(c).ID
	if !w.laneFree(s, id) || s.waiting(id) > 0 {
		return false
	}
	for _, j := range slices.Backward(s.lane(id)) {
		if rec := j.record(); rec.State.Terminal() {
			return rec.State != ledger.Interrupted || rec.ResumedAs != ""
		}
	}
	return true
}

// reportAll starts r, and what turns are due after it, until nothing is.
func (w *Workbench) reportAll(s *session, r *report) {
	var tried []*conversation
	for r != nil {
		p, err := w.planReport(s, r)
		s.tr.Lock()
		if err == nil {
			err = w.startReport(s, p)
		}
		switch {
		case w.ctx.Err() != nil: // the next daemon does it
			s.tr.Unlock()
			return
		case err != nil && !errors.Is(err, errOvertaken):
			w.log.Warn("an agent cannot be told of its background jobs now; maintenance tries again", "conversation", s.convRecord(r.conv).ID, "session", s.record().ID, "err", err)
			tried = append(tried, r.conv)
		}
		if r = w.nextReport(s, tried); r == nil {
			s.reporting = false
		}
		s.tr.Unlock()
	}
}

// errOvertaken is why a report is given up for another one: something changed
// while it was prepared.
var errOvertaken = errors.New("overtaken by a change")

// planReport makes the checks that need no lock, and the turn's prompt.
func (w *Workbench) planReport(s *session, r *report) (*plan, error) {
	sess := s.record()
	p := &plan{workspace: sess.Workspace, report: r}
	p.draft.Call.Session = s.convRecord(r.conv).ID
	if from := r.parent; from != nil {
		p.depth = from.Depth
		p.draft.Call.Model, p.draft.Call.Effort, p.draft.Call.Timeout = from.Call.Model, from.Call.Effort, from.Call.Timeout
	}
	if err := w.planFollowUp(s, p); err != nil {
		return nil, err
	}
	var err error
	if p.timeout, err = w.timeLimit(p.draft.Call.Timeout); err != nil {
		return nil, err
	}
	r.origin = &TurnOrigin{Kind: ledger.OriginBackground}
	for _, j := range r.jobs {
		r.origin.Jobs = append(r.origin.Jobs, JobName(j.number))
	}
	text := w.reportText(records(r.jobs))
	r.task = taskLine([]byte(text))
	if p.agent.Stateless {
		text = asComments(text)
	}
	p.draft.Prompt = []byte(text)
	if err := p.agent.Check(p.draft.Prompt, p.draft.Call.Model, p.draft.Call.Effort); err != nil {
		return nil, err
	}
	p.base = worktree.Head(w.ctx, p.cwd)
	return p, w.diskFloor()
}

// startReport makes the turn, and records in the same commit that its jobs are
// reported. The caller holds s.tr.
func (w *Workbench) startReport(s *session, p *plan) error {
	r, id := p.report, p.draft.Call.Session
	sess := s.record()
	if sess.Closed || w.session(sess.ID) != s || s.conversation(id) != r.conv || !w.atRest(s, r.conv) {
		return errOvertaken
	}
	r.settled = nil
	for _, j := range r.jobs {
		j.after.Lock()
		defer j.after.Unlock()
		if s.job(j.number) != j || !Unreported(j.record()) {
			return errOvertaken
		}
		r.settled = append(r.settled, j.told(time.Now()))
	}
	state := ledger.Queued
	if w.startsNow(s, id) {
		state = ledger.Starting
	}
	if _, err := w.makeJob(s, p, state); err != nil {
		return fault.In("report", "", err)
	}
	return nil
}
