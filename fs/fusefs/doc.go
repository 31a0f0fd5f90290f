// Package fusefs serves a tree of scvfs/fs nodes over FUSE, through go-fuse.
//
// It is a transport and nothing else: it knows no session and no job, so that
// any tree behaves the same below a mount, and the tree below any transport.
// Everything that FUSE needs beyond the tree is decided here: how to mount and
// how to leave, what a kernel may cache, which of the many ways to change a
// file system are refused, and who closed a file.
//
// # Invariants
//
//   - The process never looks at a path below its own mount, and never stats a
//     mount point before its mount table says that nothing is mounted there: a
//     dead mount hangs whoever does.
//   - /dev/fuse is open with close-on-exec from the first moment. A child that
//     inherited it would keep a dead mount alive, and hanging.
//   - A node id of the protocol is the node's inode number, so an invalidation
//     needs no map. It holds because an inode number names one thing for ever.
//   - No reply carries an errno that the kernel refuses, ENOSYS (which turns
//     an operation off for the whole mount), or EINTR without an interrupt.
//   - Every handle that Open returned is released once, also when the kernel
//     goes without asking for it.
//   - A name that the tree does not offer for removal is not removed, not even
//     from go-fuse's own books: its default for unlink and rmdir is success.
//
// # Caching
//
// File contents are never cached: every open is FOPEN_DIRECT_IO, so a read is
// answered by the handle alone. Names and attributes are kept as long as each
// node's own EntryTTL and AttrTTL say; there is no default. What a tree lets
// the kernel keep, it must take back through Server.Forget and Server.Changed.
//
// # Contexts
//
// The context that a node or handle gets carries fs.Caller. It ends when the
// client is interrupted, and at the end of the mount; Go clients interrupt
// themselves now and then, so short work should not look at it. It must not be
// kept after the call returns, because go-fuse uses its channel again.
//
// # Closing
//
// Handle.Flush comes for descriptors that can write; a close of a reader's is
// not reported, which spares a round trip. Handle.Release comes some time
// after the close(2) that caused it has returned, and nobody hears its error.
// The kernel does not say then who closed, so its context carries no caller.
// At the end of a mount, a writer that is cut off gets a Flush whose Closer
// says Killed, then its Release.
//
// # Permissions
//
// The kernel checks modes by the attributes it holds. For each directory on a
// path, and for a file that is opened, it asks for them anew unless they have
// an AttrTTL: one round trip each. So a tree gains by giving its directories
// one, and calling Server.Changed when they change.
//
// # Locks
//
// Server.mu guards the set of open handles. It is a leaf: it is never held
// over a call to the tree, to go-fuse or to the kernel. go-fuse holds a lock
// of its own for each open directory over Dir.List, and none over other calls.
//
// # Deadlocks
//
//   - Forget and Changed wait in the kernel for locks that a pending request
//     may hold. Call them with no lock held, and never from inside a request.
//   - Writes to one file come one at a time, by the kernel's inode lock, and
//     those that wait for it cannot be killed. So Handle.Write must not wait.
//   - A child of this process with its directory, program or inherited
//     descriptor below the mount can stop the process for ever.
package fusefs
