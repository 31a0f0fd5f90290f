package run

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// Between two looks for what KILL has left: a child that the kernel is slow to
// end, or one that is not ours to end, costs no more than this.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// reap collects all children that have ended, orphans too, and tells whether
// any is left. As everything that the agent starts is a descendant of this
// process for as long as it lives, no child left means no process left: this
// is exact, where a walk through /proc can miss one that forks meanwhile.
func (s *shim) reap() (left bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == s.pid:
			s.ended, s.ws = true, ws
		}
	}
}

// empty stops the tree: TERM to the agent's group, and to every other process
// once the agent has ended (what it started may still have to say goodbye to
// it), and after the grace KILL to all until none is left. On a terminal
// groups are the agent's way to tell what is in front, so TERM goes to all.
func (s *shim) empty() {
	if !s.reap() {
		return
	}
	if s.tty != nil {
		s.signalAll(unix.SIGTERM)
	} else if !s.ended {
		s.signalGroup(unix.SIGTERM)
	}
	grace := time.NewTimer(s.spec.Grace)
	defer grace.Stop()
	told := s.tty != nil
	for s.reap() {
		if s.ended && !told {
			told = true
			s.signalAll(unix.SIGTERM)
		}
		select {
		case <-s.child:
		case <-grace.C:
			s.kill()
			return
		}
	}
}

// kill ends every descendant, however many come while it does.
func (s *shim) kill() {
	for pause := firstLook; s.reap(); pause = min(2*pause, lastLook) {
		s.signalGroup(unix.SIGKILL)
		s.signalAll(unix.SIGKILL)
		look := time.NewTimer(pause)
		select {
		case <-s.child:
		case <-look.C:
		}
		look.Stop()
	}
}

// signalGroup signals the agent's group at once, so that of a program that
// forks all the time none escapes, and lets stopped members go on to see it.
func (s *shim) signalGroup(sig unix.Signal) {
	signals := []unix.Signal{sig, unix.SIGCONT}
	if sig == unix.SIGKILL {
		signals = signals[:1]
	}
	st, err := proc.ReadStat(s.pid)
	left := err == nil && st.PGID != s.pid // an agent may leave its own group
	for _, sig := range signals {
		s.tellGroup(sig)
		if left && !s.ended {
			_ = unix.Kill(s.pid, sig)
		}
	}
}

// tellGroup sends one signal to the group. Without a handle, or on a kernel
// that signals no group through one, it goes to the group's number, which is
// the agent's for as long as that is not reaped, and to nobody later.
func (s *shim) tellGroup(sig unix.Signal) {
	if s.agent != nil && !fault.Is(s.agent.SignalGroup(sig), fault.Unsupported) {
		return
	}
	if !s.ended {
		_ = unix.Kill(-s.pid, sig)
	}
}

// signalAll signals every descendant, and counts those that outlived the
// agent: after an agent that ended by itself each of them, after one that was
// asked to end only those that TERM left.
func (s *shim) signalAll(sig unix.Signal) {
	living, err := proc.Descendants(os.Getpid())
	if err != nil {
		return
	}
	asked := s.x.Stopped || s.x.TimedOut > 0
	for _, p := range living {
		if id := p.ID(); !s.told[id] && (sig == unix.SIGKILL || !asked) {
			s.told[id] = true
			if s.ended {
				s.x.Leftovers++
			}
		}
	}
	signalEach(living, sig)
}

// signalEach signals processes. Before KILL all of them are stopped, so that
// they start no others while their turn comes; after any other signal those
// that are stopped are let go on to see it.
func signalEach(procs []proc.Stat, sig unix.Signal) {
	signals := []unix.Signal{sig, unix.SIGCONT}
	if sig == unix.SIGKILL {
		signals = []unix.Signal{unix.SIGSTOP, unix.SIGKILL}
	}
	for _, sig := range signals {
		for _, p := range procs {
			_ = proc.Signal(p.ID(), sig) // one that is gone meanwhile is all right
		}
	}
}
