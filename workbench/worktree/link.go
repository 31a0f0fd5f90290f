package worktree

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"scvfs/ledger/fault"
)

// gitFileMark begins the .git file of a worktree.
const gitFileMark = "gitdir: "

// resolve returns the commit that a full ref of the repository names; empty
// when there is none.
func (r *record) resolve(ctx context.Context, ref string) (string, error) {
	return r.commit(ctx, ref, "GIT_DIR="+string(r.CommonDir))
}

// head returns the commit that the worktree's HEAD stands at; empty when that
// names none. The configuration read is the repository's, whatever the
// worktree's git directory says.
func (r *record) head(ctx context.Context) (string, error) {
	return r.commit(ctx, "HEAD", "GIT_DIR="+string(r.GitDir), "GIT_COMMON_DIR="+string(r.CommonDir))
}

func (r *record) commit(ctx context.Context, rev string, env ...string) (string, error) {
	c := command{dir: string(r.CommonDir), env: env, args: []string{"rev-parse", "--verify", "--quiet", rev + "^{commit}"}}
	var out strings.Builder
	c.out = &out
	res, err := c.run(ctx)
	switch {
	case err != nil:
		return "", err
	case res.code == 1:
		return "", nil
	case res.code != 0:
		return "", c.refused(res)
	}
	return firstLine([]byte(out.String())), nil
}

// verify is Manager.Verify.
func (r *record) verify() error {
	if err := r.recognise(); err != nil {
		return err
	}
	if r.orphan() {
		return fault.New(fault.Gone, "the repository %s that worktree %s was made from is gone", r.CommonDir, r.name)
	}
	if missing(string(r.GitDir)) {
		return fault.New(fault.Gone, "the repository %s no longer knows worktree %s (git worktree prune or remove)", r.Toplevel, r.name)
	}
	if !r.registered() {
		return r.tampered("the repository's entry for it lies elsewhere, or names another directory")
	}
	b, err := readSmall(filepath.Join(string(r.GitDir), "commondir"))
	if err != nil {
		return r.tampered("the repository's entry for it has lost its commondir")
	}
	if real, err := filepath.EvalSymlinks(from(string(r.GitDir), firstLine(b))); err != nil || real != string(r.CommonDir) {
		return r.tampered("the repository's entry for it names another repository")
	}
	return nil
}

// registered tells whether the repository keeps an entry for the worktree that
// names it, in the place where git has such entries.
func (r *record) registered() bool {
	at := string(r.GitDir)
	real, err := filepath.EvalSymlinks(at)
	return err == nil && real == at && filepath.Dir(at) == filepath.Join(string(r.CommonDir), "worktrees") && r.names(at)
}

// recognise checks the worktree's own side: a real directory whose .git is the
// link that git made.
func (r *record) recognise() error {
	info, err := os.Lstat(r.path())
	switch {
	case err != nil && missing(r.path()):
		return fault.New(fault.Gone, "the directory %s of worktree %s is gone", r.path(), r.name)
	case err != nil:
		return fileError("look at", r.path(), err)
	case !info.IsDir():
		return r.tampered("it is no directory any more")
	}
	if real, err := filepath.EvalSymlinks(r.path()); err != nil || real != r.path() {
		return r.tampered("its path leads elsewhere")
	}
	b, err := readSmall(filepath.Join(r.path(), ".git"))
	if err != nil {
		return r.tampered("its .git is no readable file")
	}
	target, ok := strings.CutPrefix(firstLine(b), gitFileMark)
	if !ok || r.GitDir == "" || from(r.path(), target) != string(r.GitDir) {
		return r.tampered("its .git names another git directory")
	}
	return nil
}

func (r *record) tampered(what string) error {
	return fault.New(fault.Denied, "worktree %s is not as it was made, so nothing is done in it: %s; repair it with git -C %s worktree repair %s, or see to %s yourself",
		r.name, what, r.Toplevel, r.path(), r.path())
}

// from resolves a path that may be relative to a directory.
func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// numbered is what git appends to a worktree's name in the repository when the
// name is taken there.
var numbered = regexp.MustCompile(`^[0-9]*$`)

// registrations returns the directories that the repository keeps for this
// worktree: normally one, none before it is added. While it is being made, one
// that git has not finished counts: nothing else bears the name.
func (r *record) registrations() []string {
	dir := filepath.Join(string(r.CommonDir), "worktrees")
	entries, _ := os.ReadDir(dir)
	var found []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), r.name)
		if !ok || !numbered.MatchString(rest) || !e.IsDir() {
			continue
		}
		at := filepath.Join(dir, e.Name())
		if r.names(at) || r.State == Making && empty(filepath.Join(at, "gitdir")) {
			found = append(found, at)
		}
	}
	return found
}

// names tells whether an entry of the repository names this worktree.
func (r *record) names(at string) bool {
	b, err := readSmall(filepath.Join(at, "gitdir"))
	return err == nil && from(at, firstLine(b)) == filepath.Join(r.path(), ".git")
}

// empty tells whether a file is not there, or holds nothing.
func empty(name string) bool {
	info, err := os.Lstat(name)
	return err != nil && missing(name) || err == nil && info.Size() == 0
}
