package workbench

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// gitLimit is the longest that one git command of ours may take.
const gitLimit = 20 * time.Second

// gitArgs keep git from running anything that a repository asks for, and from
// writing to it.
var gitArgs = []string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"}

// git returns a git command in dir, with a clean environment.
func git(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{}, gitArgs...), args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	cmd.WaitDelay = time.Second
	return cmd
}

// gitHead is the commit that a directory's repository stands at; empty outside
// one, or before its first commit.
func gitHead(ctx context.Context, dir string) string {
	if !inRepository(dir) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	out, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// inRepository tells without starting git whether dir may lie in a repository.
func inRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == "/" {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

// Diff writes git's diff of the job's directory against the commit that it
// started from; nothing outside a repository.
func (w *Workbench) Diff(ctx context.Context, j *ledger.Job, to io.Writer) error {
	if j.Base == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	cmd := git(ctx, j.CWD, "diff", "--no-ext-diff", "--no-textconv", "--no-color", j.Base, "--", ".")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = to, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() == context.DeadlineExceeded:
		return fault.New(fault.Timeout, "git diff of %s took longer than %s", j.CWD, gitLimit)
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "interrupted while git compared %s", j.CWD)
	}
	return fault.New(fault.Invalid, "git diff of %s: %s", j.CWD, agent.OneLine(said.String(), 300))
}
