package fs

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// follow opens a stream.
func (c client) follow(name string, nonBlock bool) Handle {
	c.Helper()
	h, err := c.open(name, Mode{Read: true, NonBlock: nonBlock})
	if err != nil {
		c.Fatalf("open %s: %v", name, err)
	}
	if s, ok := h.(Streamer); !ok || !s.Stream() {
		c.Fatalf("%s is no stream", name)
	}
	return h
}

// next reads once.
func (c client) next(h Handle, size int) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	p := make([]byte, size)
	n, err := h.Read(ctx, p, 0)
	if err != nil || ctx.Err() != nil {
		c.Errorf("read: %v, %v", err, ctx.Err())
	}
	return string(p[:n])
}

func TestEventsTellEachChangeFromTheOpenOn(t *testing.T) {
	c, f := newShop(t)
	h := c.follow("events", false)
	must(f.Start(c.ctx, "shop", draftOf("fix \u009b it")))
	f.end("shop", 1, ledger.Completed, "")
	var kinds []string
	for l := range strings.Lines(c.next(h, 1<<16)) {
		var change workbench.Change
		if err := json.Unmarshal([]byte(l), &change); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		kinds = append(kinds, string(change.Kind)+" "+string(change.Status))
		if strings.ContainsRune(l, '\u009b') || change.Task != "fix \u009b it" {
			t.Errorf("task %q in %q", change.Task, l)
		}
	}
	if got := strings.Join(kinds, ", "); got != "job_started running, job completed" {
		t.Errorf("changes: %s", got)
	}
}

func TestAReaderThatWaitsIsWoken(t *testing.T) {
	c, f := newShop(t)
	h := c.follow("events", false)
	got := make(chan string)
	go func() { got <- c.next(h, 1<<16) }()
	must(f.RegisterSession("other", "/src", ""))
	if line := <-got; !strings.Contains(line, `"session":"other"`) {
		t.Errorf("read %q", line)
	}
}

func TestASmallReadGetsALineInPieces(t *testing.T) {
	c, f := newShop(t)
	h := c.follow("events", false)
	must(f.RegisterSession("a", "/src", ""))
	must(f.RegisterSession("b", "/src", ""))
	var text string
	for strings.Count(text, "\n") < 2 {
		text += c.next(h, 5)
	}
	for l := range strings.Lines(text) {
		if !json.Valid([]byte(l)) {
			t.Errorf("cut: %q", l)
		}
	}
}

func TestStreamsEndWithTheirReader(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	for _, name := range []string{"events", "sessions/shop/events", "sessions/shop/jobs/job-1/wait"} {
		h := c.follow(name, false)
		ctx, cancel := context.WithCancel(c.ctx)
		errs := make(chan error)
		for range 2 { // one waits for a change, one for its turn
			go func() { errs <- second(h.Read(ctx, make([]byte, 100), 0)) }()
		}
		cancel()
		for range 2 {
			isKind(t, <-errs, fault.Interrupted, "interrupted")
		}
		h.Release(c.ctx)
	}
}

func TestNonblockingStreamsSayThatNothingCame(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	for _, name := range []string{"events", "sessions/shop/events", "sessions/shop/jobs/job-1/wait"} {
		h := c.follow(name, true)
		isKind(t, second(h.Read(c.ctx, make([]byte, 100), 0)), fault.Limit, "nothing has come yet")
		defer func() {
			if got := c.next(h, 1000); !strings.Contains(got, "completed") {
				t.Errorf("%s: %q", name, got)
			}
		}()
	}
	f.end("shop", 1, ledger.Completed, "")
}

func TestSessionEventsTellStartAndEndOnce(t *testing.T) {
	c, f := newShop(t)
	must(f.RegisterSession("other", "/src", ""))
	must(f.Start(c.ctx, "shop", draftOf("before")))
	h := c.follow("sessions/shop/events", true)
	must(f.Start(c.ctx, "other", draftOf("x")))
	must(f.Start(c.ctx, "shop", draftOf("fix it")))
	f.run("shop", 2)
	f.edit("shop", 2, func(j *ledger.Job) { j.State = ledger.AwaitingInput })
	f.end("shop", 2, ledger.Declined, "")
	f.edit("shop", 2, func(j *ledger.Job) { j.ResumedAs = "shop/job-3" })
	f.end("shop", 1, ledger.Cancelled, "")
	want := `{"job":"job-2","tool":"agent_sh","status":"running","task":"fix it"}
{"job":"job-2","tool":"agent_sh","status":"declined","task":"fix it"}
{"job":"job-1","tool":"agent_sh","status":"cancelled","task":"before"}
`
	if got := c.next(h, 1<<16); got != want {
		t.Errorf("read\n%swant\n%s", got, want)
	}
	// The stream ends with its session.
	for _, n := range []uint64{1, 2} {
		if err := f.Dismiss(workbench.Caller{}, "shop", n); err != nil {
			t.Fatal(err)
		}
	}
	f.forget("shop")
	must(f.RegisterSession("shop", "/src", ""))
	must(f.Start(c.ctx, "shop", draftOf("another's")))
	for range 2 {
		if got := c.next(h, 1<<16); got != "" {
			t.Errorf("read %q after the end", got)
		}
	}
}

func TestASlowReaderIsToldWhatItMissed(t *testing.T) {
	for _, words := range []func(workbench.Change) (any, error){everyChange, jobChanges("shop")} {
		v, err := words(workbench.Change{Kind: workbench.ChangesLost, Lost: 12})
		if got := string(must(jsonText(v, ""))); err != nil || !strings.Contains(got, `"lost":12`) {
			t.Errorf("%s, %v", got, err)
		}
	}
}

func TestWaitReturnsTheStatusOnceTheJobEnded(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	h := c.follow("sessions/shop/jobs/job-1/wait", false)
	got := make(chan string)
	go func() { got <- c.next(h, 4) + c.next(h, 100) + c.next(h, 100) }()
	f.end("shop", 1, ledger.TimedOut, "")
	if text := <-got; text != "timeout\n" {
		t.Errorf("read %q", text)
	}
	if text := c.cat("sessions/shop/jobs/job-1/wait"); text != "timeout\n" {
		t.Errorf("of an ended job: %q", text)
	}

	h = c.follow("sessions/shop/jobs/job-1/wait", false)
	if err := f.Dismiss(workbench.Caller{}, "shop", 1); err != nil {
		t.Fatal(err)
	}
	isKind(t, second(h.Read(c.ctx, make([]byte, 100), 0)), fault.Gone, "job-1")
}

func TestStreamsAreNotListed(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	for dir, name := range map[string]string{"": "events", "sessions/shop": "events", "sessions/shop/jobs/job-1": "wait"} {
		for _, listed := range c.list(dir) {
			if listed == name {
				t.Errorf("%s lists %s", dir, name)
			}
		}
		if a := c.attr(dir + "/" + name); a.Size != 0 || a.Perm != 0o400 {
			t.Errorf("%s/%s: %+v", dir, name, a)
		}
	}
}
