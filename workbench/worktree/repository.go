package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"scvfs/ledger/fault"
)

// repository is what a worktree is made from.
type repository struct {
	origin string // the directory asked for
	top    string // top of its checkout; the repository itself when that is bare
	common string // git directory that all its worktrees share
	base   string // commit that its HEAD stands at
}

// discover asks git about the repository that a directory lies in. Each answer
// that holds a path is asked for alone, because a path can hold newlines.
func (m *Manager) discover(ctx context.Context, dir string) (*repository, error) {
	origin, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	if wt, ok := m.Containing(origin); ok {
		if err := m.Verify(wt); err != nil {
			return nil, err
		}
	}
	r := &repository{origin: origin}
	kind, err := r.ask(ctx, "--is-inside-work-tree", "--is-bare-repository")
	if err != nil {
		return nil, err
	}
	if r.common, err = r.ask(ctx, "--path-format=absolute", "--git-common-dir"); err == nil {
		r.common, err = realDir(r.common)
	}
	if err != nil {
		return nil, err
	}
	inside, bare, _ := strings.Cut(kind, "\n")
	switch {
	case inside == "true":
		if r.top, err = r.ask(ctx, "--show-toplevel"); err != nil {
			return nil, err
		}
	case bare == "true":
		r.top = r.common
	default:
		return nil, fault.New(fault.Invalid, "%s lies inside a git directory, not in a checkout: name a directory of the checkout", dir)
	}
	if r.base, err = r.ask(ctx, "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if fault.Is(err, fault.Invalid) {
			err = fault.New(fault.Invalid, "the repository %s has no commit yet, so no worktree can be made of it: commit something first", r.top)
		}
		return nil, err
	}
	return r, nil
}

// ask runs rev-parse in the directory asked for.
func (r *repository) ask(ctx context.Context, what ...string) (string, error) {
	return command{dir: r.origin, args: append([]string{"rev-parse"}, what...)}.line(ctx)
}

// realDir resolves the symbolic links of an existing directory's path.
func realDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fault.New(fault.Invalid, "%q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fault.New(fault.Invalid, "directory %s cannot be used: %w", dir, errors.Unwrap(err))
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fault.New(fault.Invalid, "%s is not a directory", dir)
	}
	return real, nil
}

// maxDirName bounds the name part of a repository's directory, in bytes.
const maxDirName = 64

// dirName names the directory that holds a repository's worktrees. The digest
// makes it unique; the name is for people, and what a shell or a tool could
// stumble over is left out of it.
func (r *repository) dirName() string {
	var b strings.Builder
	for _, c := range strings.TrimSuffix(filepath.Base(r.top), ".git") {
		if c == unicode.ReplacementChar || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-", c) {
			c = '-'
		}
		if b.Len()+len(string(c)) > maxDirName {
			break
		}
		b.WriteRune(c)
	}
	name := strings.Trim(b.String(), ".-")
	if name == "" {
		name = "repository"
	}
	return name + "-" + digest(r.top)
}
