package fs

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// checkListed checks of everything that listings show: that stat, the listing
// and a second look agree, that a read gives as many bytes as stat says, and
// that nothing blocks.
func checkListed(t rapid.TB, ctx context.Context, tree *Tree, seen *memory) {
	inos := map[string]uint64{"/": rootIno}
	err := walk(ctx, tree.Root(), "/", func(name string, e Entry, n Node) {
		a, err := n.Attr(ctx)
		if err != nil {
			t.Fatalf("stat %s: %v", name, err)
		}
		if a.Ino != e.Ino || a.Type != e.Type || a.Ino <= rootIno || a.Mtime.IsZero() {
			t.Fatalf("%s: %+v, listed as %+v", name, a, e)
		}
		inos[name] = a.Ino
		seen.check(t, name, inos[path.Dir(name)], a)
		switch n := n.(type) {
		case File:
			h, err := n.Open(ctx, Mode{Read: true})
			if err != nil {
				t.Fatalf("open %s: %v", name, err)
			}
			defer h.Release(ctx)
			if s, ok := h.(Streamer); ok && s.Stream() {
				t.Fatalf("%s blocks and is listed", name)
			}
			text, err := slurp(ctx, h)
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			if int64(len(text)) != a.Size && path.Base(name) != "diff" {
				t.Fatalf("%s: %d bytes, stat says %d: %q", name, len(text), a.Size, text)
			}
			if text != "" && oneLiners[path.Base(name)] && strings.IndexByte(text, '\n') != len(text)-1 {
				t.Fatalf("%s is not one line: %q", name, text)
			}
		case Link:
			if target, err := n.Readlink(ctx); err != nil || int64(len(target)) != a.Size {
				t.Fatalf("%s -> %s (%v), stat says %d", name, target, err, a.Size)
			}
		}
	})
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
}

// memory is what a kernel keeps of what it was told: names below a directory,
// and attributes, as long as their times to live.
type memory struct {
	names map[string]uint64
	attrs map[uint64]Attr
}

func newMemory() *memory { return &memory{map[string]uint64{}, map[uint64]Attr{}} }

// check fails when something that may be kept is not what it was. A name may
// come and go, but not come back as another thing.
func (m *memory) check(t rapid.TB, name string, dir uint64, a Attr) {
	key := fmt.Sprint(dir, " ", path.Base(name))
	if was, kept := m.names[key]; kept && was != a.Ino {
		t.Fatalf("%s is another thing, and its name may be kept", name)
	}
	if a.EntryTTL > 0 {
		m.names[key] = a.Ino
	}
	if was, kept := m.attrs[a.Ino]; kept && was != a {
		t.Fatalf("%s: %+v was %+v, and may be kept", name, a, was)
	}
	if a.AttrTTL > 0 {
		m.attrs[a.Ino] = a
	}
}

var oneLiners = map[string]bool{
	"version": true, "offered": true, "label": true, "workspace": true, "state": true, "status": true, "task": true,
	"started_by": true, "created": true, "updated": true, "ended": true, "exit": true, "usage": true, "pid": true, "cwd": true, "job": true,
	"summary": true, "risk": true, "deadline": true,
}

var anyText = rapid.SampledFrom([]string{"", "x", "two\nlines\n", "\x1b[2J\u202e\x00\xff", "ünï", strings.Repeat("long ", 300)})

// TestSizesAreTrueInEveryState lets anything happen between looks.
func TestSizesAreTrueInEveryState(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		f := newFake(dir)
		tree, ctx := f.tree(Options{WorkDir: "/src"}), t.Context()
		c, seen := client{TB: t, tree: tree, ctx: ctx}, newMemory()
		session := func(r *rapid.T) string { return rapid.SampledFrom([]string{"shop", "old", "a.b"}).Draw(r, "session") }
		job := func(r *rapid.T) *ledger.Job {
			var jobs []*ledger.Job
			for _, s := range f.Sessions() {
				jobs = append(jobs, f.Jobs(s.ID)...)
			}
			if len(jobs) == 0 {
				r.Skip("no job")
			}
			return rapid.SampledFrom(jobs).Draw(r, "job")
		}
		write := func(name, text string) { _ = c.write(name, text) } // refused or not
		r.Repeat(map[string]func(*rapid.T){
			"mkdir": func(r *rapid.T) { _ = c.mkdir("sessions/" + session(r)) },
			"rmdir": func(r *rapid.T) { _ = c.rmdir("sessions/" + session(r)) },
			"label": func(r *rapid.T) { write("sessions/"+session(r)+"/ctl", "label "+anyText.Draw(r, "label")) },
			"agent": func(r *rapid.T) { write("sessions/"+session(r)+"/agent", anyText.Draw(r, "agent")) },
			"new":   func(r *rapid.T) { write("sessions/new", session(r)+" /src "+anyText.Draw(r, "label")) },
			"start": func(r *rapid.T) { write("sessions/"+session(r)+"/start", anyText.Draw(r, "prompt")) },
			"run": func(r *rapid.T) {
				if j := job(r); j.State == ledger.Queued {
					appendTo(f.RunFile(f.run(j.Session, j.Number), "log"), anyText.Draw(r, "log"))
				}
			},
			"converse": func(r *rapid.T) {
				if j := job(r); j.Conversation == "" {
					f.converse(j.Session, j.Number, "sh-1")
				}
			},
			"edit": func(r *rapid.T) {
				j, detail := job(r), anyText.Draw(r, "detail")
				f.edit(j.Session, j.Number, func(j *ledger.Job) { j.Detail, j.Usage = detail, &ledger.Usage{CostUSD: 1e-7} })
			},
			"end": func(r *rapid.T) {
				if j := job(r); !j.State.Terminal() {
					f.end(j.Session, j.Number, ledger.Failed, anyText.Draw(r, "result"))
				}
			},
			"ask": func(r *rapid.T) {
				if j := job(r); j.Run != "" && !j.State.Terminal() {
					f.raise(j.Session, j.Number, "process", cleanLine(anyText.Draw(r, "summary")))
				}
			},
			"question": func(r *rapid.T) {
				if j := job(r); j.Run != "" && !j.State.Terminal() {
					f.question(j.Session, j.Number, anyText.Draw(r, "questions")+"|"+anyText.Draw(r, "option")+"\n")
				}
			},
			"answer": func(r *rapid.T) {
				n := rapid.Uint64Range(17, 20).Draw(r, "number")
				write(fmt.Sprintf("approvals/%d/answer", n), rapid.SampledFrom([]string{"yes", "no why", "red", "1: x", "\x1b"}).Draw(r, "answer"))
			},
			"approve": func(r *rapid.T) {
				write("sessions/"+session(r)+"/approve", rapid.SampledFrom([]string{"yes", "no 17", "yes 18", "x"}).Draw(r, "answer"))
			},
			"ctl": func(r *rapid.T) {
				j := job(r)
				write("sessions/"+j.Session+"/jobs/"+fmt.Sprintf("job-%d", j.Number)+"/ctl", rapid.SampledFrom([]string{"cancel", "dismiss", "x\x1b"}).Draw(r, "verb"))
			},
			"look": func(r *rapid.T) { checkListed(r, ctx, tree, seen) },
		})
		checkListed(r, ctx, tree, seen)
	})
}

// Every name of a big tree, listed or not, has a number of its own, and the
// same one in another life of the daemon.
func TestInodeNumbersAreUniqueAndStable(t *testing.T) {
	c, f := newClient(t)
	for s := range 10 {
		id := fmt.Sprintf("s%d", s)
		must(f.RegisterSession(id, "/src", ""))
		for n := range 50 {
			must(f.Start(c.ctx, id, draftOf("x")))
			if n%2 == 0 {
				f.run(id, uint64(n+1))
				f.converse(id, uint64(n+1), "sh-1")
				f.raise(id, uint64(n+1), "process", "x")
			}
		}
	}
	hidden := []string{"events", "wait", "watch", "run", "conversation"}
	names := map[uint64]string{rootIno: "/"}
	err := walk(c.ctx, c.tree.Root(), "/", func(name string, e Entry, n Node) {
		add := func(ino uint64, name string) {
			if was, used := names[ino]; used && was != name {
				t.Fatalf("%s and %s are both %d", name, was, ino)
			}
			names[ino] = name
		}
		add(e.Ino, name)
		if d, ok := n.(Dir); ok {
			for _, h := range hidden {
				if n, err := d.Lookup(c.ctx, h); err == nil {
					add(must(n.Attr(c.ctx)).Ino, path.Join(name, h))
				}
			}
		}
	})
	if err != nil || len(names) < 13000 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	if thingIno("job", "7") == thingIno("run", "7") || thingIno("job", "7") == childIno(7, "job") {
		t.Error("things of two kinds have one number")
	}
	again := client{TB: t, tree: f.tree(Options{}), ctx: c.ctx}
	for ino, name := range names {
		if strings.HasPrefix(name, "/sessions/s7/") || strings.HasPrefix(name, "/active/") || strings.HasPrefix(name, "/approvals/20/") {
			if got := again.attr(name).Ino; got != ino {
				t.Fatalf("%s was %d and is %d", name, ino, got)
			}
		}
	}
}

// listing counts what costs as much as there are jobs.
type listing struct {
	*fake
	t *testing.T
}

func (l listing) Jobs(string) []*ledger.Job { l.t.Error("all jobs were asked for"); return nil }
func (l listing) Active() []*ledger.Job     { l.t.Error("all active jobs were asked for"); return nil }

func (l listing) Sessions() []*ledger.Session { l.t.Error("all sessions were asked for"); return nil }
func (l listing) Runs() []*ledger.Run         { l.t.Error("all runs were asked for"); return nil }
func (l listing) ConversationJobs(_, _ string) []*ledger.Job {
	l.t.Error("all jobs of a conversation were asked for")
	return nil
}

func TestOneJobCostsNoMoreThanItself(t *testing.T) {
	c, f := fullTree(t)
	c.tree = New(listing{f, t}, Options{Clock: f.clock})
	c.tree.subscribe = f.feed
	for _, r := range jobTable.rows {
		name := "sessions/shop/jobs/job-2/" + r.name
		n, err := c.at(name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		must(n.Attr(c.ctx))
		if file, ok := n.(File); ok {
			must(file.Open(c.ctx, Mode{Read: true})).Release(c.ctx)
		}
	}
	for _, name := range []string{"", "active", "active/shop.job-2", "sessions", "sessions/shop", "sessions/shop/jobs", "sessions/shop/conversations/sh-1/jobs", "runs", "runs/sh-000003", "runs/sh-000003/log"} {
		c.attr(name)
	}
}

// TestManyAtOnce is for the race detector: readers, writers and a workbench
// that changes below them.
func TestManyAtOnce(t *testing.T) {
	c, f := newShop(t)
	const rounds = 30
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for range rounds {
				h := must(c.open(start, Mode{Read: true, Write: true}))
				must(h.Write(c.ctx, []byte("fix ")))
				must(h.Write(c.ctx, []byte("it")))
				if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
					t.Error(err)
				}
				h.Release(c.ctx)
			}
		})
		work.Go(func() {
			for range rounds {
				_ = c.write(shopCtl, "label x\nbogus\n")
				_ = c.write("sessions/shop/agent", "codex")
				if j, ok := f.Job("shop", 1); ok && !j.State.Terminal() {
					_ = f.Cancel(workbench.Caller{}, "shop", 1)
				}
			}
		})
	}
	shared := must(c.open(shopCtl, Mode{Read: true, Write: true}))
	for range 2 {
		work.Go(func() {
			for range rounds {
				err := walk(c.ctx, c.tree.Root(), "/", func(name string, _ Entry, n Node) {
					if _, err := n.Attr(c.ctx); err != nil && !fault.Is(err, fault.NotFound) {
						t.Errorf("stat %s: %v", name, err)
					}
				})
				if err != nil {
					t.Error(err)
				}
				must(readAll(c.ctx, shared, 0))
				must(shared.Write(c.ctx, []byte("label y\n")))
			}
		})
	}
	work.Wait()
	if n := len(f.started()); n != 3*rounds {
		t.Errorf("%d jobs, want %d", n, 3*rounds)
	}
	checkListed(t, c.ctx, c.tree, newMemory())
}

func BenchmarkOpenReadStatus(b *testing.B) {
	c, f := newShop(b)
	for range 10000 {
		must(f.Start(c.ctx, "shop", draftOf("x")))
	}
	var p [100]byte
	for b.Loop() {
		n := must(c.at("sessions/shop/jobs/job-5000/status"))
		must(n.Attr(c.ctx))
		h := must(n.(File).Open(c.ctx, Mode{Read: true}))
		must(h.Read(c.ctx, p[:], 0))
		h.Release(c.ctx)
	}
}

func BenchmarkList10000Jobs(b *testing.B) {
	c, f := newShop(b)
	for range 10000 {
		must(f.Start(c.ctx, "shop", draftOf("x")))
	}
	for b.Loop() {
		c.list("sessions/shop/jobs")
	}
}
