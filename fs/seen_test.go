package fs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/workbench"
)

// delegated makes a job that an agent started.
func (c client) delegated(f *fake) string {
	c.Helper()
	f.be(4242, workbench.Caller{Agent: true, Run: "codex-abcdef", Session: "shop"})
	c.put("sessions/shop/start", "make")
	f.be(4242, workbench.Caller{})
	j, ok := f.Job("shop", 1)
	if !ok || j.Parent != "codex-abcdef" {
		c.Fatalf("the job is %+v", j)
	}
	return "sessions/shop/jobs/job-1/"
}

func (f *fake) seenNow() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func TestReadingHowAnAgentsJobEndedIsSeen(t *testing.T) {
	for name, want := range map[string]bool{
		"status": true, "wait": true, "result": true,
		"state": false, "record": false, "log": false, "task": false, "exit": false,
	} {
		t.Run(name, func(t *testing.T) {
			c, f := newShop(t)
			dir := c.delegated(f)
			c.attr(dir + name)
			open := must(c.open(dir+name, Mode{Read: true, NonBlock: true}))
			open.Read(c.ctx, make([]byte, 100), 0)
			if got := f.seenNow(); got != nil {
				t.Fatalf("seen before its end: %q", got)
			}
			f.run("shop", 1)
			f.end("shop", 1, ledger.Completed, "the reply\n")
			c.attr(dir + name)
			must(c.open(dir+name, Mode{Read: true})).Release(c.ctx)
			if got := f.seenNow(); got != nil {
				t.Fatalf("seen without a read: %q", got)
			}
			stopped, cancel := context.WithCancel(c.ctx)
			cancel()
			open.Read(stopped, make([]byte, 100), 0)
			if got := f.seenNow(); got != nil {
				t.Fatalf("seen by a reader that was interrupted: %q", got)
			}
			open.Release(c.ctx)
			c.cat(dir + name)
			if got := slices.Compact(f.seenNow()); slices.Equal(got, []string{"shop/job-1 by 4242"}) != want {
				t.Errorf("seen %q", got)
			}
		})
	}
}

func TestReadersOfNothingSeeNothing(t *testing.T) {
	c, f := newShop(t)
	dir := c.delegated(f)
	before := must(c.open(dir+"status", Mode{Read: true}))
	before.Read(c.ctx, make([]byte, 3), 0)
	f.end("shop", 1, ledger.Completed, strings.Repeat("x", 100))
	before.Read(c.ctx, make([]byte, 100), 3) // what is left of "running"
	h := must(c.open(dir+"result", Mode{Read: true}))
	h.Read(c.ctx, make([]byte, 10), 50)  // the middle
	h.Read(c.ctx, make([]byte, 10), 100) // the end, where nothing is
	status := must(c.open(dir+"status", Mode{Read: true}))
	status.Read(c.ctx, make([]byte, 10), 100)
	if got := f.seenNow(); got != nil {
		t.Errorf("seen %q", got)
	}
	h.Read(c.ctx, make([]byte, 10), 95) // as tail reads
	if got := f.seenNow(); len(got) != 1 {
		t.Errorf("seen %q", got)
	}
	f.edit("shop", 1, func(j *ledger.Job) { j.Reported = true })
	c.cat(dir + "result")
	c.cat(dir + "status")
	if got := f.seenNow(); len(got) != 1 {
		t.Errorf("a job that is settled was seen again: %q", got)
	}
}

func TestTheOwnersJobsAreNobodysToSee(t *testing.T) {
	c, f := newShop(t)
	c.put("sessions/shop/start", "make")
	f.end("shop", 1, ledger.Completed, "x")
	for _, name := range []string{"status", "wait", "result"} {
		c.cat("sessions/shop/jobs/job-1/" + name)
	}
	if got := f.seenNow(); got != nil {
		t.Errorf("seen %q", got)
	}
}

func TestSessionEventsTellOfTurnsThatTheWorkbenchStarted(t *testing.T) {
	c, f := newShop(t)
	h := c.follow("sessions/shop/events", true)
	dir := c.delegated(f)
	f.end("shop", 1, ledger.Failed, "")
	must(f.Start(c.ctx, "shop", draftOf("A background job has ended.")))
	f.set(func(f *fake) {
		turn := change(workbench.TurnStarted, f.jobs["shop"][1])
		turn.Conversation, turn.Origin = "codex-1", &workbench.TurnOrigin{Kind: ledger.OriginBackground, Jobs: []string{"job-1"}}
		f.publish(turn)
		settled := change(workbench.JobSettled, f.jobs["shop"][0])
		f.publish(settled)
	})
	want := `{"job":"job-1","tool":"agent_sh","status":"running","task":"make"}
{"job":"job-1","tool":"agent_sh","status":"failed","task":"make"}
{"job":"job-2","tool":"agent_sh","status":"running","task":"A background job has ended."}
{"origin":{"kind":"background","jobs":["job-1"]},"job":"job-2","conversation":"codex-1"}
`
	if got := c.next(h, 1<<16); got != want {
		t.Errorf("of %s read\n%swant\n%s", dir, got, want)
	}
}
