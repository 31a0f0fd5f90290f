package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) mkfifo(name string) {
	b.Helper()
	b.must(unix.Mkfifo(name, 0o600))
}

// nest makes a repository with a submodule that has a submodule.
func (b *bed) nest() (super string) {
	b.Helper()
	inner := b.repo("inner")
	part := b.repo("a part")
	b.git(part, "submodule", "add", "-q", inner, "inner")
	b.git(part, "commit", "-qm", "inner")
	super = b.repo("super")
	b.git(super, "submodule", "add", "-q", part, "libs/a part")
	b.git(super, "commit", "-qm", "part")
	return super
}

func TestSubmodulesAreFilledAndLookedAt(t *testing.T) {
	b := newBed(t)
	super := b.nest()
	part := filepath.Join("libs", "a part")
	for i, c := range []struct {
		name  string
		do    func(at string)
		dirty string // what Remove names; empty: it goes
	}{
		{"nothing", func(string) {}, ""},
		{"a change", func(at string) { b.write(filepath.Join(at, part, "a.txt"), "x\n") }, "a part/a.txt"},
		{"an untracked file", func(at string) { b.write(filepath.Join(at, part, "new"), "x\n") }, "a part/new"},
		{"a change inside the inner one", func(at string) { b.write(filepath.Join(at, part, "inner", "a.txt"), "x\n") }, "inner/a.txt"},
		{"a commit", func(at string) {
			b.write(filepath.Join(at, part, "a.txt"), "x\n")
			b.git(filepath.Join(at, part), "commit", "-qam", "work")
		}, "a part"},
		{"a commit that the branch takes in", func(at string) {
			b.write(filepath.Join(at, part, "a.txt"), "y\n")
			b.git(filepath.Join(at, part), "commit", "-qam", "work")
			b.git(at, "commit", "-qam", "take it in")
			b.git(super, "branch", "keep", b.git(at, "rev-parse", "HEAD"))
		}, "not pushed"},
		{"a commit on a branch, and back", func(at string) {
			b.git(filepath.Join(at, part), "checkout", "-q", "-b", "work")
			b.write(filepath.Join(at, part, "a.txt"), "z\n")
			b.git(filepath.Join(at, part), "commit", "-qam", "work")
			b.git(filepath.Join(at, part), "checkout", "-q", "--detach", "HEAD~")
		}, "not pushed"},
		{"a stash", func(at string) {
			b.write(filepath.Join(at, part, "a.txt"), "z\n")
			b.git(filepath.Join(at, part), "stash", "-q")
		}, "not pushed"},
		{"a repository of its own in its place", func(at string) {
			b.must(os.RemoveAll(filepath.Join(at, part)))
			b.git(at, "clone", "-q", filepath.Join(b.dir, "a part"), part)
		}, "in the place of a submodule"},
		{"files in its place", func(at string) { b.must(os.Remove(filepath.Join(at, part, ".git"))) }, "in the place of a submodule"},
		{"emptied", func(at string) { b.git(at, "submodule", "-q", "deinit", "-f", part) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			wt := b.make(super, names(i))
			if len(wt.Notes) > 0 || missing(filepath.Join(wt.Path, part, "inner", "a.txt")) {
				t.Fatalf("not filled: %q", wt.Notes)
			}
			c.do(wt.Path)
			err := b.m.Remove(b.context(), wt, nil)
			if c.dirty == "" {
				if err != nil {
					t.Errorf("Remove says %v", err)
				}
				return
			}
			if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), c.dirty) || missing(wt.Path) {
				t.Errorf("Remove says %v", err)
			}
		})
	}
}

func TestASubmoduleThatCannotBeFilledIsANote(t *testing.T) {
	b := newBed(t)
	super := b.nest()
	b.must(os.RemoveAll(filepath.Join(b.dir, "a part")))
	wt := b.make(super, names(1))
	if len(wt.Notes) != 1 || !strings.Contains(wt.Notes[0], "submodule") || missing(filepath.Join(wt.Path, "a.txt")) {
		t.Errorf("notes: %q", wt.Notes)
	}
	if got, err := b.m.Get(wt.Name); err != nil || len(got.Notes) != 1 {
		t.Errorf("the record has %q, %v", got.Notes, err)
	}
	b.remove(wt)
}

func TestLocalSubmodulesNeedTheUsersOwnConsent(t *testing.T) {
	b := newBed(t)
	super := b.nest()
	b.git(super, "config", "--global", "--unset", "protocol.file.allow")
	b.git(super, "config", "protocol.file.allow", "always") // the repository's word does not count
	wt := b.make(super, names(1))
	if len(wt.Notes) != 1 || !strings.Contains(wt.Notes[0], "transport 'file' not allowed") {
		t.Errorf("notes: %q", wt.Notes)
	}
}

func TestFillingSubmodulesRunsNothingOfTheRepositorys(t *testing.T) {
	b := newBed(t)
	part := b.repo("part")
	b.write(filepath.Join(part, ".gitattributes"), "* filter=evil diff=evil\n")
	b.git(part, "add", ".")
	b.git(part, "commit", "-qm", "attributes")
	super := b.repo("super")
	b.git(super, "submodule", "add", "-q", part, "part")
	b.git(super, "commit", "-qm", "part")
	own := b.tool("own-ssh", "touch "+filepath.Join(b.dir, "own")+"; exit 1")
	ran := b.evil(filepath.Join(super, ".git", "config"))

	wt := b.make(super, names(1))
	if missing(filepath.Join(wt.Path, "part", "a.txt")) {
		t.Errorf("not filled: %q", wt.Notes)
	}
	module := filepath.Join(wt.GitDir, "modules", "part")
	b.evil(filepath.Join(module, "config"))
	b.write(filepath.Join(module, "info", "attributes"), "* filter=evil\n")
	if b.dirty(wt) {
		t.Error("it is dirty")
	}
	b.write(filepath.Join(wt.Path, "part", "a.txt"), "x\n")
	if !b.dirty(wt) {
		t.Error("it is not dirty")
	}
	b.diff(wt)
	b.write(filepath.Join(wt.Path, "part", "a.txt"), "one\n")
	b.remove(wt)

	for i, url := range []string{"ssh://git@localhost/none", "ext::" + filepath.Join(b.dir, "tools", "evil") + " x", "git://127.0.0.1:1/none"} {
		b.git(super, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "config", "submodule.part.url", url)
		if i == 0 {
			b.git(super, "-c", "core.fsmonitor=false", "config", "--global", "core.sshCommand", own)
		}
		if wt := b.make(super, names(10+i)); len(wt.Notes) != 1 {
			t.Errorf("%s: notes %q", url, wt.Notes)
		}
	}
	if missing(filepath.Join(b.dir, "own")) {
		t.Error("the user's own ssh command was not run")
	}
	if ran() {
		t.Error("a program that the repository's configuration names was run")
	}
}
