package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// diskFile shows a file of a run's or a job's directory. The file may come
// into being later; until then it is empty. Once there it is never replaced,
// and only grows or stays as it is.
type diskFile struct {
	site
	// where returns the path, empty as long as there is none, and the time to
	// show while there is no file.
	where func() (name string, mtime time.Time, err error)
	// before are files that the content begins with, which never change any
	// more; nil for none.
	before func() []string
	fixed  bool // written before its name is seen, never changed
	append bool // grows
	// told is told, if it is there, of a read that gave the file's beginning
	// or its end.
	told func(ctx context.Context)
}

// Attr implements Node.
func (f diskFile) Attr(ctx context.Context) (Attr, error) {
	if err := f.settle(ctx); err != nil {
		return Attr{}, err
	}
	name, mtime, err := f.where()
	if err != nil {
		return Attr{}, err
	}
	a := f.attr(Regular, 0o400, mtime)
	a.Append = f.append
	if f.fixed {
		a.EntryTTL, a.AttrTTL = lastingTTL, lastingTTL
	}
	if name == "" {
		return a, nil
	}
	switch fi, err := os.Stat(name); {
	case err == nil:
		a.Size, a.Mtime = fi.Size(), fi.ModTime()
	case !errors.Is(err, iofs.ErrNotExist):
		return Attr{}, fault.New(fault.Internal, "%s cannot be looked at: %w", f.path, err)
	}
	if f.before != nil {
		for _, name := range f.before() {
			if fi, err := os.Stat(name); err == nil {
				a.Size += fi.Size()
			}
		}
	}
	return a, nil
}

// Open implements File.
func (f diskFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	if err := f.checkMode(ctx, 0o400, mode); err != nil {
		return nil, err
	}
	h := &diskHandle{f: f}
	_, err := h.open()
	return h, err
}

// diskHandle is an open diskFile. It keeps the file from the first moment that
// there is one, so that what was opened stays readable.
type diskHandle struct {
	readOnly
	f diskFile

	mu   sync.Mutex
	file *os.File
}

// Read implements Handle. It reads what the file holds now.
func (h *diskHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if h.f.before != nil {
		if before := h.f.before(); len(before) > 0 {
			return h.readParts(before, p, off)
		}
	}
	file, err := h.open()
	if err != nil {
		return 0, stale(err)
	}
	if file == nil {
		return 0, nil
	}
	n, err := file.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fault.New(fault.Internal, "%s cannot be read: %w", h.f.path, err)
	}
	if n > 0 && (off == 0 || err != nil) && h.f.told != nil {
		h.f.told(ctx)
	}
	return n, nil
}

// readParts reads of a content that several files make up. Which one is the last
// may have changed since the file was opened.
func (h *diskHandle) readParts(names []string, p []byte, off int64) (int, error) {
	last, _, err := h.f.where()
	if err != nil {
		return 0, stale(err)
	}
	for _, name := range append(names[:len(names):len(names)], last) {
		n, size, err := readPart(name, p, off)
		if n > 0 || err != nil {
			return n, err
		}
		off -= size
	}
	return 0, nil
}

// readPart reads of one file of several, and returns its size; one that is not
// there is empty.
func readPart(name string, p []byte, off int64) (n int, size int64, err error) {
	file, err := workbench.OpenRegular(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, 0, nil
	}
	if err == nil {
		defer file.Close()
		if n, err = file.ReadAt(p, off); n > 0 || errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err == nil {
		var fi os.FileInfo
		if fi, err = file.Stat(); err == nil {
			size = fi.Size()
		}
	}
	if err != nil {
		return 0, 0, fault.New(fault.Internal, "%s cannot be read: %w", name, err)
	}
	return n, size, nil
}

// open returns the file, nil as long as there is none.
func (h *diskHandle) open() (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		return h.file, nil
	}
	name, _, err := h.f.where()
	if err != nil || name == "" {
		return nil, err
	}
	file, err := workbench.OpenRegular(name)
	switch {
	case err == nil:
		h.file = file
	case !errors.Is(err, iofs.ErrNotExist):
		return nil, fault.New(fault.Internal, "%s cannot be read: %w", h.f.path, err)
	}
	return h.file, nil
}

// Release implements Handle.
func (h *diskHandle) Release(context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		h.file.Close()
	}
}

// disk is a row that shows a file of the disk.
func disk[S any](name string, f diskFile, where func(*Tree, S) (name string, mtime time.Time)) row[S] {
	return row[S]{name: name, typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		f := f
		f.site = at
		f.where = func() (string, time.Time, error) {
			s, err := d.get()
			if err != nil {
				return "", time.Time{}, err
			}
			name, mtime := where(d.t, s)
			return name, mtime, nil
		}
		return f
	}}
}

var (
	_ File   = diskFile{}
	_ Handle = (*diskHandle)(nil)
)
