package attach

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// Terminal is the user's terminal, through an open file of our own: so its
// reads and writes can be cut short, and nobody else's file becomes
// non-blocking.
type Terminal struct {
	file  *os.File
	saved *unix.Termios // what it was; nil while it is not ours
}

// OpenTerminal opens the terminal that in and out are; kind is $TERM.
// fault.Invalid when they are none, or one that cannot be drawn on.
func OpenTerminal(in, out *os.File, kind string) (*Terminal, error) {
	for _, f := range []*os.File{in, out} {
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
			return nil, fault.New(fault.Invalid, "%s is no terminal: attach is for people; programs read PATH/screen and write to PATH/input", f.Name())
		}
	}
	if kind == "" || kind == "dumb" {
		return nil, fault.New(fault.Invalid, "this terminal cannot be drawn on (TERM=%s): cat PATH/screen, and write to PATH/input", kind)
	}
	path := "/dev/tty" // can be opened whoever owns the terminal, but may be another one
	if !controlling(in) {
		path = fmt.Sprintf("/proc/self/fd/%d", in.Fd())
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the terminal cannot be opened: %w", err)
	}
	return NewTerminal(f), nil
}

// NewTerminal is the terminal of an open file, which is its own from then on.
func NewTerminal(f *os.File) *Terminal { return &Terminal{file: f} }

// controlling tells whether f is the process's controlling terminal.
func controlling(f *os.File) bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	device, err := unix.IoctlGetInt(tty, unix.TIOCGDEV)
	var st unix.Stat_t
	return err == nil && unix.Fstat(int(f.Fd()), &st) == nil && uint64(uint32(device)) == st.Rdev
}

// Close closes the file.
func (t *Terminal) Close() error { return t.file.Close() }

// Size returns its size in cells; 80x24 when it does not know.
func (t *Terminal) Size() (cols, rows int) {
	var size *unix.Winsize
	_ = t.control(func(fd int) (err error) {
		size, err = unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		return err
	})
	if size == nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// control calls do with the file's descriptor, without making it blocking.
func (t *Terminal) control(do func(fd int) error) error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// The user's terminal while it is ours: the other screen, no wrapping at the
// margin, keys and pastes as at the start, no mouse, no focus events. Its title
// is put by and brought back.
const (
	pushTitle = "\x1b[22;2t"
	popTitle  = "\x1b[23;2t"
	enter     = "\x1b[?1049h" + prepare
	prepare   = "\x1b[r\x1b[?6l\x1b[4l\x1b(B\x0f" + reset + "\x1b[?7l\x1b[?25l\x1b[0m\x1b[2J"
	leave     = "\x1b[0m" + reset + "\x1b[?7h\x1b[?25h" + popTitle + "\x1b[?1049l"
	reset     = "\x1b[?2026l\x1b[?1l\x1b>\x1b[?2004l\x1b[?1000;1002;1003;1004;1005;1006l"
	bell      = "\a"
)

// own makes the terminal ours, or ours again after somebody else had it.
func (t *Terminal) own() error {
	err := t.control(func(fd int) error {
		have, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		if t.saved == nil {
			t.saved = have
		}
		raw := *have
		raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		raw.Oflag &^= unix.OPOST
		raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
		return unix.IoctlSetTermios(fd, unix.TCSETS, &raw)
	})
	if err == nil {
		_, err = t.file.WriteString(enter)
	}
	if err != nil {
		return fault.New(fault.Internal, "the terminal cannot be set up: %w", err)
	}
	return nil
}

// lastWords is how long a terminal that takes no output is given to take what
// puts it back.
const lastWords = 2 * time.Second

// leave puts the terminal back as it was. forget drops what was typed and not
// read, so that what was meant for the agent is not run by the user's shell.
// Nobody may be reading or writing, but what somebody began may be cut off anywhere.
func (t *Terminal) leave(forget bool) {
	if t.saved == nil {
		return
	}
	_ = t.file.SetWriteDeadline(time.Now().Add(lastWords))
	_, _ = t.file.WriteString(leave) // a terminal that has gone needs nothing
	_ = t.control(func(fd int) error {
		if forget {
			_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
		}
		return unix.IoctlSetTermios(fd, unix.TCSETS, t.saved) // TCSETSW would wait for one that takes no output
	})
	t.saved = nil
}

// cut ends the reads and writes that wait, and those to come.
func (t *Terminal) cut() { _ = t.file.SetDeadline(time.Unix(1, 0)) }

// oneLine makes a text from elsewhere fit to be shown in a line or a title.
func oneLine(text string) string {
	m := newMeasure()
	var b strings.Builder
	for _, r := range text {
		b.WriteString(m.of(r).text)
	}
	return b.String()
}
