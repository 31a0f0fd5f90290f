// Package fs is the tree that users see: nodes, directories, files and open
// handles, over a workbench and under no particular transport.
//
// # How it is built
//
// A directory is either a table or a collection. A table (table.go) has fixed
// names, each a row that says how to draw the file from the directory's
// subject: a session, a job, a run, an agent. A collection has names that come
// and go with the ledger. A new file of a job is one row in job.go.
//
// There are seven kinds of file, whatever they show: text (drawn at open),
// disk (a file of a run or a job, live), lines (ctl and attributes: commands,
// one a line, done in the write), document (sent at close), stream (waits for
// what comes next; found by name, never listed), link, and directory.
//
// Nodes are values that hold an identity and look their subject up each time,
// so a transport can keep one as long as it likes. What must outlive a node
// is kept by the Tree under the node's inode number.
//
// # Invariants
//
//   - Attr.Size is the length of what a read from the start returns now, for
//     all files but diff and streams.
//   - A handle never mixes two versions of a content: each is drawn whole, at
//     open and at each read at offset 0, and never changed afterwards.
//   - A listed name never blocks.
//   - A refusal is recorded (refusals.go) before its error is returned.
//   - A document becomes at most one job, and none once any part was refused.
//   - Nothing here looks at a path at or below the mount point.
//   - An inode number is a hash of what a thing is, never of where it is
//     listed.
//
// # Locks
//
// A handle's own lock comes first and is held over calls to the Bench; the
// locks of the Tree (closings, outcomes, refusals) are leaves. No lock is held
// while a read waits: a stream's turn is a channel, so that waiting for it
// ends with the reader's context.
package fs
