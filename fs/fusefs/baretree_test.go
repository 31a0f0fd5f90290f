package fusefs

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// The yardstick of the benchmarks: a tree of equal shape, and with equal mount
// options, that is go-fuse and nothing else. It uses no code of this package.

type bareDir struct {
	gofs.Inode
	ino     uint64
	entries []fuse.DirEntry
	nodes   map[string]gofs.InodeEmbedder
}

type bareFile struct {
	gofs.Inode
	ino  uint64
	text string
}

func bareAttr(out *fuse.Attr, ino uint64, mode uint32, size, links int) {
	*out = fuse.Attr{Ino: ino, Mode: mode, Size: uint64(size), Blocks: 1, Blksize: 4096, Nlink: uint32(links), Mtime: 1_700_000_000}
}

func (d *bareDir) add(name string, ino uint64, n gofs.InodeEmbedder, mode uint32) {
	d.entries = append(d.entries, fuse.DirEntry{Name: name, Ino: ino, Mode: mode})
	d.nodes[name] = n
}

func (d *bareDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	switch n := d.nodes[name].(type) {
	case *bareDir:
		bareAttr(&out.Attr, n.ino, syscall.S_IFDIR|0o500, 0, 2)
		return d.NewInode(ctx, n, gofs.StableAttr{Ino: n.ino, Mode: syscall.S_IFDIR}), 0
	case *bareFile:
		bareAttr(&out.Attr, n.ino, syscall.S_IFREG|0o400, len(n.text), 1)
		return d.NewInode(ctx, n, gofs.StableAttr{Ino: n.ino, Mode: syscall.S_IFREG}), 0
	}
	return nil, syscall.ENOENT
}

func (d *bareDir) Readdir(context.Context) (gofs.DirStream, syscall.Errno) {
	return gofs.NewListDirStream(d.entries), 0
}

func (d *bareDir) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	bareAttr(&out.Attr, d.ino, syscall.S_IFDIR|0o500, 0, 2)
	return 0
}

func (f *bareFile) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	bareAttr(&out.Attr, f.ino, syscall.S_IFREG|0o400, len(f.text), 1)
	return 0
}

func (f *bareFile) Open(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	return f, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0
}

func (f *bareFile) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off >= int64(len(f.text)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, f.text[off:])]), 0
}

// bareTree is the shape that both sides serve: a file of ten bytes and a
// directory of n directories.
func bareTree(n int) *bareDir {
	dirs := &bareDir{ino: 3, nodes: map[string]gofs.InodeEmbedder{}}
	for i := range n {
		ino := uint64(1000 + i)
		dirs.add(fmt.Sprintf("job-%d", i), ino, &bareDir{ino: ino}, syscall.S_IFDIR)
	}
	root := &bareDir{ino: 1, nodes: map[string]gofs.InodeEmbedder{}}
	root.add("f", 2, &bareFile{ino: 2, text: "0123456789"}, syscall.S_IFREG)
	root.add("jobs", 3, dirs, syscall.S_IFDIR)
	return root
}

// scvfsTree is the same through the adapter.
func scvfsTree(n int) *folder {
	dirs := newFolder()
	for i := range n {
		dirs.add(fmt.Sprintf("job-%d", i), newFolder())
	}
	return newFolder().add("f", newText("0123456789")).add("jobs", dirs)
}

// mountBare mounts as go-fuse does it and returns the mount point.
func mountBare(b testing.TB, root *bareDir) string {
	b.Helper()
	needFUSE(b)
	point, err := Prepare(mountPoint(b))
	if err != nil {
		b.Fatal(err)
	}
	s, err := gofs.Mount(point, root, &gofs.Options{
		MountOptions: fuse.MountOptions{
			FsName: "bare", Name: "scvfs", // so that a failed run is recovered like ours
			Options: []string{"default_permissions"}, DirectMountStrict: privileged(),
			MaxWrite: 128 << 10, MaxBackground: 64, DisableXAttrs: true,
			ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ATOMIC_O_TRUNC,
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		},
		NullPermissions: true, RootStableAttr: &gofs.StableAttr{Ino: 1},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Unmount(); err != nil {
			b.Error(err)
		}
	})
	return point
}
