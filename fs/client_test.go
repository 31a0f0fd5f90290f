package fs

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

// client does to a tree what commands do to a mount.
type client struct {
	testing.TB
	tree *Tree
	ctx  context.Context
	root Dir // what paths begin at; nil: the tree's own
}

func newClient(t testing.TB) (client, *fake) {
	tree, f := newTree(t)
	return client{TB: t, tree: tree, ctx: WithCaller(t.Context(), Caller{PID: 4242})}, f
}

// at looks a path up.
func (c client) at(name string) (Node, error) {
	if c.root != nil {
		return lookupFrom(c.ctx, c.root, name)
	}
	return lookup(c.ctx, c.tree, name)
}

func lookup(ctx context.Context, t *Tree, name string) (Node, error) {
	return lookupFrom(ctx, t.Root(), name)
}

func lookupFrom(ctx context.Context, root Dir, name string) (Node, error) {
	var n Node = root
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' }) {
		d, ok := n.(Dir)
		if !ok {
			return nil, fault.New(fault.Invalid, "%s: not a directory", part)
		}
		var err error
		if n, err = d.Lookup(ctx, part); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// must fails the test on an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (c client) attr(name string) Attr {
	c.Helper()
	a, err := must(c.at(name)).Attr(c.ctx)
	if err != nil {
		c.Fatalf("stat %s: %v", name, err)
	}
	return a
}

// open opens a file.
func (c client) open(name string, mode Mode) (Handle, error) {
	n, err := c.at(name)
	if err != nil {
		return nil, err
	}
	f, ok := n.(File)
	if !ok {
		return nil, fault.New(fault.Invalid, "%s is no file", name)
	}
	return f.Open(c.ctx, mode)
}

// cat returns a file's content.
func (c client) cat(name string) string {
	c.Helper()
	text, err := c.read(name)
	if err != nil {
		c.Fatalf("cat %s: %v", name, err)
	}
	return text
}

func (c client) read(name string) (string, error) {
	h, err := c.open(name, Mode{Read: true})
	if err != nil {
		return "", err
	}
	defer h.Release(c.ctx)
	return readAll(c.ctx, h, 0)
}

// endless is longer than any file of a test.
const endless = 16 << 20

// readAll reads from off to the end, in pieces that cut lines.
func readAll(ctx context.Context, h Handle, off int64) (string, error) {
	var text []byte
	var p [7]byte
	for {
		n, err := h.Read(ctx, p[:], off+int64(len(text)))
		text = append(text, p[:n]...)
		if n == 0 || err != nil {
			return string(text), err
		}
		if len(text) > endless {
			return "", errors.New("the file does not end")
		}
	}
}

// slurp reads to the end in big pieces.
func slurp(ctx context.Context, h Handle) (string, error) {
	var text []byte
	p := make([]byte, 64<<10)
	for {
		n, err := h.Read(ctx, p, int64(len(text)))
		text = append(text, p[:n]...)
		if n == 0 || err != nil {
			return string(text), err
		}
		if len(text) > endless {
			return "", errors.New("the file does not end")
		}
	}
}

// write does what `printf TEXT > NAME` does, writing again what a short count
// left.
func (c client) write(name, text string) error {
	h, err := c.open(name, Mode{Write: true})
	if err != nil {
		return err
	}
	defer h.Release(c.ctx)
	if err := writeAll(c.ctx, h, text); err != nil {
		return err
	}
	return h.Flush(c.ctx, Closer{Opener: true})
}

func writeAll(ctx context.Context, h Handle, text string) error {
	for text != "" {
		n, err := h.Write(ctx, []byte(text))
		if err != nil {
			return err
		}
		if n <= 0 || n > len(text) {
			return errors.New("bad count")
		}
		text = text[n:]
	}
	return nil
}

func (c client) put(name, text string) {
	c.Helper()
	if err := c.write(name, text); err != nil {
		c.Fatalf("write to %s: %v", name, err)
	}
}

// list returns a directory's names.
func (c client) list(name string) []string {
	c.Helper()
	entries, err := must(c.at(name)).(Dir).List(c.ctx)
	if err != nil {
		c.Fatalf("ls %s: %v", name, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}

func (c client) mkdir(name string) error {
	n, err := c.at(path.Dir(name))
	if err != nil {
		return err
	}
	m, ok := n.(Maker)
	if !ok {
		return fault.New(fault.Denied, "no mkdir here")
	}
	_, err = m.Mkdir(c.ctx, path.Base(name))
	return err
}

func (c client) rmdir(name string) error {
	n, err := c.at(path.Dir(name))
	if err != nil {
		return err
	}
	r, ok := n.(Remover)
	if !ok {
		return fault.New(fault.Denied, "no rmdir here")
	}
	return r.Rmdir(c.ctx, path.Base(name))
}

// walk calls visit for everything that listings show.
func walk(ctx context.Context, d Dir, at string, visit func(name string, e Entry, n Node)) error {
	entries, err := d.List(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		n, err := d.Lookup(ctx, e.Name)
		if fault.Is(err, fault.NotFound) {
			continue // gone meanwhile
		}
		if err != nil {
			return err
		}
		name := path.Join(at, e.Name)
		visit(name, e, n)
		if sub, ok := n.(Dir); ok {
			if err := walk(ctx, sub, name, visit); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
	}
	return nil
}

// isKind fails the test unless err is of the kind and says want.
func isKind(t testing.TB, err error, kind fault.Kind, want string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v (%v), want %v with %q", err, fault.KindOf(err), kind, want)
	}
}
