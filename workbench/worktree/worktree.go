// Package worktree makes, inspects and removes the git worktrees that jobs
// work in. It knows git and directories; who uses a worktree, and why, is its
// caller's business.
//
// Everything lies below one root. For each repository, by the top of the
// checkout that was asked for, there is a directory <name>-<digest>, and in it
// for each worktree:
//
//	<worktree>        the work tree itself, on branch scv/<worktree>
//	<worktree>.json   its record: written first, removed last
//	<worktree>.git    its shadow, see below
//	<worktree>.lock   held while it is made or removed
//
// What an agent can write is never believed. A worktree is looked at through
// its shadow: a git directory of our own that borrows the repository's objects
// and the worktree's index, and whose configuration holds nothing but harmless
// values. So no filter, diff driver, monitor or hook that the repository's or
// a submodule's configuration names ever runs, neither when a worktree is
// filled nor when it is looked at. Programs that the user's own or the
// machine's configuration names (such as git-lfs) do. Git runs in the
// repository itself only for commands that start nothing. Before all of it the
// link is checked: the worktree's .git must name the directory that the origin
// repository keeps for it, and that one must name the worktree.
//
// Lock order: a worktree's .lock, then the repository's (<digest>.lock in the
// root, by its common git directory). Both are flocks that the git processes
// which work under them inherit, so that a lock whose holder was killed is
// free only once its git is gone. The repository's lock covers what git
// writes to the repository: refs, registrations, the submodules' list.
//
// Invariants: a directory, branch or registration exists only while its record
// does; a record that says making or removing is undone or carried out by the
// next Recover; a branch is deleted only while it stands at the commit that it
// was made from.
package worktree

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"scvfs/ledger/fault"
)

// State says how far a worktree is.
type State string

// The states of a worktree.
const (
	Making   State = "making"
	Ready    State = "ready"
	Removing State = "removing"
)

// Worktree is one worktree as its record and its place describe it.
type Worktree struct {
	Name      string
	Path      string // top of the work tree
	CWD       string // directory in it that matches Origin
	Branch    string // "scv/<name>"
	Base      string // commit it was made from
	Origin    string // directory it was asked for, symlinks resolved
	Toplevel  string // top of the checkout that Origin lies in; of a bare repository, the repository
	CommonDir string // git directory that all worktrees of the repository share
	GitDir    string // what the repository keeps for this one; empty while it is being made
	State     State
	Created   time.Time
	Notes     []string // what did not go as hoped when it was made
	Orphan    bool     // the origin repository is gone
}

// Manager keeps the worktrees below one root. Its methods can be called from
// any goroutine, and by several processes with the same root.
type Manager struct {
	root string

	mu    sync.Mutex
	turns map[string]chan struct{} // by repository lock: one waiter of ours at a time
}

// New returns the manager of the worktrees below root, an absolute path. The
// directory is made, with mode 0700, when the first worktree is.
func New(root string) *Manager {
	return &Manager{root: filepath.Clean(root), turns: map[string]chan struct{}{}}
}

// nameForm is a run's name: an agent and six hexadecimal digits.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}-[0-9a-f]{6}$`)

// branchPrefix goes before a worktree's name in its branch.
const branchPrefix = "scv/"

func checkName(name string) error {
	if !nameForm.MatchString(name) || strings.Contains(name, "..") {
		return fault.New(fault.Invalid, "%q is no worktree name: it needs the form <agent>-<6 hexadecimal digits>", name)
	}
	return nil
}

// top is the root with every symbolic link resolved: git names directories so.
func (m *Manager) top() (string, error) {
	top, err := filepath.EvalSymlinks(m.root)
	if err != nil {
		return "", fileError("look at", m.root, err)
	}
	return top, nil
}

// List returns every worktree whose record can be read, oldest first.
func (m *Manager) List() []Worktree {
	var all []Worktree
	for _, at := range m.records() {
		if r, err := readRecord(at); err == nil {
			all = append(all, r.worktree())
		}
	}
	slices.SortFunc(all, func(a, b Worktree) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// Get returns the worktree of that name; fault.NotFound when there is none.
func (m *Manager) Get(name string) (Worktree, error) {
	r, err := m.load(name)
	if err != nil {
		return Worktree{}, err
	}
	return r.worktree(), nil
}

// Containing returns the worktree that an absolute path, with its symlinks
// resolved, lies in.
func (m *Manager) Containing(path string) (Worktree, bool) {
	top, err := m.top()
	if err != nil {
		return Worktree{}, false
	}
	rest, ok := strings.CutPrefix(filepath.Clean(path), top+"/")
	parts := strings.SplitN(rest, "/", 3)
	if !ok || len(parts) < 2 || checkName(parts[1]) != nil {
		return Worktree{}, false
	}
	r, err := readRecord(place{dir: filepath.Join(top, parts[0]), name: parts[1]})
	if err != nil {
		return Worktree{}, false
	}
	return r.worktree(), true
}

// Verify tells whether a worktree is still the one that was made: its
// directory is there, and it and the origin repository name each other.
// fault.Gone when the directory, the registration or the repository is gone,
// fault.Denied when something else stands in its place.
func (m *Manager) Verify(wt Worktree) error {
	r, err := m.load(wt.Name)
	if err != nil {
		return err
	}
	return r.verify()
}

// load finds the record of a worktree by its name.
func (m *Manager) load(name string) (*record, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	for _, at := range m.records() {
		if at.name == name {
			return readRecord(at)
		}
	}
	return nil, fault.New(fault.NotFound, "there is no worktree %s", name)
}

// records returns the places of all records.
func (m *Manager) records() []place { return m.places(recordSuffix) }

// places returns the places of all files with a suffix.
func (m *Manager) places(suffix string) []place {
	top, err := m.top()
	if err != nil {
		return nil
	}
	repos, _ := os.ReadDir(top)
	var all []place
	for _, repo := range repos {
		if !repo.IsDir() {
			continue
		}
		dir := filepath.Join(top, repo.Name())
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			name, ok := strings.CutSuffix(f.Name(), suffix)
			if ok && checkName(name) == nil {
				all = append(all, place{dir: dir, name: name})
			}
		}
	}
	return all
}
