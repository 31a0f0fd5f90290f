package fs

import (
	"context"
	"time"

	"scvfs/ledger/fault"
)

// textFile is a read-only file whose whole content is drawn at once.
type textFile struct {
	site
	mtime func() (time.Time, error)
	draw  func(ctx context.Context) ([]byte, error)
	fixed bool // neither content nor attributes ever change
	// costly: drawn by the first read only, and of no known size.
	costly bool
	// told is told, if it is there, of a read that gave something of text.
	told func(ctx context.Context, text []byte)
}

// Attr implements Node.
func (f textFile) Attr(ctx context.Context) (Attr, error) {
	if err := f.settle(ctx); err != nil {
		return Attr{}, err
	}
	at, err := f.mtime()
	if err != nil {
		return Attr{}, err
	}
	a := f.attr(Regular, 0o400, at)
	if f.fixed {
		a.EntryTTL, a.AttrTTL = lastingTTL, lastingTTL
	}
	if !f.costly {
		data, err := f.draw(ctx)
		if err != nil {
			return Attr{}, err
		}
		a.Size = int64(len(data))
	}
	return a, nil
}

// Open implements File.
func (f textFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	if err := f.checkMode(ctx, 0o400, mode); err != nil {
		return nil, err
	}
	h := &textHandle{f: f}
	if f.costly {
		_, err := f.mtime()
		return h, err
	}
	return h, h.take(ctx)
}

// textHandle is an open textFile.
type textHandle struct {
	readOnly
	f    textFile
	view view
}

// Read implements Handle.
func (h *textHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if off == 0 || !h.view.taken() {
		// A file that is gone stays readable as it was when it was opened.
		if err := h.take(ctx); err != nil && (!fault.Is(err, fault.NotFound) || !h.view.taken()) {
			return 0, stale(err)
		}
	}
	n := h.view.read(p, off)
	if n > 0 && h.f.told != nil {
		h.f.told(ctx, h.view.bytes())
	}
	return n, nil
}

// take draws a new version.
func (h *textHandle) take(ctx context.Context) error {
	if err := h.f.settle(ctx); err != nil {
		return err
	}
	data, err := h.f.draw(ctx)
	if err != nil {
		return err
	}
	h.view.set(data, 0)
	return nil
}

// text is a row whose content draw makes of the subject.
func text[S any](name string, draw func(*Tree, S) ([]byte, error)) row[S] {
	return row[S]{name: name, node: func(d tableDir[S], at site, _ S) Node { return drawn(d, at, d.table.changed, draw) }, typ: Regular}
}

// line is a row of one line, which ends with a newline unless it has nothing
// to say.
func line[S any](name string, say func(*Tree, S) string) row[S] {
	return text(name, said(say))
}

// constant is a row of one line that never changes.
func constant[S any](name string, say func(*Tree, S) string) row[S] {
	return row[S]{name: name, typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		f := drawn(d, at, d.table.made, said(say))
		f.fixed = true
		return f
	}}
}

func said[S any](say func(*Tree, S) string) func(*Tree, S) ([]byte, error) {
	return func(t *Tree, s S) ([]byte, error) { return oneLine(say(t, s)), nil }
}

func drawn[S any](d tableDir[S], at site, mtime func(*Tree, S) time.Time, draw func(*Tree, S) ([]byte, error)) textFile {
	return textFile{site: at, mtime: d.when(mtime), draw: func(context.Context) ([]byte, error) {
		s, err := d.get()
		if err != nil {
			return nil, err
		}
		return draw(d.t, s)
	}}
}

// link is a symbolic link whose target never changes.
type link struct {
	site
	target string
	mtime  func() (time.Time, error)
}

// Attr implements Node.
func (l link) Attr(ctx context.Context) (Attr, error) {
	if err := l.settle(ctx); err != nil {
		return Attr{}, err
	}
	at, err := l.mtime()
	if err != nil {
		return Attr{}, err
	}
	a := l.attr(Symlink, 0o777, at)
	a.Size = int64(len(l.target))
	return a, nil
}

// Readlink implements Link.
func (l link) Readlink(ctx context.Context) (string, error) {
	return l.target, l.mayRead(ctx)
}

var (
	_ File   = textFile{}
	_ Handle = (*textHandle)(nil)
	_ Link   = link{}
)
