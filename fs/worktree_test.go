package fs

import (
	"context"
	"slices"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/worktree"
)

func (f *fake) Worktrees() []worktree.Worktree {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.worktrees)
}

func (f *fake) Worktree(name string) (worktree.Worktree, bool) {
	all := f.Worktrees()
	i := slices.IndexFunc(all, func(wt worktree.Worktree) bool { return wt.Name == name })
	if i < 0 {
		return worktree.Worktree{}, false
	}
	return all[i], true
}

func (f *fake) WorktreeUsers(name string) []string {
	var users []string
	for _, j := range f.Active() {
		if j.Worktree == name {
			users = append(users, address(j.Session, j.Number))
		}
	}
	return users
}

func (f *fake) WorktreeDirty(string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirty
}

func (f *fake) RemoveWorktree(_ context.Context, name string) error {
	if users := f.WorktreeUsers(name); len(users) > 0 {
		return fault.New(fault.Busy, "worktree %s is used by %s", name, users[0])
	}
	f.set(func(f *fake) {
		f.worktrees = slices.DeleteFunc(f.worktrees, func(wt worktree.Worktree) bool { return wt.Name == name })
	})
	return nil
}

// settle puts a job into a new worktree, and its run and conversation with it.
func (f *fake) settle(session string, n uint64, name string) {
	f.edit(session, n, func(j *ledger.Job) {
		j.Worktree, j.CWD = name, "/wt/"+name
		for i, c := range f.convs[session] {
			if c.ID == j.Conversation {
				moved := *c
				moved.CWD, moved.Worktree, moved.Used = j.CWD, name, j.Updated
				f.convs[session] = slices.Clone(f.convs[session])
				f.convs[session][i] = &moved
			}
		}
		for i, r := range f.runs {
			if r.ID == j.Run {
				moved := *r
				moved.CWD, moved.Updated = j.CWD, j.Updated
				f.runs[i] = &moved
			}
		}
		f.worktrees = append(f.worktrees, worktree.Worktree{
			Name: name, Path: "/wt/" + name, Branch: "scv/" + name, Toplevel: "/src", Created: j.Updated,
		})
		f.dirty = "no"
	})
}

const aTree, itsDir = "codex-0a1b2c", "worktrees/codex-0a1b2c/"

func TestWorktrees(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	_, err := c.at("sessions/shop/jobs/job-1/worktree")
	isKind(t, err, fault.NotFound, "has no worktree")
	f.settle("shop", 1, aTree)
	for name, want := range map[string]string{
		"path": "/wt/" + aTree + "\n", "branch": "scv/" + aTree + "\n", "repo": "/src\n", "dirty": "no\n", "users": "shop/job-1\n",
	} {
		if got, a := c.cat(itsDir+name), c.attr(itsDir+name); got != want || a.Size != int64(len(want)) || a.Perm != 0o400 {
			t.Errorf("%s: %q, %+v; want %q", name, got, a, want)
		}
	}
	if got := must(must(c.at("sessions/shop/jobs/job-1/worktree")).(Link).Readlink(c.ctx)); got != "../../../../worktrees/"+aTree {
		t.Errorf("the job's link leads to %s", got)
	}
	isKind(t, c.write(itsDir+"ctl", "remove"), fault.Busy, "used by shop/job-1")
	f.end("shop", 1, ledger.Completed, "")
	if got := c.cat(itsDir + "users"); got != "" {
		t.Errorf("users of a job that has ended: %q", got)
	}
	dir := must(c.at("worktrees/" + aTree))
	c.put(itsDir+"ctl", "remove")
	isKind(t, second(dir.Attr(c.ctx)), fault.NotFound, "no longer there")
	for _, name := range []string{"worktrees/" + aTree, "sessions/shop/jobs/job-1/worktree"} {
		_, err := c.at(name)
		isKind(t, err, fault.NotFound, "has no")
	}
}

// A worktree's name is drawn by lot, so it can come again.
func TestAWorktreeOfTheSameNameIsAnotherThing(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	f.settle("shop", 1, aTree)
	old := must(c.at(itsDir + "path"))
	was := map[uint64]bool{c.attr(itsDir).Ino: true, c.attr(itsDir + "path").Ino: true}
	f.set(func(f *fake) {
		f.worktrees[0].Created = f.worktrees[0].Created.Add(time.Second)
		f.worktrees[0].Path = "/elsewhere"
	})
	isKind(t, second(old.Attr(c.ctx)), fault.NotFound, "no longer there")
	for _, name := range []string{itsDir, itsDir + "path"} {
		if was[c.attr(name).Ino] {
			t.Errorf("%s has the number of the old one", name)
		}
	}
	if c.attr(itsDir).EntryTTL != 0 {
		t.Error("a name that can come again is kept")
	}
	if got := c.cat(itsDir + "path"); got != "/elsewhere\n" {
		t.Errorf("path: %q", got)
	}
}

// Most jobs have no worktree, and asking for one may cost a look at the disk.
func TestAJobWithoutAWorktreeAsksForNone(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	c.tree = New(noWorktrees{f, t}, Options{Clock: f.clock})
	c.list("sessions/shop/jobs/job-1")
}

type noWorktrees struct {
	*fake
	t *testing.T
}

func (n noWorktrees) Worktree(name string) (worktree.Worktree, bool) {
	n.t.Errorf("worktree %q was asked for", name)
	return worktree.Worktree{}, false
}
