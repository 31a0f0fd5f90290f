package workbench

import (
	"bytes"
	"context"
	"os"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

const (
	// cutOffNote goes to an agent that continues its own conversation.
	cutOffNote = "Your previous attempt was cut off before it ended. Look at what it left, and finish the task."
	// againNote goes before the prompt of an agent that starts over.
	againNote = "An earlier attempt at the following task was cut off and may have left changes behind. Look at what is there before you begin.\n\n"
)

// Resume runs an interrupted job again as the owner's job in live session
// host, which serves the same workspace, and returns the new job's address. It
// continues the agent's own conversation when the agent saved one, with a note
// that the attempt was cut off; otherwise it starts over from the recorded
// prompt, told that an earlier attempt may have left changes (DESIGN 6).
func (w *Workbench) Resume(_ context.Context, host, session string, n uint64) (string, error) {
	return w.resume(host, session, n, nil)
}

// ResumeWith is Resume with the owner's prompt in place of the note. It takes
// completed, failed, declined and timed-out jobs too.
func (w *Workbench) ResumeWith(_ context.Context, host, session string, n uint64, prompt []byte) (string, error) {
	if err := checkPrompt(prompt); err != nil {
		return "", err
	}
	return w.resume(host, session, n, prompt)
}

// CheckResume makes every check that Resume or, with a prompt, ResumeWith
// would make, and starts nothing.
func (w *Workbench) CheckResume(host, session string, n uint64, prompt []byte) error {
	if prompt != nil {
		if err := checkPrompt(prompt); err != nil {
			return err
		}
	}
	j, err := w.find(session, n)
	if err != nil {
		return err
	}
	_, err = w.planResume(host, j, prompt)
	return err
}

// PrecheckResume looks at the part of a prompt for ResumeWith that has come so
// far, and refuses what no continuation can mend.
func (w *Workbench) PrecheckResume(host, session string, n uint64, part []byte) error {
	if err := w.precheckPrompt(part); err != nil {
		return err
	}
	return w.CheckResume(host, session, n, anyPrompt)
}

func (w *Workbench) resume(host, session string, n uint64, prompt []byte) (string, error) {
	j, err := w.find(session, n)
	if err != nil {
		return "", err
	}
	if !j.link.TryLock() {
		return "", fault.New(fault.Busy, "refused: %s is being resumed or dismissed at this moment", j.address())
	}
	defer j.link.Unlock()
	p, err := w.planResume(host, j, prompt)
	if err != nil {
		return "", err
	}
	return w.submit(host, p)
}

// planResume makes the checks, each with its own sentence.
func (w *Workbench) planResume(host string, j *job, prompt []byte) (*plan, error) {
	rec := j.record()
	hostSession, err := w.open(host)
	switch {
	case err != nil:
		return nil, fault.In("refused", "", err)
	case j.s.job(j.number) != j:
		return nil, fault.New(fault.NotFound, "there is no job %s any more", j.address())
	}
	if err := resumable(j.address(), rec, prompt != nil); err != nil {
		return nil, err
	}
	workspace := hostSession.record().Workspace
	switch {
	case workspace != rec.Workspace:
		return nil, fault.New(fault.Invalid, "refused: session %s serves %s, and %s ran in %s: name a session of that workspace", host, workspace, j.address(), rec.Workspace)
	case rec.Run != "" && w.opt.Runs.AgentAlive(rec.Run):
		return nil, fault.New(fault.Busy, "refused: a process of %s's run %s still lives; end it first", j.address(), rec.Run)
	}
	cwd, err := w.samePlace(rec.Worktree, rec.CWD)
	if err != nil {
		return nil, fault.In("refused: "+j.address()+" cannot go on where it ran", "", err)
	}
	a, err := w.offered(rec.Agent)
	if err != nil {
		return nil, err
	}
	p := &plan{agent: a, workspace: workspace, cwd: cwd, worktree: rec.Worktree, timeout: rec.Timeout, resumes: j}
	if err := w.planThread(p, host, j, prompt); err != nil {
		return nil, err
	}
	if err := a.Check(p.draft.Prompt, rec.Call.Model, rec.Call.Effort); err != nil {
		return nil, err
	}
	return p, w.diskFloor()
}

// resumable tells by a job's record whether it may be resumed.
func resumable(address string, rec *ledger.Job, prompted bool) error {
	switch {
	case !rec.State.Terminal():
		return fault.New(fault.Busy, "refused: %s has not ended", address)
	case rec.ResumedAs != "":
		return fault.New(fault.Done, "refused: %s was resumed already, as %s", address, rec.ResumedAs)
	case rec.Reviewed:
		return fault.New(fault.Unsupported, "refused: %s is a reviewed job, which is never resumed", address)
	case rec.State == ledger.Cancelled:
		return fault.New(fault.Invalid, "refused: %s was cancelled; start a new job", address)
	case rec.State != ledger.Interrupted && !prompted:
		return fault.New(fault.Invalid, "refused: %s %s, and only an interrupted job is resumed; write a prompt to its resume file to go on with it", address, ended(rec.State))
	}
	return nil
}

// planThread decides whether the job goes on with its agent's own session, and
// what it is told.
func (w *Workbench) planThread(p *plan, host string, j *job, prompt []byte) error {
	rec := j.record()
	p.draft.Call = rec.Call
	p.draft.Call.Agent, p.draft.Call.Session, p.draft.Call.CWD, p.draft.Call.OnBusy = rec.Agent, "", "", ""
	p.draft.Call.Worktree = false // it goes on in the one that it has
	c := j.s.conversation(rec.Conversation)
	if rec.Run == "" && rec.Conversation != "" && (c == nil || host != rec.Session || !w.resumedBefore(j)) {
		return w.planApart(p, j, prompt)
	}
	p.vendor = w.vendorOf(j, c)
	goesOn := p.vendor != "" && p.agent.Resumes() && !p.agent.Stateless
	if host == rec.Session && c != nil && (goesOn || p.agent.Stateless) {
		p.draft.Call.Session = rec.Conversation // else it begins a new one
	}
	switch {
	case rec.Run == "" && prompt == nil: // it never ran: nothing was cut off
		return w.recordedPrompt(p, rec, nil, nil)
	case goesOn && prompt != nil:
		p.draft.Prompt = prompt
	case goesOn:
		p.draft.Prompt = []byte(cutOffNote)
	case p.agent.Stateless && prompt != nil: // a script is whole by itself
		p.draft.Prompt = prompt
	case p.agent.Stateless:
		return w.recordedPrompt(p, rec, nil, nil)
	case prompt != nil:
		return w.recordedPrompt(p, rec, nil, append([]byte("\n\n"), prompt...))
	default:
		return w.recordedPrompt(p, rec, []byte(againNote), nil)
	}
	return nil
}

// planApart lets a queued follow-up, whose conversation cannot go on with it,
// start in a new worktree of the checkout that it was meant for.
func (w *Workbench) planApart(p *plan, j *job, prompt []byte) error {
	rec := j.record()
	if wt, ok := w.Worktree(rec.Worktree); ok {
		p.cwd = wt.Origin
	}
	if err := checkRepository(w.ctx, p.cwd); err != nil {
		return fault.New(fault.Busy, "refused: %s waited for a job of conversation %s that was cut off; resume that first (%s is no git repository, in which it could start apart)",
			j.address(), rec.Conversation, p.cwd)
	}
	p.worktree, p.draft.Call.Worktree = "", true
	if prompt != nil {
		p.draft.Prompt = prompt
		return nil
	}
	return w.recordedPrompt(p, rec, nil, nil)
}

// samePlace is the directory that something ran in, in a worktree or in none,
// which must still be what it was: never another one in its place.
func (w *Workbench) samePlace(worktree, dir string) (string, error) {
	if err := w.verifyWorktree(worktree); err != nil {
		return "", err
	}
	return w.sameDir(dir)
}

// sameDir returns a directory that was resolved before, if that is still what
// its name leads to.
func (w *Workbench) sameDir(dir string) (string, error) {
	now, err := resolveDir(dir, w.opt.Mount)
	if err == nil && now != dir {
		err = fault.New(fault.Invalid, "%s leads to %s now, which is not the directory that it was", dir, now)
	}
	return now, err
}

// recordedPrompt starts over from the prompt that the job had.
func (w *Workbench) recordedPrompt(p *plan, rec *ledger.Job, before, after []byte) error {
	text, err := os.ReadFile(w.JobFile(rec, "prompt"))
	if err != nil {
		return fault.New(fault.Internal, "the prompt of %s cannot be read: %w", address(rec.Session, rec.Number), err)
	}
	p.draft.Prompt = bytes.Join([][]byte{before, text, after}, nil)
	return nil
}

// vendorOf is the agent's own session id that the job ran with.
func (w *Workbench) vendorOf(j *job, c *conversation) string {
	if c != nil {
		if id := j.s.convRecord(c).Vendor; id != "" {
			return id
		}
	}
	if r, ok := w.Run(j.record().Run); ok {
		return r.Vendor
	}
	return ""
}

// resumedBefore tells whether the interrupted turn that a queued follow-up
// waited for has been resumed.
func (w *Workbench) resumedBefore(j *job) bool {
	rec := j.record()
	for _, other := range w.ConversationJobs(rec.Session, rec.Conversation) {
		if other.Number < rec.Number && other.State == ledger.Interrupted && other.ResumedAs == "" {
			return false
		}
	}
	return true
}

// Reply gives a job's conversation the caller's prompt, queued behind what runs
// there, and returns the new job's address. A job that has ended and was not
// continued yet is linked to the new one. It is the seed's deliver_to_job.
func (w *Workbench) Reply(_ context.Context, by Caller, session string, n uint64, prompt []byte) (string, error) {
	j, d, err := w.replyDraft(by, session, n, prompt)
	if err != nil {
		return "", err
	}
	p, err := w.plan(session, d)
	if err != nil {
		return "", err
	}
	if rec := j.record(); rec.State.Terminal() && rec.ResumedAs == "" && j.link.TryLock() {
		defer j.link.Unlock()
		if j.record().ResumedAs == "" && j.s.job(n) == j {
			p.resumes = j
		}
	}
	return w.submit(session, p)
}

// CheckReply makes every check that Reply would make, and sends nothing.
func (w *Workbench) CheckReply(by Caller, session string, n uint64, prompt []byte) error {
	_, d, err := w.replyDraft(by, session, n, prompt)
	if err != nil {
		return err
	}
	return w.CheckDraft(session, d)
}

// PrecheckReply looks at the part of a prompt for Reply that has come so far,
// and refuses what no continuation can mend.
func (w *Workbench) PrecheckReply(by Caller, session string, n uint64, part []byte) error {
	if err := w.precheckPrompt(part); err != nil {
		return err
	}
	return w.CheckReply(by, session, n, anyPrompt)
}

// replyDraft finds a job, and makes the draft of a follow-up to it.
func (w *Workbench) replyDraft(by Caller, session string, n uint64, prompt []byte) (*job, Draft, error) {
	j, err := w.find(session, n)
	if err == nil {
		err = w.MayDirect(by, j.record())
	}
	if err != nil {
		return nil, Draft{}, err
	}
	conv := j.record().Conversation
	if conv == "" {
		return nil, Draft{}, fault.New(fault.Busy, "%s has no conversation yet: it waits for a slot", j.address())
	}
	d, err := w.followUp(session, conv, prompt, SendQueue)
	d.By = by
	return j, d, err
}
