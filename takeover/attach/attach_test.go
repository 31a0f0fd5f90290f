package attach

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
)

func TestUserSeesTheScreenAndTypes(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("\x1b[1;34mhello\x1b[0m 好 world")
	u.sees(f.screen)
	u.types("ls\r")
	f.until("what was typed", func() bool { return string(f.typed) == "ls\r" })
	f.draw("\r\nmore \x1b[7mthings\x1b[0m")
	u.sees(f.screen)
	u.types("x\x03\x1a\x1b[A\x1c behind the detach key")
	if said, err := r.leaves(); said != detached || err != nil {
		t.Errorf("it says %q, %v", said, err)
	}
	f.until("all that was typed before the detach key", func() bool { return string(f.typed) == "ls\rx\x03\x1a\x1b[A" })
	f.until("that the terminal is let go of", func() bool { return f.holds == 0 })
	if !strings.Contains(u.screen.Text(), `attach: codex-1: detach with Ctrl-\`) {
		t.Errorf("it was not said how to detach:\n%s", u.screen.Text())
	}
}

func TestTitleTellsTheDetachKey(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	start(u, f, func(o *Options) { o.Name = "a\x1b]2;b\a"; o.Detach, _ = ParseKeys("ctrl-b d") })
	u.until("the title", func() bool { return u.screen.Title() == "attach: a\ufffd]2;b\ufffd: detach with Ctrl-B d" })
}

func TestTerminalTakesTheFormOfTheProgramsKeys(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("\x1b[?1h\x1b[?2004h\x1b[?1000h")
	u.until("the modes", func() bool {
		m := u.screen.Modes()
		return m.ApplicationCursor && m.BracketedPaste && m.Mouse == 0
	})
	f.draw("\x1b[?1l")
	u.until("the mode's end", func() bool { m := u.screen.Modes(); return !m.ApplicationCursor && m.BracketedPaste })
	u.types(pasteBegin + "a\x1cb" + pasteEnd)
	f.until("the paste", func() bool { return string(f.typed) == pasteBegin+"a\x1cb"+pasteEnd })
	u.types("\x1c")
	if _, err := r.leaves(); err != nil {
		t.Error(err)
	}
}

func TestHoldThatIsTakenEndsIt(t *testing.T) {
	for name, notice := range map[string]func(*fake, *user, *running){
		"by typing":        func(_ *fake, u *user, _ *running) { u.types("x") },
		"by what is drawn": func(f *fake, _ *user, _ *running) { f.draw("the other types") },
		"by a change of size": func(_ *fake, u *user, r *running) {
			u.resize(50, 10)
			r.signals <- unix.SIGWINCH
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, u := newFake(t, 60, 12), newUser(t, 60, 12)
			r := start(u, f, nil)
			f.draw("hello")
			u.sees(f.screen)
			stale := func() error { return syscall.ESTALE }
			f.set(func() {
				f.holder, f.refuse = "process 7 (vim)", stale
				f.resize = func(string) error { return syscall.EBUSY }
			})
			notice(f, u, r)
			_, err := r.leaves()
			if want := "the terminal was taken by process 7 (vim); attach again to take it back"; err == nil || err.Error() != want || !fault.Is(err, fault.Busy) {
				t.Errorf("the error is %v, not %s", err, want)
			}
		})
	}
}

func TestHoldThatWasLetGoBySomebodyEndsIt(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("hello")
	u.sees(f.screen)
	f.set(func() { f.holder, f.refuse = "", func() error { return syscall.ESTALE } })
	u.types("x")
	if _, err := r.leaves(); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "let go by somebody else") {
		t.Errorf("the error is %v", err)
	}
}

// A takeover that ends loses its hold too; that is no theft.
func TestEndOfTheTakeoverIsToldFromALostHold(t *testing.T) {
	for _, holder := range []string{"", "gone"} {
		f, u := newFake(t, 60, 12), newUser(t, 60, 12)
		r := start(u, f, nil)
		f.draw("hello")
		u.sees(f.screen)
		refused := make(chan struct{})
		f.set(func() {
			f.holder, f.refuse = holder, func() error { close(refused); return syscall.ESTALE }
		})
		u.types("x")
		<-refused
		f.send(page{Page: f.screen.Page(0), Ended: true, Exit: "exit 0", Note: "the conversation\x1b[2J is given back"})
		said, err := r.leaves()
		if want := "the terminal has ended: exit 0: the conversation\ufffd[2J is given back"; said != want || err != nil {
			t.Errorf("it says %q, %v, not %q", said, err, want)
		}
	}
}

func TestChangesThatEndEndIt(t *testing.T) {
	for _, c := range []struct {
		end  func(*fake)
		said string
		err  string
	}{
		{func(f *fake) { f.pages.Close() }, "the terminal has ended", ""},
		{func(f *fake) { f.pages.CloseWithError(syscall.ESTALE) }, "the terminal has ended", ""},
		{func(f *fake) { f.pages.CloseWithError(syscall.ENOTCONN) }, "", "the screen can be followed no longer: transport endpoint is not connected"},
		{func(f *fake) { _, _ = f.pages.Write([]byte("{\"rows\":\n")) }, "", "a line of changes cannot be read: unexpected end of JSON input"},
		{func(f *fake) { f.send(map[string]int{"cols": 1000000, "rows": 3}) }, "", "the tree tells of a screen of 1000000x3, which there is not"},
	} {
		f, u := newFake(t, 60, 12), newUser(t, 60, 12)
		r := start(u, f, nil)
		f.draw("hello")
		f.send(map[string]int{"lost": 3}) // lines of other kinds mean nothing
		u.sees(f.screen)
		c.end(f)
		said, err := r.leaves()
		if said != c.said || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("it says %q, %v, not %q, %s", said, err, c.said, c.err)
		}
	}
}

func TestSignalsPutTheTerminalBack(t *testing.T) {
	for _, s := range fatal {
		f, u := newFake(t, 60, 12), newUser(t, 60, 12)
		r := start(u, f, nil)
		f.draw("\x1b[?1h\x1b[?2004h\x1b[?25lhello")
		u.shows("hello")
		r.signals <- s
		if _, err := r.leaves(); err == nil || !strings.Contains(err.Error(), "ended by signal "+s.String()) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestPanicPutsTheTerminalBack(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	caught := make(chan any, 1)
	go func() {
		defer func() { caught <- recover() }()
		_, _ = Run(Options{Files: f, Terminal: u.terminal(), Name: "codex-1", Signals: make(chan os.Signal)})
	}()
	f.draw("hello")
	u.shows("hello")
	f.set(func() { f.refuse = func() error { panic("of the test") } })
	u.types("x")
	if p := fmt.Sprint(<-caught); !strings.HasPrefix(p, "of the test\n") || !strings.Contains(p, "typing") {
		t.Errorf("the panic is %s", p)
	}
	u.isBack()
}

func TestTerminalThatHangsUpEndsIt(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("hello")
	u.sees(f.screen)
	u.slave.Close()
	u.master.Close()
	<-r.ended
	if r.err == nil || !strings.HasPrefix(r.err.Error(), "the terminal is gone") {
		t.Errorf("the error is %v", r.err)
	}
	f.until("that the terminal is let go of", func() bool { return f.holds == 0 })
}

func TestTakeoverGetsTheSizeOfTheTerminal(t *testing.T) {
	f, u := newFake(t, 120, 40), newUser(t, 70, 20)
	f.resize = func(size string) error {
		var cols, rows int
		_, _ = fmt.Sscanf(size, "%dx%d", &cols, &rows)
		return f.screen.Resize(cols, rows)
	}
	r := start(u, f, nil)
	f.until("the size", func() bool { return len(f.sizes) == 1 && f.sizes[0] == "70x20" })
	f.draw("\x1b[20;65Hcorner")
	u.sees(f.screen)
	for _, size := range [][2]int{{90, 25}, {90, 25}, {30, 8}} {
		u.resize(size[0], size[1])
		r.signals <- unix.SIGWINCH
		want := fmt.Sprintf("%dx%d", size[0], size[1])
		f.until(want, func() bool { return f.sizes[len(f.sizes)-1] == want })
		f.draw("\x1b[2J\x1b[1;1H" + want + "\x1b[8;25Hcorner")
		u.sees(f.screen)
	}
	if got := strings.Join(f.sizes, " "); got != "70x20 90x25 30x8" {
		t.Errorf("the sizes asked for were %s", got)
	}
	u.resize(10, 3) // less than a takeover can have
	r.signals <- unix.SIGWINCH
	f.until("the least size", func() bool { return f.sizes[len(f.sizes)-1] == "20x5" })
	f.draw("\x1b[2J\x1b[5;16Hend")
	u.until("the part with the cursor", func() bool {
		before, ok := strings.CutSuffix(u.screen.Text(), "end\n")
		cursor := u.screen.Page(0).Cursor
		return ok && cursor != nil && *cursor == [2]int{2, len(strings.TrimPrefix(before, "\n\n")) + len("end")}
	})
}

// resize is what the user's terminal emulator does when its window changes.
func (u *user) resize(cols, rows int) {
	u.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.screen.Resize(cols, rows); err != nil {
		u.t.Fatal(err)
	}
	if err := pty.SetSize(u.master, cols, rows); err != nil {
		u.t.Fatal(err)
	}
}

func TestSizeThatIsRefusedShowsAPart(t *testing.T) {
	f, u := newFake(t, 100, 30), newUser(t, 40, 10)
	f.resize = func(string) error { return syscall.EINVAL }
	r := start(u, f, nil)
	f.draw("\x1b[30;1Hbottom")
	u.until("the bottom", func() bool { return strings.HasSuffix(u.screen.Text(), "\nbottom\n") })
	u.types("\x1c")
	if _, err := r.leaves(); err != nil {
		t.Error(err)
	}
}

// Of the sizes that a terminal has while one is on its way, the newest counts.
func TestNewestSizeCounts(t *testing.T) {
	f, u := newFake(t, 100, 30), newUser(t, 40, 10)
	slow, began := make(chan struct{}), make(chan struct{})
	f.resize = func(size string) error {
		if size == "40x10" {
			f.mu.Unlock()
			close(began)
			<-slow
			f.mu.Lock()
		}
		return nil
	}
	r := start(u, f, nil)
	<-began
	for cols := 41; cols < 80; cols++ {
		u.resize(cols, 10)
		r.signals <- unix.SIGWINCH
	}
	f.draw("hello")
	u.shows("hello")
	close(slow)
	f.until("the newest size", func() bool { return f.sizes[len(f.sizes)-1] == "79x10" })
	if len(f.sizes) != 2 {
		t.Errorf("the sizes asked for were %q", f.sizes)
	}
}

// What somebody else did to the terminal while the client was stopped is undone.
func TestContinuedClientTakesTheTerminalAgain(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("\x1b[?2004hhello")
	u.sees(f.screen)
	raw := u.settings()
	if err := unix.IoctlSetTermios(int(u.slave.Fd()), unix.TCSETS, &u.before); err != nil {
		t.Fatal(err)
	}
	_, _ = u.slave.WriteString("\x1b[?2004l\x1b[3;3Hrubbish\x1b[?7h\x1b[1;3r")
	u.shows("rubbish")
	r.signals <- unix.SIGCONT
	u.sees(f.screen)
	u.until("the mode", func() bool { return u.screen.Modes().BracketedPaste && !u.screen.Modes().Wrap })
	if now := u.settings(); now != raw {
		t.Errorf("the settings are %+v, not %+v", now, raw)
	}
	u.types("\x1c")
	if _, err := r.leaves(); err != nil {
		t.Error(err)
	}
}

func TestWatcherTakesNothing(t *testing.T) {
	for _, key := range []string{"\x1c", "\x03"} {
		f, u := newFake(t, 60, 12), newUser(t, 40, 8)
		f.holder = "process 7 (vim)"
		r := start(u, f, func(o *Options) { o.ReadOnly = true })
		f.draw("\x1b[?1h\x1b[?2004hhello")
		u.shows("hello")
		if m := u.screen.Modes(); m.ApplicationCursor || m.BracketedPaste {
			t.Errorf("modes for keys that go nowhere: %s", m)
		}
		u.types("typed" + key)
		if said, err := r.leaves(); said != detached || err != nil {
			t.Errorf("it says %q, %v", said, err)
		}
		if len(f.typed) > 0 || len(f.sizes) > 0 || f.holder != "process 7 (vim)" {
			t.Errorf("the watcher typed %q, asked for the sizes %q; %s holds the terminal", f.typed, f.sizes, f.holder)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("hello")
	u.sees(f.screen)
	u.types("\x1c")
	if _, err := r.leaves(); err != nil {
		t.Fatal(err)
	}
	f.pages.Close()
	u.slave.Close()
	u.master.Close()
	<-u.over
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines more than before:\n%s", n-before, buf[:runtime.Stack(buf, true)])
	}
}
