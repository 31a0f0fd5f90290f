package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// woken waits for a follow's signal.
func woken(t *testing.T, f *Follow) {
	t.Helper()
	select {
	case <-f.C():
	case <-time.After(patience):
		t.Fatal("a follow was not woken")
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// made creates a run to follow.
func made(t *testing.T, b *bench, run string) {
	t.Helper()
	if err := b.Create(b.spec(run, "true"), nil); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, b *bench, run, file string) *Follow {
	t.Helper()
	f, err := b.Follow(run, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestFollowIsWokenByGrowth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made(t, b, "r")
	made(t, b, "q")
	one, two, other := follow(t, b, "r", "stdout"), follow(t, b, "r", "stdout"), follow(t, b, "q", "stdout")
	for _, f := range []*Follow{one, two, other} {
		woken(t, f) // to read what is there
	}
	for range 3 {
		appendTo(t, b.Path("r", "stdout"), "x")
		woken(t, one)
		woken(t, two)
	}
	one.Close()
	one.Close()
	appendTo(t, b.Path("r", "stdout"), "x")
	woken(t, two) // the file is watched for as long as anybody follows it
	select {
	case <-other.C():
		t.Error("a follow was woken by another run's file")
	default:
	}
	if _, err := b.Follow("r", "none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("following nothing: %v", err)
	}
	if _, err := b.Follow("../r", "stdout"); !fault.Is(err, fault.Invalid) {
		t.Errorf("following outside: %v", err)
	}
	two.Close()
	if three := follow(t, b, "r", "stdout"); true {
		woken(t, three)
		appendTo(t, b.Path("r", "stdout"), "x")
		woken(t, three)
	}
}

func TestFollowSurvivesTheFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made(t, b, "r")
	f := follow(t, b, "r", "stdout")
	woken(t, f)
	if err := b.Remove("r"); err != nil {
		t.Fatal(err)
	}
	woken(t, f)
	f.Close()
	made(t, b, "r")
	again := follow(t, b, "r", "stdout")
	woken(t, again)
	appendTo(t, b.Path("r", "stdout"), "x")
	woken(t, again)
}

func TestFollowWithoutRoomInInotifyGoesByTheClock(t *testing.T) {
	for name, full := range map[string]func(*follows){
		"no instance": func(a *follows) { a.open = func() (*fsnotify.Watcher, error) { return nil, unix.EMFILE } },
		"no watch":    func(a *follows) { a.watch = func(*fsnotify.Watcher, string) error { return unix.ENOSPC } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			made(t, b, "r")
			watch, open := b.follows.watch, b.follows.open
			full(b.follows)
			one, two := follow(t, b, "r", "stdout"), follow(t, b, "r", "stderr")
			for range 2 {
				woken(t, one)
				woken(t, two)
			}
			if said := b.said(); strings.Count(said, "inotify cannot watch it") != 1 {
				t.Errorf("it said %q", said)
			}
			b.follows.watch, b.follows.open = watch, open // there is room again
			three := follow(t, b, "r", "stdout")
			woken(t, three)
			appendTo(t, b.Path("r", "stdout"), "x")
			woken(t, three)
			one.Close()
			woken(t, two)
			two.Close()
			b.follows.mu.Lock()
			defer b.follows.mu.Unlock()
			if b.follows.stop != nil {
				t.Error("the clock runs for nobody")
			}
		})
	}
}

func TestLostEventsWakeAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made(t, b, "r")
	f := follow(t, b, "r", "stdout")
	woken(t, f)
	b.follows.adding.Lock()
	w := b.follows.watcher
	b.follows.adding.Unlock()
	w.Errors <- fsnotify.ErrEventOverflow
	woken(t, f)
}

func TestPunchGivesTheDiskBackAndKeepsTheSize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made(t, b, "r")
	path := b.Path("r", "stdout")
	const size, hole = 1 << 20, 1<<19 + 17
	appendTo(t, path, strings.Repeat("x", size))
	before := blocks(t, path)
	switch err := b.Punch("r", hole); {
	case fault.Is(err, fault.Unsupported):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) != size {
		t.Fatalf("%d bytes are left, %v", len(raw), err)
	}
	for i, c := range raw {
		if want := byte('x'); i < hole/block*block && c != 0 || i >= hole/block*block && c != want {
			t.Fatalf("byte %d is %q", i, c)
		}
	}
	if after := blocks(t, path); after > before-hole/1024 {
		t.Errorf("it took %d blocks, and takes %d", before, after)
	}
	appendTo(t, path, "more")
	if err := b.Punch("r", 100); err != nil {
		t.Error(err)
	}
	if err := b.Punch("r", -1); !fault.Is(err, fault.Invalid) {
		t.Errorf("a hole before the file: %v", err)
	}
	if err := b.Punch("none", block); !fault.Is(err, fault.NotFound) {
		t.Errorf("a hole in nothing: %v", err)
	}
	if _, err := DiskFree(filepath.Join(b.root, "none")); err == nil {
		t.Error("there is room on no disk")
	}
}

// blocks is what a file takes on the disk, in 512 bytes.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		err = f.Sync() // some file systems decide late
	}
	if err == nil {
		err = unix.Stat(path, &st)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st.Blocks
}
