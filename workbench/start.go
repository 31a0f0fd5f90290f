package workbench

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// plan is a draft that passed every check, with what the checks found.
type plan struct {
	draft     Draft
	agent     *agent.Agent
	workspace string
	cwd       string
	timeout   time.Duration
}

// PrecheckDraft looks at the part of a document that has come so far and
// refuses what no continuation can mend: a session that is not open, more than
// limits.prompt_bytes, a NUL, a complete first line or JSON object that would
// be refused.
func (w *Workbench) PrecheckDraft(session string, doc []byte) error {
	if _, err := w.open(session); err != nil {
		return err
	}
	if int64(len(doc)) > w.PromptBytes() {
		return fault.New(fault.TooLarge, "the prompt is longer than limits.prompt_bytes, %d bytes: put it in a file and name that", w.PromptBytes())
	}
	draft, err := opening(doc)
	if err != nil || draft == nil {
		return err
	}
	return w.CheckDraft(session, *draft)
}

// CheckDraft makes every check that Start would make, and starts nothing.
func (w *Workbench) CheckDraft(session string, d Draft) error {
	p, err := w.plan(session, d)
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
	name := d.Call.Agent
	if name == "" {
		name = w.defaultAgent(s.record())
	}
	if p.agent, err = w.offered(name); err != nil {
		return nil, err
	}
	if p.timeout, err = w.timeLimit(d.Call.Timeout); err != nil {
		return nil, err
	}
	if p.cwd, err = w.workDir(p.workspace, d.Call.CWD); err != nil {
		return nil, err
	}
	if err := w.supported(d.Call); err != nil {
		return nil, err
	}
	if err := p.agent.Check(d.Prompt, d.Call.Model, d.Call.Effort); err != nil {
		return nil, err
	}
	return p, w.diskFloor()
}

// supported refuses the parts of a call that this version cannot carry out,
// rather than leave them out in silence.
func (w *Workbench) supported(c ledger.Call) error {
	for _, part := range []struct {
		key  string
		used bool
	}{
		{"session", c.Session != ""}, {"worktree", c.Worktree}, {"review", len(c.Review) > 0},
	} {
		if part.used {
			return fault.New(fault.Unsupported, "key %q of the agent call is not supported by this version", part.key)
		}
	}
	return nil
}

func (w *Workbench) defaultAgent(rec *ledger.Session) string {
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

// workDir returns the directory a job runs in: the workspace, or cwd in it.
func (w *Workbench) workDir(workspace, cwd string) (string, error) {
	top, err := resolveDir(workspace, w.opt.Mount)
	if err != nil {
		return "", fault.In("workspace", "", err)
	}
	if cwd == "" {
		return top, nil
	}
	if !filepath.IsAbs(cwd) {
		cwd = filepath.Join(top, cwd)
	}
	dir, err := resolveDir(cwd, w.opt.Mount)
	switch {
	case err != nil:
		return "", fault.In("cwd", "", err)
	case !under(dir, top):
		return "", fault.New(fault.Invalid, "cwd %s lies outside the workspace %s", dir, top)
	}
	return dir, nil
}

// diskFloor refuses to start anything on a disk that is nearly full.
func (w *Workbench) diskFloor() error {
	free, err := run.DiskFree(w.opt.State)
	if err != nil {
		return fault.New(fault.Internal, "free space of %s: %w", w.opt.State, err)
	}
	if floor := int64(w.limits.DiskFloor); free < floor {
		return fault.New(fault.Limit, "only %d MiB are free in %s, below limits.disk_floor of %d MiB: free some space", free>>20, w.opt.State, floor>>20)
	}
	return nil
}

// admit tells in which state a new job of the session would start. The caller
// holds s.tr.
func (w *Workbench) admit(s *session, p *plan) (ledger.AgentState, error) {
	rec := s.record()
	switch {
	case rec.Closed || w.session(rec.ID) != s:
		return "", closedFault(rec.ID)
	case s.running < w.limits.Jobs && len(s.queue) == 0:
		return ledger.Starting, nil
	case len(s.queue) >= w.limits.Backlog:
		return "", fault.New(fault.Limit, "session %s runs %d jobs and %d wait, as many as limits.jobs and limits.backlog allow: cancel one (echo cancel > …/ctl) or try later",
			rec.ID, s.running, len(s.queue))
	}
	return ledger.Queued, nil
}

// Start starts the owner's job in a live session and returns its address.
func (w *Workbench) Start(_ context.Context, session string, d Draft) (string, error) {
	p, err := w.plan(session, d)
	if err != nil {
		return "", err
	}
	base := gitHead(w.ctx, p.cwd)
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
	sess := s.touched()
	rec := newRecord(sess, p, state, base)
	rec.Serial = w.nextSerial()
	sess.NextJob++
	if err := w.writePrompt(rec, d.Prompt); err != nil {
		return "", err
	}
	j := newJob(s, rec)
	t, err := w.begin(j, rec, sess, p.agent)
	if err != nil {
		os.RemoveAll(filepath.Dir(w.JobFile(rec, "prompt"))) // the number was not used
		return "", err
	}
	s.publish(sess)
	s.add(j)
	w.announce(jobChange(JobStarted, rec))
	if t == nil {
		s.queue = append(s.queue, j)
	} else {
		w.run(t)
	}
	return j.address(), nil
}

func newRecord(sess *ledger.Session, p *plan, state ledger.AgentState, base string) *ledger.Job {
	return &ledger.Job{
		Session: sess.ID, Number: sess.NextJob, Agent: p.agent.Name, Task: taskLine(p.draft.Prompt), Call: p.draft.Call,
		Workspace: p.workspace, CWD: p.cwd, Timeout: p.timeout, StartedBy: ledger.ByOwner, State: state, Base: base,
		Created: sess.Updated, Updated: sess.Updated,
	}
}

// begin commits a new job, and with it the run that serves it when it starts
// at once; t is nil for one that waits.
func (w *Workbench) begin(j *job, rec *ledger.Job, sess *ledger.Session, a *agent.Agent) (t *turn, err error) {
	var runRec *ledger.Run
	if rec.State == ledger.Starting {
		runRec = w.newRun(rec)
		rec.Run = runRec.ID
		t = newTurn(w, j, a, runRec)
	}
	err = w.commit(func(b *ledger.Batch) {
		b.PutSession(sess)
		b.PutJob(rec)
		if runRec != nil {
			b.PutRun(runRec)
		}
	})
	if err != nil && runRec != nil {
		w.dropRun(runRec.ID)
	}
	return t, err
}

// newRun makes the record of a run that is to serve the job, and reserves its
// name.
func (w *Workbench) newRun(rec *ledger.Job) *ledger.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	r := &ledger.Run{
		ID:    newRunID(rec.Agent, func(id string) bool { return w.runs[id] != nil }),
		Agent: rec.Agent, Session: rec.Session, Transport: "cli", Turn: 1, Jobs: []uint64{rec.Number}, CWD: rec.CWD,
		State: ledger.Starting, Created: now, Updated: now,
	}
	w.runs[r.ID] = nil // reserved; visible once it is committed
	return r
}

// startNext gives free slots to the jobs that wait. The caller holds s.tr.
func (w *Workbench) startNext(s *session) {
	for s.running < w.limits.Jobs && len(s.queue) > 0 && w.diskFloor() == nil {
		j := s.queue[0]
		rec := j.next(ledger.Starting, "")
		a, err := w.agent(rec.Agent)
		if err != nil {
			s.queue = s.queue[1:]
			w.endWithout(j, err.Error())
			continue
		}
		runRec := w.newRun(rec)
		rec.Run = runRec.ID
		t := newTurn(w, j, a, runRec)
		if err := w.advance(j, rec, also{put: func(b *ledger.Batch) { b.PutRun(runRec) }}); err != nil {
			w.log.Error("a queued job cannot start; maintenance tries again", "job", j.address(), "err", err)
			w.dropRun(runRec.ID)
			return
		}
		s.queue = s.queue[1:]
		w.run(t)
	}
}

// run hands a slot to the turn. The caller holds s.tr.
func (w *Workbench) run(t *turn) {
	w.showRun(t.rec)
	t.j.turn = t
	t.j.s.running++
	w.spawn(t.serve) // a closing workbench leaves the job to the next daemon
}

// endWithout fails a job that cannot run at all. The caller holds s.tr.
func (w *Workbench) endWithout(j *job, why string) {
	if err := w.advance(j, j.next(ledger.Failed, why), also{}); err != nil {
		w.log.Error("a job's end cannot be recorded", "job", j.address(), "err", err)
	}
}
