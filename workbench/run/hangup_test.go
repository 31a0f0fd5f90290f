package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// terminalDaemon starts a run on a terminal and stays until it is killed.
func terminalDaemon(root, run string) {
	m, err := New(root, "/proc/self/exe", "shim")
	var master *os.File
	if err == nil {
		_, master, err = m.StartTerminal(run)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	for err == nil {
		_, err = master.Read(make([]byte, 4096))
	}
	time.Sleep(time.Hour)
}

// signals writes the signals that come into a file, and ends at one of them.
func signals(file, last string) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, unix.SIGHUP, unix.SIGTERM, unix.SIGINT, unix.SIGWINCH)
	note(file, "up")
	for sig := range c {
		name := signalName(sig.(syscall.Signal))
		note(file, name)
		if name == last {
			return
		}
	}
}

func note(file, word string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, word)
}

// notes returns the words in the file.
func notes(file string) []string {
	b, _ := os.ReadFile(file)
	return strings.Fields(string(b))
}

func TestHangUpIsHUPThenTERMThenKILL(t *testing.T) {
	for _, c := range []struct {
		last string
		want []string
		exit Exit
	}{
		{"HUP", []string{"up", "HUP"}, Exit{Stopped: true}},
		{"TERM", []string{"up", "HUP", "TERM"}, Exit{Stopped: true}},
		{"never", []string{"up", "HUP", "TERM"}, Exit{Stopped: true, Code: -1, Signal: "KILL"}},
	} {
		t.Run(c.last, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			file := filepath.Join(t.TempDir(), "notes")
			s := b.terminal("r", self("signals", file, c.last)...)
			eventually(t, "it is up", func() bool { return len(notes(file)) > 0 })
			if err := s.HangUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			x, ok := s.Exit()
			if x.Ended = (time.Time{}); !ok || x != c.exit {
				t.Errorf("it ended with %+v, %v", x, ok)
			}
			if got := notes(file); !slices.Equal(got, c.want) {
				t.Errorf("it got %v, not %v", got, c.want)
			}
			if err := s.HangUp(t.Context()); err != nil {
				t.Errorf("hung up again: %v", err)
			}
		})
	}
}

func TestHangUpReachesAllOfTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids, group := filepath.Join(t.TempDir(), "told"), filepath.Join(t.TempDir(), "notes")
	exe := self()[0]
	script := fmt.Sprintf(`set -m; %s agent nasty %s PATH=/bin & %s agent signals %s HUP & wait; while :; do wait; done`, exe, ids, exe, group)
	s := b.terminal("r", "sh", "-c", script)
	deaf := tells(t, ids, 5)
	eventually(t, "the other group is up", func() bool { return len(notes(group)) > 0 })
	if err := s.HangUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	allGone(t, deaf)
	if got := notes(group); !slices.Equal(got, []string{"up", "HUP"}) {
		t.Errorf("a group in the background got %v", got)
	}
}

func TestStopCutsAHangUpShort(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "notes")
	spec := b.spec("r", self("signals", file, "TERM")...)
	spec.Stdin, spec.Cols, spec.Rows, spec.Grace = StdinTTY, 80, 24, time.Hour
	s := b.terminalOf(spec)
	eventually(t, "it is up", func() bool { return len(notes(file)) > 0 })
	hung := make(chan error, 1)
	go func() { hung <- s.HangUp(t.Context()) }()
	eventually(t, "it is told", func() bool { return len(notes(file)) > 1 })
	if x, ok := b.stop(s); !ok || x.Code != 0 || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if err := <-hung; err != nil {
		t.Error(err)
	}
}

func TestHangUpStopsARunWithoutATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.start(b.spec("r", "sleep", "3600"))
	if err := p.(TerminalProcess).HangUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x, ok := p.Exit(); !ok || x.Signal != "TERM" || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

// A shell at its prompt ignores TERM, and its jobs have groups of their own.
func TestStopEmptiesATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	s := b.terminal("r", "sh", "-mc", fmt.Sprintf("trap '' TERM; %s agent nasty %s & wait", self()[0], file))
	ids := tells(t, file, 5)
	if x, ok := b.stop(s); !ok || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	allGone(t, ids)
	if err := s.ends(); !errors.Is(err, unix.EIO) {
		t.Errorf("reading ended with %v", err)
	}
}

// onTerminal has another process, its daemon, start a deaf tree on a terminal,
// and returns the daemon.
func onTerminal(t *testing.T, b *bench, file string) *exec.Cmd {
	t.Helper()
	spec := b.spec("r", self("nasty", file, "PATH=/bin")...)
	spec.Stdin, spec.Cols, spec.Rows = StdinTTY, 80, 24
	if err := b.Create(spec, nil); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/proc/self/exe", "terminal-daemon", b.root, "r")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	said := make([]byte, 4096)
	if n, err := out.Read(said); string(said[:n]) != "started\n" {
		t.Fatalf("the daemon said %q, %v", said[:n], err)
	}
	return c
}

func TestDeathOfTheDaemonEndsItsTerminals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	daemon := onTerminal(t, b, file)
	ids := tells(t, file, 5)
	shim := b.shimOf("r")
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is gone", func() bool { return !shim.Alive() })
	allGone(t, ids)
	if x, ok := b.adopt("r", Ended).Exit(); !ok || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

// A new daemon finds the run while its shim still gives it the grace.
func TestTerminalOfADeadDaemonIsAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "notes")
	spec := b.spec("r", self("signals", file, "TERM")...)
	spec.Stdin, spec.Cols, spec.Rows, spec.Grace = StdinTTY, 80, 24, time.Hour
	first := benchAt(t, b.root)
	s := first.terminalOf(spec)
	eventually(t, "it is up", func() bool { return len(notes(file)) > 0 })
	first.Close()
	s.master.Close()
	eventually(t, "the kernel told it", func() bool { return len(notes(file)) > 1 })
	p := b.adopt("r", Live).(TerminalProcess)
	if x, ok := b.stop(p); !ok || x.Code != 0 || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if got := notes(file); !slices.Equal(got, []string{"up", "HUP", "TERM"}) {
		t.Errorf("it got %v", got)
	}
}

func TestClosedManagerHangsItsTerminalsUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "notes")
	first := benchAt(t, b.root)
	spec := b.spec("r", self("signals", file, "TERM")...)
	spec.Stdin, spec.Cols, spec.Rows = StdinTTY, 80, 24
	first.terminalOf(spec)
	eventually(t, "it is up", func() bool { return len(notes(file)) > 0 })
	shim := first.shimOf("r")
	first.Close()
	eventually(t, "the shim is gone", func() bool { return !shim.Alive() })
	if x, ok := b.adopt("r", Ended).Exit(); !ok || x.Code != 0 || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

// Nothing of the run's directory is open in such a tree, and nothing in its
// environment need tell whose it is: it hangs together by the agent's session.
func TestDeadShimsTerminalIsEmptied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	s := b.terminal("r", "sh", "-c", fmt.Sprintf("env -i %s agent deaf %s & wait", self()[0], file))
	ids := tells(t, file, 1)
	if err := proc.Signal(b.shimOf("r"), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if x, ok := b.end(s); ok || x != (Exit{}) {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	allGone(t, ids)
	if err := s.ends(); !errors.Is(err, unix.EIO) {
		t.Errorf("reading ended with %v", err)
	}
}
