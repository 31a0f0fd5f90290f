package fusefs

import (
	"context"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"scvfs/fs"
)

// Of all that changes names, a tree can offer mkdir and rmdir. The rest is
// written down here as refused, because go-fuse takes what is missing for a
// success.
var (
	_ gofs.NodeMkdirer   = (*node)(nil)
	_ gofs.NodeRmdirer   = (*node)(nil)
	_ gofs.NodeUnlinker  = (*node)(nil)
	_ gofs.NodeRenamer   = (*node)(nil)
	_ gofs.NodeCreater   = (*node)(nil)
	_ gofs.NodeSymlinker = (*node)(nil)
	_ gofs.NodeLinker    = (*node)(nil)
	_ gofs.NodeMknoder   = (*node)(nil)
)

// Mkdir implements gofs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	maker, ok := n.tree().(fs.Maker)
	if no := refusal(ok, name); no != 0 {
		return nil, no
	}
	ctx = withCaller(ctx)
	child, err := maker.Mkdir(ctx, name)
	if err != nil {
		return nil, n.srv.errno(ctx, "mkdir "+name, err)
	}
	inode, no := n.enter(ctx, name, child, out)
	if no == 0 && !inode.IsDir() {
		return nil, n.srv.broken("mkdir "+name, "what was made is no directory")
	}
	return inode, no
}

// Rmdir implements gofs.NodeRmdirer.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	remover, ok := n.tree().(fs.Remover)
	if no := refusal(ok, name); no != 0 {
		return no
	}
	ctx = withCaller(ctx)
	if err := remover.Rmdir(ctx, name); err != nil {
		return n.srv.errno(ctx, "rmdir "+name, err)
	}
	return 0
}

// Unlink implements gofs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno { return refusal(false, name) }

// Rename implements gofs.NodeRenamer.
func (n *node) Rename(_ context.Context, _ string, _ gofs.InodeEmbedder, name string, _ uint32) syscall.Errno {
	return refusal(false, name)
}

// Create implements gofs.NodeCreater.
func (n *node) Create(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, refusal(false, name)
}

// Symlink implements gofs.NodeSymlinker.
func (n *node) Symlink(_ context.Context, _, name string, _ *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, refusal(false, name)
}

// Link implements gofs.NodeLinker.
func (n *node) Link(_ context.Context, _ gofs.InodeEmbedder, name string, _ *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, refusal(false, name)
}

// Mknod implements gofs.NodeMknoder.
func (n *node) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, refusal(false, name)
}

// refusal is the answer to a change of name that may be offered; 0 if it is.
func refusal(offered bool, name string) syscall.Errno {
	switch {
	case len(name) > maxName:
		return syscall.ENAMETOOLONG
	case !offered:
		return syscall.EPERM
	}
	return 0
}
