package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// stopPatience is how much longer than the grace a shim may take to stop its
// tree before the manager does it.
const stopPatience = 5 * time.Second

// process is a run whose shim this manager started or adopted. It does not
// matter which.
type process struct {
	m      *Manager
	run    string
	grace  time.Duration
	shim   proc.ID
	handle *proc.Handle // nil for one that was over when it was adopted
	agent  atomic.Int64 // its pid, once it is known
	stop   sync.Once
	hangUp sync.Once

	done chan struct{} // closed when these two are set and the shim is gone
	exit Exit
	ok   bool
}

var _ TerminalProcess = (*process)(nil)

// PID implements Process. The shim writes the number soon after it has the
// run; it is looked up when somebody asks.
func (p *process) PID() int {
	if pid := p.agent.Load(); pid != 0 {
		return int(pid)
	}
	dir, err := p.m.open(p.run)
	if err != nil {
		return 0
	}
	defer dir.Close()
	id, ok := readAgent(dir)
	if !ok {
		return 0
	}
	p.agent.Store(int64(id.PID))
	return id.PID
}

// Done implements Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Exit implements Process.
func (p *process) Exit() (Exit, bool) {
	select {
	case <-p.done:
		return p.exit, p.ok
	default:
		return Exit{}, false
	}
}

// Stop implements Process.
func (p *process) Stop(ctx context.Context) error {
	p.stop.Do(func() { go p.end(unix.SIGTERM, p.grace) })
	return p.ending(ctx)
}

// HangUp implements TerminalProcess.
func (p *process) HangUp(ctx context.Context) error {
	p.hangUp.Do(func() { go p.end(unix.SIGHUP, 2*p.grace) })
	return p.ending(ctx)
}

// ending waits for the end of a process that was asked to end.
func (p *process) ending(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-p.m.closed:
		return fault.New(fault.Gone, "the daemon stops; run %s goes on or stops without it", p.run)
	case <-ctx.Done():
		kind := fault.Interrupted
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = fault.Timeout
		}
		return fault.New(kind, "run %s has not stopped yet; it is being stopped", p.run)
	}
}

// end asks the shim by a signal to stop the tree, which takes it no longer than
// grace, and does it in its place when the shim does not.
func (p *process) end(sig unix.Signal, grace time.Duration) {
	if p.handle == nil {
		return // it was over when it was adopted
	}
	_ = p.handle.Signal(sig)
	_ = p.handle.Signal(unix.SIGCONT)
	patience := time.NewTimer(grace + p.m.patience)
	defer patience.Stop()
	select {
	case <-p.done:
		return
	case <-p.m.closed:
		return
	case <-patience.C:
	}
	stopped, left, err := endTree(p.descendants, 0)
	_ = p.handle.Signal(unix.SIGKILL)
	p.m.warn(fmt.Sprintf("the shim of run %s did not stop it in time and was killed%s", p.run, tally(stopped, left, err)))
}

// descendants finds what the shim holds, for as long as it is there.
func (p *process) descendants() ([]proc.Stat, error) {
	t, err := proc.Processes()
	if err != nil {
		return nil, err
	}
	for _, s := range t {
		if p.shim.Is(s) {
			return living(t.Descendants(p.shim.PID)), nil
		}
	}
	return nil, nil
}

// watch follows the process to its end, or to the manager's.
func (p *process) watch() {
	select {
	case <-p.handle.Done():
		p.settle()
	case <-p.m.closed:
		p.handle.Close()
	}
}

// settle is called once the shim is gone. Its zombie, if it is ours, is
// collected last: until then nothing else can have its number, so what is in
// its session is surely the run's.
func (p *process) settle() {
	if dir, err := p.m.open(p.run); err == nil {
		p.exit, p.ok = readExit(dir)
		dir.Close()
	}
	if !p.ok {
		p.m.clear(p.run, p.shim, p.grace)
	}
	collect(p.shim)
	p.m.forget(p)
	p.handle.Close()
	close(p.done)
}
