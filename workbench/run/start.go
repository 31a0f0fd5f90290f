package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// greetPatience is how long a shim may take to say that it has the run. It
// writes two small files in that time; a machine that needs longer is stuck.
const greetPatience = 30 * time.Second

// shimEnv is the whole environment of a shim: its runtime's settings. Nothing
// of the daemon's is there, so a shim bears no run's tag.
var shimEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=12MiB"}

// Start starts the shim of a run that was created, and returns once the shim
// has the run. The agent may not have started yet, and may never: Exit tells.
// fault.Done when the run was started before or is void, fault.Limit or
// fault.NoSpace when the machine has no room for it (the run can be started
// later then), fault.Invalid for a run on a terminal.
func (m *Manager) Start(run string) (Process, error) {
	spec, err := m.startable(run)
	if err == nil && spec.Stdin == StdinTTY {
		err = fault.New(fault.Invalid, "run %s is one on a terminal, and is to be started with one", run)
	}
	if err != nil {
		return nil, err
	}
	p, err := m.start(spec, nil)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// startable returns the spec of a run that nobody has taken.
func (m *Manager) startable(run string) (Spec, error) {
	dir, err := m.open(run)
	if err != nil {
		return Spec{}, err
	}
	defer dir.Close()
	if _, taken, err := readHolder(dir); err != nil || taken {
		return Spec{}, orTaken(run, err)
	}
	spec, _, err := readSpec(dir)
	return spec, err
}

// start starts a run, on a terminal or, when that is nil, on none.
func (m *Manager) start(spec Spec, t *terminal) (*process, error) {
	run := spec.Run
	handle, greet, err := m.spawn(run, t.shims()...)
	if err != nil {
		return nil, err
	}
	defer greet.Close()
	if err := heed(run, greet); err != nil {
		_ = handle.Signal(unix.SIGKILL) // it has no run, so it has nothing left to do
		<-handle.Done()
		collect(handle.ID())
		m.unfork(handle.ID())
		handle.Close()
		return nil, err
	}
	p := &process{m: m, run: run, grace: spec.Grace, shim: handle.ID(), handle: handle, done: make(chan struct{})}
	return m.watch(p, t.keepLine()), nil
}

// orTaken returns err, or else that the run is somebody's.
func orTaken(run string, err error) error {
	if err != nil {
		return err
	}
	return fault.New(fault.Done, "run %s was started before, or is void: a run starts once", run)
}

// spawn starts a shim, detached, with what it is given beyond the standard
// files, and returns the end that its greeting comes out of.
func (m *Manager) spawn(run string, more ...*os.File) (h *proc.Handle, greet *os.File, err error) {
	if err := m.running(); err != nil {
		return nil, nil, err
	}
	greet, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fault.New(fault.Limit, "run %s cannot be started: %w", run, err)
	}
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		greet.Close()
		return nil, nil, fault.New(fault.Limit, "run %s cannot be started: %w", run, err)
	}
	defer null.Close()
	files := []uintptr{null.Fd(), w.Fd(), null.Fd()}
	for _, f := range more {
		files = append(files, f.Fd()) // which makes it a blocking one, as the agent wants it
	}
	m.orphans.spawning.RLock()
	defer m.orphans.spawning.RUnlock()
	pidfd := -1
	pid, err := syscall.ForkExec(fdPath(m.exe), append(m.argv[:len(m.argv):len(m.argv)], m.Path(run, "")), &syscall.ProcAttr{
		Dir: "/", Env: shimEnv, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	if err == nil {
		if h, err = hold(pid, pidfd); err != nil {
			// Nobody could watch it. It is a child and not reaped, so the
			// number is its own; TERM makes it leave with all it has.
			_ = unix.Kill(pid, unix.SIGTERM)
			waitChild(pid)
		}
	}
	if err != nil {
		greet.Close()
		return nil, nil, spawnError(run, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forked[h.ID()] = true
	return h, greet, nil
}

// spawnError says why there is no shim.
func spawnError(run string, err error) error {
	for _, limit := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, limit) {
			return fault.New(fault.Limit, "run %s cannot be started: the machine is at its limit of processes, memory or files: %w", run, err)
		}
	}
	return fault.New(fault.KindOf(err), "the shim of run %s cannot be started: %w", run, err)
}

// heed waits for a shim's greeting. It returns nil when the shim has the run.
func heed(run string, greet *os.File) error {
	_ = greet.SetReadDeadline(time.Now().Add(greetPatience))
	b, err := io.ReadAll(io.LimitReader(greet, maxRecord))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.Timeout, "the shim of run %s did not come up within %v", run, greetPatience)
	}
	var g greeting
	switch {
	case len(b) == 0:
		return fault.New(fault.Internal, "the shim of run %s ended before it had the run", run)
	case json.Unmarshal(b, &g) != nil:
		return fault.New(fault.Internal, "the shim of run %s is none: it said %.60q", run, b)
	case g.Taken:
		return orTaken(run, nil)
	case g.Error != "":
		return fault.New(g.Kind, "run %s cannot be started: %s", run, g.Error)
	}
	return nil
}

// collect takes the zombie of a process that has ended, if it is a child of
// this one; any other has somebody else for that.
func collect(id proc.ID) {
	if s, err := proc.ReadStat(id.PID); err == nil && id.Is(s) && s.Ended() && s.PPID == os.Getpid() {
		waitChild(id.PID)
	}
}

// waitChild waits for a child to end and collects it.
func waitChild(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// fdPath returns a path of what an open descriptor of this process is open on,
// in this process and in one that is being forked from it.
func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
