package fusefs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// The tree of these tests: one type for each way in which a file of the real
// tree behaves, with nothing behind it.

var lastIno atomic.Uint64

func newIno() uint64 { return 100 + lastIno.Add(1) }

var begun = time.Unix(1_700_000_000, 123_000_000)

// folder is a directory; names in hidden are found but not listed.
type folder struct {
	ino    uint64
	ttl    time.Duration
	mu     sync.Mutex
	list   []fs.Entry
	nodes  map[string]fs.Node
	hidden map[string]fs.Node
}

func newFolder() *folder {
	return &folder{ino: newIno(), nodes: map[string]fs.Node{}, hidden: map[string]fs.Node{}}
}

func (d *folder) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: d.ino, Type: fs.Directory, Perm: 0o500, Mtime: begun, EntryTTL: d.ttl, AttrTTL: d.ttl}, nil
}

// add puts a node under a name at the end of the list.
func (d *folder) add(name string, n fs.Node) *folder {
	attr, err := n.Attr(context.Background())
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, fs.Entry{Name: name, Ino: attr.Ino, Type: attr.Type})
	d.nodes[name] = n
	return d
}

func (d *folder) hide(name string, n fs.Node) *folder {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hidden[name] = n
	return d
}

func (d *folder) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = slices.DeleteFunc(slices.Clone(d.list), func(e fs.Entry) bool { return e.Name == name })
	delete(d.nodes, name)
}

func (d *folder) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, e := range d.list {
		all = append(all, e.Name)
	}
	return all
}

func (d *folder) Lookup(_ context.Context, name string) (fs.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.nodes[name]; n != nil {
		return n, nil
	}
	if n := d.hidden[name]; n != nil {
		return n, nil
	}
	return nil, fault.New(fault.NotFound, "%s: no such name", name)
}

func (d *folder) List(context.Context) ([]fs.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list), nil
}

// workshop is a folder in which mkdir and rmdir work.
type workshop struct{ *folder }

func (w workshop) Attr(ctx context.Context) (fs.Attr, error) {
	a, err := w.folder.Attr(ctx)
	a.Perm = 0o700
	return a, err
}

func (w workshop) Mkdir(_ context.Context, name string) (fs.Node, error) {
	if strings.ContainsAny(name, "A B") {
		return nil, fault.New(fault.Invalid, "%q is no name", name)
	}
	made := newFolder()
	w.add(name, made)
	return made, nil
}

func (w workshop) Rmdir(_ context.Context, name string) error {
	if name == "busy" {
		return fault.New(fault.Busy, "busy is busy")
	}
	w.remove(name)
	return nil
}

// text is a file that is drawn anew at each read from the start.
type text struct {
	ino  uint64
	draw func() string
	ttl  time.Duration
}

func newText(s string) *text { return &text{ino: newIno(), draw: func() string { return s }} }

func (f *text) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{
		Ino: f.ino, Type: fs.Regular, Perm: 0o400, Size: int64(len(f.draw())), Mtime: begun,
		EntryTTL: f.ttl, AttrTTL: f.ttl,
	}, nil
}

func (f *text) Open(_ context.Context, mode fs.Mode) (fs.Handle, error) {
	if mode.Write {
		return nil, fault.New(fault.Denied, "it is read-only")
	}
	return &textHandle{file: f, content: f.draw()}, nil
}

type textHandle struct {
	noHandle
	file    *text
	mu      sync.Mutex
	content string
}

func (h *textHandle) Read(_ context.Context, p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if off == 0 {
		h.content = h.file.draw()
	}
	if off >= int64(len(h.content)) {
		return 0, nil
	}
	return copy(p, h.content[off:]), nil
}

// noHandle does what most handles do not do.
type noHandle struct{}

func (noHandle) Read(context.Context, []byte, int64) (int, error) { return 0, nil }
func (noHandle) Write(context.Context, []byte) (int, error) {
	return 0, fault.New(fault.Denied, "it is read-only")
}
func (noHandle) Flush(context.Context, fs.Closer) error { return nil }
func (noHandle) Release(context.Context)                {}

// growing is a log.
type growing struct {
	ino  uint64
	mu   sync.Mutex
	text []byte
}

func (g *growing) append(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text = append(g.text, s...)
}

func (g *growing) Attr(context.Context) (fs.Attr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fs.Attr{Ino: g.ino, Type: fs.Regular, Perm: 0o400, Size: int64(len(g.text)), Mtime: begun, Append: true}, nil
}

func (g *growing) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return growingHandle{file: g}, nil
}

type growingHandle struct {
	noHandle
	file *growing
}

func (h growingHandle) Read(_ context.Context, p []byte, off int64) (int, error) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	return copy(p, h.file.text[min(off, int64(len(h.file.text))):]), nil
}

// control does each line as it is written; "refuse N" is refused by kind N.
type control struct {
	ino  uint64
	mu   sync.Mutex
	done []string
}

func (c *control) Attr(context.Context) (fs.Attr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fs.Attr{Ino: c.ino, Type: fs.Regular, Perm: 0o600, Size: int64(len(c.show())), Mtime: begun}, nil
}

func (c *control) show() string { return strings.Join(c.done, "\n") }

func (c *control) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

func (c *control) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return controlHandle{file: c}, nil
}

type controlHandle struct {
	noHandle
	file *control
}

func (h controlHandle) Read(_ context.Context, p []byte, off int64) (int, error) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	s := h.file.show()
	return copy(p, s[min(off, int64(len(s))):]), nil
}

func (h controlHandle) Write(_ context.Context, p []byte) (int, error) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	taken := 0
	for line := range bytes.Lines(p) {
		word := strings.TrimSuffix(string(line), "\n")
		var kind uint8
		if n, _ := fmt.Sscanf(word, "refuse %d", &kind); n == 1 {
			if taken > 0 {
				return taken, nil
			}
			return 0, fault.New(fault.Kind(kind), "%s is refused", word)
		}
		h.file.done = append(h.file.done, word)
		taken += len(line)
	}
	return taken, nil
}

// document collects what is written, checks it at each close, and sends it
// after the last.
type document struct {
	ino     uint64
	mu      sync.Mutex
	sent    []string // in order
	drops   int      // texts of killed writers
	open    int
	closers []closer // of closes with a text to send
	full    atomic.Bool
}

func (d *document) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: d.ino, Type: fs.Regular, Perm: 0o600, Mtime: begun}, nil
}

func (d *document) Open(context.Context, fs.Mode) (fs.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	return &documentHandle{file: d}, nil
}

// state returns copies: what was sent, how much was dropped, how many are open.
func (d *document) state() (sent []string, drops, open int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sent), d.drops, d.open
}

// closer is fs.Closer with its question answered.
type closer struct{ opener, last, killed bool }

type documentHandle struct {
	noHandle
	file *document
	text []byte // guarded by file.mu
}

func (h *documentHandle) Write(_ context.Context, p []byte) (int, error) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.text = append(h.text, p...)
	return len(p), nil
}

func (h *documentHandle) Flush(_ context.Context, by fs.Closer) error {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	if len(h.text) == 0 {
		return nil
	}
	h.file.closers = append(h.file.closers, closer{by.Opener, by.Last != nil && by.Last(), by.Killed})
	if by.Killed {
		h.text = nil
		h.file.drops++
		return nil
	}
	if h.file.full.Load() {
		h.text = nil
		return fault.New(fault.Limit, "the queue is full")
	}
	return nil
}

func (h *documentHandle) Release(context.Context) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.open--
	if len(h.text) > 0 {
		h.file.sent = append(h.file.sent, string(h.text))
		h.text = nil
	}
}

// stream gives each line to all who wait for it.
type stream struct {
	ino      uint64
	mu       sync.Mutex
	text     []byte
	more     chan struct{}
	waiting  int
	released int
	callers  []fs.Caller
	offs     []int64
}

func newStream() *stream { return &stream{ino: newIno(), more: make(chan struct{})} }

func (s *stream) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, line...)
	close(s.more)
	s.more = make(chan struct{})
}

// readers returns how many reads wait and how many handles were released.
func (s *stream) readers() (waiting, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting, s.released
}

func (s *stream) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: s.ino, Type: fs.Regular, Perm: 0o400, Mtime: begun}, nil
}

func (s *stream) Open(_ context.Context, mode fs.Mode) (fs.Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &streamHandle{file: s, pos: len(s.text), nonBlock: mode.NonBlock}, nil
}

type streamHandle struct {
	noHandle
	file     *stream
	pos      int // guarded by file.mu
	nonBlock bool
}

func (h *streamHandle) Stream() bool { return true }

func (h *streamHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	caller, _ := fs.CallerOf(ctx)
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.callers = append(h.file.callers, caller)
	h.file.offs = append(h.file.offs, off)
	for h.pos == len(h.file.text) {
		if h.nonBlock {
			return 0, fault.New(fault.Limit, "nothing yet")
		}
		more := h.file.more
		h.file.waiting++
		h.file.mu.Unlock()
		var err error
		select {
		case <-more:
		case <-ctx.Done():
			err = fault.New(fault.Interrupted, "gave up")
		}
		h.file.mu.Lock()
		h.file.waiting--
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, h.file.text[h.pos:])
	h.pos += n
	return n, nil
}

func (h *streamHandle) Release(context.Context) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.released++
}

// link is a symbolic link.
type link struct {
	ino    uint64
	target string
}

func (l link) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: l.ino, Type: fs.Symlink, Perm: 0o777, Size: int64(len(l.target)), Mtime: begun}, nil
}
func (l link) Readlink(context.Context) (string, error) { return l.target, nil }

// bomb is a file that misbehaves in one place.
type bomb struct {
	ino    uint64
	where  string
	action func() (int, error)
}

func (b bomb) at(where string) (int, error) {
	if b.where == where {
		return b.action()
	}
	return 0, nil
}

func (b bomb) Attr(context.Context) (fs.Attr, error) {
	_, err := b.at("attr")
	return fs.Attr{Ino: b.ino, Type: fs.Regular, Perm: 0o600, Mtime: begun}, err
}

func (b bomb) Open(context.Context, fs.Mode) (fs.Handle, error) {
	if n, err := b.at("open"); n != 0 || err != nil {
		return nil, err
	}
	return bombHandle{b}, nil
}

type bombHandle struct{ bomb }

func (b bombHandle) Read(context.Context, []byte, int64) (int, error) { return b.at("read") }
func (b bombHandle) Write(_ context.Context, p []byte) (int, error) {
	if b.where == "write" {
		return b.action()
	}
	return len(p), nil
}

func (b bombHandle) Flush(context.Context, fs.Closer) error {
	_, err := b.at("flush")
	return err
}

func (b bombHandle) Release(context.Context) { b.at("release") }
