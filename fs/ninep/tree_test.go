package ninep

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
	mu     sync.Mutex
	list   []fs.Entry
	nodes  map[string]fs.Node
	hidden map[string]fs.Node
}

func newFolder() *folder {
	return &folder{ino: newIno(), nodes: map[string]fs.Node{}, hidden: map[string]fs.Node{}}
}

func (d *folder) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: d.ino, Type: fs.Directory, Perm: 0o500, Size: 77, Mtime: begun}, nil
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

func newWorkshop() workshop { return workshop{newFolder()} }

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

// noHandle does what most handles do not do.
type noHandle struct{}

func (noHandle) Read(context.Context, []byte, int64) (int, error) { return 0, nil }
func (noHandle) Write(context.Context, []byte) (int, error) {
	return 0, fault.New(fault.Denied, "it is read-only")
}
func (noHandle) Flush(context.Context, fs.Closer) error { return nil }
func (noHandle) Release(context.Context)                {}

// text is a file that is drawn anew at each read from the start.
type text struct {
	ino  uint64
	draw func() string
}

func newText(s string) *text { return &text{ino: newIno(), draw: func() string { return s }} }

func (f *text) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: f.ino, Type: fs.Regular, Perm: 0o400, Size: int64(len(f.draw())), Mtime: begun}, nil
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

// growing is a log.
type growing struct {
	ino  uint64
	mu   sync.Mutex
	text []byte
}

func (g *growing) Attr(context.Context) (fs.Attr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fs.Attr{
		Ino: g.ino, Type: fs.Regular, Perm: 0o400, Size: int64(len(g.text)), Append: true,
		Mtime: begun.Add(time.Second), Atime: begun,
	}, nil
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

func newControl() *control { return &control{ino: newIno()} }

func (c *control) Attr(context.Context) (fs.Attr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fs.Attr{Ino: c.ino, Type: fs.Regular, Perm: 0o600, Size: int64(len(strings.Join(c.done, "\n"))), Mtime: begun}, nil
}

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
	s := strings.Join(h.file.lines(), "\n")
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

// document collects what is written and sends it after the last close, which
// tells of a refusal.
type document struct {
	ino     uint64
	mu      sync.Mutex
	sent    []string // in order
	drops   int      // texts of killed writers
	open    int
	closers []closer
	full    atomic.Bool
}

func newDocument() *document { return &document{ino: newIno()} }

// closer is fs.Closer with its question answered.
type closer struct{ opener, last, killed bool }

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
	h.file.closers = append(h.file.closers, closer{by.Opener, by.Last != nil && by.Last(), by.Killed})
	switch {
	case len(h.text) == 0:
	case by.Killed:
		h.text = nil
		h.file.drops++
	case h.file.full.Load():
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
