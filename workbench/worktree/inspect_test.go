package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

func TestEveryKindOfChangeIsDirtyAndHindersRemoval(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, ".gitignore"), "*.o\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "ignore")
	for i, c := range []struct {
		name  string
		do    func(at string)
		clean bool
	}{
		{"nothing", func(string) {}, true},
		{"untracked", func(at string) { b.write(filepath.Join(at, "new"), "x") }, false},
		{"untracked in a directory", func(at string) { b.write(filepath.Join(at, "d", "e", "new"), "x") }, false},
		{"ignored", func(at string) { b.write(filepath.Join(at, "x.o"), "x") }, true},
		{"empty directory", func(at string) { _ = os.MkdirAll(filepath.Join(at, "d"), 0o755) }, true},
		{"changed", func(at string) { b.write(filepath.Join(at, "a.txt"), "two\n") }, false},
		{"touched", func(at string) { _ = os.Chtimes(filepath.Join(at, "a.txt"), time.Now(), time.Now()) }, true},
		{"same size and time", func(at string) {
			name := filepath.Join(at, "a.txt")
			info, _ := os.Stat(name)
			b.write(name, "eno\n")
			_ = os.Chtimes(name, info.ModTime(), info.ModTime())
		}, false},
		{"mode", func(at string) { _ = os.Chmod(filepath.Join(at, "a.txt"), 0o755) }, false},
		{"deleted", func(at string) { _ = os.Remove(filepath.Join(at, "a.txt")) }, false},
		{"staged", func(at string) { b.write(filepath.Join(at, "a.txt"), "two\n"); b.git(at, "add", ".") }, false},
		{"staged, then put back", func(at string) {
			b.write(filepath.Join(at, "a.txt"), "two\n")
			b.git(at, "add", ".")
			b.write(filepath.Join(at, "a.txt"), "one\n")
		}, false},
		{"intent to add", func(at string) { b.write(filepath.Join(at, "n"), "x"); b.git(at, "add", "-N", "n") }, false},
		{"assumed unchanged", func(at string) {
			b.git(at, "update-index", "--assume-unchanged", "a.txt")
			b.write(filepath.Join(at, "a.txt"), "two\n")
		}, false},
		{"skipped", func(at string) {
			b.git(at, "update-index", "--skip-worktree", "a.txt")
			b.write(filepath.Join(at, "a.txt"), "two\n")
		}, false},
		{"repository inside", func(at string) { b.git(at, "clone", "-q", repo, "inner") }, false},
		{"split index", func(at string) { b.git(at, "update-index", "--split-index") }, true},
		{"split index, changed", func(at string) {
			b.git(at, "update-index", "--split-index")
			b.write(filepath.Join(at, "a.txt"), "two\n")
		}, false},
		{"symlink for a directory", func(at string) {
			_ = os.Rename(filepath.Join(at, "sub"), filepath.Join(b.dir, "moved"))
			_ = os.Symlink(filepath.Join(b.dir, "moved"), filepath.Join(at, "sub"))
		}, false},
		{"index gone", func(at string) { _ = os.Remove(filepath.Join(b.git(at, "rev-parse", "--git-dir"), "index")) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			wt := b.make(repo, names(i))
			c.do(wt.Path)
			if b.dirty(wt) == c.clean {
				t.Errorf("dirty is %v", c.clean)
			}
			err := b.m.Remove(b.context(), wt, nil)
			if c.clean && err != nil || !c.clean && (!fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "commit it")) {
				t.Errorf("Remove says %v", err)
			}
			if missing(wt.Path) != c.clean {
				t.Error("the directory is gone, or not, against what was said")
			}
		})
	}
}

func TestTheDiffHoldsWhatWasDoneSinceTheStart(t *testing.T) {
	b := newBed(t)
	wt := b.make(b.repo("shop"), names(1))
	if d := b.diff(wt); d != "" {
		t.Errorf("at first: %q", d)
	}
	b.write(filepath.Join(wt.Path, "a.txt"), "committed\n")
	b.git(wt.Path, "commit", "-qam", "second")
	b.write(filepath.Join(wt.Path, "sub", "b.txt"), "staged\n")
	b.git(wt.Path, "add", ".")
	b.write(filepath.Join(wt.Path, "sub", "b.txt"), "changed\n")
	b.write(filepath.Join(wt.Path, ":!odd *"), "untracked\n")
	b.git(wt.Path, "init", "-q", "inner")
	b.write(filepath.Join(wt.Path, "inner", "f"), "f\n")
	b.git(filepath.Join(wt.Path, "inner"), "add", ".")
	b.git(filepath.Join(wt.Path, "inner"), "commit", "-qm", "inner")
	d := b.diff(wt)
	for _, want := range []string{"-one\n+committed\n", "-two\n+changed\n", "new file mode 100644", "+untracked\n", `Untracked repository: "inner/"`} {
		if !strings.Contains(d, want) {
			t.Errorf("%q is missing in\n%s", want, d)
		}
	}
	if out := b.git(wt.Path, "status", "--porcelain"); !strings.Contains(out, "?? \":!odd *\"") || !strings.Contains(out, "MM sub/b.txt") {
		t.Errorf("looking changed the index:\n%s", out)
	}
	patch := filepath.Join(b.dir, "patch")
	b.write(patch, d)
	again := b.make(filepath.Join(b.dir, "shop"), names(2))
	b.git(again.Path, "apply", patch)
}

func TestMergedIsWhatIsSomewhereElse(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	origin := filepath.Join(b.dir, "origin.git")
	b.git(b.dir, "clone", "-q", "--bare", repo, origin)
	b.git(repo, "remote", "add", "origin", origin)
	commit := func(wt Worktree) {
		b.write(filepath.Join(wt.Path, "a.txt"), wt.Name)
		b.git(wt.Path, "commit", "-qam", "work")
	}
	for i, c := range []struct {
		name   string
		do     func(wt Worktree)
		merged bool
		stays  bool
	}{
		{"no commit", func(Worktree) {}, true, false},
		{"a commit", commit, false, true},
		{"merged into the checkout", func(wt Worktree) { commit(wt); b.git(repo, "merge", "-q", wt.Branch) }, true, true},
		{"another branch", func(wt Worktree) { commit(wt); b.git(repo, "branch", "keep", wt.Branch) }, true, true},
		{"a tag", func(wt Worktree) { commit(wt); b.git(repo, "tag", "v1", wt.Branch) }, true, true},
		{"pushed", func(wt Worktree) { commit(wt); b.git(wt.Path, "push", "-q", "origin", "HEAD:refs/heads/pr") }, true, true},
		{"reset", func(wt Worktree) { commit(wt); b.git(wt.Path, "reset", "-q", "--hard", wt.Base) }, true, false},
		{"detached with a commit", func(wt Worktree) { b.git(wt.Path, "checkout", "-q", "--detach"); commit(wt) }, false, false},
		{"on another branch", func(wt Worktree) { b.git(wt.Path, "checkout", "-q", "-b", "other"); commit(wt) }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			wt := b.make(repo, names(i))
			c.do(wt)
			if b.merged(wt) != c.merged {
				t.Errorf("merged is %v", !c.merged)
			}
			err := b.m.Remove(b.context(), wt, nil)
			if c.merged {
				if err != nil {
					t.Errorf("Remove says %v", err)
				}
				if _, err := b.tryGit(repo, "rev-parse", "--verify", "-q", wt.Branch); (err == nil) != c.stays {
					t.Errorf("the branch is there: %v", err == nil)
				}
				return
			}
			if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "merge "+wt.Branch) || missing(wt.Path) {
				t.Errorf("Remove says %v", err)
			}
		})
	}
}

func TestUsersHinderRemoval(t *testing.T) {
	b := newBed(t)
	wt := b.make(b.repo("shop"), names(1))
	err := b.m.Remove(b.context(), wt, []string{"shop/job-3", "codex-0000aa"})
	if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "shop/job-3, codex-0000aa") || missing(wt.Path) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsGoneCanBeRemoved(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	gone := func(path string) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("its directory", func(t *testing.T) {
		wt := b.make(repo, names(1))
		gone(wt.Path)
		if err := b.m.Verify(wt); !fault.Is(err, fault.Gone) {
			t.Errorf("Verify says %v", err)
		}
		b.remove(wt)
	})
	t.Run("its registration", func(t *testing.T) {
		wt := b.make(repo, names(2))
		gone(wt.GitDir)
		if b.dirty(wt) {
			t.Error("it is dirty")
		}
		b.write(filepath.Join(wt.Path, "new"), "x")
		if !b.dirty(wt) || !strings.Contains(b.diff(wt), "+x") {
			t.Error("a new file is not seen")
		}
		gone(filepath.Join(wt.Path, "new"))
		b.remove(wt)
	})
	t.Run("moved by its user", func(t *testing.T) {
		wt := b.make(repo, names(3))
		b.git(repo, "worktree", "move", wt.Path, filepath.Join(b.dir, "moved away"))
		b.remove(wt)
		b.git(filepath.Join(b.dir, "moved away"), "status")
		b.git(repo, "worktree", "remove", filepath.Join(b.dir, "moved away"))
		b.git(repo, "branch", "-q", "-D", wt.Branch)
	})
	t.Run("read-only directories", func(t *testing.T) {
		wt := b.make(repo, names(4))
		b.write(filepath.Join(wt.Path, ".gitignore"), "cache\n.gitignore\n")
		b.write(filepath.Join(wt.Path, "cache", "m", "f"), "x")
		if err := os.Chmod(filepath.Join(wt.Path, "cache", "m"), 0o500); err != nil {
			t.Fatal(err)
		}
		b.remove(wt)
	})
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	t.Run("its repository", func(t *testing.T) {
		wt, other := b.make(repo, names(5)), b.make(repo, names(6))
		gone(repo)
		for _, wt := range b.m.List() {
			if !wt.Orphan {
				t.Errorf("%s is no orphan", wt.Name)
			}
		}
		if _, err := b.m.Dirty(b.context(), wt); !fault.Is(err, fault.Gone) {
			t.Errorf("Dirty says %v", err)
		}
		b.remove(wt)
		b.write(filepath.Join(other.Path, ".git"), "gitdir: /elsewhere\n")
		if err := b.m.Remove(b.context(), other, nil); !fault.Is(err, fault.Denied) || missing(other.Path) {
			t.Errorf("Remove of another thing says %v", err)
		}
	})
}

func TestABranchThatIsCheckedOutStays(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	wt := b.make(repo, names(1))
	b.git(wt.Path, "checkout", "-q", "--detach")
	b.git(repo, "checkout", "-q", wt.Branch)
	b.remove(wt)
	if out := b.git(repo, "status", "--porcelain", "--branch"); out != "## "+wt.Branch {
		t.Errorf("the checkout says %q", out)
	}
}
