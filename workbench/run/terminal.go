package run

import (
	"errors"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// terminal is a pseudo-terminal on its way to a run, and the line that tells
// the run's shim when the daemon is gone.
type terminal struct {
	master, slave *os.File
	line, end     *os.File // our end and the shim's
}

// The descriptors that the shim of a run on a terminal is given.
const (
	slaveFD = 3
	lineFD  = 4
)

// StartTerminal starts, as Start does, a run whose Stdin is StdinTTY, on a new
// pseudo-terminal of the spec's size. The master is the caller's to read and
// to close; nobody else has it. Reading it fails once no process of the run
// has the terminal open any more (EIO), or when it is closed. The run hangs up
// when this process ends or the manager is closed. The errors are those of
// Start; fault.Invalid for a run on no terminal, fault.Limit when the machine
// has no terminal left.
func (m *Manager) StartTerminal(run string) (p TerminalProcess, master *os.File, err error) {
	spec, err := m.startable(run)
	if err == nil && spec.Stdin != StdinTTY {
		err = fault.New(fault.Invalid, "run %s is none on a terminal: its standard input is %s", run, spec.Stdin)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := openTerminal(spec)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	if p, err = m.start(spec, t); err != nil {
		return nil, nil, err
	}
	master, t.master = t.master, nil
	return p, master, nil
}

// openTerminal makes a pseudo-terminal, the user's alone, and a line.
func openTerminal(spec Spec) (t *terminal, err error) {
	t = &terminal{}
	defer func() {
		if err != nil {
			t.close()
			err = terminalError(spec.Run, err)
		}
	}()
	if t.end, t.line, err = os.Pipe(); err != nil {
		return t, err
	}
	if t.master, t.slave, err = pty.Open(); err != nil {
		return t, err
	}
	if t.master, err = pollable(t.master); err != nil {
		return t, err
	}
	if err = t.slave.Chmod(0o600); err != nil {
		return t, err
	}
	return t, configure(t.slave, spec)
}

// pollable returns f, which it closes, as a file whose reads end when it is
// closed. The library leaves a file that blocks in the kernel.
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

// configure sets the terminal's size, and tells it that characters are UTF-8,
// so that erasing one in a line being typed takes all its bytes.
func configure(slave *os.File, spec Spec) error {
	fd := int(slave.Fd())
	size := unix.Winsize{Col: uint16(spec.Cols), Row: uint16(spec.Rows)}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size); err != nil {
		return err
	}
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	mode.Iflag |= unix.IUTF8
	return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
}

// terminalError says why there is no terminal.
func terminalError(run string, err error) error {
	kind := fault.Internal
	for _, limit := range []error{unix.ENOSPC, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		if errors.Is(err, limit) {
			kind = fault.Limit
		}
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		kind = fault.Unsupported
	}
	return fault.New(kind, "run %s cannot be given a terminal (is devpts mounted on /dev/pts, with room for one more?): %w", run, err)
}

// shims are the descriptors that go to the shim, in their order.
func (t *terminal) shims() []*os.File {
	if t == nil {
		return nil
	}
	return []*os.File{t.slave, t.end}
}

// keepLine hands our end of the line over.
func (t *terminal) keepLine() (line *os.File) {
	if t != nil {
		line, t.line = t.line, nil
	}
	return line
}

// close closes what has not been handed over.
func (t *terminal) close() {
	for _, f := range []*os.File{t.master, t.slave, t.line, t.end} {
		if f != nil {
			f.Close()
		}
	}
}
