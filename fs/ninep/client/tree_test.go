package client

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep"
	"scvfs/ledger/fault"
)

// fake is a small tree: /text, /log (append-only), /stream, /document,
// /refusing, /sub/deep, /link, and what mkdir makes in /sub.
type fake struct {
	mu     sync.Mutex
	text   string
	made   map[string]bool
	calls  []string // what handles were told
	caller fs.Caller
	pieces chan string
	reads  chan struct{} // a read of the stream waits
}

func newFake() *fake {
	return &fake{text: "some text\n", made: map[string]bool{}, pieces: make(chan string), reads: make(chan struct{}, 16)}
}

func (f *fake) told(format string) { f.mu.Lock(); f.calls = append(f.calls, format); f.mu.Unlock() }

func (f *fake) all() string { f.mu.Lock(); defer f.mu.Unlock(); return strings.Join(f.calls, "; ") }

type fakeNode struct {
	f    *fake
	name string
	ino  uint64
	typ  fs.Type
}

func (n *fakeNode) Attr(ctx context.Context) (fs.Attr, error) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	n.f.caller, _ = fs.CallerOf(ctx)
	a := fs.Attr{Ino: n.ino, Type: n.typ, Perm: 0o600, Mtime: time.Unix(1_700_000_000, 5), Append: n.name == "log"}
	if n.typ == fs.Directory {
		a.Perm = 0o700
	}
	if n.name == "text" || n.name == "log" {
		a.Size = int64(len(n.f.text))
	}
	return a, nil
}

type fakeDir struct{ fakeNode }

var names = []struct {
	name string
	ino  uint64
	typ  fs.Type
}{
	{"text", 10, fs.Regular},
	{"log", 11, fs.Regular},
	{"stream", 12, fs.Regular},
	{"document", 13, fs.Regular},
	{"refusing", 14, fs.Regular},
	{"sub", 15, fs.Directory},
	{"link", 16, fs.Symlink},
}

func (d *fakeDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	if d.name == "sub" {
		d.f.mu.Lock()
		defer d.f.mu.Unlock()
		if name == "deep" || d.f.made[name] {
			return &fakeDir{fakeNode{d.f, "sub", 100 + uint64(len(name)), fs.Directory}}, nil
		}
	}
	for _, n := range names {
		at := fakeNode{d.f, n.name, n.ino, n.typ}
		switch {
		case d.name != "" || n.name != name:
		case n.typ == fs.Directory:
			return &fakeDir{at}, nil
		case n.typ == fs.Symlink:
			return &fakeLink{at}, nil
		default:
			return &fakeFile{at}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no %s", name)
}

func (d *fakeDir) List(context.Context) (all []fs.Entry, err error) {
	if d.name == "" {
		for _, n := range names {
			if n.name != "stream" {
				all = append(all, fs.Entry{Name: n.name, Ino: n.ino, Type: n.typ})
			}
		}
		return all, nil
	}
	for i := range 5000 {
		all = append(all, fs.Entry{Name: "entry-" + strings.Repeat("x", i%40), Ino: uint64(1000 + i), Type: fs.Directory})
	}
	return all, nil
}

func (d *fakeDir) Mkdir(_ context.Context, name string) (fs.Node, error) {
	if d.name != "sub" {
		return nil, fault.New(fault.Denied, "no mkdir here")
	}
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	d.f.made[name] = true
	return &fakeDir{fakeNode{d.f, "sub", 100 + uint64(len(name)), fs.Directory}}, nil
}

func (d *fakeDir) Rmdir(_ context.Context, name string) error {
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	if !d.f.made[name] {
		return fault.New(fault.Busy, "%s stays", name)
	}
	delete(d.f.made, name)
	return nil
}

type fakeLink struct{ fakeNode }

func (*fakeLink) Readlink(context.Context) (string, error) { return "sub/deep", nil }

type fakeFile struct{ fakeNode }

func (n *fakeFile) Open(_ context.Context, mode fs.Mode) (fs.Handle, error) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	return &fakeHandle{n: n, text: n.f.text, mode: mode}, nil
}

type fakeHandle struct {
	n    *fakeFile
	text string
	mode fs.Mode
}

func (h *fakeHandle) Stream() bool { return h.n.name == "stream" }

func (h *fakeHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if !h.Stream() {
		return copy(p, h.text[min(off, int64(len(h.text))):]), nil
	}
	if h.mode.NonBlock {
		return 0, fault.New(fault.Limit, "nothing yet")
	}
	if ctx.Err() != nil {
		return 0, fault.New(fault.Interrupted, "nothing yet")
	}
	h.n.f.reads <- struct{}{}
	select {
	case s, ok := <-h.n.f.pieces:
		if !ok {
			return 0, nil
		}
		return copy(p, s), nil
	case <-ctx.Done():
		h.n.f.told("interrupted")
		return 0, fault.New(fault.Interrupted, "given up")
	}
}

func (h *fakeHandle) Write(_ context.Context, p []byte) (int, error) {
	if h.n.name == "refusing" {
		return 0, fault.New(fault.Done, "done already")
	}
	h.n.f.told("write " + string(p))
	return len(p), nil
}

func (h *fakeHandle) Flush(_ context.Context, by fs.Closer) error {
	s := "flush"
	if by.Opener {
		s += " opener"
	}
	if by.Killed {
		s += " killed"
	}
	if by.Last != nil && by.Last() {
		s += " last"
	}
	h.n.f.told(s)
	if h.n.name == "document" && h.n.f.text == "refuse at close" {
		return fault.New(fault.TooLarge, "too large")
	}
	return nil
}

func (h *fakeHandle) Release(context.Context) { h.n.f.told("release") }

// served is a fake behind a socket that can be shut and opened again.
type served struct {
	t      *testing.T
	f      *fake
	path   string
	relay  func(pid int) bool
	server *ninep.Server
	done   chan error
}

func serve(t *testing.T) *served { return serveWith(t, func(int) bool { return true }) }

func serveWith(t *testing.T, relay func(pid int) bool) *served {
	s := &served{t: t, f: newFake(), path: filepath.Join(t.TempDir(), "s"), relay: relay}
	s.open()
	t.Cleanup(s.shut)
	return s
}

func (s *served) open() {
	s.t.Helper()
	server, err := ninep.New(&fakeDir{fakeNode{s.f, "", 2, fs.Directory}}, ninep.Options{Relay: s.relay})
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := ninep.ListenUnix(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server, s.done = server, make(chan error, 1)
	go func() { s.done <- server.Serve(context.Background(), l) }()
}

func (s *served) shut() {
	if s.server == nil {
		return
	}
	s.server.Close()
	if err := <-s.done; err != nil {
		s.t.Error(err)
	}
	s.server = nil
}

// dial returns a client of the tree.
func (s *served) dial(opt Options) *Client {
	s.t.Helper()
	c, err := Dial(s.t.Context(), s.path, opt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// at walks to a path.
func at[N fs.Node](t *testing.T, c *Client, path string) N {
	t.Helper()
	var n fs.Node = c.Root()
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		next, err := n.(fs.Dir).Lookup(t.Context(), name)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		n = next
	}
	return n.(N)
}

var (
	_ fs.Maker    = (*fakeDir)(nil)
	_ fs.Remover  = (*fakeDir)(nil)
	_ fs.Streamer = (*fakeHandle)(nil)
)
