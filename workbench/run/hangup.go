package run

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// inherit takes the terminal and the line that this process was started with.
// It is called while nothing of ours can have their numbers: what we open is
// close-on-exec, what was inherited is not.
func (s *shim) inherit() error {
	for _, fd := range []uintptr{slaveFD, lineFD} {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			return fault.New(fault.Invalid, "the shim of a run on a terminal is started by the daemon, which hands the terminal over")
		}
		unix.CloseOnExec(int(fd))
	}
	if _, err := unix.IoctlGetTermios(slaveFD, unix.TCGETS); err != nil {
		return fault.New(fault.Invalid, "the shim of run %s was given no terminal: %w", s.spec.Run, err)
	}
	if err := unix.SetNonblock(lineFD, true); err != nil {
		return fault.New(fault.Internal, "the line of run %s cannot be watched: %w", s.spec.Run, err)
	}
	s.tty = os.NewFile(slaveFD, "terminal")
	line, cut := os.NewFile(lineFD, "line"), make(chan struct{})
	s.cut = cut
	go func() {
		defer close(cut)
		_, _ = line.Read(make([]byte, 1)) // nobody writes, so it ends when the daemon does
		line.Close()
	}()
	return nil
}

// hangUp ends the tree as a terminal that goes away does. The kernel itself
// tells the agent when the daemon is gone; else tell is set. What ignores that
// gets TERM after the grace, and KILL after another. A tree without a terminal
// is stopped.
func (s *shim) hangUp(tell bool) {
	if s.tty == nil {
		s.empty()
		return
	}
	if tell {
		s.signalSession(unix.SIGHUP)
	}
	if !s.linger() {
		return
	}
	s.signalAll(unix.SIGTERM)
	if s.linger() {
		s.kill()
	}
}

// signalSession signals every process of the agent's session.
func (s *shim) signalSession(sig unix.Signal) {
	living, err := proc.Descendants(os.Getpid())
	if err != nil {
		return
	}
	var session []proc.Stat
	for _, p := range living {
		if p.SID == s.pid {
			session = append(session, p)
		}
	}
	signalEach(session, sig)
}

// linger gives the tree the grace to end, or until somebody wants it to stop,
// and tells whether any of it is left.
func (s *shim) linger() (left bool) {
	grace := time.NewTimer(s.spec.Grace)
	defer grace.Stop()
	for s.reap() {
		select {
		case <-s.child:
		case <-s.stop:
			return s.reap()
		case <-grace.C:
			return s.reap()
		}
	}
	return false
}
