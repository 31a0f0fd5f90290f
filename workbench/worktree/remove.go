package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// Remove removes a worktree: its directory, what the repository keeps for it,
// and its branch while that still stands at the commit that the worktree was
// made from. A branch with commits stays.
//
// Refused, each with the way out: with fault.Busy while it has users (whom the
// caller names), holds changes or commits that are nowhere else, or is being
// made or removed; with fault.Denied when something else stands in its place.
// Of an orphan nothing can be compared, so it goes when it is recognised. A
// removal that was cut off is carried on by the next Remove or Recover.
func (m *Manager) Remove(ctx context.Context, wt Worktree, users []string) error {
	if len(users) > 0 {
		return fault.New(fault.Busy, "worktree %s is used by %s: wait for them or cancel them", wt.Name, some(users))
	}
	r, err := m.load(wt.Name)
	if err != nil {
		return err
	}
	held, err := tryLock(r.place)
	if err != nil {
		return err
	}
	defer held.done(r.place)
	if r, err = readRecord(r.place); err != nil {
		return err
	}
	if r.State == Ready {
		if err := r.removable(ctx); err != nil {
			return err
		}
		r.State = Removing
		if err := r.write(); err != nil {
			return err
		}
	}
	return m.demolish(ctx, r, held)
}

// removable tells why a worktree must stay.
func (r *record) removable(ctx context.Context) error {
	if r.orphan() {
		if missing(r.path()) {
			return nil
		}
		return r.recognise()
	}
	found, err := r.changes(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fault.New(fault.Busy, "worktree %s holds what would be lost with it (%s): commit it, push what lies in submodules, or discard it, in %s", r.name, some(found), r.path())
	}
	n, err := r.unmerged(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		return fault.New(fault.Busy, "worktree %s has %d commits that no other branch has: merge %s, push it, or keep them with git -C %s branch NAME %s", r.name, n, r.branch(), r.Toplevel, r.branch())
	}
	return nil
}

// demolish takes away whatever there is of a worktree, its record last.
func (m *Manager) demolish(ctx context.Context, r *record, held *lock) error {
	if err := removeAll(r.path()); err != nil {
		return err
	}
	if !r.orphan() {
		repo, err := m.lockRepository(ctx, string(r.CommonDir))
		if err != nil {
			return err
		}
		err = r.unregister(ctx, repo)
		repo.release()
		if err != nil {
			return err
		}
	}
	if err := removeAll(r.shadow()); err != nil {
		return err
	}
	_ = os.Remove(r.path() + newSuffix)
	if err := os.Remove(r.record()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError("remove", r.record(), err)
	}
	if err := syncDir(r.dir); err != nil {
		return fileError("remove", r.record(), err)
	}
	return nil
}

// unregister takes away what the repository keeps for a worktree, whether git
// finished it or not, and its branch while that holds nothing of its own. The
// directory of the worktree is gone, or empty.
func (r *record) unregister(ctx context.Context, repo *lock) error {
	for _, at := range r.registrations() {
		if err := removeAll(at); err != nil {
			return err
		}
	}
	_ = unix.Rmdir(filepath.Join(string(r.CommonDir), "worktrees")) // as git does with the last one
	_ = os.Remove(filepath.Join(r.path(), ".git"))
	refFile := filepath.Join(string(r.CommonDir), filepath.FromSlash(r.ref()))
	_ = os.Remove(refFile + ".lock") // a git that was killed can leave one, and nobody else locks this ref now
	tip, err := r.resolve(ctx, r.ref())
	switch {
	case err != nil:
		return err
	case tip == "":
		_ = os.Remove(filepath.Join(string(r.CommonDir), "logs", filepath.FromSlash(r.ref())))
		_ = unix.Rmdir(filepath.Dir(refFile)) // when it is empty; it can be a branch, which is a file
		return nil
	case tip != r.Base:
		return nil
	}
	used, err := r.checkedOut(ctx)
	if err != nil || used {
		return err
	}
	return r.inRepository(repo, "update-ref", "-d", r.ref(), r.Base).ok(ctx)
}

// checkedOut tells whether another work tree is on the branch.
func (r *record) checkedOut(ctx context.Context) (bool, error) {
	var out bytes.Buffer
	c := r.inRepository(nil, "worktree", "list", "--porcelain")
	c.out = &out
	if err := c.ok(ctx); err != nil {
		return false, err
	}
	return strings.Contains("\n"+out.String(), "\nbranch "+r.ref()+"\n"), nil
}

// inRepository is a git command on the repository itself.
func (r *record) inRepository(held *lock, args ...string) command {
	c := command{dir: string(r.CommonDir), env: []string{"GIT_DIR=" + string(r.CommonDir)}, args: args}
	if held != nil {
		c.held = []*lock{held}
	}
	return c
}

// removeAll removes a tree and follows no link out of it. Directories that
// their owner may not write, as module caches have them, are opened first.
func removeAll(name string) error {
	err := os.RemoveAll(name)
	if errors.Is(err, fs.ErrPermission) {
		if top, err := os.OpenRoot(name); err == nil {
			unlock(top, ".")
			top.Close()
		}
		err = os.RemoveAll(name)
	}
	if err != nil {
		return fileError("remove", name, err)
	}
	return nil
}

// unlock lets the owner change the directories of a tree. What fails shows
// when the tree is removed.
func unlock(top *os.Root, dir string) {
	_ = top.Chmod(dir, 0o700)
	f, err := top.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			unlock(top, filepath.Join(dir, e.Name()))
		}
	}
}
