package proc

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// Handle holds one process, a child of ours or anybody's: it can be signalled
// and its end watched, and its number, once given to another process, is
// nothing to the handle. It costs one descriptor, and no thread.
type Handle struct {
	id    ID
	file  *os.File // the pidfd, in the runtime's poller
	watch sync.Once
	done  chan struct{}
}

// Open takes hold of the process id names, which may be a zombie;
// fault.NotFound when it is gone, whoever has its number now.
func Open(id ID) (*Handle, error) {
	fd, err := openChecked(id)
	if err != nil {
		return nil, err
	}
	return newHandle(id, fd)
}

// FromChild makes a handle of a child that is not reaped yet and the pidfd
// that it was started with. The descriptor is the handle's from then on, and
// is closed when there is an error.
func FromChild(pid, fd int) (*Handle, error) {
	id, err := Of(pid)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return newHandle(id, fd)
}

// newHandle puts a non-blocking pidfd into the poller.
func newHandle(id ID, fd int) (*Handle, error) {
	f := os.NewFile(uintptr(fd), "pidfd:"+id.String())
	// Setting no deadline changes nothing, and is refused for what is not polled.
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		f.Close()
		return nil, fault.New(fault.Limit, "the end of process %d cannot be watched: %w", id.PID, err)
	}
	return &Handle{id: id, file: f, done: make(chan struct{})}, nil
}

// openChecked returns a pidfd of exactly that process. The descriptor comes
// first: what it holds cannot change any more when the start time is read.
func openChecked(id ID) (int, error) {
	if id.PID <= 1 {
		return -1, fault.New(fault.Invalid, "process %d is none that could be held or signalled", id.PID)
	}
	if !id.SameBoot() {
		return -1, fault.New(fault.NotFound, "process %d ran before this machine was booted", id.PID)
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL):
		return -1, fault.New(fault.Unsupported, "this kernel has no pidfd that can be polled (Linux 5.10 or newer has): %w", err)
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM):
		return -1, fault.New(fault.Limit, "process %d cannot be held: %w", id.PID, err)
	case err != nil:
		return -1, gone(id.PID, err)
	}
	s, err := ReadStat(id.PID)
	if err == nil && !id.Is(s) {
		err = fault.New(fault.NotFound, "process %d is gone, and another has its number", id.PID)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Signal sends a signal to the process that id names, or to nobody. It is no
// error for a zombie; fault.NotFound when it is gone, fault.Denied when it is
// not ours to signal.
func Signal(id ID, sig unix.Signal) error {
	fd, err := openChecked(id)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return send(id.PID, fd, sig, 0)
}

// ID returns whom the handle holds.
func (h *Handle) ID() ID { return h.id }

// Signal sends a signal to the process; fault.NotFound once it is reaped.
func (h *Handle) Signal(sig unix.Signal) error { return h.send(sig, 0) }

// SignalGroup sends a signal to the process group that the process leads or
// led, at once to all of it, so that none escapes by forking; fault.NotFound
// when nobody is left in it, fault.Unsupported before Linux 6.9.
func (h *Handle) SignalGroup(sig unix.Signal) error {
	return h.send(sig, unix.PIDFD_SIGNAL_PROCESS_GROUP)
}

func (h *Handle) send(sig unix.Signal, flags int) error {
	raw, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	sent := error(nil)
	if err := raw.Control(func(fd uintptr) { sent = send(h.id.PID, int(fd), sig, flags) }); err != nil {
		return fault.New(fault.Gone, "process %d is held no more: %w", h.id.PID, err)
	}
	return sent
}

func send(pid, fd int, sig unix.Signal, flags int) error {
	err := unix.PidfdSendSignal(fd, sig, nil, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM):
		return fault.New(fault.Denied, "process %d is not ours to signal", pid)
	case errors.Is(err, unix.EINVAL) && flags != 0:
		return fault.New(fault.Unsupported, "this kernel signals no group through a pidfd (Linux 6.9 or newer does)")
	}
	return gone(pid, err)
}

// Done returns a channel that is closed when the process has ended, reaped or
// not. It stays open when the handle is closed first.
func (h *Handle) Done() <-chan struct{} {
	h.watch.Do(func() { go h.wait() })
	return h.done
}

// wait parks in the poller until the process has ended.
func (h *Handle) wait() {
	raw, err := h.file.SyscallConn()
	if err != nil {
		return
	}
	if raw.Read(func(fd uintptr) bool { return readable(int(fd)) }) == nil {
		close(h.done)
	}
}

// Ended tells whether the process has ended, reaped or not.
func (h *Handle) Ended() bool {
	ended := false
	if raw, err := h.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { ended = readable(int(fd)) })
	}
	return ended
}

// readable polls a pidfd: it can be read, in poll's words, once its process
// has ended.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}

// Close lets go of the process, which is not touched.
func (h *Handle) Close() error { return h.file.Close() }
