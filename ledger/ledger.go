// Package ledger is the daemon's durable memory: sessions, jobs,
// conversations, runs, approvals and counters, in one bbolt file that one
// daemon holds at a time. Prompts, results and logs are files beside it, never
// in it.
//
// # How it is used
//
// Open takes the lock of a state directory, Load reads all there is, and from
// then on the caller keeps the records in memory and hands each change to
// Commit as a Batch. The ledger knows no rule of the workbench; it knows what
// a record is, and Check knows what must be true of all of them together.
//
// # Invariants
//
//   - What Commit returned nil for is on the disk, whole, whoever dies when.
//     A batch is there whole or not at all.
//   - A record that cannot be read hides no other and keeps its bytes: nothing
//     but an explicit deletion of exactly that record touches them.
//   - A ledger of a newer schema, a foreign file, a symbolic link and a file of
//     another user are refused and left as they are.
//   - Serials and approval numbers are never given twice: the counter that
//     covers a record is raised in the transaction that holds the record.
//   - After a failure of the disk that leaves the state of the file in doubt,
//     nothing is written any more until the ledger is opened again. A full
//     disk is no such failure: it fails the batches that do not fit.
//
// # Locks
//
// The lock on ledger.db (flock) is the daemon's lock. Inside the process one
// goroutine, the committer, is the only writer. Ledger.mu guards the queue of
// batches; it is a leaf and is never held over anything that can block.
package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// fileName is the ledger's file in the state directory.
const fileName = "ledger.db"

// Options adjusts a ledger. The zero value is what a daemon uses.
type Options struct {
	// Clock tells the time that the owner file names; nil means time.Now.
	Clock func() time.Time
}

// Ledger is an open ledger. Its methods are safe for concurrent use.
type Ledger struct {
	dir  string
	db   *bolt.DB
	file *os.File // of db, for what bbolt does not do; db closes it

	mu     sync.Mutex
	queue  []*request
	closed bool

	wake chan struct{} // one token when the queue is not empty; closed by Close
	idle chan struct{} // closed when the committer is gone

	// update runs one write transaction; tests put failures in its place.
	update func(func(*bolt.Tx) error) error

	broken   atomic.Pointer[fault.Error] // why nothing is written any more
	reserved int64                       // the file size that the reserve was made for; the committer's
	stats    counts

	end      sync.Once
	closeErr error
}

// Open opens the ledger of a state directory, making both when they are not
// there, and holds the directory's lock until Close. It waits at most a second
// for the lock. fault.Busy names the process that has it, fault.Unsupported
// tells of a ledger that a newer scvfs wrote, fault.Denied of files that are
// not safely ours, fault.NoSpace of a full disk.
func Open(dir string, opt Options) (*Ledger, error) {
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	l, err := openSchema(dir, opt, current)
	return l, fault.In("", dir, err)
}

// openSchema is Open for a program that knows the given schema.
func openSchema(dir string, opt Options, s schema) (*Ledger, error) {
	if err := secureDir(dir); err != nil {
		return nil, err
	}
	db, file, err := openLocked(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		dir: dir, db: db, file: file,
		wake: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	if err := l.prepare(opt, s); err != nil {
		l.release()
		return nil, err
	}
	l.update = l.db.Update
	l.reserve()
	go l.commitAll()
	return l, nil
}

// prepare brings the file to the schema, having looked first whether it may be
// touched at all.
func (l *Ledger) prepare(opt Options, s schema) error {
	version, err := l.readVersion(s)
	if err != nil {
		return err
	}
	if err := writeOwner(l.dir, opt.Clock()); err != nil && !fault.Is(err, fault.NoSpace) {
		return err // on a full disk only the holder's name is missing
	}
	if err := l.compact(); err != nil {
		return err
	}
	if version == s.version {
		return nil
	}
	return guard(func() error { return l.db.Update(func(tx *bolt.Tx) error { return s.bring(tx, version) }) })
}

// Close writes what was handed to Commit before, and gives the lock back.
// Everything after it fails with fault.Closed.
func (l *Ledger) Close() error {
	l.end.Do(func() {
		l.mu.Lock()
		l.closed = true
		close(l.wake)
		l.mu.Unlock()
		<-l.idle
		l.closeErr = l.release()
	})
	return l.closeErr
}

// release gives the lock back. The owner file goes first, while the lock keeps
// anybody else from having written it.
func (l *Ledger) release() error {
	removeOwner(l.dir)
	if l.broken.Load() != nil {
		// bbolt may have panicked and hold its own locks for ever.
		return diskFault(unlock(l.file))
	}
	return diskFault(l.db.Close())
}

// Size returns how many bytes of the file are or were in use.
func (l *Ledger) Size() int64 {
	size := int64(0)
	_ = l.view(func(tx *bolt.Tx) error { // 0 once it is closed
		size = tx.Size()
		return nil
	})
	return size
}

// Stats counts what a ledger did since it was opened.
type Stats struct {
	Batches      uint64 // batches that were made durable
	Transactions uint64 // the transactions that they shared; each costs two fsyncs
	Refused      uint64 // batches that failed
}

type counts struct{ batches, transactions, refused atomic.Uint64 }

// Stats returns the counts.
func (l *Ledger) Stats() Stats {
	return Stats{l.stats.batches.Load(), l.stats.transactions.Load(), l.stats.refused.Load()}
}

// view runs a read transaction, which sees one state of the whole ledger.
// While it runs the file cannot give back pages, so fn must not wait for
// anything but the disk.
func (l *Ledger) view(fn func(*bolt.Tx) error) error {
	return guard(func() error { return l.db.View(fn) })
}

func closedFault() error {
	return fault.New(fault.Closed, "the ledger is closed: this scvfs is stopping")
}

// mapped returns errors of bbolt in our terms.
func mapped(err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, errNotOpen):
		return closedFault()
	}
	return diskFault(err)
}
