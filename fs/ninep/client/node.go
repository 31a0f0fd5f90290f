package client

import (
	"context"
	"math"
	"sync/atomic"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// node is a name of the tree: the way to it and what was found there. One that
// is found to be another by now is stale.
type node struct {
	c    *Client
	path []string // never changed
	ino  uint64
	// known is what Lookup was told on the way, for the Attr that comes with it.
	known atomic.Pointer[fs.Attr]
}

type (
	dir  struct{ node }
	file struct{ node }
	link struct{ node }
)

var (
	_ fs.Dir     = (*dir)(nil)
	_ fs.Maker   = (*dir)(nil)
	_ fs.Remover = (*dir)(nil)
	_ fs.File    = (*file)(nil)
	_ fs.Link    = (*link)(nil)
)

// at returns the path below the root, for people.
func (n *node) at() string {
	s := ""
	for _, name := range n.path {
		s += "/" + name
	}
	if s == "" {
		return "/"
	}
	return s
}

// below returns the way to a child.
func (n *node) below(name string) []string {
	return append(append(make([]string, 0, len(n.path)+1), n.path...), name)
}

// inoOf makes an inode number of what the server calls a file. Servers of our
// own give none that is reserved.
func inoOf(q wire.Qid) uint64 {
	if q.Path <= 1 || q.Path == math.MaxUint64 {
		return q.Path ^ 1<<63 ^ 2
	}
	return q.Path
}

// Attr implements fs.Node. The first one after a Lookup tells what that found.
func (n *node) Attr(ctx context.Context) (fs.Attr, error) {
	if a := n.known.Swap(nil); a != nil {
		return *a, nil
	}
	v, err := n.visit(ctx, visit{ask: getattr})
	if err != nil {
		return fs.Attr{}, err
	}
	return attrOf(v.reply(0)), nil
}

func getattr(fid uint32) []wire.Message {
	return []wire.Message{&wire.Tgetattr{Fid: fid, Mask: wire.GetBasic}}
}

// attrOf reads the answer to getattr. Nothing may be kept: no notice comes of
// what changes.
func attrOf(m wire.Message) fs.Attr {
	r := m.(*wire.Rgetattr)
	a := fs.Attr{
		Ino: inoOf(r.Qid), Type: typeOf(r.Mode), Perm: r.Mode & 0o7777, Size: int64(min(r.Size, math.MaxInt64)),
		Mtime: stamp(r.MtimeSec, r.MtimeNsec), Atime: stamp(r.AtimeSec, r.AtimeNsec),
	}
	if a.Type != fs.Directory || r.NLink > 1 {
		a.Links = uint32(min(r.NLink, math.MaxUint32))
	}
	return a
}

func typeOf(mode uint32) fs.Type {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return fs.Directory
	case syscall.S_IFLNK:
		return fs.Symlink
	default:
		return fs.Regular
	}
}

func stamp(sec, nsec uint64) time.Time {
	if sec == 0 && nsec == 0 || sec > math.MaxInt64 || nsec >= 1e9 {
		return time.Time{}
	}
	return time.Unix(int64(sec), int64(nsec))
}

// Lookup implements fs.Dir.
func (d *dir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	v, err := d.visit(ctx, visit{name: name, ask: getattr})
	if err != nil {
		return nil, err
	}
	a := attrOf(v.reply(0))
	found := node{c: d.c, path: d.below(name), ino: a.Ino}
	switch a.Type {
	case fs.Directory:
		n := &dir{}
		n.take(&found, &a)
		return n, nil
	case fs.Symlink:
		n := &link{}
		n.take(&found, &a)
		return n, nil
	default:
		n := &file{}
		n.take(&found, &a)
		return n, nil
	}
}

// take fills in a node that is new.
func (n *node) take(found *node, known *fs.Attr) {
	n.c, n.path, n.ino = found.c, found.path, found.ino
	n.known.Store(known)
}

// List implements fs.Dir.
func (d *dir) List(ctx context.Context) ([]fs.Entry, error) {
	v, err := d.visit(ctx, visit{keep: true, ask: func(fid uint32) []wire.Message {
		return []wire.Message{&wire.Tlopen{Fid: fid, Flags: wire.LDirectory}, &wire.Treaddir{Fid: fid, Count: d.c.opt.MaxMessage}}
	}})
	if err != nil {
		return nil, err
	}
	defer v.letGo()
	var all []fs.Entry
	data := v.reply(1).(*wire.Rreaddir).Data
	for len(data) > 0 {
		entries, err := wire.ParseEntries(data)
		if err != nil {
			return nil, lost(d.c.address, err)
		}
		all = appendEntries(all, entries)
		next := newCall(&wire.Treaddir{Fid: v.fid, Offset: entries[len(entries)-1].Offset, Count: v.s.msize})
		if err := v.s.do(ctx, patience, next); err != nil {
			return nil, err
		}
		data = next.reply.(*wire.Rreaddir).Data
	}
	return all, nil
}

func appendEntries(all []fs.Entry, more []wire.Entry) []fs.Entry {
	for _, e := range more {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		t := fs.Regular
		switch {
		case e.Qid.Type&wire.QTDir != 0:
			t = fs.Directory
		case e.Qid.Type&wire.QTSymlink != 0:
			t = fs.Symlink
		}
		all = append(all, fs.Entry{Name: e.Name, Ino: inoOf(e.Qid), Type: t})
	}
	return all
}

// Mkdir implements fs.Maker.
func (d *dir) Mkdir(ctx context.Context, name string) (fs.Node, error) {
	v, err := d.visit(ctx, visit{careful: true, ask: func(fid uint32) []wire.Message {
		return []wire.Message{&wire.Tmkdir{DFid: fid, Name: name, Mode: 0o700}}
	}})
	if err != nil {
		return nil, err
	}
	made := v.reply(0).(*wire.Rmkdir)
	return &dir{node{c: d.c, path: d.below(name), ino: inoOf(made.Qid)}}, nil
}

// Rmdir implements fs.Remover.
func (d *dir) Rmdir(ctx context.Context, name string) error {
	_, err := d.visit(ctx, visit{careful: true, ask: func(fid uint32) []wire.Message {
		return []wire.Message{&wire.Tunlinkat{DFid: fid, Name: name, Flags: wire.RemoveDir}}
	}})
	return err
}

// Readlink implements fs.Link.
func (l *link) Readlink(ctx context.Context) (string, error) {
	v, err := l.visit(ctx, visit{ask: func(fid uint32) []wire.Message { return []wire.Message{&wire.Treadlink{Fid: fid}} }})
	if err != nil {
		return "", err
	}
	return v.reply(0).(*wire.Rreadlink).Target, nil
}

// Open implements fs.File.
func (f *file) Open(ctx context.Context, mode fs.Mode) (fs.Handle, error) {
	flags := uint32(wire.LReadOnly)
	switch {
	case mode.Read && mode.Write:
		flags = wire.LReadWrite
	case mode.Write:
		flags = wire.LWriteOnly
	}
	if mode.NonBlock {
		flags |= wire.LNonBlock
	}
	v, err := f.visit(ctx, visit{keep: true, careful: mode.Write, ask: func(fid uint32) []wire.Message {
		return []wire.Message{&wire.Tlopen{Fid: fid, Flags: flags}}
	}})
	if err != nil {
		return nil, err
	}
	return newHandle(f, v, mode, v.reply(0).(*wire.Rlopen)), nil
}
