package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

func TestAWorktreeIsTheCommitOnABranchOfItsOwn(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, "a.txt"), "not committed\n")
	wt := b.make(filepath.Join(repo, "sub"), "codex-0000a1")
	if got, _ := os.ReadFile(filepath.Join(wt.Path, "a.txt")); string(got) != "one\n" {
		t.Errorf("a.txt holds %q", got)
	}
	if wt.CWD != filepath.Join(wt.Path, "sub") || wt.State != Ready || len(wt.Notes) > 0 || wt.Orphan {
		t.Errorf("got %+v", wt)
	}
	if got := b.git(wt.Path, "status", "--porcelain", "--branch"); got != "## scv/codex-0000a1" {
		t.Errorf("git status says %q", got)
	}
	if head := b.git(repo, "rev-parse", "HEAD"); wt.Base != head || b.git(wt.Path, "rev-parse", "HEAD") != head {
		t.Errorf("it stands at %s, the checkout at %s", wt.Base, head)
	}
	got, err := New(b.m.root).Get(wt.Name)
	if err != nil || !got.Created.Equal(wt.Created) || got.Path != wt.Path || got.Origin != filepath.Join(repo, "sub") || got.Toplevel != repo {
		t.Errorf("another manager sees %+v, %v", got, err)
	}
	if in, ok := b.m.Containing(filepath.Join(wt.Path, "sub")); !ok || in.Name != wt.Name {
		t.Errorf("Containing says %v, %v", in.Name, ok)
	}
	for path, want := range map[string]os.FileMode{b.m.root: 0o700, filepath.Dir(wt.Path): 0o700, wt.Path + ".json": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s is %v, %v", path, info.Mode(), err)
		}
	}
	if out := b.git(repo, "config", "--list", "--local"); strings.Contains(out, "branch.scv") {
		t.Errorf("the new branch is in the configuration:\n%s", out)
	}
	b.remove(wt)
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left after Remove: %q", left)
	}
}

func TestWorktreesOfOddlyNamedRepositories(t *testing.T) {
	for i, name := range []string{
		"with space", `quo"te's`, "new\nline", "end\n", "ü 空", "bad\xffbytes", "-dash", "..dots", "$(touch x)", "a*?[b]", ":(top)", "#hash", strings.Repeat("long", 60), `back\slash`, ";semi",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			repo := b.repo(name)
			wt := b.make(filepath.Join(repo, "sub"), names(i))
			if len(wt.Notes) > 0 || b.dirty(wt) {
				t.Errorf("it is not clean: %q", wt.Notes)
			}
			odd := name + " file"
			if len(odd) > 200 {
				odd = odd[:200]
			}
			b.write(filepath.Join(wt.CWD, odd), "three\n")
			if d := b.diff(wt); !strings.Contains(d, "+three") {
				t.Errorf("the diff is %q", d)
			}
			if !b.dirty(wt) {
				t.Error("an untracked file does not make it dirty")
			}
			if got, err := New(b.m.root).Get(wt.Name); err != nil || got.Toplevel != repo || got.CWD != wt.CWD {
				t.Errorf("read back: %+v, %v", got, err)
			}
			if err := os.Remove(filepath.Join(wt.CWD, odd)); err != nil {
				t.Fatal(err)
			}
			b.remove(wt)
			if left := b.traces(repo); len(left) > 0 {
				t.Errorf("left after Remove: %q", left)
			}
		})
	}
}

func TestRepositoriesOfTheSameNameDoNotMeet(t *testing.T) {
	b := newBed(t)
	one, two := b.make(b.repo("a-b/c"), names(1)), b.make(b.repo("a/b-c"), names(2))
	three, four := b.make(b.repo("x/c"), names(3)), b.make(b.repo("y/c"), names(4))
	dirs := map[string]bool{}
	for _, wt := range []Worktree{one, two, three, four} {
		dirs[filepath.Dir(wt.Path)] = true
	}
	if len(dirs) != 4 || len(b.m.List()) != 4 {
		t.Errorf("they lie in %v", dirs)
	}
}

func TestWorktreesOfUnusualCheckouts(t *testing.T) {
	b := newBed(t)
	repo := b.repo("plain")
	linked := filepath.Join(b.dir, "linked")
	b.git(repo, "worktree", "add", "-q", "-b", "feature", linked)
	b.write(filepath.Join(linked, "a.txt"), "feature\n")
	b.git(linked, "commit", "-qam", "feature")
	bare := filepath.Join(b.dir, "bare.git")
	b.git(b.dir, "clone", "-q", "--bare", repo, bare)
	ofBare := filepath.Join(b.dir, "of bare")
	b.git(bare, "worktree", "add", "-q", ofBare, "feature")
	super := b.repo("super")
	b.git(super, "submodule", "add", "-q", repo, "part")
	b.git(super, "commit", "-qm", "a part")
	symlink := filepath.Join(b.dir, "symlink")
	if err := os.Symlink(filepath.Join(repo, "sub"), symlink); err != nil {
		t.Fatal(err)
	}
	sha256 := filepath.Join(b.dir, "sha256")
	b.git(b.dir, "init", "-q", "--object-format=sha256", sha256)
	b.write(filepath.Join(sha256, "a.txt"), "one\n")
	b.git(sha256, "add", ".")
	b.git(sha256, "commit", "-qm", "first")
	for i, c := range []struct{ name, dir, cwd, content string }{
		{"linked", linked, ".", "feature\n"},
		{"bare", bare, ".", "one\n"},
		{"linked to a bare one", filepath.Join(ofBare, "sub"), "sub", "feature\n"},
		{"submodule", filepath.Join(super, "part", "sub"), "sub", "one\n"},
		{"symlink to a subdirectory", symlink, "sub", "one\n"},
		{"sha256", sha256, ".", "one\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wt := b.make(c.dir, names(i))
			got, _ := os.ReadFile(filepath.Join(wt.Path, "a.txt"))
			if string(got) != c.content || wt.CWD != filepath.Join(wt.Path, c.cwd) || len(wt.Notes) > 0 {
				t.Errorf("a.txt holds %q, %+v", got, wt)
			}
			if out := b.git(wt.Path, "status", "--porcelain"); out != "" || b.dirty(wt) || !b.merged(wt) {
				t.Errorf("it is not clean and merged: %q", out)
			}
			if !strings.HasPrefix(wt.Path, b.m.root) {
				t.Errorf("it lies at %s", wt.Path)
			}
			inner := b.make(wt.CWD, names(i+100)) // one made from inside another
			b.remove(inner)
			b.remove(wt)
			if out, err := b.tryGit(c.dir, "rev-parse", "--verify", "-q", wt.Branch); err == nil {
				t.Errorf("the branch is still there: %s", out)
			}
		})
	}
}

func TestADirectoryThatIsNotCommittedIsMadeEmpty(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	fresh := filepath.Join(repo, "sub", "not", "tracked")
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		t.Fatal(err)
	}
	wt := b.make(fresh, names(1))
	if info, err := os.Stat(wt.CWD); err != nil || !info.IsDir() || len(wt.Notes) != 1 || b.dirty(wt) {
		t.Errorf("%v, notes %q", err, wt.Notes)
	}
}

func TestADirectoryIsNotFollowedOutOfTheWorktree(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	outside := filepath.Join(b.dir, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(repo, "door")); err != nil {
		t.Fatal(err)
	}
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "door")
	if err := os.Remove(filepath.Join(repo, "door")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(repo, "door", "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := b.m.Make(b.context(), filepath.Join(repo, "door", "in"), names(1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("something was made outside: %v", entries)
	}
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWhatCannotBeMadeSaysWhyAndLeavesNothing(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	unborn := filepath.Join(b.dir, "unborn")
	b.git(b.dir, "init", "-q", unborn)
	blocked := b.repo("blocked")
	b.git(blocked, "branch", "scv")
	taken := b.repo("taken")
	b.git(taken, "branch", "scv/"+names(7))
	corrupt := b.repo("corrupt")
	blob := b.git(corrupt, "rev-parse", "HEAD:a.txt")
	if err := os.Remove(filepath.Join(corrupt, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, as string
		kind          fault.Kind
		says          string
	}{
		{"no repository", b.home, names(1), fault.Invalid, "does not lie in a git checkout"},
		{"no such directory", filepath.Join(repo, "none"), names(1), fault.Invalid, "no such file"},
		{"no directory", filepath.Join(repo, "a.txt"), names(1), fault.Invalid, "not a directory"},
		{"relative", "shop", names(1), fault.Invalid, "not an absolute path"},
		{"no commit", unborn, names(1), fault.Invalid, "no commit yet"},
		{"inside .git", filepath.Join(repo, ".git", "refs"), names(1), fault.Invalid, "inside a git directory"},
		{"name", repo, "../codex-000001", fault.Invalid, "no worktree name"},
		{"dots", repo, "a..b-000001", fault.Invalid, "no worktree name"},
		{"branch scv", blocked, names(1), fault.Exists, "branch scv"},
		{"branch taken", taken, names(7), fault.Exists, "has a branch"},
		{"missing object", corrupt, names(1), fault.Invalid, blob[:8]},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.m.Make(b.context(), c.dir, c.as)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if all := b.m.List(); len(all) > 0 {
				t.Errorf("listed: %+v", all)
			}
		})
	}
	for _, repo := range []string{repo, corrupt} {
		if left := b.traces(repo); len(left) > 0 {
			t.Errorf("left in %s: %q", repo, left)
		}
	}
	if b.git(taken, "rev-parse", "scv/"+names(7)) == "" || b.git(blocked, "rev-parse", "scv") == "" {
		t.Error("a branch of the user's is gone")
	}
}

func TestANameIsUsedOnce(t *testing.T) {
	b := newBed(t)
	wt := b.make(b.repo("one"), names(1))
	if _, err := b.m.Make(b.context(), b.repo("two"), names(1)); !fault.Is(err, fault.Exists) {
		t.Errorf("got %v", err)
	}
	if got, err := b.m.Get(names(1)); err != nil || got.Path != wt.Path {
		t.Errorf("the first is now %+v, %v", got, err)
	}
}

func TestAWorktreeOfTheSameNameElsewhereDoesNotHinder(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	users := filepath.Join(b.dir, names(1))
	b.git(repo, "worktree", "add", "-q", "-b", "own", users)
	wt := b.make(repo, names(1))
	if filepath.Base(wt.GitDir) == names(1) {
		t.Errorf("git dir is %s", wt.GitDir)
	}
	b.remove(wt)
	if out := b.git(users, "status", "--porcelain", "--branch"); out != "## own" {
		t.Errorf("the user's own worktree says %q", out)
	}
}

func TestWithoutGitItSaysSo(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	t.Setenv("PATH", b.home)
	versionKnown.Store(false)
	if _, err := b.m.Make(b.context(), repo, names(1)); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("got %v", err)
	}
	b.tool("git", "echo git version 2.17.1")
	t.Setenv("PATH", filepath.Join(b.dir, "tools"))
	if _, err := b.m.Make(b.context(), repo, names(1)); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "2.17.1") {
		t.Errorf("got %v", err)
	}
}

func TestMakingEndsWithItsContext(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	filter := b.tool("filter", "touch "+filepath.Join(b.dir, "started")+"; sleep 600")
	b.git(repo, "config", "--global", "filter.slow.smudge", filter)
	b.write(filepath.Join(repo, ".gitattributes"), "a.txt filter=slow\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "slow")
	ctx, cancel := context.WithCancel(b.context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := b.m.Make(ctx, repo, names(1))
		failed <- err
	}()
	b.await("the filter", func() bool { return !missing(filepath.Join(b.dir, "started")) })
	cancel()
	if err := <-failed; !fault.Is(err, fault.Interrupted) {
		t.Errorf("got %v", err)
	}
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	b.await("the filter's end", func() bool { return len(processesWith(b.dir)) == 0 })
}

func TestLfsObjectsThatAreNotAtHandAreANote(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	filter := b.tool("git-lfs", `[ -n "$GIT_LFS_SKIP_SMUDGE" ] && exec cat; exit 2`)
	b.git(repo, "config", "--global", "filter.lfs.smudge", filter)
	b.git(repo, "config", "--global", "filter.lfs.clean", "cat")
	b.git(repo, "config", "--global", "filter.lfs.required", "true")
	b.write(filepath.Join(repo, ".gitattributes"), "a.txt filter=lfs\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "lfs")
	if wt := b.make(repo, names(1)); len(wt.Notes) != 1 || !strings.Contains(wt.Notes[0], "git lfs pull") {
		t.Errorf("notes: %q", wt.Notes)
	}
}

func TestASparseCheckoutStaysSparse(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, "big", "c.txt"), "three\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "big")
	b.git(repo, "sparse-checkout", "set", "sub")
	wt := b.make(repo, names(1))
	if !missing(filepath.Join(wt.Path, "big")) || missing(filepath.Join(wt.Path, "sub", "b.txt")) {
		t.Error("the worktree holds other directories than the checkout")
	}
	if out := b.git(wt.Path, "status", "--porcelain"); out != "" || b.dirty(wt) || b.diff(wt) != "" {
		t.Errorf("it is not clean: %q, %q, %q", out, wt.Notes, b.diff(wt))
	}
}
