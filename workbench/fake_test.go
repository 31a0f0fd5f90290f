package workbench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/config"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/run"
	"scvfs/workbench/worktree"
)

// fakeRuns has real run directories, and processes that do what a test says.
// It outlives a workbench, as shims do.
type fakeRuns struct {
	*run.Manager
	mu    sync.Mutex
	procs map[string]*fakeProcess
	pids  map[int]string // processes of runs, as far as a test says
}

var _ Runs = (*fakeRuns)(nil)

// fakeProcess is a run's process that ends when it is told.
type fakeProcess struct {
	mu   sync.Mutex
	done chan struct{}
	exit run.Exit
	said bool // its shim wrote an exit
	out  string
	in   *os.File // a FIFO that it reads; nil for none
}

func (r *fakeRuns) Start(id string) (run.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.procs[id] != nil {
		return nil, fault.New(fault.Done, "run %s was started before", id)
	}
	p := &fakeProcess{done: make(chan struct{}), out: r.Path(id, "stdout")}
	if in, err := os.OpenFile(r.Path(id, "stdin"), os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
		p.in = in // as a shim holds a FIFO
	}
	r.procs[id] = p
	return p, nil
}

func (r *fakeRuns) Adopt(id string) (run.Process, run.Standing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.procs[id]
	if p == nil {
		return nil, run.Never, nil
	}
	select {
	case <-p.done:
	default:
		return p, run.Live, nil
	}
	if p.said {
		return p, run.Ended, nil
	}
	return p, run.Dead, nil
}

func (r *fakeRuns) Origin(pid int) run.Origin {
	r.mu.Lock()
	id, ok := r.pids[pid]
	r.mu.Unlock()
	if ok {
		return run.Origin{Place: run.Inside, Run: id}
	}
	return r.Manager.Origin(pid)
}

// of returns the process of a run; nil when it was never started.
func (r *fakeRuns) of(id string) *fakeProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.procs[id]
}

func (p *fakeProcess) PID() int               { return 1 << 30 }
func (p *fakeProcess) Done() <-chan struct{}  { return p.done }
func (p *fakeProcess) Exit() (run.Exit, bool) { return p.exit, p.said }
func (p *fakeProcess) Stop(context.Context) error {
	p.end(run.Exit{Code: -1, Signal: "TERM", Stopped: true}, true)
	return nil
}

// end ends the process, once.
func (p *fakeProcess) end(exit run.Exit, said bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return
	default:
	}
	p.exit, p.said = exit, said
	if p.in != nil {
		p.in.Close()
	}
	close(p.done)
}

// print appends to the process's output.
func (p *fakeProcess) print(text string) error {
	f, err := os.OpenFile(p.out, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.WriteString(f, text)
	return err
}

// fixture is a workbench over fake processes.
type fixture struct {
	*Workbench
	routines int // goroutines before it was opened
	runs     *fakeRuns
	ledger   *ledger.Ledger
	state    string
	place    string
	conf     *config.Config

	dialogues func(string, dialogue.Options) (dialogue.Dialogue, error) // of agents that are servers
}

// failer is the part of *testing.T and *rapid.T that a fixture needs.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newFixture(t *testing.T, jobs, backlog int) *fixture {
	t.Helper()
	f := openFixture(t, t.TempDir(), t.TempDir(), jobs, backlog)
	t.Cleanup(func() { f.close(t) })
	return f
}

func openFixture(t failer, state, place string, jobs, backlog int) *fixture {
	t.Helper()
	before := runtime.NumGoroutine()
	conf := config.Defaults()
	conf.Limits.Jobs, conf.Limits.Backlog, conf.Limits.DiskFloor = jobs, backlog, 0
	led, err := ledger.Open(state, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := run.New(state+"/runs", "/proc/self/exe", "shim")
	if err != nil {
		t.Fatal(err)
	}
	conf.Agents = map[string]agent.Entry{"mock": {Like: "claude", Command: "/bin/true", Transport: "cli"}}
	f := &fixture{routines: before, runs: &fakeRuns{Manager: manager, procs: map[string]*fakeProcess{}}, ledger: led, state: state, place: place, conf: conf}
	f.open(t)
	return f
}

// open starts a workbench over what the fixture holds.
func (f *fixture) open(t failer) {
	t.Helper()
	table, err := f.conf.Table()
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{
		State: f.state, Ledger: f.ledger, Runs: f.runs, Worktrees: worktree.New(f.state + "/worktrees"), Agents: table, Config: f.conf,
		Log: slog.New(slog.DiscardHandler), Version: "test", Dialogues: f.dialogues,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Workbench = w
}

// close ends the fixture and checks the ledger.
func (f *fixture) close(t failer) {
	t.Helper()
	f.Workbench.Close()
	f.runs.Close()
	for _, err := range f.ledger.Check() {
		t.Fatal("ledger: ", err)
	}
	if err := f.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > f.routines; {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine(), f.routines, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched() // what was closed is on its way out
	}
}

// until waits for a condition, looking again at each change.
func (f *fixture) until(t failer, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	changes := f.Subscribe()
	for !cond() {
		if _, err := changes.Next(ctx); err != nil {
			t.Fatalf("never came: %s; jobs: %s", what, f.describe())
		}
	}
}

// start starts a job that must be taken, and returns its number.
func (f *fixture) start(t failer, doc string) uint64 {
	t.Helper()
	draft, err := ParseDraft([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	addr, err := f.Start(context.Background(), "shop", draft)
	if err != nil {
		t.Fatal(err)
	}
	n, ok := ParseJobName(addr[len("shop/"):])
	if !ok {
		t.Fatalf("address %q", addr)
	}
	return n
}

// process returns the process of a job that is to run, once it has one.
func (f *fixture) process(t failer, n uint64) *fakeProcess {
	t.Helper()
	f.until(t, "a working "+JobName(n), func() bool {
		rec, ok := f.Job("shop", n)
		return ok && rec.State == ledger.Working
	})
	rec, _ := f.Job("shop", n)
	return f.runs.of(rec.Run)
}

// describe tells how the jobs stand, for a failure.
func (f *fixture) describe() string {
	var b strings.Builder
	for _, rec := range f.Jobs("shop") {
		fmt.Fprintf(&b, "job-%d %s (%s) ", rec.Number, rec.State, rec.Detail)
	}
	return b.String()
}

// exitOK is the exit of a process that did what it was asked.
var exitOK = run.Exit{}
