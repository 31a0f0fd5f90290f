// Package fault says what went wrong.
//
// Every refusal and failure that a user can meet is a *Error: one Kind out of a
// small enumeration, and one sentence that names the thing, what is wrong with
// it, and the way out. Transports map the kind, never the text: fs.Errno to an
// errno (and from there to 9P's strings), cmd to an exit code.
//
// The package stands below all others because each of them refuses something.
package fault

import (
	"errors"
	"fmt"
)

// Kind says how a caller should act on an error. The order is of no meaning.
type Kind uint8

// The kinds. Each names the errno it becomes (DESIGN 4.8).
const (
	Internal    Kind = iota // EIO: our own fault; it is logged
	Invalid                 // EINVAL: malformed request
	NotFound                // ENOENT: no such thing
	Denied                  // EPERM: not allowed to this caller
	Busy                    // EBUSY: something else holds it, or its state forbids it now
	Done                    // EALREADY: it was done already
	Limit                   // EAGAIN: a limit is reached; try later
	Gone                    // ESTALE: the hold was taken, or the thing was removed under an open file
	Timeout                 // ETIMEDOUT
	Unsupported             // EOPNOTSUPP: this agent or file cannot do that
	Closed                  // EROFS: the session is closed; its files are read-only
	TooLarge                // EFBIG: longer than its limit
	Exists                  // EEXIST: the name is taken
	Interrupted             // EINTR: the caller gave up waiting
	NoSpace                 // ENOSPC: the disk is full
	kinds                   // their number
)

var names = [kinds]string{
	"internal error", "invalid", "not found", "not allowed", "busy", "already done", "limit reached", "gone",
	"timed out", "not supported", "closed", "too large", "exists", "interrupted", "no space",
}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown kind"
}

// Kinds returns every kind, for tests of the tables that map them.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is a failure with its kind and, where known, the operation and the
// path of the thing that it failed on.
type Error struct {
	Kind Kind
	Op   string // what was asked, such as "cancel"; may be empty
	Path string // what it was asked of, such as "shop/job-3"; may be empty
	Msg  string // the sentence
	Err  error  // the cause; may be nil
}

// Error returns "op: path: sentence: cause", leaving out what is empty.
func (e *Error) Error() string {
	s := e.Msg
	if e.Err != nil {
		if cause := e.Err.Error(); s != "" && cause != "" {
			s += ": " + cause
		} else {
			s += cause
		}
	}
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of a kind with a sentence. A %w verb keeps its cause.
func New(kind Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), Err: hidden(errors.Unwrap(err))}
}

// hidden keeps a cause for errors.Is without printing it twice.
func hidden(err error) error {
	if err == nil {
		return nil
	}
	return silent{err}
}

type silent struct{ error }

func (s silent) Error() string { return "" }
func (s silent) Unwrap() error { return s.error }

// In adds the operation and path to err, keeping its kind. It returns nil for
// nil.
func In(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindOf(err), Op: op, Path: path, Err: err}
}

// KindOf returns the kind of the outermost *Error in err's chain; Internal
// when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
