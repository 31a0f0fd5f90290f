package workbench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
	"scvfs/workbench/worktree"
)

// plan is a draft that passed every check, with what the checks found.
type plan struct {
	draft     Draft
	agent     *agent.Agent
	workspace string
	cwd       string
	timeout   time.Duration
	resumes   *job    // the job that this one continues; nil for none
	vendor    string  // the agent's own session id that a new conversation begins with
	worktree  string  // the worktree that it works in already
	base      string  // commit that diff compares with; empty outside git
	parent    string  // run of the agent that asks; empty for the owner
	depth     int     // how many agents stand between the owner and it
	report    *report // what it tells its agent of; nil for all but reports
	review    *ledger.Review
}

// PrecheckDraft looks at the part of a document that has come so far and
// refuses what no continuation can mend: a session that is not open, more than
// limits.prompt_bytes, a NUL, a complete first line or JSON object that would
// be refused.
func (w *Workbench) PrecheckDraft(by Caller, session string, doc []byte) error {
	if _, err := w.open(session); err != nil {
		return err
	}
	if err := w.precheckPrompt(doc); err != nil {
		return err
	}
	if len(doc) > judged {
		return nil // its beginning was judged when it came
	}
	draft, err := opening(doc)
	if err != nil || draft == nil {
		return err
	}
	draft.By = by
	return w.CheckDraft(session, *draft)
}

// judged is how much of a document is looked at while it is written: what
// comes in more than a few writes is judged again only as a whole.
const judged = 256 << 10

// precheckPrompt looks at the part of a prompt that has come so far.
func (w *Workbench) precheckPrompt(part []byte) error {
	switch {
	case int64(len(part)) > w.PromptBytes():
		return fault.New(fault.TooLarge, "the prompt is longer than limits.prompt_bytes, %d bytes: put it in a file and name that", w.PromptBytes())
	case bytes.IndexByte(part, 0) >= 0:
		return checkPrompt(part)
	}
	return nil
}

// CheckDraft makes every check that Start would make, and starts nothing.
func (w *Workbench) CheckDraft(session string, d Draft) error {
	p, err := w.plan(session, d)
	if err == nil {
		err = w.checkSteer(session, p)
	}
	if err != nil {
		return err
	}
	s := w.session(session)
	s.tr.Lock()
	defer s.tr.Unlock()
	_, err = w.admit(s, p)
	return err
}

// plan makes the checks that need no lock.
func (w *Workbench) plan(session string, d Draft) (*plan, error) {
	s, err := w.open(session)
	if err != nil {
		return nil, err
	}
	p := &plan{draft: d, workspace: s.record().Workspace}
	if err := w.delegate(session, p); err != nil {
		return nil, err
	}
	if d.Call.Session != "" {
		err = w.planFollowUp(s, p)
	} else {
		err = w.planFresh(s, p)
	}
	if err != nil {
		return nil, err
	}
	if p.timeout, err = w.timeLimit(d.Call.Timeout); err != nil {
		return nil, err
	}
	if err := w.planReview(p); err != nil {
		return nil, err
	}
	if err := p.agent.Check(d.Prompt, d.Call.Model, d.Call.Effort); err != nil {
		return nil, err
	}
	return p, w.diskFloor()
}

// planFresh finds the agent and directory of a new conversation.
func (w *Workbench) planFresh(s *session, p *plan) (err error) {
	name := p.draft.Call.Agent
	if name == "" {
		name = w.DefaultAgent(s.record())
	}
	if p.agent, err = w.offered(name); err != nil {
		return err
	}
	if p.cwd, p.worktree, err = w.workDir(p.workspace, p.draft.Call.CWD); err != nil {
		return err
	}
	if p.draft.Call.Worktree {
		p.worktree = "" // a new one, of the same repository
		return checkRepository(w.ctx, p.cwd)
	}
	return nil
}

// DefaultAgent is who gets a session's plain prompts: its own choice, or the
// configuration's.
func (w *Workbench) DefaultAgent(rec *ledger.Session) string {
	if rec.Agent != "" {
		return rec.Agent
	}
	return w.opt.Config.DefaultAgent
}

func (w *Workbench) timeLimit(seconds int64) (time.Duration, error) {
	limit, ceiling := w.limits.Timeout.Duration(), w.limits.TimeoutMax.Duration()
	if seconds > 0 {
		if seconds > int64(ceiling/time.Second) {
			return 0, fault.New(fault.Invalid, "timeout_seconds %d is above limits.timeout_max, %s", seconds, ceiling)
		}
		limit = time.Duration(seconds) * time.Second
	}
	return limit, nil
}

// workDir returns the directory a job runs in: the workspace, or cwd in it or
// in one of its worktrees, whose name it returns too.
func (w *Workbench) workDir(workspace, cwd string) (dir, tree string, err error) {
	top, err := resolveDir(workspace, w.opt.Mount)
	if err != nil {
		return "", "", fault.In("workspace", "", err)
	}
	if cwd == "" {
		return top, "", nil
	}
	if !filepath.IsAbs(cwd) {
		cwd = filepath.Join(top, cwd)
	}
	if dir, err = resolveDir(cwd, w.opt.Mount); err != nil {
		return "", "", fault.In("cwd", "", err)
	}
	if tree, ok := w.inWorktree(dir, top); ok {
		return dir, tree, w.verifyWorktree(tree)
	}
	if !under(dir, top) {
		return "", "", fault.New(fault.Invalid, "cwd %s lies outside the workspace %s and its worktrees", dir, top)
	}
	return dir, "", nil
}

// diskFloor refuses to start anything on a disk that is nearly full.
func (w *Workbench) diskFloor() error {
	free, err := run.DiskFree(w.opt.State)
	if err != nil {
		return fault.New(fault.Internal, "free space of %s: %w", w.opt.State, err)
	}
	if floor := max(int64(w.limits.DiskFloor), leastFree); free < floor {
		return fault.New(fault.Limit, "only %d MiB are free in %s, below limits.disk_floor of %d MiB: free some space", free>>20, w.opt.State, floor>>20)
	}
	return nil
}

// leastFree is needed to record a job at all, whatever limits.disk_floor says.
const leastFree = 1 << 20

// Start starts a job of whoever the draft is by in a live session and returns
// its address; or that of the job whose running turn took the prompt, where the
// call asks for that.
func (w *Workbench) Start(ctx context.Context, session string, d Draft) (string, error) {
	p, err := w.plan(session, d)
	if err != nil {
		return "", err
	}
	return w.deliver(ctx, session, p)
}

// submit makes a job of a plan: it is durable, and runs or waits, when submit
// returns.
func (w *Workbench) submit(session string, p *plan) (string, error) {
	p.base = worktree.Head(w.ctx, p.cwd)
	s := w.session(session)
	if s == nil {
		return "", fault.New(fault.NotFound, "there is no session %q", session)
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	state, err := w.admit(s, p)
	if err != nil {
		return "", err
	}
	return w.makeJob(s, p, state)
}

// makeJob makes a job of a plan that was admitted. The caller holds s.tr.
func (w *Workbench) makeJob(s *session, p *plan, state ledger.AgentState) (string, error) {
	sess := s.touched()
	rec := newRecord(sess, p, state)
	rec.Serial = w.nextSerial()
	if run, ok := w.Run(rec.Parent); ok && run.Session == rec.Session {
		rec.Thread = run.Conversation
	}
	sess.NextJob++
	if err := w.writePrompt(rec, p.draft.Prompt); err != nil {
		return "", err
	}
	j := newJob(s, rec)
	t, err := w.begin(j, rec, sess, p)
	if err != nil {
		os.RemoveAll(filepath.Dir(w.JobFile(rec, "prompt"))) // the number was not used
		return "", err
	}
	s.publish(sess)
	s.add(j)
	w.announce(jobChange(JobStarted, rec))
	w.reported(j, p.report)
	if t == nil {
		s.queue = append(s.queue, j)
	} else {
		w.run(t)
	}
	return j.address(), nil
}

func newRecord(sess *ledger.Session, p *plan, state ledger.AgentState) *ledger.Job {
	rec := &ledger.Job{
		Session: sess.ID, Number: sess.NextJob, Agent: p.agent.Name, Task: taskLine(p.draft.Prompt), Call: p.draft.Call,
		Workspace: p.workspace, CWD: p.cwd, Timeout: p.timeout, StartedBy: ledger.ByOwner, Depth: p.depth, State: state, Base: p.base,
		Conversation: p.draft.Call.Session, Vendor: p.vendor, Worktree: p.worktree, Created: sess.Updated, Updated: sess.Updated,
	}
	if p.review != nil {
		rec.Reviewed, rec.Review = true, p.review
	}
	if p.resumes != nil {
		rec.ResumedFrom = p.resumes.address()
	}
	if p.parent != "" {
		rec.StartedBy, rec.Parent = ledger.ByModel, p.parent
	}
	if r := p.report; r != nil {
		rec.StartedBy, rec.Origin, rec.Task = ledger.ByModel, r.origin, r.task
	}
	return rec
}

// begin commits a new job, and with it the run that serves it when it starts
// at once, and the link to the job that it continues; t is nil for one that
// waits.
func (w *Workbench) begin(j *job, rec *ledger.Job, sess *ledger.Session, p *plan) (t *turn, err error) {
	var g *grant
	if rec.State == ledger.Starting {
		g = w.grant(j, rec, sess, p.agent)
	}
	var old *ledger.Job
	if p.resumes != nil {
		p.resumes.after.Lock()
		defer p.resumes.after.Unlock()
		copied := *p.resumes.record()
		copied.ResumedAs, copied.Updated = j.address(), rec.Created
		old = &copied
	}
	err = w.commit(func(b *ledger.Batch) {
		b.PutSession(sess)
		b.PutJob(rec)
		if old != nil {
			b.PutJob(old)
		}
		p.report.put(b)
		if g != nil {
			g.put(b)
		}
	})
	switch {
	case err != nil && g != nil:
		g.drop()
		return nil, err
	case err != nil:
		return nil, err
	}
	if old != nil {
		w.relink(p.resumes, old)
	}
	if g == nil {
		return nil, nil
	}
	g.then()
	return g.turn, nil
}

// relink publishes the link of a job that was resumed. It has ended, so only
// links change.
func (w *Workbench) relink(j *job, rec *ledger.Job) {
	j.rec.Store(rec)
	w.announce(jobChange(JobLinked, rec))
}
