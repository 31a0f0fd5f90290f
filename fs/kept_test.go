package fs

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/workbench"
)

func TestAKeptTextIsDrawnWhenItMustBe(t *testing.T) {
	var k kept
	now, drawn := epoch, 0
	get := func(seq uint64, limit time.Duration) string {
		text, at, err := k.get(seq, limit, func() time.Time { return now }, func() ([]byte, error) {
			drawn++
			return []byte(strconv.Itoa(drawn)), nil
		})
		if err != nil || limit > 0 && (at.After(now) || now.Sub(at) >= limit) {
			t.Errorf("of %v at %v, %v", at, now, err)
		}
		return string(text)
	}
	for i, step := range []struct {
		seq  uint64
		wait time.Duration
		want string
	}{
		{0, 0, "1"},
		{0, time.Second - 1, "1"},
		{0, 1, "2"}, // too old
		{1, 0, "3"}, // a change
		{1, 0, "3"},
		{1, -time.Hour, "4"}, // the clock was set back
		{1, time.Second / 2, "4"},
	} {
		now = now.Add(step.wait)
		if got := get(step.seq, time.Second); got != step.want {
			t.Errorf("step %d: text %s, want %s", i, got, step.want)
		}
	}
}

func TestATextThatCouldNotBeDrawnIsNotKept(t *testing.T) {
	var k kept
	want := errors.New("no")
	for range 2 {
		if _, _, err := k.get(1, 0, nil, func() ([]byte, error) { return []byte("half"), want }); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	text, _, err := k.get(1, 0, nil, func() ([]byte, error) { return nil, nil })
	if text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err = k.get(1, 0, nil, func() ([]byte, error) { return nil, want }); err != nil {
		t.Error("an empty text was drawn again:", err)
	}
}

// costly counts what is drawn from the whole workbench. No two metrics are
// the same.
type costly struct {
	*fake
	snapshots, metrics, configs atomic.Int64
}

func (c *costly) Snapshot() workbench.Snapshot {
	c.snapshots.Add(1)
	return c.fake.Snapshot()
}

func (c *costly) Metrics() []workbench.Metric {
	n := c.metrics.Add(1)
	return []workbench.Metric{{Name: "x", Type: "gauge", Labels: `n="` + string(make([]byte, n)) + `"`}}
}

func (c *costly) ConfigText() []byte {
	c.configs.Add(1)
	return c.fake.ConfigText()
}

// A look at the top directory costs nothing that the one before has paid, and
// a reader gets what stat has told of.
func TestStatOfTheTopDirectoryDrawsNothingTwice(t *testing.T) {
	f := &costly{fake: newFake(t.TempDir())}
	must(f.RegisterSession("shop", "/src", ""))
	must(f.Start(t.Context(), "shop", draftOf("x")))
	now := epoch.Add(time.Hour)
	c := client{TB: t, tree: New(f, Options{Clock: func() time.Time { return now }}), ctx: t.Context()}
	look := func() {
		t.Helper()
		for _, name := range []string{"snapshot", "metrics", "config"} {
			a := c.attr(name)
			if got := c.cat(name); int64(len(got)) != a.Size || a.Size == 0 {
				t.Errorf("%s: %d bytes, stat says %d", name, len(got), a.Size)
			}
		}
	}
	counts := func(snapshots, metrics int64) {
		t.Helper()
		if s, m, n := f.snapshots.Load(), f.metrics.Load(), f.configs.Load(); s != snapshots || m != metrics || n != 1 {
			t.Errorf("drew %d snapshots, %d metrics, %d configurations; want %d, %d, 1", s, m, n, snapshots, metrics)
		}
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(look)
	}
	work.Wait()
	counts(1, 1)
	if at := c.attr("metrics").Mtime; !at.Equal(now) {
		t.Errorf("metrics of %v are dated %v", now, at)
	}
	now = now.Add(metricsAge / 2)
	look()
	if at := c.attr("metrics").Mtime; at.Equal(now) {
		t.Error("kept metrics look new")
	}
	counts(1, 1)
	now = now.Add(metricsAge / 2)
	look()
	counts(1, 2)
	f.end("shop", 1, ledger.Completed, "")
	look()
	counts(2, 3)
}
