package attach

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/takeover/pty"
	"scvfs/takeover/screen"
)

// patience is how long a test waits for what is sure to come.
const patience = 30 * time.Second

// fake is a takeover as files: a screen that a test draws on, and what was
// written.
type fake struct {
	t       *testing.T
	screen  *screen.Screen
	after   uint64
	changes *io.PipeReader
	pages   *io.PipeWriter

	mu      sync.Mutex
	changed chan struct{} // closed and made anew at each change
	typed   []byte
	pieces  int      // writes to input
	sizes   []string // written to size
	holder  string
	holds   int          // opens of input that are not closed
	refuse  func() error // what a write to input fails with; nil: it does not
	resize  func(string) error
}

func newFake(t *testing.T, cols, rows int) *fake {
	f := &fake{t: t, screen: screen.New(screen.Options{Cols: cols, Rows: rows}), changed: make(chan struct{})}
	f.changes, f.pages = io.Pipe()
	t.Cleanup(func() { f.pages.Close() })
	return f
}

// Reader implements Files.
func (f *fake) Reader(name string) (io.ReadCloser, error) {
	switch name {
	case "changes":
		return &heldReader{PipeReader: f.changes}, nil
	case "holder":
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.holder == "gone" {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(f.holder + "\n")), nil
	}
	return nil, fs.ErrNotExist
}

// heldReader is closed once no read waits, as files of the operating system are.
type heldReader struct {
	*io.PipeReader
	reading sync.Mutex
}

func (r *heldReader) Read(p []byte) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.PipeReader.Read(p)
}

func (r *heldReader) Close() error {
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.PipeReader.Close()
}

// Writer implements Files.
func (f *fake) Writer(name string) (io.WriteCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch name {
	case "input":
		f.holder = "process 1 (me)"
		f.holds++
		f.tell()
	case "size":
	default:
		return nil, fs.ErrNotExist
	}
	return &fakeFile{f: f, name: name}, nil
}

type fakeFile struct {
	f       *fake
	name    string
	writing sync.Mutex // as heldReader's
}

func (w *fakeFile) Write(p []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	defer w.f.tell()
	if w.name == "size" {
		size := strings.TrimSpace(string(p))
		w.f.sizes = append(w.f.sizes, size)
		if w.f.resize != nil {
			return len(p), w.f.resize(size)
		}
		return len(p), nil
	}
	if w.f.refuse != nil {
		if err := w.f.refuse(); err != nil {
			return 0, &fs.PathError{Op: "write", Path: "input", Err: err}
		}
	}
	w.f.pieces++
	w.f.typed = append(w.f.typed, p...)
	return len(p), nil
}

func (w *fakeFile) Close() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.name == "input" {
		w.f.holds--
		w.f.tell()
	}
	return nil
}

// tell wakes until. The caller holds mu.
func (f *fake) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// set changes the fake.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.tell()
}

// until waits for something to become true of the fake.
func (f *fake) until(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		good, changed := ok(), f.changed
		f.mu.Unlock()
		if good {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			f.t.Fatalf("%s does not come; typed is %.200q, sizes are %q", what, f.typed, f.sizes)
		}
	}
}

// draw has the program write, and sends the page.
func (f *fake) draw(program string) {
	_, _ = f.screen.Write([]byte(program))
	p := f.screen.Page(f.after)
	f.after = p.Generation
	f.send(page{Page: p})
}

// send writes a line to changes. Its reader may be gone.
func (f *fake) send(line any) {
	b, err := json.Marshal(line)
	if err != nil {
		f.t.Fatal(err)
	}
	_, _ = f.pages.Write(append(b, '\n'))
}

// user is a person's terminal: what they see, and its settings.
type user struct {
	t       *testing.T
	master  *os.File
	slave   *os.File
	screen  *screen.Screen
	before  unix.Termios
	mu      sync.Mutex
	raw     bytes.Buffer
	changed chan struct{}
	over    chan struct{}
}

func newUser(t *testing.T, cols, rows int) *user {
	t.Helper()
	master, slave, err := pty.Open(cols, rows)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{
		t: t, master: master, slave: slave, screen: screen.New(screen.Options{Cols: cols, Rows: rows}),
		changed: make(chan struct{}), over: make(chan struct{}),
	}
	u.before = u.settings()
	_, _ = slave.WriteString("$ scvfs attach\r\n")
	go u.look()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-u.over
	})
	return u
}

func (u *user) look() {
	defer close(u.over)
	buf := make([]byte, 32<<10)
	for {
		n, err := u.master.Read(buf)
		u.mu.Lock()
		u.raw.Write(buf[:n])
		_, _ = u.screen.Write(buf[:n])
		close(u.changed)
		u.changed = make(chan struct{})
		u.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// terminal is another open file of the user's terminal.
func (u *user) terminal() *Terminal {
	u.t.Helper()
	f, err := os.OpenFile(u.slave.Name(), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { f.Close() })
	return NewTerminal(f)
}

func (u *user) settings() unix.Termios {
	t, err := unix.IoctlGetTermios(int(u.slave.Fd()), unix.TCGETS)
	if err != nil {
		u.t.Fatal(err)
	}
	return *t
}

// until waits for something to become true of what the user sees.
func (u *user) until(what string, ok func() bool) {
	u.t.Helper()
	deadline := time.After(patience)
	for {
		u.mu.Lock()
		good, changed := ok(), u.changed
		u.mu.Unlock()
		if good {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			u.t.Fatalf("%s does not come; the terminal shows\n%s", what, u.screen.Text())
		}
	}
}

// sees waits until the user sees the screen as it is.
func (u *user) sees(s *screen.Screen) {
	u.t.Helper()
	u.until("the picture", func() bool {
		want, got := s.Page(0), u.screen.Page(0)
		return linesOf(want) == linesOf(got) && fmt.Sprint(deref(want.Cursor)) == fmt.Sprint(deref(got.Cursor))
	})
}

func deref(p *[2]int) any {
	if p == nil {
		return "hidden"
	}
	return *p
}

func (u *user) shows(text string) {
	u.t.Helper()
	u.until(fmt.Sprintf("%q", text), func() bool { return strings.Contains(u.screen.Text(), text) })
}

func (u *user) types(keys string) {
	u.t.Helper()
	if _, err := u.master.WriteString(keys); err != nil {
		u.t.Error(err)
	}
}

// run is an attachment that goes on.
type running struct {
	u       *user
	signals chan os.Signal
	ended   chan struct{}
	said    string
	err     error
}

func start(u *user, f Files, change func(*Options)) *running {
	r := &running{u: u, signals: make(chan os.Signal, 8), ended: make(chan struct{})}
	keys, err := ParseKeys(DefaultDetachKey)
	if err != nil {
		u.t.Fatal(err)
	}
	o := Options{Files: f, Terminal: u.terminal(), Name: "codex-1", Detach: keys, Signals: r.signals}
	if change != nil {
		change(&o)
	}
	go func() {
		defer close(r.ended)
		r.said, r.err = Run(o)
	}()
	u.t.Cleanup(func() {
		r.signals <- syscall.SIGTERM
		<-r.ended
	})
	u.until("the client", func() bool { return strings.HasPrefix(u.screen.Title(), "attach: ") }) // until then keys are the kernel's
	return r
}

// leaves waits for the end, and looks whether the terminal is as it was.
func (r *running) leaves() (said string, err error) {
	r.u.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.u.t.Fatal("the client does not leave")
	}
	r.u.isBack()
	return r.said, r.err
}

// isBack fails unless the terminal is as it was before.
func (u *user) isBack() {
	u.t.Helper()
	if now := u.settings(); now != u.before {
		u.t.Errorf("the terminal's settings are %+v, were %+v", now, u.before)
	}
	_, _ = u.slave.WriteString("done")
	u.shows("done")
	st := u.screen.State()
	want := screen.New(screen.Options{Cols: st.Cols, Rows: st.Rows}).Modes()
	if st.Modes != want {
		u.t.Errorf("modes are left: %s", st.Modes)
	}
	if text := u.screen.Text(); !strings.HasPrefix(text, "$ scvfs attach\n") {
		u.t.Errorf("what was on the terminal before is not there any more:\n%s", text)
	}
}
