// Package ninep serves a tree of scvfs/fs nodes over 9P: 9P2000.L, as Linux
// mounts it, and 9P2000, each client as it asks, on the same sockets.
//
// It is a transport and nothing else: it knows no session and no job, so that
// any tree behaves the same below it as below fusefs, but for what 9P cannot
// say. The frames are package wire's.
//
// # How it is built
//
// A connection has one reader, which decodes messages, finds their fids and
// puts what comes on one fid in order. It calls nothing of the tree, so no
// file can hold it up. Each request then has a goroutine and a context of its
// own; the context carries fs.Caller, and ends with a Tflush, a Tversion or
// the connection.
//
// # Invariants
//
//   - What a client may not be told is never sent: a request has one claim to
//     be answered, taken by its answer or by what drops it, and answers are
//     sent in the order of the claims. So nothing about a request follows its
//     Rflush, and a dropped request is taken back: its new fid is none, its
//     open file is closed.
//   - Writes on one fid run one at a time in the order of arrival, also those
//     that were sent without waiting; what follows one, and a Tclunk, comes
//     after it.
//   - Every handle that Open returned is released once. A Tclunk is a close by
//     who opened it, and the last one, so a document is sent before Rclunk,
//     and its refusal is the answer. A connection, or a session, that ends is
//     a killed writer: nothing is sent.
//   - A file of which a write was dropped or not taken has a hole. It is read
//     and written no more (ESTALE), and ends as a killed writer's.
//   - A waiting read holds a kilobyte.
//   - No answer carries EINTR unless the request was given up.
//
// # Streams
//
// Linux's client does not hand over a short answer: it asks for the rest until
// an answer is empty. So to that client, and only to it, the question for the
// rest is answered at once with what there is, which may be nothing. It is
// told by its first steps: 9P2000.L, no Tauth, and a Tgetattr right after its
// Tattach. Other clients get each answer as it comes, and an empty one only at
// the end.
//
// # Our own client
//
// Package client asks for wire.Extended, and gets what a FUSE mount through 9P
// needs to be like one of the tree itself: true sizes, a mark on streams, and
// Tshut, by which each close(2) is told, after which a Tclunk only lets go. Its
// requests are for the process that its attach names, if Options.Relay trusts
// the one that is connected to say so.
//
// # Sizes
//
// A size is told of what only grows (Attr.Append) and of symbolic links.
// Everything else says 0 and reads to its end all the same; Linux asks without
// end for bytes that a size promised and a read no longer gives.
//
// # Symbolic links
//
// 9P2000 has none. A link within the tree is shown there as what it leads to,
// under its own name; one that leads nowhere, or out of the tree, as a file
// that holds its target. Nothing is removed through a link.
//
// # Who may
//
// On a unix socket, the user that connected must be the server's own or root.
// Nothing is known of who connects by TCP, so ListenTCP keeps to the loopback
// unless told otherwise. Names that clients give (uname, n_uname) mean nothing,
// but for those of our own client, which say for which process of the machine a
// mount asks (wire.Extended); Options.Relay decides who is believed.
//
// # Memory
//
// With the limits as they are by default, a connection takes at most:
//
//	idle                           64 KiB
//	a fid, 8192 of them             1 KiB each
//	a request, 1024 of them        24 KiB each, its small buffer included
//	8 large answers, 17 writes    512 KiB each, one of them on its way in
//	listings being read             8 MiB
//
// which is 52 MiB for one that does its worst, besides what the tree keeps for
// its open files. Where a limit is reached the answer is EAGAIN; large answers
// are waited for. A frame of a bad size, a tag that is used again, or a message
// that does not parse ends the connection.
//
// # Locks
//
// conn.wmu, then session.mu; fid.mu comes after both. Server.mu, file.mu and
// the turn of a listing are taken alone, but that the turn is held over calls
// to the tree. conn.wmu is held while an answer is sent, for WriteTimeout at
// most, so the reader cancels what a Tflush names before it takes it.
package ninep
