package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scvfs/ledger/fault"
)

// addTries is how often a worktree is added while another git, which does not
// know our lock, holds one of the repository's.
const addTries = 6

// firstPause is how long the first of them waits; each next one twice as long.
const firstPause = 50 * time.Millisecond

// Make makes a worktree of the repository that dir lies in, from the commit of
// its HEAD, on the new branch scv/<name>. The name is the caller's, who sees
// to it that it is used once. What cannot be filled, such as a submodule that
// cannot be fetched, is a note of the result. After an error, or a death in
// the middle and the next Recover, nothing of it is left.
//
// Errors: fault.Invalid for a directory outside a repository, a repository
// without a commit and a malformed name; fault.Exists for a name in use;
// fault.Busy, fault.NoSpace, fault.Timeout, fault.Interrupted,
// fault.Unsupported (no git, or too old a one), fault.Denied (a repository of
// another user).
func (m *Manager) Make(ctx context.Context, dir, name string) (Worktree, error) {
	if err := checkName(name); err != nil {
		return Worktree{}, err
	}
	if err := checkVersion(ctx); err != nil {
		return Worktree{}, err
	}
	repo, err := m.discover(ctx, dir)
	if err != nil {
		return Worktree{}, err
	}
	if err := os.MkdirAll(m.root, 0o700); err != nil {
		return Worktree{}, fileError("make", m.root, err)
	}
	r, held, err := m.reserve(ctx, repo, name)
	if err != nil {
		return Worktree{}, err
	}
	if err := m.build(ctx, r, held); err != nil {
		return Worktree{}, m.undo(ctx, r, held, err)
	}
	held.done(r.place)
	return r.worktree(), nil
}

// reserve takes the name: its lock, its record, its directory.
func (m *Manager) reserve(ctx context.Context, repo *repository, name string) (*record, *lock, error) {
	if _, err := m.load(name); !fault.Is(err, fault.NotFound) {
		return nil, nil, fault.New(fault.Exists, "there is a worktree %s already: choose another name", name)
	}
	top, err := m.top()
	if err != nil {
		return nil, nil, err
	}
	r := &record{
		place: place{dir: filepath.Join(top, repo.dirName()), name: name},
		V:     version, State: Making, Origin: path(repo.origin), Toplevel: path(repo.top), CommonDir: path(repo.common),
		Base: repo.base, Created: time.Now(),
	}
	r.Branch = r.branch()
	held, err := tryLock(r.place)
	if err != nil {
		return nil, nil, err
	}
	if err := r.claim(ctx); err != nil {
		held.done(r.place)
		return nil, nil, err
	}
	return r, held, nil
}

// claim writes the record, once it is sure that nothing bears the name yet:
// from then on what bears it was made by this package, and can be undone.
func (r *record) claim(ctx context.Context) error {
	for _, name := range []string{r.record(), r.path(), r.shadow()} {
		if !missing(name) {
			return fault.New(fault.Exists, "%s is in the way of worktree %s: choose another name", name, r.name)
		}
	}
	tip, err := r.resolve(ctx, r.ref())
	if err != nil {
		return err
	}
	if tip != "" {
		return fault.New(fault.Exists, "the repository %s has a branch %s already: choose another name", r.Toplevel, r.branch())
	}
	if err := r.write(); err != nil {
		return err
	}
	if err := os.Mkdir(r.path(), 0o700); err != nil {
		_ = os.Remove(r.record())
		return fileError("make", r.path(), err)
	}
	return nil
}

// build fills what was reserved.
func (m *Manager) build(ctx context.Context, r *record, held *lock) error {
	if err := m.add(ctx, r, held); err != nil {
		return err
	}
	if err := r.makeShadow(ctx); err != nil {
		return err
	}
	if err := r.checkout(ctx, held); err != nil {
		return err
	}
	if err := r.fillSubmodules(ctx, m, held); err != nil {
		return err
	}
	if err := r.makeCWD(); err != nil {
		return err
	}
	if err := r.checkFresh(ctx); err != nil {
		return err
	}
	r.State = Ready
	return r.write()
}

// add registers the worktree and makes its branch, but checks nothing out:
// that is done through the shadow.
func (m *Manager) add(ctx context.Context, r *record, held *lock) error {
	repo, err := m.lockRepository(ctx, string(r.CommonDir))
	if err != nil {
		return err
	}
	defer repo.release()
	add := command{
		dir: string(r.Toplevel), held: []*lock{held, repo},
		args: []string{"worktree", "add", "--quiet", "--no-track", "--no-checkout", "-b", r.branch(), r.path(), r.Base},
	}
	pause := firstPause
	for try := 1; ; try++ {
		err = add.ok(ctx)
		if !fault.Is(err, fault.Busy) || try == addTries {
			break
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause *= 2
		if err := r.unregister(ctx, repo); err != nil {
			return err
		}
		if err := os.Mkdir(r.path(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fileError("make", r.path(), err)
		}
	}
	if err != nil {
		return r.blocked(ctx, err)
	}
	return r.findGitDir()
}

// blocked says what is in the way of the branch when that is why it could not
// be made: git's own words name only a lock.
func (r *record) blocked(ctx context.Context, err error) error {
	parent := strings.TrimSuffix(branchPrefix, "/")
	if tip, _ := r.resolve(ctx, "refs/heads/"+parent); tip != "" {
		return fault.New(fault.Exists, "the branch %s of %s is in the way of branches named %s…: rename it with git branch -m", parent, r.Toplevel, branchPrefix)
	}
	return err
}

// wait pauses, or tells that ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Interrupted, "interrupted while waiting for another git")
	}
}

// findGitDir notes what the repository keeps for the new worktree, and checks
// that the two name each other.
func (r *record) findGitDir() error {
	found := r.registrations()
	if len(found) != 1 {
		return fault.New(fault.Internal, "git made worktree %s, but %s holds %d entries for it", r.path(), r.CommonDir, len(found))
	}
	r.GitDir = path(found[0])
	return r.verify()
}

// makeCWD sees to it that the directory which matches the one asked for is
// there: one without a tracked file is not.
func (r *record) makeCWD() error {
	rel, err := filepath.Rel(r.path(), r.cwd())
	if err != nil || rel == "." {
		return nil
	}
	top, err := os.OpenRoot(r.path())
	if err != nil {
		return fileError("open", r.path(), err)
	}
	defer top.Close()
	if info, err := top.Stat(rel); err == nil && info.IsDir() {
		return nil
	}
	if err := top.MkdirAll(rel, 0o755); err != nil {
		return fault.New(fault.Invalid, "%s has no counterpart in commit %.12s: %w; commit it, or start in %s", r.Origin, r.Base, err, r.Toplevel)
	}
	r.Notes = append(r.Notes, "commit "+r.Base[:12]+" has no directory "+rel+": an empty one was made")
	return nil
}

// checkFresh notes when the new worktree already differs from its commit: an
// agent's changes would mix with that.
func (r *record) checkFresh(ctx context.Context) error {
	found, err := r.changes(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		r.Notes = append(r.Notes, "the fresh worktree already differs from its commit: "+some(found))
	}
	return nil
}

// undo takes back what was made. What it cannot take back, the next Recover
// does.
func (m *Manager) undo(ctx context.Context, r *record, held *lock, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longLimit)
	defer cancel()
	if err := m.demolish(ctx, r, held); err != nil {
		held.release()
		return fault.New(fault.KindOf(why), "%w (what it left at %s goes when the daemon starts again: %v)", why, r.path(), err)
	}
	held.done(r.place)
	return why
}
