package fusefs

import (
	"context"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"scvfs/fs"
)

// dots is how many entries come before those of the tree: "." and "..".
const dots = 2

// dirHandle is one open directory. It lists what was there when reading began,
// or began again from the start, so offsets stay true however the directory
// changes meanwhile: an entry's offset is one more than its place in the list.
//
// go-fuse calls one method at a time.
type dirHandle struct {
	node    *node
	entries []fs.Entry
	listed  bool
	next    int           // place of the entry that comes next
	entry   fuse.DirEntry // the last one given out; go-fuse copies it
}

var (
	_ gofs.FileReaddirenter = (*dirHandle)(nil)
	_ gofs.FileSeekdirer    = (*dirHandle)(nil)
)

// Readdirent implements gofs.FileReaddirenter.
func (d *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	if no := d.list(ctx); no != 0 {
		return nil, no
	}
	if d.next >= dots+len(d.entries) {
		return nil, 0
	}
	switch d.next {
	case 0:
		d.entry = fuse.DirEntry{Name: ".", Ino: d.node.StableAttr().Ino, Mode: syscall.S_IFDIR}
	case 1:
		d.entry = fuse.DirEntry{Name: "..", Ino: d.parent(), Mode: syscall.S_IFDIR}
	default:
		e := &d.entries[d.next-dots]
		d.entry = fuse.DirEntry{Name: e.Name, Ino: e.Ino, Mode: typeBits(e.Type)}
	}
	d.next++
	d.entry.Off = uint64(d.next)
	return &d.entry, 0
}

// parent returns the inode number of the directory above; the root is its own.
func (d *dirHandle) parent() uint64 {
	if _, above := d.node.Parent(); above != nil {
		return above.StableAttr().Ino
	}
	return d.node.StableAttr().Ino
}

// list takes the list once. Names that no kernel would take, which would spoil
// the whole listing, are left out.
func (d *dirHandle) list(ctx context.Context) syscall.Errno {
	if d.listed {
		return 0
	}
	dir, ok := d.node.tree().(fs.Dir)
	if !ok {
		return syscall.ENOTDIR
	}
	ctx = withCaller(ctx)
	entries, err := dir.List(ctx)
	if err != nil {
		return d.node.srv.errno(ctx, "list", err)
	}
	for i := range entries {
		if !goodName(entries[i].Name) {
			entries = d.cleaned(entries)
			break
		}
	}
	d.entries, d.listed = entries, true
	return 0
}

func (d *dirHandle) cleaned(entries []fs.Entry) []fs.Entry {
	good := make([]fs.Entry, 0, len(entries))
	for _, e := range entries {
		if goodName(e.Name) {
			good = append(good, e)
		} else {
			d.node.srv.broken("list", "%q is no name for a file", e.Name)
		}
	}
	return good
}

func goodName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName &&
		!strings.Contains(name, "/") && !strings.Contains(name, "\x00")
}

// Seekdir implements gofs.FileSeekdirer. The start is a new beginning.
func (d *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	if off == 0 {
		d.entries, d.listed, d.next = nil, false, 0
		return 0
	}
	if no := d.list(ctx); no != 0 {
		return no
	}
	if off > uint64(dots+len(d.entries)) {
		return syscall.EINVAL
	}
	d.next = int(off)
	return 0
}
