package fs

import (
	"context"
	"time"

	"scvfs/workbench"
)

// Type is what kind of thing a node is.
type Type uint8

// The types.
const (
	Directory Type = iota
	Regular
	Symlink
)

// Attr is what stat shows of a node.
type Attr struct {
	Ino   uint64 // stable over restarts, never used again for another thing
	Type  Type
	Perm  uint32 // permission bits: 0400, 0200, 0600, 0500, 0700
	Size  int64  // what a read from the start would return now (DESIGN 4.1)
	Links uint32 // 0 means 1, or 2 for a directory
	Mtime time.Time
	Atime time.Time // zero: Mtime

	// Append says that the content only grows, so that even a transport which
	// shows no sizes of changing files (9P) can tell this one.
	Append bool

	// EntryTTL and AttrTTL are how long a transport may keep the name and the
	// attributes without asking again. Zero for all that can change.
	EntryTTL, AttrTTL time.Duration
}

// Node is one name of the tree. Implementations are cheap values: a transport
// keeps one as long as its client knows the name, and each lookup may make a
// new one with the same Attr.Ino.
type Node interface {
	// Attr returns the attributes now. A node whose thing is gone answers
	// fault.NotFound.
	Attr(ctx context.Context) (Attr, error)
}

// Dir is a directory.
type Dir interface {
	Node
	// Lookup returns the child called name, also one that List does not show.
	Lookup(ctx context.Context, name string) (Node, error)
	// List returns the entries in a fixed order. Every listed name reads to an
	// end and never blocks.
	List(ctx context.Context) ([]Entry, error)
}

// Entry is one name of a listing.
type Entry struct {
	Name string
	Ino  uint64
	Type Type
}

// Maker is a directory that mkdir works in.
type Maker interface {
	Mkdir(ctx context.Context, name string) (Node, error)
}

// Remover is a directory that rmdir works in.
type Remover interface {
	Rmdir(ctx context.Context, name string) error
}

// Link is a symbolic link.
type Link interface {
	Node
	Readlink(ctx context.Context) (string, error)
}

// Mode says what an open file is for.
type Mode struct {
	Read, Write bool
	NonBlock    bool // O_NONBLOCK at open: a waiting read answers EAGAIN
}

// File is a regular file.
type File interface {
	Node
	// Open refuses what can be refused before a byte is moved. The transport
	// has checked Mode against Attr.Perm only if it says so; Open checks
	// again.
	Open(ctx context.Context, mode Mode) (Handle, error)
}

// Handle is one open file description. Reads may come at once and in any
// number; writes come one at a time, in order.
type Handle interface {
	// Read fills p from off and returns how much; 0 is the end. A waiting
	// handle (Stream) blocks until there is something or ctx ends
	// (fault.Interrupted). A read at offset 0 takes a new version of the
	// content; others continue the one before (DESIGN 4.2).
	Read(ctx context.Context, p []byte, off int64) (int, error)
	// Write takes all of p or fails. Offsets mean nothing (DESIGN 4.3). When
	// some of p's lines took effect before one was refused, it returns how
	// many bytes those were, with no error; the caller sends the rest again.
	Write(ctx context.Context, p []byte) (int, error)
	// Flush is one close(2) of one descriptor of this description. It must
	// not look its caller up: one that closes descriptors as it executes a
	// program is waited for by whoever does.
	Flush(ctx context.Context, by Closer) error
	// Release comes once, after the last descriptor is gone.
	Release(ctx context.Context)
}

// Streamer is implemented by a handle whose reads wait for what comes next
// instead of ending; offsets mean nothing to it.
type Streamer interface{ Stream() bool }

// Closer says who closes a descriptor.
type Closer struct {
	// Opener is true when the process that opened the file closes it; false
	// for another one that inherited the descriptor.
	Opener bool
	// Last looks whether neither that process nor any below it has another
	// descriptor of this file: then the description ends with this close, as
	// far as anybody can tell before Release. It costs a look at all
	// processes. Nil means no.
	Last func() bool
	// Killed is true when the process is dying of a signal: half a document
	// of its is not to be sent.
	Killed bool
}

// Caller is who asks.
type Caller struct {
	PID int // process id (a thread's is fine); 0 for one without a number here
	UID uint32
	// Bound says that the transport learned it once, when somebody connected
	// or opened the file, and that nothing tells who acts now: by then that
	// process may have ended. With no PID the transport answers for it.
	Bound bool

	who *workbench.Caller // as Tree.Meet found it; nil: by the process
}

type callerKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithoutCaller returns a context for what a transport asks for itself: what
// it is told is not for a client's eyes, or is only checked again later.
func WithoutCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, nil)
}

// CallerOf returns who asks; ok is false when the transport did not say, which
// is to say that it has let in the owner alone.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}
