package worktree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"scvfs/ledger/fault"
)

// maxNamed is how many changes a sentence names.
const maxNamed = 5

// look makes a command see what is hidden from others: with a sparse checkout
// in force, git believes a file that is there over the mark in the index that
// says it is to be left alone.
var look = []string{"-c", "core.sparseCheckout=true"}

// Dirty tells whether a worktree holds what its HEAD does not: changed,
// staged, conflicting or untracked files, changed submodules, and commits in
// submodules that no remote of theirs has. Ignored files do not count. A
// worktree whose directory is gone is not dirty. fault.Gone when the origin
// repository is gone, fault.Denied when the link was tampered with.
func (m *Manager) Dirty(ctx context.Context, wt Worktree) (bool, error) {
	r, err := m.ready(wt.Name)
	if err != nil {
		return false, err
	}
	found, err := r.changes(ctx)
	return len(found) > 0, err
}

// Diff writes git's diff of a worktree against the commit that it was made
// from, committed and uncommitted changes together. Untracked files that are
// not ignored are in it as new files, whole; a repository inside the worktree
// is one line that names it. Of a submodule it shows the commit alone.
func (m *Manager) Diff(ctx context.Context, wt Worktree, to io.Writer) error {
	r, err := m.ready(wt.Name)
	if err != nil {
		return err
	}
	if err := r.usable(); err != nil {
		return err
	}
	v, _, drop, err := r.view(ctx)
	if err != nil {
		return err
	}
	defer drop()
	files, repos, err := v.untracked(ctx)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		add := v.command(append(look, "add", "--intent-to-add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")...)
		add.in = strings.NewReader(strings.Join(files, "\x00") + "\x00")
		if err := add.ok(ctx); err != nil {
			return err
		}
	}
	diff := v.command(append(look, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--submodule=short", r.Base, "--")...)
	diff.out = to
	if err := diff.ok(ctx); err != nil {
		return err
	}
	for _, dir := range repos {
		if _, err := fmt.Fprintf(to, "Untracked repository: %q\n", dir); err != nil {
			return fault.New(fault.Internal, "write of the diff of %s: %w", wt.Name, err)
		}
	}
	return nil
}

// Merged tells whether every commit of a worktree's branch, and of its HEAD,
// is in the origin checkout's HEAD, in another branch, in a tag, or in a
// branch of a remote as it was last fetched or pushed.
func (m *Manager) Merged(ctx context.Context, wt Worktree) (bool, error) {
	r, err := m.ready(wt.Name)
	if err != nil {
		return false, err
	}
	n, err := r.unmerged(ctx)
	return n == 0, err
}

// ready loads a worktree that is neither being made nor removed.
func (m *Manager) ready(name string) (*record, error) {
	r, err := m.load(name)
	if err == nil && r.State != Ready {
		err = fault.New(fault.Busy, "worktree %s is not ready: its state is %s", name, r.State)
	}
	return r, err
}

// usable checks the link. A registration that was pruned does not hinder: git
// works through the shadow.
func (r *record) usable() error {
	err := r.verify()
	if fault.Is(err, fault.Gone) && !r.orphan() && r.recognise() == nil {
		return nil
	}
	return err
}

// view opens the worktree, and tells which commit its files belong to.
func (r *record) view(ctx context.Context) (v *view, commit string, drop func(), err error) {
	if commit, err = r.tip(ctx); err == nil {
		v, drop, err = r.open(ctx, r.path(), string(r.GitDir), filepath.Join(string(r.CommonDir), "objects"), commit)
	}
	return v, commit, drop, err
}

// tip is the commit that the worktree's files belong to: its HEAD, or where
// that is lost, its branch, or where that is gone too, its base.
func (r *record) tip(ctx context.Context) (string, error) {
	var head string
	var err error
	if r.registered() {
		head, err = r.head(ctx)
	}
	if head == "" && err == nil {
		head, err = r.resolve(ctx, r.ref())
	}
	if head == "" {
		head = r.Base
	}
	return head, err
}

// changes names what the worktree holds and its HEAD does not, not
// necessarily all of it.
func (r *record) changes(ctx context.Context) ([]string, error) {
	if missing(r.path()) {
		return nil, nil
	}
	if err := r.usable(); err != nil {
		return nil, err
	}
	v, head, drop, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	defer drop()
	found, err := v.changes(ctx, head)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return v.submodules(ctx)
}

// changes names what a view's work tree or index holds and the commit does
// not. The work tree is compared whatever marks in the index ask for it to be
// taken as unchanged.
func (v *view) changes(ctx context.Context, commit string) ([]string, error) {
	var out bytes.Buffer
	refresh := v.command(append(look, "update-index", "--really-refresh")...)
	refresh.out = &out
	res, err := refresh.run(ctx)
	switch {
	case err != nil:
		return nil, err
	case res.code == 1:
		return lines(out.String()), nil
	case res.code != 0:
		return nil, refresh.refused(res)
	}
	out.Reset()
	staged := v.command(append(look, "diff-index", "--cached", "--ignore-submodules=none", "--name-only", "-z", commit, "--")...)
	staged.out = &out
	if err := staged.ok(ctx); err != nil {
		return nil, err
	}
	if found := zeroEnded(out.String()); len(found) > 0 {
		return found, nil
	}
	files, repos, err := v.untracked(ctx)
	return append(files, repos...), err
}

// untracked lists the files that are neither tracked nor ignored, and the
// repositories among them by their directories.
func (v *view) untracked(ctx context.Context) (files, repos []string, err error) {
	var out bytes.Buffer
	list := v.command(append(look, "ls-files", "--others", "--exclude-standard", "-z")...)
	list.out = &out
	if err := list.ok(ctx); err != nil {
		return nil, nil, err
	}
	for _, name := range zeroEnded(out.String()) {
		if strings.HasSuffix(name, "/") {
			repos = append(repos, name)
		} else {
			files = append(files, name)
		}
	}
	return files, repos, nil
}

// gitlinks lists where a view's index says that submodules are.
func (v *view) gitlinks(ctx context.Context) ([]string, error) {
	pipe, to := io.Pipe()
	type answer struct {
		paths []string
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		paths, err := scanGitlinks(pipe)
		pipe.CloseWithError(err)
		got <- answer{paths, err}
	}()
	list := v.command("ls-files", "--stage", "-z")
	list.out = to
	err := list.ok(ctx)
	to.Close()
	a := <-got
	return a.paths, errors.Join(err, a.err)
}

// scanGitlinks picks the submodules of "mode object stage TAB path NUL".
func scanGitlinks(from io.Reader) ([]string, error) {
	var paths []string
	in := bufio.NewReader(from)
	for {
		entry, err := in.ReadString(0)
		if errors.Is(err, io.EOF) {
			return paths, nil
		}
		if err != nil {
			return nil, err
		}
		if _, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(entry, "160000 ") {
			paths = append(paths, strings.TrimSuffix(name, "\x00"))
		}
	}
}

// unmerged counts the commits that removing the worktree could lose sight of.
func (r *record) unmerged(ctx context.Context) (int, error) {
	if r.orphan() {
		return 0, fault.New(fault.Gone, "the repository %s that worktree %s was made from is gone", r.CommonDir, r.name)
	}
	var tips []string
	branch, err := r.resolve(ctx, r.ref())
	if err != nil {
		return 0, err
	}
	if branch != "" {
		tips = append(tips, branch)
	}
	if r.registered() {
		head, err := r.head(ctx)
		if err != nil {
			return 0, err
		}
		if head != "" && head != branch {
			tips = append(tips, head)
		}
	}
	if len(tips) == 0 {
		return 0, nil
	}
	args := append([]string{"rev-list", "--count"}, tips...)
	args = append(args, "--not", "--exclude="+r.branch(), "--branches", "--remotes", "--tags", r.Base)
	if head := Head(ctx, string(r.Toplevel)); head != "" {
		args = append(args, head)
	}
	count := command{dir: string(r.CommonDir), env: []string{"GIT_DIR=" + string(r.CommonDir)}, args: args, limit: longLimit}
	said, err := count.line(ctx)
	if err != nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscanf(said, "%d", &n); err != nil {
		return 0, fault.New(fault.Internal, "git rev-list in %s answered %q", r.CommonDir, oneLine(said))
	}
	return n, nil
}

// some names the first few of a list.
func some(list []string) string {
	more := ""
	if len(list) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(list)-maxNamed)
		list = list[:maxNamed]
	}
	return oneLine(strings.Join(list, ", ")) + more
}

func lines(s string) []string { return fields(s, "\n") }

func zeroEnded(s string) []string { return fields(s, "\x00") }

func fields(s, end string) []string {
	var all []string
	for f := range strings.SplitSeq(s, end) {
		if f != "" {
			all = append(all, f)
		}
	}
	return all
}
