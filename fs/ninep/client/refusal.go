package client

import (
	"errors"
	"net"
	"os"
	"syscall"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// Refusal is an errno that a client of the tree is to get exactly.
type Refusal struct {
	no  syscall.Errno
	err error // of the kind that the errno means, with a sentence
}

// kinds are the kinds of fault by their errno.
var kinds = func() map[syscall.Errno]fault.Kind {
	all := make(map[syscall.Errno]fault.Kind)
	for _, k := range fault.Kinds() {
		all[fs.Errno(fault.New(k, "%s", k))] = k
	}
	return all
}()

// refuse makes a refusal. A server's ENOSYS means what EOPNOTSUPP does; a
// kernel would take it as a word about the whole mount.
func refuse(no syscall.Errno, format string, args ...any) error {
	if no == syscall.ENOSYS {
		no = syscall.EOPNOTSUPP
	}
	return &Refusal{no: no, err: fault.New(kinds[no], format, args...)}
}

// Error implements error.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns an error of the kind that the errno means.
func (r *Refusal) Unwrap() error { return r.err }

// Errno returns what the client is told.
func (r *Refusal) Errno() syscall.Errno { return r.no }

// unreachable is the error of a server that does not answer.
func unreachable(at string, err error) error {
	no := syscall.EIO
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		no = syscall.ECONNREFUSED
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return refuse(no, "the 9P server at %s does not answer: %w", at, err)
}

func lost(at string, err error) error {
	return refuse(syscall.EIO, "the connection to the 9P server at %s is lost: %w", at, err)
}

func stale(what string) error {
	return refuse(syscall.ESTALE, "%s was opened before the connection to the 9P server was lost; open it again", what)
}

func gaveUp() error { return refuse(syscall.EINTR, "interrupted while waiting for the 9P server") }
