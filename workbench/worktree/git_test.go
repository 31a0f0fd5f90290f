package worktree

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

func TestVersions(t *testing.T) {
	for v, want := range map[string]bool{
		"git version 2.39.5": true, "git version 2.31.0": true, "git version 2.30.9": false, "git version 3.0": true, "git version 1.99.0": false,
		"git version 2.50.1 (Apple Git-155)": true, "git version 2": false, "git version x.y": false, "": false,
	} {
		if recent(v) != want {
			t.Errorf("recent(%q) = %v", v, !want)
		}
	}
}

func TestWhatGitSaysBecomesAKind(t *testing.T) {
	c := command{dir: "/shop", args: []string{"worktree", "add"}}
	for said, want := range map[string]fault.Kind{
		"error: unable to write file a: No space left on device":                          fault.NoSpace,
		"fatal: write error: Disk quota exceeded":                                         fault.NoSpace,
		"fatal: detected dubious ownership in repository at '/shop'":                      fault.Denied,
		"fatal: not a git repository (or any of the parent directories): .git":            fault.Invalid,
		"fatal: Unable to create '/shop/.git/index.lock': File exists.":                   fault.Busy,
		"error: could not lock config file .git/config: File exists":                      fault.Busy,
		"fatal: cannot lock ref 'refs/heads/scv/x': 'refs/heads/scv' exists":              fault.Invalid,
		"fatal: could not create leading directories of '/x': Permission denied":          fault.Denied,
		"error: cannot open .git/FETCH_HEAD: Read-only file system":                       fault.Denied,
		"fatal: unable to read 0123\nand\x1b[31m more" + strings.Repeat(" and more", 100): fault.Invalid,
	} {
		err := c.refused(result{code: 128, said: said})
		if !fault.Is(err, want) || strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 600 {
			t.Errorf("%q becomes %v: %v", said, fault.KindOf(err), err)
		}
	}
}

func TestHeadAndInRepository(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	unborn := filepath.Join(b.dir, "unborn")
	b.git(b.dir, "init", "-q", unborn)
	want := b.git(repo, "rev-parse", "HEAD")
	for dir, head := range map[string]string{repo: want, filepath.Join(repo, "sub"): want, unborn: "", b.home: ""} {
		if got := Head(b.context(), dir); got != head {
			t.Errorf("Head(%s) = %q", dir, got)
		}
		if InRepository(dir) != (dir != b.home) {
			t.Errorf("InRepository(%s) = %v", dir, InRepository(dir))
		}
	}
}

func TestGitGetsAnEnvironmentOfItsOwn(t *testing.T) {
	b := newBed(t)
	repo, other := b.repo("shop"), b.repo("other")
	b.git(other, "commit", "-q", "--allow-empty", "-m", "more")
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("OPENAI_API_KEY", "secret")
	t.Setenv("PATH", "tools::"+os.Getenv("PATH"))
	b.write(filepath.Join(repo, "tools", "git"), "#!/bin/sh\nexit 9\n")
	b.must(os.Chmod(filepath.Join(repo, "tools", "git"), 0o755))
	t.Chdir(repo)
	var out bytes.Buffer
	err := Git(b.context(), repo, &out, "-c", "alias.print=!env", "print")
	if err != nil || strings.Contains(out.String(), "API_KEY") || strings.Contains(out.String(), other) || strings.Contains(out.String(), "=tools:") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestACommandEndsWithItsTime(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	mark := filepath.Join(b.dir, "running")
	slow := command{dir: repo, limit: 200 * time.Millisecond, args: []string{"-c", "alias.slow=!trap '' TERM; touch " + mark + "; while :; do sleep 600; done", "slow"}}
	if err := slow.ok(b.context()); !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v", err)
	}
	b.await("the end of its processes", func() bool { return len(processesWith(b.dir)) == 0 })
	ctx, cancel := context.WithCancel(b.context())
	cancel()
	if err := slow.ok(ctx); !fault.Is(err, fault.Interrupted) {
		t.Errorf("got %v", err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"state":"ready","origin":"/a/b","toplevel":"/a","common_dir":"/a/.git","git_dir":"base64:L2H/","base":"` + strings.Repeat("0a", 20) + `","branch":"scv/codex-00000a"}`))
	f.Add([]byte(`{"v":1,"origin":"../.."}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := place{dir: t.TempDir(), name: "codex-00000a"}
		if err := os.WriteFile(at.record(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecord(at)
		if err != nil {
			return
		}
		wt := r.worktree()
		if !strings.HasPrefix(wt.CWD+"/", wt.Path+"/") || filepath.Dir(wt.Path) != at.dir {
			t.Errorf("it lies at %s, %s", wt.Path, wt.CWD)
		}
		if err := r.write(); err != nil {
			t.Fatal(err)
		}
		again, err := readRecord(at)
		if err != nil || again.Toplevel != r.Toplevel || again.Origin != r.Origin || again.GitDir != r.GitDir {
			t.Errorf("read back: %+v, %v", again, err)
		}
	})
}

func FuzzGitlinks(f *testing.F) {
	f.Add([]byte("100644 aa 0\ta\x00160000 bb 0\tlibs/a\tpart\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		paths, err := scanGitlinks(bytes.NewReader(b))
		if err != nil || len(paths) > bytes.Count(b, []byte("160000 ")) {
			t.Errorf("%q, %v", paths, err)
		}
	})
}
