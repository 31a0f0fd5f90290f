package run

import (
	"encoding/json"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// The exit codes of a shim. Its manager reads the greeting, not these; they
// are for whoever starts a shim by hand.
const (
	shimDone   = 0 // the run was started and has ended
	shimFailed = 1 // the run could not be taken, or its ending not be written
	shimTaken  = 3 // somebody else has the run, or made it void
)

// greeting is what a shim tells whoever started it, on its standard output:
// that the run is its own, or why not.
type greeting struct {
	Taken bool       `json:"taken,omitempty"` // somebody else has the run
	Error string     `json:"error,omitempty"`
	Kind  fault.Kind `json:"kind,omitempty"` // of the error
}

// shim is the process that holds one run.
type shim struct {
	dir   *os.Root
	spec  Spec
	self  proc.ID
	umask int // what this process had when it began
	exit  *exitFile

	stop  chan os.Signal // TERM or INT: stop the tree
	hup   chan os.Signal // HUP: hang up, or stop a tree that has no terminal
	child chan os.Signal // CHLD
	eof   chan os.Signal // USR1: end the agent's input
	limit <-chan time.Time
	cut   <-chan struct{} // the line to the daemon broke; nil without a terminal

	stdin *os.File   // holds the FIFO open; nil when there is none
	tty   *os.File   // the agent's terminal; nil when it has none
	files []*os.File // the agent's standard input, output and error
	pid   int        // the agent's
	agent *proc.Handle
	ended bool               // the agent is reaped, with
	ws    syscall.WaitStatus // this
	told  map[proc.ID]bool   // processes that a signal of ours went to
	x     Exit
}

// Shim is the whole life of a shim: it takes the run in dir, starts its agent,
// holds the agent's whole process tree, and writes how it ended. It returns
// the process's exit code. The hidden command calls it and nothing else, in a
// process that Manager.Start made for it: leader of its own session, its
// standard output the greeting's way back.
//
// TERM stops the tree (INT too), HUP hangs its terminal up, USR1 closes the
// agent's FIFO.
func Shim(dir string) int {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(shimMemory)
	s := &shim{told: map[proc.ID]bool{}}
	err := s.take(dir)
	s.greet(err)
	switch {
	case fault.Is(err, fault.Done):
		return shimTaken
	case err != nil:
		return shimFailed
	}
	s.hold()
	if err := s.exit.write(s.x); err != nil {
		return shimFailed
	}
	return shimDone
}

// shimMemory is when a shim first looks for garbage: one that never has to
// look all processes over never does.
const shimMemory = 12 << 20

// take makes this process a shim and the run its own.
func (s *shim) take(dir string) (err error) {
	if s.dir, err = os.OpenRoot(dir); err != nil {
		return fault.New(fault.NotFound, "the run's directory cannot be opened: %w", err)
	}
	switch _, taken, err := readHolder(s.dir); {
	case err != nil:
		return err
	case taken:
		return fault.New(fault.Done, "the run in %s was taken before", dir)
	}
	if s.spec, _, err = readSpec(s.dir); err != nil {
		return err
	}
	if s.spec.Stdin == StdinTTY {
		if err := s.inherit(); err != nil {
			return err
		}
	}
	if s.umask, err = isolate(); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	if s.self, err = proc.Of(os.Getpid()); err != nil {
		return err
	}
	if s.files, err = s.open(); err != nil {
		return fault.New(fault.KindOf(err), "the agent's files cannot be opened: %w", err)
	}
	if s.exit, err = reserveExit(s.dir); err != nil {
		return err
	}
	if s.spec.Timeout > 0 {
		s.limit = time.After(s.spec.Timeout)
	}
	if err := claim(s.dir, holder{ID: s.self, Taken: time.Now()}); err != nil {
		s.exit.drop()
		return err
	}
	return nil
}

// greet answers whoever started this shim and hangs up. Nobody may be there to
// read it any more.
func (s *shim) greet(err error) {
	var g greeting
	if fault.Is(err, fault.Done) {
		g.Taken = true
	} else if err != nil {
		g.Error, g.Kind = err.Error(), fault.KindOf(err)
	}
	b, _ := json.Marshal(g)
	_, _ = unix.Write(1, b)
	_ = unix.Dup3(0, 1, 0)
}

// isolate cuts this process off from whoever started it, and makes it the one
// that orphans of the run come to. It returns the umask it had.
func isolate() (umask int, err error) {
	closeInherited()
	if sid, _ := unix.Getsid(0); sid != os.Getpid() {
		if _, err := unix.Setsid(); err != nil {
			return 0, fault.New(fault.Invalid, "a shim is started by the daemon, with a session of its own: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fault.New(fault.Unsupported, "this kernel gives a shim no orphans: %w", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, fault.New(fault.Internal, "/dev/null cannot be opened: %w", err)
	}
	for _, fd := range []int{0, 2} {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return 0, fault.New(fault.Internal, "descriptor %d cannot be replaced: %w", fd, err)
		}
	}
	unix.Close(null)
	if err := unix.Chdir("/"); err != nil {
		return 0, fault.New(fault.Internal, "a shim cannot go to /: %w", err)
	}
	_ = os.WriteFile("/proc/self/comm", []byte("scvfs-shim"), 0) // for people who look at ps
	return unix.Umask(0o077), nil
}

// closeInherited closes every descriptor beyond the standard ones that came
// with the process. They are those without close-on-exec, which the runtime
// sets on each of its own.
func closeInherited() {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // at least not to the agent
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		fd := number(name)
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); fd > 2 && err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// listen takes the signals that mean something to a shim, and those that it
// was told to ignore, which the agent would inherit: a signal that is handled
// here is back at its default there.
func (s *shim) listen() error {
	s.stop, s.hup = make(chan os.Signal, 1), make(chan os.Signal, 1)
	s.child, s.eof = make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(s.stop, unix.SIGTERM, unix.SIGINT)
	signal.Notify(s.hup, unix.SIGHUP)
	signal.Notify(s.child, unix.SIGCHLD)
	signal.Notify(s.eof, unix.SIGUSR1)
	status, err := proc.ReadStatus(os.Getpid())
	if err != nil {
		return err
	}
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, unix.SIGPIPE)
	for n := 1; n <= 64; n++ {
		if status.Ignores(n) {
			signal.Notify(unheard, syscall.Signal(n))
		}
	}
	return nil
}

// hold starts the agent and returns when it has ended and its tree is empty,
// with s.x saying how.
func (s *shim) hold() {
	if s.stopped() {
		s.x = Exit{Code: -1, Stopped: true, Ended: time.Now()}
		return
	}
	if sentence := s.launch(); sentence != "" {
		s.x = Exit{Code: -1, StartError: sentence, Ended: time.Now()}
		return
	}
	for s.reap(); !s.ended; s.reap() {
		select {
		case <-s.child:
		case <-s.eof:
			s.stdin.Close()
		case <-s.stop:
			s.x.Stopped = true
			s.empty()
		case <-s.hup:
			s.x.Stopped = true
			s.hangUp(true)
		case <-s.cut:
			s.x.Stopped = true
			s.hangUp(false)
		case <-s.limit:
			s.x.TimedOut = s.spec.Timeout
			s.empty()
		}
	}
	s.empty()
	s.settle()
}

// stopped tells whether somebody wants the agent not to be started any more.
func (s *shim) stopped() bool {
	select {
	case <-s.stop:
	case <-s.hup:
	case <-s.cut:
	default:
		return false
	}
	return true
}

// settle says how the agent ended.
func (s *shim) settle() {
	s.x.Ended = time.Now()
	s.x.Code = s.ws.ExitStatus()
	if s.ws.Signaled() {
		s.x.Code, s.x.Signal = -1, signalName(s.ws.Signal())
	}
}
