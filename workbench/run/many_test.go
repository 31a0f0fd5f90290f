package run

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"scvfs/workbench/run/proc"
)

// held counts this process's goroutines and descriptors.
func held(t *testing.T) (goroutines, files int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(entries)
}

func TestHundredRunsAtOnceLeakNothing(t *testing.T) {
	b := newBench(t)
	b.end(b.start(b.spec("first", "true"))) // what is made once, is made
	follow(t, b, "first", "stdout")
	goroutines, files := held(t)
	var all sync.WaitGroup
	var threads int
	for i := range 100 {
		all.Go(func() {
			run := fmt.Sprintf("r-%d", i)
			if err := b.Create(b.spec(run, "sh", "-c", fmt.Sprintf("sleep 0.5; echo %d; exit %d", i, i)), nil); err != nil {
				t.Error(err)
				return
			}
			p, err := b.Start(run)
			if err != nil {
				t.Error(err)
				return
			}
			f, err := b.Follow(run, "stdout")
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			<-p.Done()
			if x, ok := p.Exit(); !ok || x.Code != i {
				t.Errorf("run %d ended with %+v, %v", i, x, ok)
			}
			if raw, _ := os.ReadFile(b.Path(run, "stdout")); string(raw) != strconv.Itoa(i)+"\n" {
				t.Errorf("run %d wrote %q", i, raw)
			}
		})
	}
	all.Wait()
	if s, err := proc.ReadStat(os.Getpid()); err == nil {
		threads = s.Threads
	}
	if threads > 60 {
		t.Errorf("watching 100 runs took %d threads", threads)
	}
	eventually(t, "all goroutines and files are let go", func() bool {
		g, f := held(t)
		return g <= goroutines && f <= files
	})
	children, err := proc.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range children.Descendants(os.Getpid()) {
		t.Errorf("process %d (%s, state %c) is left", s.PID, s.Comm, s.State)
	}
	if said := b.said(); said != "" {
		t.Errorf("it said %q", said)
	}
}

func TestCloseLetsGoOfEverything(t *testing.T) {
	goroutines, files := held(t)
	b := newBench(t)
	other := benchAt(t, b.root)
	p := other.start(b.spec("r", "sleep", "3600"))
	if _, err := other.Follow("r", "stdout"); err != nil {
		t.Fatal(err)
	}
	other.Close()
	other.Close()
	b.stop(b.adopt("r", Live))
	b.Close()
	eventually(t, "all goroutines and files are let go", func() bool {
		g, f := held(t)
		return g <= goroutines && f <= files
	})
	select {
	case <-p.Done():
		t.Error("a closed manager says that its run is done")
	default:
	}
}

// trivial is the spec of a run that costs as little as one can.
func trivial(i int, argv ...string) Spec {
	return Spec{Run: "r" + strconv.Itoa(i), Argv: argv, Dir: "/"}
}

// BenchmarkRun is a whole short run: made durable, started, ended, told.
func BenchmarkRun(b *testing.B) {
	bench := newBench(b)
	for i := 0; b.Loop(); i++ {
		bench.end(bench.start(trivial(i, "/bin/true")))
	}
}

// BenchmarkStart is what a job waits for until its process can run.
func BenchmarkStart(b *testing.B) {
	bench := newBench(b)
	for i := 0; b.Loop(); i++ {
		p := bench.start(trivial(i, "/bin/sleep", "3600"))
		b.StopTimer()
		bench.stop(p)
		b.StartTimer()
	}
}

func BenchmarkCreate(b *testing.B) {
	bench := newBench(b)
	for i := 0; b.Loop(); i++ {
		if err := bench.Create(trivial(i, "/bin/true"), nil); err != nil {
			b.Fatal(err)
		}
	}
}
