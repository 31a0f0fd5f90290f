package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// screenful is a run on a terminal and what it wrote there.
type screenful struct {
	TerminalProcess
	master *os.File
	t      testing.TB

	mu  sync.Mutex
	out bytes.Buffer
	err error // that ended the reading
	eof chan struct{}
}

// terminal starts a run on a terminal.
func (b *bench) terminal(run string, argv ...string) *screenful {
	b.t.Helper()
	spec := b.spec(run, argv...)
	spec.Stdin, spec.Cols, spec.Rows = StdinTTY, 97, 31
	return b.terminalOf(spec)
}

func (b *bench) terminalOf(spec Spec) *screenful {
	b.t.Helper()
	if err := b.Create(spec, nil); err != nil {
		b.t.Fatal(err)
	}
	p, master, err := b.StartTerminal(spec.Run)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &screenful{TerminalProcess: p, master: master, t: b.t, eof: make(chan struct{})}
	go s.read()
	b.t.Cleanup(func() {
		master.Close()
		<-s.eof
	})
	return s
}

func (s *screenful) read() {
	defer close(s.eof)
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.err = err
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text returns what it wrote so far.
func (s *screenful) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// sees waits until a text is there.
func (s *screenful) sees(text string) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !strings.Contains(s.text(), text) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q never came; it wrote %q", text, s.text())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *screenful) types(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits until nobody has the terminal any more, and returns why reading
// ended.
func (s *screenful) ends() error {
	s.t.Helper()
	select {
	case <-s.eof:
	case <-time.After(patience):
		s.t.Fatal("the terminal does not end")
	}
	return s.err
}

func TestTerminalIsTheAgentsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "dump")
	s := b.terminal("r", self("dump", file)...)
	if x, ok := b.end(s); !ok || x.Code != 0 {
		t.Fatalf("it ended with %+v, %v", x, ok)
	}
	if err := s.ends(); !errors.Is(err, unix.EIO) {
		t.Errorf("reading ended with %v", err)
	}
	var g givenTo
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !g.OwnTTY || g.SID != g.PID || g.PGID != g.PID || g.SID == b.shimOf("r").PID {
		t.Errorf("pid %d is in group %d and session %d, terminal %v", g.PID, g.PGID, g.SID, g.OwnTTY)
	}
	if len(g.Open) != 0 {
		t.Errorf("it inherited %v", g.Open)
	}
	for fd, flags := range g.Flags {
		if flags&unix.O_ACCMODE != unix.O_RDWR || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("descriptor %d has flags %#o", fd, flags)
		}
	}
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		if _, err := os.Lstat(b.Path("r", name)); !os.IsNotExist(err) {
			t.Errorf("there is a file %s: %v", name, err)
		}
	}
}

func TestTerminalBeginsInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.terminal("r", "sh", "-c", `tty; stat -c %a "$(tty)"; stty size; stty -a; cat`)
	s.sees("iutf8")
	lines := strings.Split(s.text(), "\r\n")
	if !strings.HasPrefix(lines[0], "/dev/pts/") || lines[1] != "600" || lines[2] != "31 97" || strings.Contains(s.text(), "-iutf8") {
		t.Errorf("it says %q", lines)
	}
	s.types("typed\n\x04")
	s.sees("typed\r\ntyped\r\n")
	if x, ok := b.end(s); !ok || x.Code != 0 || x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestTerminalTellsItsSize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "notes")
	s := b.terminal("r", self("signals", file, "WINCH")...)
	eventually(t, "it is up", func() bool { return len(notes(file)) > 0 })
	if err := unix.IoctlSetWinsize(int(s.rawMaster()), unix.TIOCSWINSZ, &unix.Winsize{Col: 40, Row: 10}); err != nil {
		t.Fatal(err)
	}
	b.end(s)
	if got := notes(file); !slices.Equal(got, []string{"up", "WINCH"}) {
		t.Errorf("it got %v", got)
	}
}

// rawMaster returns the master's descriptor without changing its mode.
func (s *screenful) rawMaster() (fd uintptr) {
	raw, err := s.master.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = n })
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return fd
}

func TestKeysOfATerminalAreSignals(t *testing.T) {
	for name, c := range map[string]struct{ key, signal string }{
		"ctrl-c": {"\x03", "INT"}, "ctrl-backslash": {"\x1c", "QUIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.terminal("r", "sh", "-c", "ulimit -c 0; echo up; exec sleep 3600")
			s.sees("up")
			s.types(c.key)
			if x, ok := b.end(s); !ok || x.Signal != c.signal || x.Stopped {
				t.Errorf("it ended with %+v, %v", x, ok)
			}
		})
	}
}

func TestJobControl(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("skipped: there is no bash here")
	}
	b := newBench(t)
	spec := b.spec("r", bash, "--norc", "--noprofile", "-i")
	spec.Stdin, spec.Cols, spec.Rows = StdinTTY, 80, 24
	spec.Env = append(spec.Env, "PS1=ready> ", "HISTFILE=", "TERM=dumb")
	s := b.terminalOf(spec)
	s.sees("ready> ")
	if strings.Contains(s.text(), "job control") {
		t.Errorf("the shell complains: %q", s.text())
	}
	s.types("sleep 3600 && echo never\n")
	eventually(t, "a child of the shell is in front", func() bool {
		group, err := unix.IoctlGetInt(int(s.rawMaster()), unix.TIOCGPGRP)
		return err == nil && group != s.PID()
	})
	s.types("\x1a")
	s.sees("Stopped")
	s.types("bg\n")
	s.sees("sleep 3600 &")
	s.types("kill %1; wait; echo all\\ gone; exit 5\n")
	s.sees("all gone\r\n")
	if x, ok := b.end(s); !ok || x.Code != 5 || x.Leftovers != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestMasterIsTheCallers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.terminal("r", "sh", "-c", "trap 'exit 9' HUP; echo up; while :; do sleep 0.05; done")
	s.sees("up")
	if flags, err := unix.FcntlInt(s.rawMaster(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the master would be inherited: %#x, %v", flags, err)
	}
	if err := s.master.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.ends(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("reading ended with %v", err)
	}
	if x, ok := b.end(s); !ok || x.Code != 9 || x.Stopped { // the kernel told it
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

func TestTerminalsAndOthersAreStartedEachInTheirWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tty := b.spec("tty", "true")
	tty.Stdin, tty.Cols, tty.Rows = StdinTTY, 80, 24
	for _, spec := range []Spec{tty, b.spec("null", "true")} {
		if err := b.Create(spec, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Start("tty"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a run on a terminal was started without: %v", err)
	}
	if p, master, err := b.StartTerminal("null"); !fault.Is(err, fault.Invalid) || p != nil || master != nil {
		t.Errorf("a run on no terminal was started on one: %v", err)
	}
	c := exec.Command("/proc/self/exe", "shim", b.Path("tty", "")) // by hand
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, _ := c.Output(); c.ProcessState.ExitCode() != shimFailed || !strings.Contains(string(out), "hands the terminal over") {
		t.Errorf("it left with %d, saying %q", c.ProcessState.ExitCode(), out)
	}
	p, master, err := b.StartTerminal("tty")
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if x, ok := b.end(p); !ok || x.Code != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if p, master, err := b.StartTerminal("tty"); !fault.Is(err, fault.Done) || p != nil || master != nil {
		t.Errorf("started twice: %v", err)
	}
}

func TestTerminalWhoseProgramDoesNotStartEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.terminal("r", "no-such-program")
	if x, ok := b.end(s); !ok || !strings.Contains(x.StartError, "no-such-program") {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if err := s.ends(); !errors.Is(err, unix.EIO) {
		t.Errorf("reading ended with %v", err)
	}
}
