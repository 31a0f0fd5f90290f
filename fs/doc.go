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
// # Caching
//
// What a transport may keep, by EntryTTL and AttrTTL, is what cannot become
// untrue; nothing is ever taken back.
//
//   - A row of a table has a lasting name, unless it comes and goes. The
//     directory's inode number means one thing for ever, so the name below it
//     means that thing's file or nothing. So do the names in jobs and
//     conversations: a session gives none of them twice.
//   - A name in sessions or runs can come again for another thing. The links in
//     active and of a conversation come and go, and are followed without a
//     look at their attributes. They are asked for each time.
//   - Attributes last where all of them do: constants, prompt, README, version,
//     config, and the directories of agents.
//   - All other directories are asked each time, though what the kernel wants
//     on the way is only the mode. One answer carries mode and mtime, and mtime
//     moves with each change: kept for a second, it would hide from find -newer
//     and ls -lt what their own script has just done. Telling the kernel of the
//     change would come too late, for the change can be seen before. And that
//     a thing is gone shows only in its attributes, once its name is kept.
//
// Contents are drawn for each look, but for those of kept.go: snapshot, until
// something changes; metrics, until then and for a second at most; config.
//
// # Locks
//
// A handle's own lock comes first and is held over calls to the Bench; so are
// those of the kept texts, which come after it. The other locks of the Tree
// (closings, outcomes, refusals) are leaves. No lock is held
// while a read waits: a stream's turn is a channel, so that waiting for it
// ends with the reader's context.
package fs
