package run

import (
	"os"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
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
	t := &terminal{}
	defer t.close()
	if err := t.open(spec); err != nil {
		return nil, nil, fault.New(fault.KindOf(err), "run %s cannot be started: %w", run, err)
	}
	if p, err = m.start(spec, t); err != nil {
		return nil, nil, err
	}
	master, t.master = t.master, nil
	return p, master, nil
}

// open makes the pseudo-terminal and the line.
func (t *terminal) open(spec Spec) (err error) {
	if t.end, t.line, err = os.Pipe(); err != nil {
		return fault.New(fault.Limit, "no pipe can be opened: %w", err)
	}
	t.master, t.slave, err = pty.Open(spec.Cols, spec.Rows)
	return err
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
