package fusefs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// maxBackground is how many requests that no client waits for, mostly
// releases, the kernel sends at once.
const maxBackground = 64

// Options are what a mount can be told. The zero value is good.
type Options struct {
	// Log gets what goes wrong and reaches no client. Nil discards it.
	Log *slog.Logger
	// OnPanic is told of a panic in the tree. The request that met it fails
	// with EIO and the others go on. Nil logs it.
	OnPanic func(value any, stack []byte)
}

// Mount serves root on dir, which it prepares first (see Prepare for its
// errors, and Recover for who may call it). Root mounts by itself, others
// through fusermount3. The mount is its user's alone; the kernel checks modes.
//
// Further errors are fault.Unsupported where FUSE or fusermount3 is missing,
// fault.Denied where this process may not use it, and those of root's Attr.
func Mount(dir string, root fs.Dir, opt Options) (*Server, error) {
	attr, err := root.Attr(context.Background())
	if err != nil {
		return nil, err
	}
	if attr.Ino == 0 || attr.Type != fs.Directory {
		return nil, fault.New(fault.Internal, "the root of the tree is no directory with an inode number; nothing was mounted on %s", dir)
	}
	path, err := Prepare(dir)
	if err != nil {
		return nil, err
	}
	conn, err := attach(path)
	if err != nil {
		return nil, err
	}
	s := newServer(path, attr.Ino, opt)
	if err := s.start(conn, root); err != nil {
		return nil, errors.Join(err, detach(path))
	}
	s.warnOfTimeouts(sysctls)
	return s, nil
}

// start answers the kernel's greeting on conn, which it owns from then on, and
// serves. It does not wait for the mount as go-fuse's Mount does: that looks
// into the mount from the process that serves it.
func (s *Server) start(conn int, root fs.Dir) error {
	at, err := mountsAt(s.dir)
	if err == nil && len(at) == 0 {
		err = fault.New(fault.Internal, "%s was unmounted while it was being mounted", s.dir)
	}
	if err != nil {
		unix.Close(conn)
		return err
	}
	s.device = at[len(at)-1].device
	opt := s.options()
	raw := gofs.NewNodeFS(s.newNode(root), opt)
	s.fuse, err = fuse.NewServer(raw, fmt.Sprintf("/dev/fd/%d", conn), &opt.MountOptions)
	if err != nil {
		return fault.New(fault.Unsupported, "the kernel and this program do not agree on a FUSE protocol: %w", err)
	}
	go s.serve()
	return nil
}

// options are go-fuse's. No timeout is set here: one for the whole mount would
// beat those of the nodes.
func (s *Server) options() *gofs.Options {
	text := log.New(logWriter{s}, "", 0)
	return &gofs.Options{
		MountOptions: fuse.MountOptions{
			FsName: source, Name: subtype,
			MaxWrite: maxWrite, MaxBackground: maxBackground,
			DisableXAttrs:        true,
			ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ATOMIC_O_TRUNC,
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
			PanicHandler:         s.panicked,
			Logger:               text,
		},
		NullPermissions: true,
		RootStableAttr:  &gofs.StableAttr{Ino: s.rootIno},
		ExternalNodeID:  true,
		Logger:          text,
	}
}

// sysctls is where an administrator sets what all FUSE mounts obey.
const sysctls = "/proc/sys/fs/fuse"

// warnOfTimeouts looks for the settings that limit how long a request may
// take: the kernel ends the whole mount at the first that takes longer, and
// here reads wait.
func (s *Server) warnOfTimeouts(dir string) {
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if seconds := strings.TrimSpace(string(text)); err == nil && seconds != "0" {
			s.log.Warn("a read that waits longer than this ends the whole mount; set it to 0 with 'sysctl fs.fuse."+name+"=0'",
				"sysctl", "fs.fuse."+name, "seconds", seconds, "mount", s.dir)
		}
	}
}
