package workbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"scvfs/ledger"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// errStopped ends a launch that somebody cancelled.
var errStopped = errors.New("cancelled before it was started")

// launching gives the launch a context that a cancel ends, which it has been
// already when somebody was faster.
func (t *turn) launching() (context.Context, func()) {
	ctx, cancel := context.WithCancel(t.w.ctx)
	t.j.s.tr.Lock()
	defer t.j.s.tr.Unlock()
	t.launched = cancel
	if t.stopping {
		cancel()
	}
	return ctx, cancel
}

// launch makes the run's directory and starts its shim.
func (t *turn) launch() (run.Process, error) {
	ctx, done := t.launching()
	defer done()
	if t.before != nil {
		select {
		case <-t.before:
		case <-ctx.Done():
			return nil, errStopped
		}
	}
	if err := t.makeWorktree(ctx); err != nil {
		return nil, err
	}
	job := t.j.record()
	if _, err := t.w.sameDir(job.CWD); err != nil { // it may have waited for long
		return nil, err
	}
	prompt, err := os.Open(t.w.JobFile(job, promptName(job)))
	if err != nil {
		return nil, fmt.Errorf("the prompt cannot be read: %w", err)
	}
	defer prompt.Close()
	launch, err := t.command(job, prompt)
	if err != nil {
		return nil, err
	}
	spec := run.Spec{
		Run: t.rec.ID, Argv: launch.Argv, Dir: job.CWD, Stdin: run.Stdin(launch.Stdin), MergeStderr: launch.MergeStderr,
		Umask: t.w.opt.Umask, Timeout: phaseTimeout(job), Grace: t.w.limits.Grace.Duration(), Env: t.environ(launch.Env),
	}
	if t.srv != nil && t.srv.kept {
		spec.Timeout = 0 // a turn's, not the server's: it keeps the time itself
	}
	var stdin io.Reader
	if spec.Stdin == run.StdinFile {
		stdin = prompt
	}
	if err := t.w.opt.Runs.Create(spec, stdin); err != nil {
		return nil, err
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	if err := t.openServer(); err != nil {
		return nil, err
	}
	t.log.Record(
		activity.Event{Kind: agent.RunStarted, Text: t.agent.Name + " in " + job.CWD},
		activity.Event{Kind: agent.TurnStarted, Text: phaseTask(job), Turn: t.rec.Turn, Job: JobName(job.Number), By: string(job.StartedBy)},
	)
	for _, note := range t.notes {
		t.log.Record(activity.Event{Kind: agent.Note, Text: note})
	}
	if ctx.Err() != nil {
		return nil, errStopped
	}
	return t.w.opt.Runs.Start(t.rec.ID)
}

// command makes the launch line. The prompt is left at its beginning.
func (t *turn) command(job *ledger.Job, prompt io.ReadSeeker) (agent.Launch, error) {
	path, why := t.agent.OfferedOver(t.rec.Transport, t.w.look)
	if why != "" {
		return agent.Launch{}, fmt.Errorf("%s is not offered any more: %s", t.agent.Name, why)
	}
	text, err := io.ReadAll(prompt)
	if err == nil {
		_, err = prompt.Seek(0, io.SeekStart)
	}
	if err != nil {
		return agent.Launch{}, fmt.Errorf("the prompt cannot be read: %w", err)
	}
	request := agent.Request{
		Path: path, Prompt: text, PromptFile: t.w.JobFile(job, promptName(job)), Model: t.model(), Effort: t.effort(),
	}
	if t.conv != nil && !t.agent.Stateless {
		request.Session = t.j.s.convRecord(t.conv).Vendor
	}
	if request.Session == "" {
		request.NewSession = t.rec.Vendor // chosen by us, where the agent lets us
	}
	return t.agent.LaunchOver(t.rec.Transport, request)
}

// openServer makes the dialogue with an agent that is a server.
func (t *turn) openServer() error {
	if t.srv == nil {
		return nil
	}
	t.srv.log = t.log
	if err := t.srv.open(t, t.dialogueOptions()); err != nil {
		return err
	}
	t.srv.carryOut()
	return nil
}

// environ is the environment of the agent: the daemon's own, without what is
// not the agent's to know.
func (t *turn) environ(extra []string) []string {
	job := t.j.record()
	return agent.Environ(os.Environ(), t.agent, append(extra,
		"SCV_MOUNT="+t.w.opt.Mount, "SCV_SESSION="+job.Session, "SCV_RUN="+t.rec.ID, "SCV_DEPTH="+strconv.Itoa(job.Depth+1), "TMPDIR="+t.w.opt.Runs.Path(t.rec.ID, "tmp"))...)
}
