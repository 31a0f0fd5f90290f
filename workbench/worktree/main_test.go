package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// TestMain lets the test binary be a process that makes worktrees until it is
// killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "make" {
		makeForEver(os.Args[2], os.Args[3], os.Args[4])
	}
	os.Exit(m.Run())
}

// bed is a test's place: a home of its own, a root, and a way to run git as
// its user would.
type bed struct {
	*testing.T
	dir  string
	home string
	m    *Manager
}

func newBed(t *testing.T) *bed {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, dir: dir, home: filepath.Join(dir, "home"), m: New(filepath.Join(dir, "state", "worktrees"))}
	b.write(filepath.Join(b.home, ".gitconfig"), "[user]\n\tname = Test\n\temail = test@localhost\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n")
	t.Setenv("HOME", b.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return b
}

func (b *bed) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	return ctx
}

// git runs git as a user does, and returns what it said.
func (b *bed) git(dir string, args ...string) string {
	b.Helper()
	out, err := b.tryGit(dir, args...)
	if err != nil {
		b.Fatalf("git %q in %q: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(out)
}

func (b *bed) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// repo makes a repository with two files and one commit.
func (b *bed) repo(name string) string {
	b.Helper()
	dir := filepath.Join(b.dir, name)
	b.write(filepath.Join(dir, "a.txt"), "one\n")
	b.write(filepath.Join(dir, "sub", "b.txt"), "two\n")
	b.git(dir, "init", "-q")
	b.git(dir, "add", ".")
	b.git(dir, "commit", "-qm", "first")
	return dir
}

func (b *bed) write(name, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// tool writes a program that leaves a mark when it runs.
func (b *bed) tool(name, text string) string {
	b.Helper()
	at := filepath.Join(b.dir, "tools", name)
	b.write(at, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(at, 0o755); err != nil {
		b.Fatal(err)
	}
	return at
}

func (b *bed) make(dir, name string) Worktree {
	b.Helper()
	wt, err := b.m.Make(b.context(), dir, name)
	if err != nil {
		b.Fatalf("Make(%q): %v", dir, err)
	}
	return wt
}

func (b *bed) dirty(wt Worktree) bool {
	b.Helper()
	is, err := b.m.Dirty(b.context(), wt)
	if err != nil {
		b.Fatalf("Dirty: %v", err)
	}
	return is
}

func (b *bed) merged(wt Worktree) bool {
	b.Helper()
	is, err := b.m.Merged(b.context(), wt)
	if err != nil {
		b.Fatalf("Merged: %v", err)
	}
	return is
}

func (b *bed) diff(wt Worktree) string {
	b.Helper()
	var out bytes.Buffer
	if err := b.m.Diff(b.context(), wt, &out); err != nil {
		b.Fatalf("Diff: %v", err)
	}
	return out.String()
}

func (b *bed) remove(wt Worktree) {
	b.Helper()
	if err := b.m.Remove(b.context(), wt, nil); err != nil {
		b.Fatalf("Remove: %v", err)
	}
}

// traces is everything that worktrees have left: below the root, and in a
// repository.
func (b *bed) traces(repo string) []string {
	b.Helper()
	var all []string
	_ = filepath.WalkDir(b.m.root, func(p string, _ os.DirEntry, err error) error {
		if err == nil && p != b.m.root && !(filepath.Dir(p) == b.m.root && strings.HasSuffix(p, lockSuffix)) {
			all = append(all, p)
		}
		return nil
	})
	common := b.git(repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
	for _, pattern := range []string{"worktrees/*", "*.lock", "refs/heads/scv*", "refs/heads/scv/*", "logs/refs/heads/scv/*"} {
		found, _ := filepath.Glob(filepath.Join(common, pattern))
		all = append(all, found...)
	}
	if out := b.git(repo, "for-each-ref", "refs/heads/scv"); out != "" {
		all = append(all, out)
	}
	sort.Strings(all)
	return all
}

func names(n int) string { return fmt.Sprintf("codex-%06x", n) }
