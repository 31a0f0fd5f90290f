package fs

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// kernel believes what it may keep for ever, and fails the test when that has
// become untrue.
type kernel struct {
	tb    rapid.TB
	names map[string]uint64 // what a name in a directory's number means
	attrs map[uint64]Attr
}

// look walks everything that is there, beside listings the names that they do
// not show.
func (k *kernel) look(ctx context.Context, dir Dir, ino uint64, at string) {
	entries, err := dir.List(ctx)
	if err != nil {
		k.tb.Fatalf("ls %s: %v", at, err)
	}
	for _, hidden := range []string{"events", "wait", "watch", "17", "18"} {
		if _, err := dir.Lookup(ctx, hidden); err == nil {
			entries = append(entries, Entry{Name: hidden})
		}
	}
	for _, e := range entries {
		name := at + "/" + e.Name
		n, err := dir.Lookup(ctx, e.Name)
		if err != nil {
			k.tb.Fatalf("%s: %v", name, err)
		}
		a, err := n.Attr(ctx)
		if err != nil {
			k.tb.Fatalf("stat %s: %v", name, err)
		}
		k.keep(fmt.Sprintf("%d/%s", ino, e.Name), name, a)
		if sub, ok := n.(Dir); ok {
			k.look(ctx, sub, a.Ino, name)
		}
	}
}

func (k *kernel) keep(key, name string, a Attr) {
	if was, kept := k.names[key]; kept && was != a.Ino {
		k.tb.Fatalf("%s was %d, was said to last, and is %d", name, was, a.Ino)
	}
	if a.EntryTTL > 0 {
		k.names[key] = a.Ino
		if a.Type == Symlink {
			k.tb.Fatalf("%s is a link, which is followed without a look whether it is there", name)
		}
	}
	if was, kept := k.attrs[a.Ino]; kept && was != a {
		k.tb.Fatalf("%s had %+v, which were said to last, and has %+v", name, was, a)
	}
	if a.AttrTTL > 0 {
		k.attrs[a.Ino] = a
	}
}

// TestWhatMayBeKeptStaysTrue lets sessions come, change, go and come again.
func TestWhatMayBeKeptStaysTrue(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		f := newFake(dir)
		tree, ctx := f.tree(Options{WorkDir: "/src"}), t.Context()
		c := client{TB: t, tree: tree, ctx: ctx}
		k := &kernel{r, map[string]uint64{}, map[uint64]Attr{}}
		job := func(r *rapid.T) *ledger.Job {
			jobs := f.Jobs(rapid.SampledFrom([]string{"a", "b"}).Draw(r, "session"))
			if len(jobs) == 0 {
				r.Skip("no job")
			}
			return rapid.SampledFrom(jobs).Draw(r, "job")
		}
		r.Repeat(map[string]func(*rapid.T){
			"session": func(r *rapid.T) {
				_ = c.write("sessions/new", rapid.SampledFrom([]string{"a /x", "b /y", "a /z A"}).Draw(r, "line"))
			},
			"rmdir": func(r *rapid.T) { _ = c.rmdir("sessions/" + rapid.SampledFrom([]string{"a", "b"}).Draw(r, "session")) },
			"forget": func(*rapid.T) {
				if s, ok := f.Session("a"); ok {
					f.set(func(f *fake) { delete(f.jobs, s.ID); delete(f.convs, s.ID) })
					f.forget(s.ID)
				}
			},
			"start": func(r *rapid.T) {
				_ = c.write("sessions/"+rapid.SampledFrom([]string{"a", "b"}).Draw(r, "session")+"/start", "fix it")
			},
			"run": func(r *rapid.T) {
				if j := job(r); j.State == ledger.Queued {
					f.run(j.Session, j.Number)
					f.converse(j.Session, j.Number, fmt.Sprintf("sh-%d", j.Number))
				}
			},
			"ask": func(r *rapid.T) {
				if j := job(r); j.Run != "" && !j.State.Terminal() {
					f.raise(j.Session, j.Number, "process", "x")
				}
			},
			"answer": func(r *rapid.T) {
				_ = c.write("approvals/"+rapid.SampledFrom([]string{"17", "18"}).Draw(r, "number")+"/answer", "yes")
			},
			"settle": func(r *rapid.T) {
				if j := job(r); j.Run != "" && j.Worktree == "" {
					f.settle(j.Session, j.Number, fmt.Sprintf("sh-%06x", j.Serial))
				}
			},
			"end": func(r *rapid.T) {
				if j := job(r); !j.State.Terminal() {
					f.end(j.Session, j.Number, ledger.Completed, "done")
				}
			},
			"dismiss": func(r *rapid.T) {
				if j := job(r); j.State.Terminal() {
					if err := f.Dismiss(workbench.Caller{}, j.Session, j.Number); err != nil {
						r.Fatal(err)
					}
				}
			},
			"": func(*rapid.T) { k.look(ctx, tree.Root(), rootIno, "") },
		})
	})
}

// What is kept spares a round trip for each look, so it is kept where it can be.
func TestWhatMayBeKept(t *testing.T) {
	c, f := fullTree(t)
	f.settle("shop", 1, aTree)
	f.raise("shop", 2, "process", "run make")
	const j = "sessions/shop/jobs/job-1"
	for name, want := range map[string]struct{ entry, attr bool }{
		"": {true, false}, "README": {true, true}, "version": {true, true}, "config": {true, true},
		"snapshot": {true, false}, "metrics": {true, false}, "ctl": {true, false}, "events": {true, false},
		"agents": {true, true}, "agents/sh": {true, true}, "agents/sh/resume": {true, true}, "agents/sh/offered": {true, false},
		"active": {true, false}, "active/shop.job-2": {false, false},
		"sessions": {true, false}, "sessions/new": {true, false}, "sessions/shop": {false, false},
		"sessions/shop/start": {true, false}, "sessions/shop/jobs": {true, false}, "sessions/shop/conversations": {true, false},
		j: {true, false}, j + "/status": {true, false}, j + "/log": {true, false}, j + "/wait": {true, false},
		j + "/task": {true, true}, j + "/prompt": {true, true}, j + "/run": {false, false}, j + "/worktree": {false, false},
		"sessions/shop/conversations/sh-1":            {true, false},
		"sessions/shop/conversations/sh-1/agent":      {true, true},
		"sessions/shop/conversations/sh-1/cwd":        {true, false},
		"sessions/shop/conversations/sh-1/jobs/job-1": {false, false},
		"approvals": {true, false}, "approvals/watch": {true, false}, "approvals/17": {true, false}, "approvals/17/risk": {true, true},
		"approvals/17/summary": {true, false}, "approvals/17/answer": {true, false}, j + "/approve": {true, false},
		"runs": {true, false}, "runs/sh-000003": {false, false}, "runs/sh-000003/pid": {true, false}, "runs/sh-000003/agent": {true, true},
		"worktrees": {true, false}, "worktrees/" + aTree: {false, false}, itsDir + "path": {true, true},
	} {
		if a := c.attr(name); a.EntryTTL > 0 != want.entry || a.AttrTTL > 0 != want.attr {
			t.Errorf("%q: the name for %v, the attributes for %v; want %+v", name, a.EntryTTL, a.AttrTTL, want)
		}
	}
}

// A name that is kept says nothing of whether its thing is there; attributes
// do, so those of all directories above what comes and goes are asked for.
func TestAKeptNameDoesNotHideThatItsThingIsGone(t *testing.T) {
	c, f := fullTree(t)
	var above []Node
	for _, name := range []string{"sessions/shop/jobs/job-1", "sessions/shop/jobs/job-1/status", "sessions/shop/conversations/sh-1", "sessions/shop/conversations/sh-1/jobs", "sessions/shop/jobs", "sessions/shop"} {
		if a := c.attr(name); a.AttrTTL != 0 {
			t.Errorf("attributes of %s may be kept for %v", name, a.AttrTTL)
		}
		above = append(above, must(c.at(name)))
	}
	f.set(func(f *fake) { delete(f.jobs, "shop"); delete(f.convs, "shop") })
	f.forget("shop")
	for _, n := range above {
		isKind(t, second(n.Attr(c.ctx)), fault.NotFound, "no longer there")
	}
}
