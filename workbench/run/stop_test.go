package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

func TestStopEmptiesTheWholeTree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", self("nasty", file, "PATH=/bin")...))
	ids := tells(t, file, 5)
	x, ok := b.stop(p)
	allGone(t, ids)
	if !ok || !x.Stopped || x.Signal != "KILL" || x.Code != -1 || x.TimedOut != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestStopIsGentleFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec("r", "sh", "-c", `trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done`)
	spec.Grace = patience
	p := b.start(spec)
	f, err := b.Follow("r", "stdout")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for raw := []byte(nil); len(raw) == 0; raw, _ = os.ReadFile(b.Path("r", "stdout")) {
		<-f.C()
	}
	began := time.Now()
	x, ok := b.stop(p)
	if !ok || x.Code != 7 || !x.Stopped || x.Leftovers != 0 || time.Since(began) > patience/2 {
		t.Errorf("it ended with %+v, %v after %v", x, ok, time.Since(began))
	}
	if raw, _ := os.ReadFile(b.Path("r", "stdout")); string(raw) != "up\nbye\n" {
		t.Errorf("it wrote %q", raw)
	}
}

// A stopped process gets no TERM until it goes on.
func TestStopWakesAStoppedAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	spec := b.spec("r", self("stopped", file)...)
	spec.Grace = patience
	p := b.start(spec)
	id := tells(t, file, 1)[0]
	eventually(t, "the agent is stopped", func() bool {
		s, err := proc.ReadStat(id.PID)
		return err == nil && s.State == 'T'
	})
	if x, ok := b.stop(p); !ok || x.Signal != "TERM" || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestStopOutrunsAForkBomb(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", self("bomb", file)...))
	tells(t, file, 12)
	b.stop(p)
	allGone(t, told(file))
}

func TestStopFromManySidesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.start(b.spec("r", "sleep", "3600"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := p.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := p.Stop(context.Background()); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
	if x, ok := p.Exit(); !ok || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestStopGivesUpWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	spec := b.spec("r", self("deaf", file)...)
	spec.Grace = 500 * time.Millisecond
	p := b.start(spec)
	tells(t, file, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Stop(ctx); !fault.Is(err, fault.Interrupted) {
		t.Errorf("a cancelled stop: %v", err)
	}
	if x, ok := b.end(p); !ok || !x.Stopped { // it goes on by itself
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestStopWakesAStoppedShim(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.patience = patience
	p := b.start(b.spec("r", "sleep", "3600"))
	shim := b.shimOf("r")
	if err := proc.Signal(shim, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if x, ok := b.stop(p); !ok || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestStopDoesTheWorkOfAShimThatDoesNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, "/proc/self/exe", "deaf-shim")
	b.patience = 100 * time.Millisecond
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", self("nasty", file, "PATH=/bin")...))
	ids := tells(t, file, 5)
	_, ok := b.stop(p)
	allGone(t, append(ids, b.shimOf("r")))
	if ok || !strings.Contains(b.said(), "did not stop it in time") {
		t.Errorf("exit %v, and it said %q", ok, b.said())
	}
}

func TestTimeLimitIsTheShims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	spec := b.spec("r", self("deaf", file)...)
	spec.Timeout = 700 * time.Millisecond
	began := time.Now()
	x, ok := b.end(b.start(spec))
	allGone(t, told(file))
	if !ok || x.TimedOut != spec.Timeout || x.Stopped || x.Code != -1 || time.Since(began) < spec.Timeout {
		t.Errorf("it ended with %+v, %v after %v", x, ok, time.Since(began))
	}
}

func TestLeftoversOfAnEndedAgentAreStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", self("litter", file)...))
	x, ok := b.end(p)
	ids := told(file)
	allGone(t, ids)
	if !ok || x.Code != 0 || x.Signal != "" || x.Stopped || x.Leftovers != 4 || len(ids) != 4 {
		t.Errorf("it ended with %+v, %v, and %d processes", x, ok, len(ids))
	}
}

func TestOrphansThatEndByThemselvesAreNoLeftovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, ok := b.end(b.start(b.spec("r", "sh", "-c", "(sh -c 'exec true' &) ; (true &) ; true & wait; sleep 0.3; exit 3")))
	if !ok || x.Code != 3 || x.Leftovers != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}
