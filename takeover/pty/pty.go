// Package pty opens pseudo-terminals and asks the kernel of them.
//
// Open does what a terminal needs before a program begins on it. The master it
// returns is in the runtime's poller: reads and writes obey deadlines, and end
// when the file is closed. Never call Fd on a master: that makes it block in
// the kernel, for ever where nobody writes.
//
// The package has no lock and no state.
package pty

import (
	"errors"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// Open makes a pseudo-terminal of a size, which nobody but its user can open.
// The master is the caller's end, the slave the program's; both are closed when
// a program is executed. Once no process has the slave open, reading the master
// fails with EIO, and what is written to it is lost. fault.Limit when the
// machine has no terminal left, fault.Unsupported when it has none at all.
func Open(cols, rows int) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if err != nil {
		return nil, nil, openError(err)
	}
	if master, err = pollable(master); err == nil {
		err = configure(slave, cols, rows)
	}
	if err != nil {
		if master != nil {
			master.Close()
		}
		slave.Close()
		return nil, nil, openError(err)
	}
	return master, slave, nil
}

// pollable returns f, which it closes, as a file in the poller. The library
// leaves a file that blocks.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// configure makes the terminal its user's alone (else others of the group tty
// can write to it), sets its size, and tells it that characters are UTF-8, so
// that erasing one in a line being typed takes all its bytes.
func configure(slave *os.File, cols, rows int) error {
	if err := slave.Chmod(0o600); err != nil {
		return err
	}
	if err := SetSize(slave, cols, rows); err != nil {
		return err
	}
	return control(slave, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		mode.Iflag |= unix.IUTF8
		return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	})
}

// openError says why there is no terminal.
func openError(err error) error {
	kind := fault.Internal
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		kind = fault.Unsupported
	default:
		for _, limit := range []error{unix.ENOSPC, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
			if errors.Is(err, limit) {
				kind = fault.Limit
			}
		}
	}
	return fault.New(kind, "no pseudo-terminal can be opened (is devpts mounted on /dev/pts, with room for one more?): %w", err)
}

// SetSize gives a terminal, by either end, a size in cells. The kernel tells
// the program in front when it is another.
func SetSize(f *os.File, cols, rows int) error {
	return control(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
}

// Linewise tells whether a terminal, by either end, edits lines itself and
// hands them over whole (ICANON): no program has asked for its keys.
func Linewise(f *os.File) bool {
	lines := false
	_ = control(f, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		lines = err == nil && mode.Lflag&unix.ICANON != 0
		return err
	})
	return lines
}

// control does something with a descriptor and leaves its mode alone.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := raw.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}
