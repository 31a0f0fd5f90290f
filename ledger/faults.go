package ledger

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

var errNotOpen = bolterrors.ErrDatabaseNotOpen

// full lists how a system says that there is no room.
var full = []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG}

// isFull tells whether err means a full disk. bbolt keeps only the text of
// some causes.
func isFull(err error) bool {
	for _, e := range full {
		if errors.Is(err, e) || strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// diskFault says in our terms why the file could not be used; nil for nil.
func diskFault(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fault.New(fault.NoSpace, "the ledger cannot be written, the disk is full: free some space (%w)", err)
	}
	return fault.New(fault.Internal, "%s cannot be used: %w", fileName, err)
}

// damaged says that the file is not what was written.
func damaged(why any) error {
	return fault.New(fault.Internal, "%s is damaged (%v): bring it back from a backup, or move it away to begin with an empty one", fileName, why)
}

// guard runs what reads the mapped file. A page that makes no sense, or that
// the disk cannot deliver, panics in bbolt; here it is an error.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged(r)
		}
	}()
	err = mapped(fn())
	return err
}

// broke stops all writing for good, because of err.
func (l *Ledger) broke(err error) error {
	l.broken.CompareAndSwap(nil, &fault.Error{
		Kind: fault.Internal, Err: err,
		Msg: "the disk failed while the ledger was written, and nothing more is recorded: look at the disk, then start scvfs again",
	})
	return l.broken.Load()
}

// invalid is the refusal of a change that is no change of a ledger.
func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "the ledger takes no such change: %w", fmt.Errorf(format, args...))
}
