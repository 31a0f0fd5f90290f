package ninep

import (
	"context"
	"strings"
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// readlink says where a symbolic link leads.
func (r *request) readlink() (answer, error) {
	at, err := r.fid.place()
	if err != nil {
		return answer{}, err
	}
	target, err := r.target(at)
	if err != nil {
		return answer{}, err
	}
	return say(&wire.Rreadlink{Target: target})
}

func (r *request) target(at *place) (string, error) {
	link, ok := at.node.(fs.Link)
	if !ok {
		return "", refused(syscall.EINVAL)
	}
	target, err := link.Readlink(r.ctx)
	if err == nil && (target == "" || len(target) >= maxTarget || strings.ContainsRune(target, 0)) {
		err = r.s.c.srv.broken("readlink", "a target of %d bytes is no path", len(target))
	}
	return target, err
}

// follow shows a symbolic link to a client of 9P2000, which knows none: as
// what it leads to within the tree, or else as a file that holds its target.
func (r *request) follow(link *place, links *int) (*place, error) {
	target, err := r.target(link)
	if err != nil {
		return nil, err
	}
	to, err := r.resolve(link.up, target, links)
	if err == nil {
		return &place{node: to.node, qid: to.qid, name: link.name, up: to.up, linked: true}, nil
	}
	if _, ours := err.(refused); !ours && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	text := signpost{link: link.node, text: target + "\n"}
	return &place{node: text, qid: wire.Qid{Type: wire.QTFile, Path: link.qid.Path}, name: link.name, up: link.up, linked: true}, nil
}

// resolve goes along a path from a directory. It never leaves the tree: a
// path that would do so leads nowhere.
func (r *request) resolve(from *place, path string, links *int) (*place, error) {
	if *links++; *links > maxLinks {
		return nil, refused(syscall.ELOOP)
	}
	if strings.HasPrefix(path, "/") {
		return nil, refused(syscall.ENOENT)
	}
	at := from
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && at.up == nil:
			return nil, refused(syscall.ENOENT)
		}
		next, err := r.stepThrough(at, name, links)
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// signpost is a symbolic link as a file.
type signpost struct {
	link fs.Node
	text string
}

// Attr implements fs.Node.
func (s signpost) Attr(ctx context.Context) (fs.Attr, error) {
	a, err := s.link.Attr(ctx)
	a.Type, a.Perm, a.Size = fs.Regular, 0o400, int64(len(s.text))
	return a, err
}

// Open implements fs.File.
func (s signpost) Open(_ context.Context, mode fs.Mode) (fs.Handle, error) {
	if mode.Write {
		return nil, fault.New(fault.Denied, "a symbolic link is read-only")
	}
	return s, nil
}

// Read implements fs.Handle.
func (s signpost) Read(_ context.Context, p []byte, off int64) (int, error) {
	return copy(p, s.text[min(off, int64(len(s.text))):]), nil
}

// Write implements fs.Handle.
func (s signpost) Write(context.Context, []byte) (int, error) {
	return 0, fault.New(fault.Denied, "a symbolic link is read-only")
}

// Flush implements fs.Handle.
func (s signpost) Flush(context.Context, fs.Closer) error { return nil }

// Release implements fs.Handle.
func (s signpost) Release(context.Context) {}

var (
	_ fs.File   = signpost{}
	_ fs.Handle = signpost{}
)
