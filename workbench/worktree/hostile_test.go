package worktree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

// evil writes a configuration that would run a program wherever git runs one,
// and returns how to tell whether it did.
func (b *bed) evil(config string) (ran func() bool) {
	b.Helper()
	mark := filepath.Join(b.dir, "mark")
	tool := b.tool("evil", "echo \"$0 $*\" >>"+mark+"; cat")
	hooks := filepath.Join(b.dir, "hooks")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman", "sendemail-validate", "post-rewrite"} {
		b.write(filepath.Join(hooks, hook), "#!/bin/sh\ntouch "+mark+"\n")
		if err := os.Chmod(filepath.Join(hooks, hook), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	old, _ := os.ReadFile(config)
	text := strings.ReplaceAll(`
[core]
	fsmonitor = EVIL
	hooksPath = HOOKS
	sshCommand = EVIL
	pager = EVIL
	editor = EVIL
	askPass = EVIL
	gitProxy = EVIL
	alternateRefsCommand = EVIL
	attributesFile = ATTRIBUTES
[filter "evil"]
	clean = EVIL
	smudge = EVIL
	required = true
[filter "process"]
	process = EVIL
[diff]
	external = EVIL
[diff "evil"]
	command = EVIL
	textconv = EVIL
[merge "evil"]
	driver = EVIL
[credential]
	helper = EVIL
[gpg]
	program = EVIL
[alias]
	status = !EVIL
	diff = !EVIL
	worktree = !EVIL
	update-index = !EVIL
	submodule = !EVIL
[pager]
	diff = EVIL
	status = EVIL
	config = EVIL
[log]
	showSignature = true
[uploadpack]
	packObjectsHook = EVIL
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[extensions]
	worktreeConfig = true
[gc]
	auto = 1
[submodule "part"]
	update = !EVIL
`, "EVIL", tool)
	text = strings.ReplaceAll(text, "HOOKS", hooks)
	attributes := filepath.Join(b.dir, "attributes")
	b.write(attributes, "* filter=evil diff=evil merge=evil\n")
	b.write(config, string(old)+strings.ReplaceAll(text, "ATTRIBUTES", attributes))
	return func() bool {
		text, err := os.ReadFile(mark)
		if err == nil {
			b.Logf("what ran:\n%s", text)
		}
		return err == nil
	}
}

func TestNoConfigurationOfTheRepositoryRunsAnything(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	wt := b.make(repo, names(1))
	attributes := "* filter=evil diff=evil merge=evil\n*.p filter=process\n"
	b.write(filepath.Join(wt.Path, ".gitattributes"), attributes)
	b.git(wt.Path, "add", ".")
	b.git(wt.Path, "commit", "-qm", "attributes")
	b.git(repo, "merge", "-q", wt.Branch)
	b.write(filepath.Join(wt.Path, "x.p"), "x\n")
	b.write(filepath.Join(wt.Path, "a.txt"), "changed\n")
	ran := b.evil(filepath.Join(repo, ".git", "config"))
	b.evil(filepath.Join(wt.GitDir, "config.worktree"))
	b.evil(filepath.Join(wt.Path, ".gitconfig"))
	b.write(filepath.Join(repo, ".git", "info", "attributes"), attributes)
	b.write(filepath.Join(wt.GitDir, "info", "attributes"), attributes)

	if !b.dirty(wt) || !b.merged(wt) {
		t.Error("it is not dirty and merged")
	}
	if d := b.diff(wt); !strings.Contains(d, "+changed") || !strings.Contains(d, "+x") {
		t.Errorf("the diff is %q", d)
	}
	if err := b.m.Remove(b.context(), wt, nil); !fault.Is(err, fault.Busy) {
		t.Errorf("Remove says %v", err)
	}
	b.write(filepath.Join(wt.Path, "a.txt"), "one\n")
	b.must(os.Remove(filepath.Join(wt.Path, "x.p")))
	b.must(os.Remove(filepath.Join(wt.Path, ".gitconfig")))
	second := b.make(repo, names(2))
	if got, _ := os.ReadFile(filepath.Join(second.Path, "a.txt")); string(got) != "one\n" || len(second.Notes) > 0 {
		t.Errorf("the second holds %q, notes %q", got, second.Notes)
	}
	inner := b.make(second.Path, names(3))
	for _, wt := range []Worktree{inner, second, wt} {
		b.remove(wt)
	}
	if Head(b.context(), repo) == "" || Git(b.context(), repo, &bytes.Buffer{}, "for-each-ref") != nil {
		t.Error("Head and Git do not work")
	}
	if err := b.m.Recover(b.context()); err != nil {
		t.Error(err)
	}
	if ran() {
		t.Error("a program that the repository's configuration names was run")
	}
}

// TestTheEvilConfigurationWorks shows that the one above proves something.
func TestTheEvilConfigurationWorks(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, "a.txt"), "changed\n")
	ran := b.evil(filepath.Join(repo, ".git", "config"))
	_, _ = b.tryGit(repo, "status")
	if !ran() {
		t.Error("git itself ran nothing")
	}
}

func TestFiltersOfTheUsersOwnConfigurationRun(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.git(repo, "config", "--global", "filter.up.smudge", "tr a-z A-Z")
	b.git(repo, "config", "--global", "filter.up.clean", "tr A-Z a-z")
	b.write(filepath.Join(repo, ".gitattributes"), "a.txt filter=up\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "filter")
	wt := b.make(repo, names(1))
	if got, _ := os.ReadFile(filepath.Join(wt.Path, "a.txt")); string(got) != "ONE\n" || b.dirty(wt) {
		t.Errorf("it holds %q, notes %q", got, wt.Notes)
	}
}

func TestALinkThatWasTamperedWithIsRefused(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	other := b.make(repo, names(99))
	for i, c := range []struct {
		name string
		do   func(wt Worktree)
	}{
		{"a repository of its own", func(wt Worktree) {
			b.must(os.Remove(filepath.Join(wt.Path, ".git")))
			b.git(wt.Path, "init", "-q")
			b.evil(filepath.Join(wt.Path, ".git", "config"))
		}},
		{"a link to its own", func(wt Worktree) {
			fake := filepath.Join(b.dir, "fake", wt.Name)
			b.git(b.dir, "init", "-q", "--bare", fake)
			b.evil(filepath.Join(fake, "config"))
			b.write(filepath.Join(wt.Path, ".git"), "gitdir: "+fake+"\n")
		}},
		{"a symbolic link", func(wt Worktree) {
			b.must(os.Remove(filepath.Join(wt.Path, ".git")))
			b.must(os.Symlink(wt.GitDir, filepath.Join(wt.Path, ".git")))
		}},
		{"no link", func(wt Worktree) { b.must(os.Remove(filepath.Join(wt.Path, ".git"))) }},
		{"another worktree's link", func(wt Worktree) { b.write(filepath.Join(wt.Path, ".git"), "gitdir: "+other.GitDir+"\n") }},
		{"another worktree's directory", func(wt Worktree) {
			b.must(os.RemoveAll(wt.Path))
			b.must(os.Symlink(other.Path, wt.Path))
		}},
		{"a fifo", func(wt Worktree) {
			b.must(os.Remove(filepath.Join(wt.Path, ".git")))
			b.mkfifo(filepath.Join(wt.Path, ".git"))
		}},
		{"another common directory", func(wt Worktree) {
			fake := filepath.Join(b.dir, "common", wt.Name)
			b.git(b.dir, "init", "-q", "--bare", fake)
			b.evil(filepath.Join(fake, "config"))
			b.write(filepath.Join(wt.GitDir, "commondir"), fake+"\n")
		}},
		{"a registration that names another", func(wt Worktree) {
			b.write(filepath.Join(wt.GitDir, "gitdir"), filepath.Join(other.Path, ".git")+"\n")
		}},
		{"a registration that lies elsewhere", func(wt Worktree) {
			away := filepath.Join(b.dir, "away", wt.Name)
			b.must(os.MkdirAll(filepath.Dir(away), 0o755))
			b.must(os.Rename(wt.GitDir, away))
			b.must(os.Symlink(away, wt.GitDir))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wt := b.make(repo, names(i))
			c.do(wt)
			if err := b.m.Verify(wt); !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), wt.Path) {
				t.Errorf("Verify says %v", err)
			}
			if _, err := b.m.Dirty(b.context(), wt); !fault.Is(err, fault.Denied) {
				t.Errorf("Dirty says %v", err)
			}
			if err := b.m.Diff(b.context(), wt, &bytes.Buffer{}); !fault.Is(err, fault.Denied) {
				t.Errorf("Diff says %v", err)
			}
			if err := b.m.Remove(b.context(), wt, nil); !fault.Is(err, fault.Denied) {
				t.Errorf("Remove says %v", err)
			}
			if real, _ := filepath.EvalSymlinks(wt.Path); real != wt.Path {
				return // a way into the other one, which is as it was
			}
			if _, err := b.m.Make(b.context(), wt.Path, names(i+200)); err == nil {
				t.Error("another was made from inside it")
			}
			if missing(wt.Path) {
				t.Error("it was removed")
			}
		})
	}
	if !missing(filepath.Join(b.dir, "mark")) {
		t.Error("a program of a planted configuration was run")
	}
	if missing(filepath.Join(other.Path, "a.txt")) || b.dirty(other) {
		t.Error("the other worktree was touched")
	}
}

func TestRemovalFollowsNoLinkOut(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, ".gitignore"), "door\n")
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "ignore")
	precious := filepath.Join(b.dir, "precious", "file")
	b.write(precious, "x")
	wt := b.make(repo, names(1))
	b.must(os.Symlink(filepath.Dir(precious), filepath.Join(wt.Path, "door")))
	b.remove(wt)
	if missing(precious) {
		t.Error("a file outside is gone")
	}
}
