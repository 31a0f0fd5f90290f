package takeover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

func TestCtrlCReachesTheProgram(t *testing.T) {
	t.Parallel()
	p := sh(t, "trap 'echo caught; exit 3' INT; echo up; while :; do sleep 0.05; done")
	p.shows("up")
	p.key("ctrl-c")
	if st := p.ends(); st.ExitCode() != 3 || !strings.Contains(p.Text(), "caught") {
		t.Errorf("it ended with %v, showing\n%s", st, p.Text())
	}
}

func TestProgramIsToldOfItsSize(t *testing.T) {
	t.Parallel()
	p := sh(t, "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done")
	p.shows("24 80")
	if err := p.hold.Resize(Size{100, 30}); err != nil {
		t.Fatal(err)
	}
	p.shows("30 100")
	page := p.Page(0)
	if st := p.State(); st.Cols != 100 || st.Rows != 30 || page.Cols != 100 || page.Rows != 30 || len(page.Lines) != 30 {
		t.Errorf("the screen is %dx%d", st.Cols, st.Rows)
	}
	gen := p.State().Generation
	if err := p.hold.Resize(Size{100, 30}); err != nil || p.State().Generation != gen {
		t.Errorf("its own size changed the terminal: %v", err)
	}
	for _, s := range []Size{{19, 5}, {20, 4}, {501, 5}, {20, 201}, {}} {
		if err := p.hold.Resize(s); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "20x5 to 500x200") {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestJobControlFromAShell(t *testing.T) {
	t.Parallel()
	p := start(t, Options{}, []string{"PS1=ready> ", "HISTFILE="}, "bash", "--norc", "--noprofile", "-i")
	p.shows("ready>")
	p.types("echo started; cat\r")
	p.shows("\nstarted") // in the mode of lines, then
	p.types("echoed\r")
	p.shows("echoed\nechoed")
	p.key("ctrl-z")
	p.shows("Stopped")
	p.types("fg\r")
	p.shows("fg\ncat")
	p.types("again\r")
	p.shows("again\nagain")
	p.key("ctrl-d")
	p.types("exit 6\r")
	if st := p.ends(); st.ExitCode() != 6 {
		t.Errorf("it ended with %v, showing\n%s", st, p.Text())
	}
}

func TestAnEditor(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Size: Size{80, 24}}, []string{"LC_ALL=C.UTF-8"}, "vim", "-u", "NONE", "-i", "NONE", "-N", "text")
	p.shows(`"text" [New]`)
	if st := p.State(); !st.Modes.Alternate {
		t.Errorf("it is not on the alternate screen: %v", st.Modes)
	}
	p.key("i")
	if err := p.hold.Paste(t.Context(), "one\n日本語\nthree\x1b[201~:q!"); err != nil {
		t.Fatal(err)
	}
	p.shows("three:q!")
	p.key("up", "home", "delete", "escape")
	p.types(":wq\r")
	st := p.ends()
	b, err := os.ReadFile(filepath.Join(p.cmd.Dir, "text"))
	if err != nil || st.ExitCode() != 0 || string(b) != "one\n本語\nthree:q!\n" {
		t.Errorf("it ended with %v and wrote %q, %v", st, b, err)
	}
}

// What a program writes last, before it goes, is read before its end is told.
func TestLastWordsAreOnTheFinalScreen(t *testing.T) {
	t.Parallel()
	p := sh(t, "seq 1 20000; printf 'last words'; exit 4")
	if st := p.ends(); st.ExitCode() != 4 {
		t.Errorf("it ended with %v", st)
	}
	p.End(Ending{Exit: "exit 4", Note: "ended by itself"})
	if !strings.HasSuffix(strings.TrimSpace(p.Text()), "20000\nlast words") || len(p.Scrollback()) != screen.DefaultScrollback {
		t.Errorf("%d lines and the screen\n%s", len(p.Scrollback()), p.Text())
	}
	page, err := p.Wait(t.Context(), p.State().Generation)
	if err != nil || !page.Ended || page.Exit != "exit 4" || page.Note != "ended by itself" || len(page.Lines) != 0 {
		t.Errorf("the last page is %+v, %v", page, err)
	}
	if _, err := p.hold.Write(t.Context(), []byte("x")); !fault.Is(err, fault.Gone) || !strings.Contains(err.Error(), "exit 4") {
		t.Errorf("writing to it: %v", err)
	}
	if h := p.Hold("late"); h.Resize(Size{90, 30}) == nil || p.Holder() != "" {
		t.Errorf("%q holds a terminal that has ended", p.Holder())
	}
	p.End(Ending{Exit: "another"})
	if e, ok := p.Ending(); !ok || e.Exit != "exit 4" {
		t.Errorf("the ending became %+v", e)
	}
}

// A flood is held back by the terminal: memory stays, input works, readers get
// pages, and the flood can be stopped.
func TestFlood(t *testing.T) {
	t.Parallel()
	p := sh(t, "trap 'exit 7' INT; while :; do seq 1 1000; done")
	p.shows("1000")
	began, gen := time.Now(), p.State().Generation
	const pages = 10
	for range pages {
		page, err := p.Wait(t.Context(), gen)
		if err != nil || len(page.Lines) > 24 {
			t.Fatalf("a page of %d rows, %v", len(page.Lines), err)
		}
		gen = page.Generation
	}
	if took := time.Since(began); took < pages*settle {
		t.Errorf("%d pages in %v", pages, took)
	}
	p.key("ctrl-c")
	if st := p.ends(); st.ExitCode() != 7 {
		t.Errorf("it ended with %v", st)
	}
}

func TestCloseHangsUp(t *testing.T) {
	t.Parallel()
	p := sh(t, "echo up; exec sleep 3600")
	p.shows("up")
	p.Close()
	err := p.cmd.Wait()
	if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGHUP {
		t.Errorf("it ended with %v, %v", p.cmd.ProcessState, err)
	}
	if e, ok := p.Ending(); !ok || e != (Ending{}) {
		t.Errorf("the ending is %+v, %v", e, ok)
	}
}

// Somebody who cannot be stopped keeps the terminal: its end is told all the
// same.
func TestEndComesThoughSomebodyKeepsTheTerminal(t *testing.T) {
	t.Parallel()
	term, slave := open(t, Options{})
	if _, err := slave.WriteString("there"); err != nil {
		t.Fatal(err)
	}
	shows(t, term, "there")
	term.End(Ending{Note: "left"})
	closes(t, term.Ended(), "it has ended")
	if _, err := slave.WriteString("x"); err == nil {
		t.Error("the terminal still takes what is written")
	}
}

func TestNewRefusesWhatIsNoTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := New(r, Options{}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := r.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it was not closed: %v", err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(f, Options{Size: Size{1, 1}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a size out of bounds: %v", err)
	}
}

// What the program says of itself is told once each time that it changes.
func TestProgramsWordsAreTold(t *testing.T) {
	t.Parallel()
	told := make(chan screen.Program)
	_, slave := open(t, Options{OnProgram: func(p screen.Program) { told <- p }})
	for _, c := range []struct{ says, want string }{
		{"\x1b]7501;state=idle\x1b\\", "idle"},
		{"more\x1b]7501;state=idle\x1b\\\x1b]7501;state=working\x1b\\", "working"},
		{"\x1b]7501;state=clear\x1b\\", ""},
	} {
		if _, err := slave.WriteString(c.says); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-told:
			if got.State != c.want {
				t.Errorf("after %q it was told %+v", c.says, got)
			}
		case <-time.After(deadline):
			t.Fatalf("nothing was told of %q", c.says)
		}
	}
}
