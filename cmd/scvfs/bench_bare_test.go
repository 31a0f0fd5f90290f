package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// The yardstick of the tree: go-fuse and nothing else, with the names of a
// session and as many jobs, each with a status.

type bareNode struct {
	gofs.Inode
	ino     uint64
	text    string // of a file
	entries []fuse.DirEntry
	nodes   map[string]*bareNode // nil for a file
}

func (n *bareNode) mode() uint32 {
	if n.nodes == nil {
		return syscall.S_IFREG | 0o400
	}
	return syscall.S_IFDIR | 0o500
}

func (n *bareNode) attr(out *fuse.Attr) {
	*out = fuse.Attr{Ino: n.ino, Mode: n.mode(), Size: uint64(len(n.text)), Nlink: 1, Blksize: 4096, Mtime: 1_700_000_000}
}

func (n *bareNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	child := n.nodes[name]
	if child == nil {
		return nil, syscall.ENOENT
	}
	child.attr(&out.Attr)
	return n.NewInode(ctx, child, gofs.StableAttr{Ino: child.ino, Mode: child.mode() & syscall.S_IFMT}), 0
}

func (n *bareNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attr(&out.Attr)
	return 0
}

func (n *bareNode) Readdir(context.Context) (gofs.DirStream, syscall.Errno) {
	return gofs.NewListDirStream(n.entries), 0
}

func (n *bareNode) Open(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	return n, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0
}

func (n *bareNode) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off >= int64(len(n.text)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, n.text[off:])]), 0
}

// bareShape builds a tree; inode numbers count up.
type bareShape struct{ last uint64 }

func (s *bareShape) node(text string, dir bool) *bareNode {
	s.last++
	n := &bareNode{ino: s.last, text: text}
	if dir {
		n.nodes = map[string]*bareNode{}
	}
	return n
}

func (n *bareNode) add(name string, child *bareNode) *bareNode {
	n.entries = append(n.entries, fuse.DirEntry{Name: name, Ino: child.ino, Mode: child.mode()})
	n.nodes[name] = child
	return child
}

// bareTree is /sessions/shop/jobs/job-1 … job-<n>, each with a status.
func bareTree(n int) *bareNode {
	var s bareShape
	root := s.node("", true)
	jobs := root.add("sessions", s.node("", true)).add("shop", s.node("", true)).add("jobs", s.node("", true))
	for i := range n {
		jobs.add(fmt.Sprintf("job-%d", i+1), s.node("", true)).add("status", s.node("completed\n", false))
	}
	return root
}

// serveBare mounts the bare tree on dir until its standard input ends or it is
// told to stop.
func serveBare(jobs int, dir string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	s, err := gofs.Mount(dir, bareTree(jobs), &gofs.Options{
		MountOptions: fuse.MountOptions{
			FsName: "bare", Name: "scvfs", // so that what an interrupted run leaves is found like ours
			Options: []string{"default_permissions"}, DirectMountStrict: os.Geteuid() == 0,
			MaxWrite: 128 << 10, MaxBackground: 64, DisableXAttrs: true,
			ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ATOMIC_O_TRUNC,
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		},
		NullPermissions: true, RootStableAttr: &gofs.StableAttr{Ino: 1},
	})
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop <- syscall.SIGTERM
	}()
	fmt.Println("ready")
	<-stop
	return s.Unmount()
}

var (
	_ gofs.NodeLookuper  = (*bareNode)(nil)
	_ gofs.NodeGetattrer = (*bareNode)(nil)
	_ gofs.NodeReaddirer = (*bareNode)(nil)
	_ gofs.NodeOpener    = (*bareNode)(nil)
	_ gofs.NodeReader    = (*bareNode)(nil)
)
