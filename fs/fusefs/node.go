package fusefs

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"scvfs/fs"
)

const (
	blockSize = 4096
	maxName   = 255 // bytes, as on disk; the kernel would let longer ones pass

	// What df shows. A tree of control files has no size, but programs that
	// look for room before they write should find some.
	statBlocks = 1 << 18
	statFiles  = 1 << 20
)

// node is one inode of the kernel's, over one node of the tree.
type node struct {
	gofs.Inode
	srv   *Server
	inner atomic.Pointer[fs.Node] // never nil; the newest value of the same thing
}

var (
	_ gofs.NodeLookuper       = (*node)(nil)
	_ gofs.NodeGetattrer      = (*node)(nil)
	_ gofs.NodeSetattrer      = (*node)(nil)
	_ gofs.NodeOpener         = (*node)(nil)
	_ gofs.NodeReadlinker     = (*node)(nil)
	_ gofs.NodeStatfser       = (*node)(nil)
	_ gofs.NodeFsyncer        = (*node)(nil)
	_ gofs.NodeOpendirHandler = (*node)(nil)
)

func (s *Server) newNode(inner fs.Node) *node {
	n := &node{srv: s}
	n.inner.Store(&inner)
	return n
}

func (n *node) tree() fs.Node { return *n.inner.Load() }

// Lookup implements gofs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	if len(name) > maxName {
		return nil, syscall.ENAMETOOLONG
	}
	dir, ok := n.tree().(fs.Dir)
	if !ok {
		return nil, syscall.ENOTDIR
	}
	ctx = withCaller(ctx)
	child, err := dir.Lookup(ctx, name)
	if err != nil {
		return nil, n.srv.errno(ctx, "lookup "+name, err)
	}
	return n.enter(ctx, name, child, out)
}

// enter fills out for a child and returns its inode. One that go-fuse has by
// this name already is used again, with the new value: the old one may hold a
// connection or a record that is gone.
func (n *node) enter(ctx context.Context, name string, child fs.Node, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	// A look-up that failed for one client would have the kernel forget the
	// name for all, and with it where the others stand. What a client may not
	// look into it meets when it is asked for the directory's mode.
	attr, err := child.Attr(fs.WithoutCaller(ctx))
	if err != nil {
		return nil, n.srv.errno(ctx, "attributes of "+name, err)
	}
	if what := unfit(child, attr); what != "" {
		return nil, n.srv.broken("lookup "+name, "%s", what)
	}
	n.srv.fill(&out.Attr, attr)
	out.SetEntryTimeout(max(attr.EntryTTL, 0))
	out.SetAttrTimeout(max(attr.AttrTTL, 0))
	id := gofs.StableAttr{Ino: attr.Ino, Mode: typeBits(attr.Type)}
	if known := n.GetChild(name); known != nil && known.StableAttr() == id {
		known.Operations().(*node).inner.Store(&child)
		return known, 0
	}
	return n.NewInode(ctx, n.srv.newNode(child), id), 0
}

// unfit says what a transport cannot live with in a child; empty if nothing.
func unfit(child fs.Node, attr fs.Attr) string {
	if attr.Ino <= fuse.FUSE_ROOT_ID || attr.Ino == math.MaxUint64 {
		return "its inode number is one of the reserved 0, 1 and 2^64-1"
	}
	fits := false
	switch attr.Type {
	case fs.Directory:
		_, fits = child.(fs.Dir)
	case fs.Regular:
		_, fits = child.(fs.File)
	case fs.Symlink:
		_, fits = child.(fs.Link)
	}
	if !fits {
		return "its type does not fit what it can do"
	}
	return ""
}

// Getattr implements gofs.NodeGetattrer. A handle has no attributes of its
// own.
func (n *node) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	_, no := n.attr(withCaller(ctx), "attributes", out)
	return no
}

func (n *node) attr(ctx context.Context, op string, out *fuse.AttrOut) (fs.Attr, syscall.Errno) {
	attr, err := n.tree().Attr(ctx)
	if err != nil {
		return attr, n.srv.errno(ctx, op, err)
	}
	n.srv.fill(&out.Attr, attr)
	out.Ino = n.StableAttr().Ino
	out.SetTimeout(max(attr.AttrTTL, 0))
	return attr, 0
}

// fill turns attributes into the kernel's.
func (s *Server) fill(out *fuse.Attr, attr fs.Attr) {
	size := uint64(max(attr.Size, 0))
	*out = fuse.Attr{
		Ino: attr.Ino, Size: size, Blocks: (size + 511) / 512, Blksize: blockSize,
		Mode: typeBits(attr.Type) | attr.Perm&0o7777, Nlink: attr.Links,
		Owner: fuse.Owner{Uid: s.uid, Gid: s.gid},
	}
	if out.Nlink == 0 {
		out.Nlink = 1
		if attr.Type == fs.Directory {
			out.Nlink = 2
		}
	}
	out.Mtime, out.Mtimensec = stamp(attr.Mtime)
	out.Ctime, out.Ctimensec = out.Mtime, out.Mtimensec
	out.Atime, out.Atimensec = out.Mtime, out.Mtimensec
	if !attr.Atime.IsZero() {
		out.Atime, out.Atimensec = stamp(attr.Atime)
	}
}

// stamp splits a time as the kernel wants it; none is the epoch.
func stamp(t time.Time) (uint64, uint32) {
	if t.IsZero() {
		return 0, 0
	}
	return uint64(t.Unix()), uint32(t.Nanosecond())
}

func typeBits(t fs.Type) uint32 {
	switch t {
	case fs.Directory:
		return syscall.S_IFDIR
	case fs.Symlink:
		return syscall.S_IFLNK
	default:
		return syscall.S_IFREG
	}
}

// Setattr implements gofs.NodeSetattrer. Writers set sizes and times on the
// way; that means nothing and is let pass where they may write. All else that
// would change something is refused.
func (n *node) Setattr(ctx context.Context, _ gofs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	attr, no := n.attr(withCaller(ctx), "attributes", out)
	if no != 0 {
		return no
	}
	if mode, ok := in.GetMode(); ok && mode&0o7777 != out.Mode&0o7777 {
		return syscall.EPERM
	}
	if uid, ok := in.GetUID(); ok && uid != out.Uid {
		return syscall.EPERM
	}
	if gid, ok := in.GetGID(); ok && gid != out.Gid {
		return syscall.EPERM
	}
	written := in.Valid&(fuse.FATTR_SIZE|fuse.FATTR_ATIME|fuse.FATTR_MTIME|fuse.FATTR_ATIME_NOW|fuse.FATTR_MTIME_NOW) != 0
	if written && (attr.Type != fs.Regular || attr.Perm&0o200 == 0) {
		return syscall.EPERM
	}
	return 0
}

// Open implements gofs.NodeOpener. Flags that truncate or append mean nothing.
func (n *node) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	file, ok := n.tree().(fs.File)
	if !ok {
		return nil, 0, syscall.EPERM
	}
	mode := fs.Mode{NonBlock: flags&syscall.O_NONBLOCK != 0}
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		mode.Read = true
	case syscall.O_WRONLY:
		mode.Write = true
	case syscall.O_RDWR:
		mode.Read, mode.Write = true, true
	default:
		return nil, 0, syscall.EINVAL
	}
	ctx = withCaller(ctx)
	inner, err := file.Open(ctx, mode)
	if err != nil {
		return nil, 0, n.srv.errno(ctx, "open", err)
	}
	if inner == nil {
		return nil, 0, n.srv.broken("open", "there is neither a handle nor an error")
	}
	h, open := n.srv.newHandle(ctx, n.EmbeddedInode().StableAttr().Ino, inner, mode)
	return h, open, 0
}

// Readlink implements gofs.NodeReadlinker.
func (n *node) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	link, ok := n.tree().(fs.Link)
	if !ok {
		return nil, syscall.EINVAL
	}
	ctx = withCaller(ctx)
	target, err := link.Readlink(ctx)
	if err != nil {
		return nil, n.srv.errno(ctx, "readlink", err)
	}
	if target == "" || len(target) >= blockSize || strings.ContainsRune(target, 0) {
		return nil, n.srv.broken("readlink", "a target of %d bytes is no path", len(target))
	}
	return []byte(target), 0
}

// Statfs implements gofs.NodeStatfser.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	*out = fuse.StatfsOut{
		Bsize: blockSize, Frsize: blockSize, NameLen: maxName,
		Blocks: statBlocks, Bfree: statBlocks, Bavail: statBlocks,
		Files: statFiles, Ffree: statFiles,
	}
	return 0
}

// Fsync implements gofs.NodeFsyncer for files and directories: what a write
// did is done when it returns.
func (n *node) Fsync(context.Context, gofs.FileHandle, uint32) syscall.Errno { return 0 }

// OpendirHandle implements gofs.NodeOpendirHandler.
func (n *node) OpendirHandle(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	return &dirHandle{node: n}, 0, 0
}
