package workbench

import (
	"context"
	"io"

	"scvfs/ledger"
	"scvfs/workbench/worktree"
)

// Diff writes git's diff of the job's worktree, or of its directory, against
// the commit that it started from; nothing outside a repository.
func (w *Workbench) Diff(ctx context.Context, j *ledger.Job, to io.Writer) error {
	if j.Worktree != "" {
		wt, err := w.opt.Worktrees.Get(j.Worktree)
		if err != nil {
			return err
		}
		return w.opt.Worktrees.Diff(ctx, wt, to)
	}
	if j.Base == "" {
		return nil
	}
	return worktree.Git(ctx, j.CWD, to, "diff", "--no-ext-diff", "--no-textconv", "--no-color", j.Base, "--", ".")
}
