// Package client is a 9P2000.L client whose files are fs nodes, so that fusefs
// mounts a tree that another daemon serves, on this machine or on another.
//
// A node is a path and the inode number that was found there, and holds nothing
// of the server's: each call walks to it anew. So a node outlives the
// connection, and when the server answers again the tree is back by itself. An
// open file belongs to the connection that it was opened on and is stale
// (ESTALE) after it.
//
// With a server of our own (wire.Extended) sizes are true, streams are known,
// each close(2) is told with who closes, requests carry the process that they
// are for, and all messages of a call travel at once: one round trip. With any
// other 9P2000.L server sizes are what it says, any read may be interrupted,
// what was written is sent by Release alone, and a killed writer cannot be told
// from another.
//
// # Interrupts
//
// A waiting read of a stream is given up (Tflush) as soon as its context ends.
// Anything else is short; it is given up only when it has not come some time
// after that, so that a process which hangs on a dead network can be killed,
// and one that is merely interrupted does not notice.
//
// # Errors
//
// What a server refuses is a Refusal with its very errno. Without a connection
// calls fail with ECONNREFUSED where nobody listens and EIO otherwise, and the
// log says so once.
//
// # Locks
//
// Client.mu guards which session is the live one. session.wmu orders what is
// sent and guards the numbers of roots; session.mu guards tags and fids. They
// are taken in this order, and none is held while an answer is waited for.
package client
