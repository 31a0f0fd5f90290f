package ninep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// The limits that Options has when it does not say otherwise, and the least
// that MaxMessage can be.
const (
	defaultMessage  = 512 << 10
	defaultFids     = 8192
	defaultRequests = 1024
	defaultClients  = 64
	defaultTimeout  = 30 * time.Second

	leastMessage = 4 << 10
)

// Options are what a server can be told. The zero value is good.
type Options struct {
	// Log gets what goes wrong and reaches no client. Nil discards it.
	Log *slog.Logger
	// OnPanic is told of a panic in the tree. The request that met it fails
	// with EIO and the others go on. Nil logs it.
	OnPanic func(value any, stack []byte)

	// Relay tells whether a process that is connected may speak for others, as
	// a mount of the tree does for those who use it. Nil is no.
	Relay func(pid int) bool
	// Meet is told who connects, before anything is asked for it, and returns
	// it with what the tree is to remember of it. Nil is nothing.
	Meet func(fs.Caller) fs.Caller

	// MaxMessage is the largest frame in bytes, both ways; 0 is 512 KiB. Less
	// than 4 KiB counts as that.
	MaxMessage uint32
	// MaxFids is how many fids one connection may have; 0 is 8192.
	MaxFids int
	// MaxRequests is how many requests one connection may have running or
	// waiting, whatever their answers' fate; 0 is 1024.
	MaxRequests int
	// MaxClients is how many connections there may be; 0 is 64.
	MaxClients int
	// WriteTimeout is how long one answer may take to send, and how long a
	// client may take to say its first word; 0 is 30 seconds. A client that
	// takes longer is dropped.
	WriteTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnPanic == nil {
		log := o.Log
		o.OnPanic = func(value any, stack []byte) {
			log.Error("panic in the tree", "value", fmt.Sprint(value), "stack", string(stack))
		}
	}
	orElse(&o.MaxMessage, defaultMessage)
	o.MaxMessage = max(o.MaxMessage, leastMessage)
	orElse(&o.MaxFids, defaultFids)
	orElse(&o.MaxRequests, defaultRequests)
	orElse(&o.MaxClients, defaultClients)
	orElse(&o.WriteTimeout, defaultTimeout)
	return o
}

// orElse gives an option its default.
func orElse[T int | uint32 | time.Duration](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}

// Server serves one tree to any number of connections.
type Server struct {
	root        *place
	opt         Options
	uid, gid    uint32
	user, group string // their names, for 9P2000
	buffers     buffers

	mu     sync.Mutex
	conns  map[*conn]struct{}
	doors  map[net.Listener]struct{}
	closed bool
	over   sync.WaitGroup // connections and calls of Serve
}

// New returns a server of root. It fails with root's own error where that has
// no attributes, and fault.Internal where it is no directory.
func New(root fs.Dir, opt Options) (*Server, error) {
	attr, err := root.Attr(context.Background())
	if err != nil {
		return nil, err
	}
	if what := unfit(root, attr); what != "" || attr.Type != fs.Directory {
		return nil, fault.New(fault.Internal, "the root of the tree is no directory with an inode number; it cannot be served over 9P")
	}
	s := &Server{
		root: &place{node: root, qid: qidOf(attr), name: "/"}, opt: opt.withDefaults(),
		uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()),
		conns: make(map[*conn]struct{}), doors: make(map[net.Listener]struct{}),
	}
	s.user, s.group = userName(s.uid), groupName(s.gid)
	s.buffers.large = int(s.opt.MaxMessage) + wire.DataHeader
	return s, nil
}

// userName returns the name of a user, or the number where there is none.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func groupName(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// Serve takes connections from l until ctx ends, the server is closed or l
// fails, and closes l. It returns once every connection that it took has ended
// and all that those had open is released: nil, or why l failed. Several calls
// may run at once, each with a listener of its own.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.open(l) {
		l.Close()
		return fault.New(fault.Gone, "the 9P server is closed; it takes no more connections on %s", l.Addr())
	}
	defer s.over.Done()
	defer s.shut(l)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	var mine sync.WaitGroup
	err := s.accept(ctx, l, &mine)
	stop()
	l.Close()
	cancel()
	mine.Wait()
	return err
}

// open puts a listener into the books; false once the server is closed.
func (s *Server) open(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.doors[l] = struct{}{}
	s.over.Add(1)
	return true
}

func (s *Server) shut(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.doors, l)
}

// accept is the loop of Serve. Running out of descriptors is no reason to
// give up: some connection will end.
func (s *Server) accept(ctx context.Context, l net.Listener, mine *sync.WaitGroup) error {
	const pause = 100 * time.Millisecond
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			mine.Go(func() { s.serve(ctx, nc) })
		case ctx.Err() != nil || s.isClosed():
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM),
			errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ECONNABORTED):
			s.opt.Log.Warn("a 9P client could not be let in", "at", l.Addr().String(), "err", err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
		default:
			return fault.New(fault.Internal, "no more 9P clients come in at %s: %w", l.Addr(), err)
		}
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends all listeners and connections and returns once all that was open
// is released. Nothing can be served afterwards.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for l := range s.doors {
		l.Close()
	}
	for c := range s.conns {
		c.hangUp()
	}
	s.mu.Unlock()
	s.over.Wait()
}

// serve runs one connection to its end.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	caller, err := callerOf(nc)
	if s.opt.Meet != nil && err == nil {
		caller = s.opt.Meet(caller)
	}
	c := newConn(fs.WithCaller(ctx, caller), s, nc, caller)
	defer c.hangUp()
	if err == nil {
		err = s.enter(c)
	}
	if err != nil {
		s.opt.Log.Warn("a 9P client was turned away", "peer", c.peer, "err", err)
		return
	}
	defer s.leave(c)
	why := c.run()
	s.opt.Log.Debug("a 9P client has gone", "peer", c.peer, "why", why)
}

// enter puts a connection into the books, if it may come in.
func (s *Server) enter(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.caller.UID != s.uid && c.caller.UID != 0:
		return fault.New(fault.Denied, "user %d may not use the tree of user %d; connect as that user", c.caller.UID, s.uid)
	case s.closed:
		return fault.New(fault.Gone, "the server is closed")
	case len(s.conns) >= s.opt.MaxClients:
		return fault.New(fault.Limit, "there are %d 9P clients already, which is the limit; disconnect one", s.opt.MaxClients)
	}
	s.conns[c] = struct{}{}
	s.over.Add(1)
	return nil
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.over.Done()
}

// refused is an errno that this package decides; all others are fs.Errno's.
type refused syscall.Errno

// Error implements error.
func (r refused) Error() string { return syscall.Errno(r).Error() }

// errno turns a refusal into the answer. A client that gave nothing up and
// hears EINTR could ask for ever, so that is our own fault like all that has
// no kind; those are logged, because no client sees why.
func (s *Server) errno(ctx context.Context, op string, err error) syscall.Errno {
	if no, ok := err.(refused); ok {
		return syscall.Errno(no)
	}
	no := fs.Errno(err)
	if no == syscall.EINTR && ctx.Err() == nil {
		no = syscall.EIO
	}
	if no == syscall.EIO {
		s.opt.Log.Error("9P request failed", "op", op, "err", err)
	}
	return no
}

// broken reports a tree that does not keep fs's contract.
func (s *Server) broken(op, format string, args ...any) error {
	s.opt.Log.Error("the tree broke its contract", "op", op, "what", fmt.Sprintf(format, args...))
	return refused(syscall.EIO)
}

// caught runs deferred: it makes an error of a panic in the tree.
func (s *Server) caught(err *error) {
	if value := recover(); value != nil {
		s.opt.OnPanic(value, debug.Stack())
		*err = refused(syscall.EIO)
	}
}
