package workbench

import "context"

type runKey struct{}

// WithRun returns a context for what a process of a run asks; with an empty
// name it is ctx.
func WithRun(ctx context.Context, run string) context.Context {
	if run == "" {
		return ctx
	}
	return context.WithValue(ctx, runKey{}, run)
}

// CallingRun is what WithRun put into ctx; empty for the owner.
func CallingRun(ctx context.Context) string {
	run, _ := ctx.Value(runKey{}).(string)
	return run
}

// RunOf returns the live run that a process belongs to; empty for none.
func (w *Workbench) RunOf(pid int) string {
	run, _ := w.opt.Runs.RunOf(pid)
	return run
}

// startedBy enters in a plan who asks for it: the agent of the run in ctx, one
// delegation deeper than itself, or else the owner.
func (w *Workbench) startedBy(ctx context.Context, p *plan) {
	id := CallingRun(ctx)
	run, ok := w.Run(id)
	if !ok {
		return
	}
	p.parent, p.depth = id, 1
	if len(run.Jobs) > 0 {
		if rec, ok := w.Job(run.Session, run.Jobs[len(run.Jobs)-1]); ok {
			p.depth = rec.Depth + 1
		}
	}
}
