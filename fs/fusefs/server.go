package fusefs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"scvfs/fs"
)

// Server is one mounted tree.
type Server struct {
	dir      string
	device   uint32
	rootIno  uint64
	uid, gid uint32
	log      *slog.Logger
	onPanic  func(value any, stack []byte)
	abort    func(device uint32) error

	fuse    *fuse.Server
	leaving atomic.Bool   // Unmount was called
	done    chan struct{} // closed after the last request and release

	mu      sync.Mutex
	handles map[*handle]struct{} // open and not yet released
}

func newServer(path string, rootIno uint64, opt Options) *Server {
	s := &Server{
		dir: path, rootIno: rootIno,
		uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()),
		log: opt.Log, onPanic: opt.OnPanic, abort: abort,
		done: make(chan struct{}), handles: make(map[*handle]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.onPanic == nil {
		s.onPanic = func(value any, stack []byte) {
			s.log.Error("panic in the tree", "value", fmt.Sprint(value), "stack", string(stack))
		}
	}
	return s
}

// serve runs until the mount is gone, then gives back what is still open.
func (s *Server) serve() {
	defer close(s.done)
	s.fuse.Serve()
	for _, h := range s.abandoned() {
		h.abandon()
	}
}

// Dir returns the mount point, absolute and without symbolic links.
func (s *Server) Dir() string { return s.dir }

// Wait returns once the mount is gone, whoever took it away, every request has
// ended and every handle is released.
func (s *Server) Wait() { <-s.done }

// Forget tells the kernel that a name in a directory is not what it was: it
// came, went, or is another thing now. It matters for names with an EntryTTL,
// and for the memory that the kernel spends on names that are gone. See the
// package comment for where not to call it.
func (s *Server) Forget(dir uint64, name string) {
	s.noticed("forget a name", s.fuse.EntryNotify(s.nodeID(dir), name))
}

// Changed tells the kernel that a node's attributes are not what they were. It
// matters for nodes with an AttrTTL. See the package comment for where not to
// call it.
func (s *Server) Changed(ino uint64) {
	s.noticed("forget attributes", s.fuse.InodeNotify(s.nodeID(ino), -1, 0))
}

// nodeID returns what the protocol calls a node. The root is always 1 there.
func (s *Server) nodeID(ino uint64) uint64 {
	if ino == s.rootIno {
		return fuse.FUSE_ROOT_ID
	}
	return ino
}

// noticed logs a notice that failed, unless it was about what the kernel never
// saw, or after the end.
func (s *Server) noticed(what string, status fuse.Status) {
	switch syscall.Errno(status) {
	case 0, syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ENOTCONN, syscall.EBADF:
		return
	}
	s.log.Warn("the kernel did not "+what, "mount", s.dir, "err", status)
}

// errno turns a refusal of the tree into the reply. A client that was not
// interrupted and hears EINTR would ask for ever, so that is our own fault
// like all that has no kind; those are logged, because no client sees why.
//
// A tree that is another machine's has its errnos from there, and knows more of
// them than there are kinds; what it knows is passed on as it is.
func (s *Server) errno(ctx context.Context, op string, err error) syscall.Errno {
	no := fs.Errno(err)
	foreign, told := err.(interface{ Errno() syscall.Errno })
	if told {
		no = foreign.Errno()
	}
	if no == syscall.EINTR && ctx.Err() == nil {
		no = syscall.EIO
	}
	if no == syscall.EIO && !told {
		s.log.Error("request failed", "op", op, "mount", s.dir, "err", err)
	}
	return no
}

// broken reports a tree that does not keep fs's contract.
func (s *Server) broken(op, format string, args ...any) syscall.Errno {
	s.log.Error("the tree broke its contract", "op", op, "mount", s.dir, "what", fmt.Sprintf(format, args...))
	return syscall.EIO
}

// panicked runs deferred, on the stack of the panic.
func (s *Server) panicked(value any) fuse.Status {
	s.onPanic(value, debug.Stack())
	return fuse.EIO
}

// withCaller adds who asks to go-fuse's context.
func withCaller(ctx context.Context) context.Context {
	var c fs.Caller
	if from, ok := fuse.FromContext(ctx); ok {
		c = fs.Caller{PID: int(from.Pid), UID: from.Uid}
	}
	return fs.WithCaller(ctx, c)
}

// logWriter takes go-fuse's own lines. While leaving, replies to those who are
// cut off fail, which is no news.
type logWriter struct{ s *Server }

func (w logWriter) Write(line []byte) (int, error) {
	if !w.s.leaving.Load() {
		w.s.log.Warn("go-fuse: "+strings.TrimSpace(string(line)), "mount", w.s.dir)
	}
	return len(line), nil
}
