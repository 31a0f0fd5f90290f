package fs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

func draftOf(text string) workbench.Draft { return workbench.Draft{Prompt: []byte(text)} }

// closed returns a document that its writer has just closed, before the kernel
// tells of it.
func closed(c client) Handle {
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("fix it")))
	if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
		panic(err)
	}
	return h
}

// took returns how long f takes.
func took(f func()) time.Duration {
	at := time.Now()
	f()
	return time.Since(at)
}

func bubble(t *testing.T, f func(t *testing.T, c client, bench *fake)) {
	synctest.Test(t, func(t *testing.T) {
		c, bench := newShop(t)
		f(t, c, bench)
	})
}

func TestALookAfterTheCloseSeesTheJob(t *testing.T) {
	for name, look := range map[string]func(c client) bool{
		"list":     func(c client) bool { return len(c.list("sessions/shop/jobs")) == 1 },
		"look-up":  func(c client) bool { _, err := c.at("sessions/shop/jobs/job-1/status"); return err == nil },
		"active":   func(c client) bool { return len(c.list("active")) == 1 },
		"link":     func(c client) bool { _, err := c.at("active/shop.job-1"); return err == nil },
		"snapshot": func(c client) bool { return len(c.cat("snapshot")) > 150 },
		"metrics":  func(c client) bool { return len(c.cat("metrics")) > 0 },
		"size":     func(c client) bool { return c.attr("snapshot").Size > 150 },
		"start":    func(c client) bool { return c.cat(start) == "shop/job-1\n" },
		"ctl":      func(c client) bool { return c.write("sessions/shop/ctl", "label x") == nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c client, bench *fake) {
				h := closed(c)
				time.AfterFunc(20*time.Millisecond, func() { h.Release(c.ctx) })
				saw := false
				if d := took(func() { saw = look(c) }); d != 20*time.Millisecond || !saw {
					t.Errorf("waited %v and saw it: %v", d, saw)
				}
				if len(bench.started()) != 1 {
					t.Error("looked before the job was made")
				}
			})
		})
	}
}

func TestAReadFromTheStartSeesTheJob(t *testing.T) {
	bubble(t, func(t *testing.T, c client, _ *fake) {
		r := must(c.open(start, Mode{Read: true}))
		h := closed(c)
		time.AfterFunc(20*time.Millisecond, func() { h.Release(c.ctx) })
		if got := must(readAll(c.ctx, r, 0)); got != "shop/job-1\n" {
			t.Errorf("read %q", got)
		}
	})
}

func TestALookWaitsForAJobThatIsBeingMade(t *testing.T) {
	bubble(t, func(t *testing.T, c client, bench *fake) {
		bench.starting = make(chan struct{})
		h := closed(c)
		go h.Release(c.ctx)
		time.AfterFunc(3*time.Second, func() { close(bench.starting) })
		if d := took(func() { c.list("sessions/shop/jobs") }); d != 3*time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

func TestALookWaitsNoLongerForAReleaseThatDoesNotCome(t *testing.T) {
	bubble(t, func(t *testing.T, c client, bench *fake) {
		h := closed(c) // a child holds the descriptor
		for _, want := range []time.Duration{closeWait, 0} {
			if d := took(func() { c.list("sessions/shop/jobs") }); d != want {
				t.Errorf("waited %v, want %v", d, want)
			}
		}
		// Its own next close begins anew; another write ends that.
		if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
			t.Fatal(err)
		}
		if d := took(func() { c.list("active") }); d != closeWait {
			t.Errorf("waited %v after another close", d)
		}
		if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
			t.Fatal(err)
		}
		must(h.Write(c.ctx, []byte(" all")))
		if d := took(func() { c.list("active") }); d != 0 {
			t.Errorf("waited %v after another write", d)
		}
		h.Release(c.ctx)
		if got := bench.started(); len(got) != 1 || got[0] != "fix it all" {
			t.Errorf("jobs: %q", got)
		}
	})
}

func TestALateReleaseDelaysNobody(t *testing.T) {
	bubble(t, func(t *testing.T, c client, bench *fake) {
		h := closed(c)
		time.Sleep(closeWait + time.Millisecond)
		bench.starting = make(chan struct{})
		go h.Release(c.ctx)
		synctest.Wait()
		if d := took(func() { c.list("sessions/shop/jobs") }); d != 0 {
			t.Errorf("waited %v", d)
		}
		close(bench.starting)
		synctest.Wait()
		if n := len(bench.started()); n != 1 {
			t.Errorf("%d jobs", n)
		}
	})
}

func TestWhatCannotShowTheJobDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, c client, bench *fake) {
		must(bench.RegisterSession("other", "/src", ""))
		n := must(c.at(start))
		events := must(c.at("events")).(File)
		h := closed(c)
		defer h.Release(c.ctx)
		if d := took(func() {
			c.list("sessions/other/jobs")
			c.list("runs")
			c.list("sessions")
			c.cat("config")
			c.put("sessions/other/start", "x")
			must(n.Attr(c.ctx)) // the writer's own fstat
			must(events.Open(c.ctx, Mode{Read: true}))
		}); d != 0 {
			t.Errorf("waited %v", d)
		}
	})
}

func TestAWaitingLookIsInterrupted(t *testing.T) {
	bubble(t, func(t *testing.T, c client, _ *fake) {
		dir := must(c.at("sessions/shop/jobs")).(Dir)
		h := closed(c)
		defer h.Release(c.ctx)
		ctx, cancel := context.WithTimeout(c.ctx, time.Millisecond)
		defer cancel()
		_, err := dir.List(ctx)
		isKind(t, err, fault.Interrupted, "interrupted")
	})
}

func TestReadingSendsAndEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, c client, _ *fake) {
		h := must(c.open(start, Mode{Read: true, Write: true}))
		defer h.Release(c.ctx)
		must(h.Write(c.ctx, []byte("fix it")))
		if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
			t.Fatal(err)
		}
		if d := took(func() {
			if got := must(readAll(c.ctx, h, 6)); got != "shop/job-1\n" {
				t.Errorf("read %q", got)
			}
			c.list("active")
		}); d != 0 {
			t.Errorf("waited %v", d)
		}
	})
}
