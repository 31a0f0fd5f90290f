package takeover

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/takeover/pty"
)

// deadline is how long a test waits for what must happen.
const deadline = 30 * time.Second

// open returns a terminal and the end of its program, for the test to play.
func open(t testing.TB, o Options) (*Terminal, *os.File) {
	t.Helper()
	master, slave, err := pty.Open(80, 24)
	if err != nil {
		t.Skipf("skipped: there are no pseudo-terminals here: %v", err)
	}
	term, err := New(master, o)
	if err != nil {
		slave.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		slave.Close()
		term.Close()
	})
	return term, slave
}

// raw makes a terminal hand over each byte as it is, both ways.
func raw(t testing.TB, slave *os.File) {
	t.Helper()
	fd := int(slave.Fd())
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		mode.Iflag, mode.Oflag, mode.Lflag = 0, 0, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rawOpen is open with a raw terminal whose program's end is in the poller.
func rawOpen(t testing.TB, o Options) (*Terminal, *os.File) {
	t.Helper()
	term, slave := open(t, o)
	raw(t, slave)
	fd, err := unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave.Close()
	polled := os.NewFile(uintptr(fd), "slave")
	t.Cleanup(func() { polled.Close() })
	if err := polled.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return term, polled
}

// program is a program on a terminal.
type program struct {
	*Terminal
	t    testing.TB
	cmd  *exec.Cmd
	hold *Hold
}

// start starts a program on a terminal; whatever is left of it at the test's
// end is killed.
func start(t testing.TB, o Options, env []string, argv ...string) *program {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("skipped: there is no %s here", argv[0])
	}
	term, slave := open(t, o)
	c := exec.Command(path, argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.Dir, c.Env = t.TempDir(), append(Environ([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	p := &program{Terminal: term, t: t, cmd: c, hold: term.Hold("test")}
	t.Cleanup(func() {
		term.Close() // which hangs up
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait()
	})
	return p
}

// sh starts a shell's script.
func sh(t testing.TB, script string) *program {
	t.Helper()
	return start(t, Options{Size: Size{80, 24}}, nil, "sh", "-c", script)
}

// shows waits until the screen holds a text.
func (p *program) shows(text string) {
	p.t.Helper()
	shows(p.t, p.Terminal, text)
}

func shows(t testing.TB, term *Terminal, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for gen := uint64(0); ; {
		page, err := term.Wait(ctx, gen)
		if strings.Contains(term.Text(), text) {
			return
		}
		if err != nil || page.Ended {
			t.Fatalf("%q never came, %v; the screen is\n%s", text, err, term.Text())
		}
		gen = page.Generation
	}
}

func (p *program) key(names ...string) {
	p.t.Helper()
	if err := p.hold.Key(p.t.Context(), names...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) types(text string) {
	p.t.Helper()
	if _, err := p.hold.Write(p.t.Context(), []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits until the program has let go of its terminal, and returns how it
// ended.
func (p *program) ends() *os.ProcessState {
	p.t.Helper()
	closes(p.t, p.Gone(), "the program lets go of the terminal")
	_ = p.cmd.Wait()
	return p.cmd.ProcessState
}

// closes waits until a channel is closed.
func closes(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(deadline):
		t.Fatalf("it never came that %s", what)
	}
}

// shared returns a path below the folder of what is shared between checkouts.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "shared", name)); err == nil {
			return filepath.Join(dir, "shared", name)
		}
		dir = filepath.Dir(dir)
	}
	t.Skipf("skipped: there is no shared/%s above this folder", name)
	return ""
}
