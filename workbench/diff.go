package workbench

import (
	"context"
	"io"
	"os"

	"scvfs/ledger"
	"scvfs/workbench/worktree"
)

// Diff writes git's diff of the job's worktree, or of its directory, against
// the commit that it started from; nothing outside a repository, and nothing
// once what it worked in is gone: a name that is listed reads to an end.
func (w *Workbench) Diff(ctx context.Context, j *ledger.Job, to io.Writer) error {
	if j.Worktree != "" {
		wt, ok := w.Worktree(j.Worktree)
		if !ok || !isDir(wt.Path) {
			return nil
		}
		return w.opt.Worktrees.Diff(ctx, wt, to)
	}
	if j.Base == "" || !isDir(j.CWD) {
		return nil
	}
	return worktree.Git(ctx, j.CWD, to, "diff", "--no-ext-diff", "--no-textconv", "--no-color", j.Base, "--", ".")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
