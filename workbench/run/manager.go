package run

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// Manager is the daemon's side of all runs. Its methods may be called at the
// same time, for one run too. One manager has a directory of runs at a time;
// the ledger's lock sees to that.
type Manager struct {
	// OnWarning is told, in a sentence, what no caller gets as an error: a
	// shim that died, a leftover that does not die, a limit of inotify. It is
	// set before the manager is used, is called from any goroutine, and may be
	// nil.
	OnWarning func(sentence string)

	root    string
	argv    []string // the shim's command line but for the directory
	exe     int      // the shim's executable, open for as long as the manager is
	closed  chan struct{}
	closing sync.Once
	follows *follows

	patience time.Duration // stopPatience, but in tests
	origins  origins
	orphans  orphans

	mu     sync.Mutex
	live   map[string]*process // by run: those that are watched
	shims  map[int]*process    // the same by the shim's number
	forked map[proc.ID]bool    // shims that are children of this process
	lines  map[string]*os.File // by run: our ends of the lines of those on terminals; closed, the run hangs up
}

// New returns a manager of the runs in the directory root, which it makes. The
// shim of a run is argv followed by the run's directory, and argv[0] a path,
// such as /proc/self/exe; it is opened here once, so that an upgrade of the
// file under a running daemon changes nothing. It starts, adopts and removes
// nothing.
func New(root string, argv ...string) (*Manager, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fault.New(fault.Internal, "the directory of the runs has no absolute path: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fault.New(fault.Internal, "the directory of the runs cannot be made: %w", err)
	}
	// Without links, as the kernel names the files that a process has open.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fault.New(fault.Internal, "the directory of the runs cannot be found: %w", err)
	}
	if len(argv) == 0 {
		return nil, fault.New(fault.Invalid, "a manager of runs needs the command of the shim")
	}
	exe, err := unix.Open(argv[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.New(fault.Internal, "the shim's program %s cannot be opened: %w", argv[0], err)
	}
	name, err := os.Readlink(fdPath(exe)) // what ps shows, rather than /proc/self/exe
	if err != nil {
		name = argv[0]
	}
	m := &Manager{
		root: root, argv: append([]string{name}, argv[1:]...), exe: exe, closed: make(chan struct{}),
		live: map[string]*process{}, shims: map[int]*process{}, forked: map[proc.ID]bool{}, lines: map[string]*os.File{},
		patience: stopPatience,
	}
	m.follows = newFollows(m.warn)
	return m, nil
}

// Close lets go of all runs, which go on, and of all follows. Runs on terminals
// hang up. The processes' Done stay open from then on.
func (m *Manager) Close() {
	m.closing.Do(func() {
		close(m.closed)
		m.follows.close()
		unix.Close(m.exe)
		m.mu.Lock()
		defer m.mu.Unlock()
		for run := range m.lines {
			m.cut(run)
		}
	})
}

// cut breaks the line of a run, if it has one. The caller holds m.mu.
func (m *Manager) cut(run string) {
	if line := m.lines[run]; line != nil {
		delete(m.lines, run)
		line.Close()
	}
}

// running is an error once the manager is closed.
func (m *Manager) running() error {
	select {
	case <-m.closed:
		return fault.New(fault.Gone, "the daemon is stopping, and takes no more runs")
	default:
		return nil
	}
}

// Path returns the path of a file of a run's directory, and of the directory
// for "". It is "" for what can be no run.
func (m *Manager) Path(run, file string) string {
	if !isRun(run) {
		return ""
	}
	return filepath.Join(m.root, run, file)
}

// List returns the names of all run directories, whole or half made, sorted.
func (m *Manager) List() ([]string, error) {
	entries, err := os.ReadDir(m.root)
	if err != nil {
		return nil, fault.New(fault.Internal, "the runs cannot be listed: %w", err)
	}
	var runs []string
	for _, e := range entries {
		if e.IsDir() && isRun(e.Name()) {
			runs = append(runs, e.Name())
		}
	}
	return runs, nil
}

// open opens a run's directory; fault.NotFound when there is none.
func (m *Manager) open(run string) (*os.Root, error) {
	if !isRun(run) {
		return nil, fault.New(fault.Invalid, "%q is no name of a run", run)
	}
	dir, err := os.OpenRoot(filepath.Join(m.root, run))
	switch {
	case os.IsNotExist(err):
		return nil, fault.New(fault.NotFound, "run %s has no directory in %s", run, m.root)
	case err != nil:
		return nil, fault.New(fault.Internal, "the directory of run %s cannot be opened: %w", run, err)
	}
	return dir, nil
}

// watch enters p as its run's process and follows it to its end. When the run
// is watched already, that process is returned and p is let go. The line is
// kept until the run has ended; it is nil for a run without.
func (m *Manager) watch(p *process, line *os.File) *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if line != nil {
		if m.lines[p.run] = line; m.running() != nil {
			m.cut(p.run)
		}
	}
	if old := m.live[p.run]; old != nil {
		p.handle.Close()
		return old
	}
	m.live[p.run], m.shims[p.shim.PID] = p, p
	go p.watch()
	return p
}

// watched returns the run's process if there is one; nil when not.
func (m *Manager) watched(run string) *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[run]
}

// forget takes a process that has ended out of the tables.
func (m *Manager) forget(p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, p.run)
	delete(m.forked, p.shim)
	m.cut(p.run)
	if m.shims[p.shim.PID] == p {
		delete(m.shims, p.shim.PID)
	}
}

// warn hands a sentence to whoever wants it.
func (m *Manager) warn(sentence string) {
	if m.OnWarning != nil {
		m.OnWarning(sentence)
	}
}
