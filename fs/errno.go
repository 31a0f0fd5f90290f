package fs

import (
	"context"
	"errors"
	"syscall"

	"scvfs/ledger/fault"
)

// errnos is the one table from kinds of fault to errno (DESIGN 4.8). FUSE
// gives an errno to its clients as it is; 9P derives its strings from it.
var errnos = [...]syscall.Errno{
	fault.Internal:    syscall.EIO,
	fault.Invalid:     syscall.EINVAL,
	fault.NotFound:    syscall.ENOENT,
	fault.Denied:      syscall.EPERM,
	fault.Busy:        syscall.EBUSY,
	fault.Done:        syscall.EALREADY,
	fault.Limit:       syscall.EAGAIN,
	fault.Gone:        syscall.ESTALE,
	fault.Timeout:     syscall.ETIMEDOUT,
	fault.Unsupported: syscall.EOPNOTSUPP,
	fault.Closed:      syscall.EROFS,
	fault.TooLarge:    syscall.EFBIG,
	fault.Exists:      syscall.EEXIST,
	fault.Interrupted: syscall.EINTR,
	fault.NoSpace:     syscall.ENOSPC,
}

// Errno returns what a client is told of err: 0 for nil, else the errno of its
// kind. A context's own error counts as the kind that it means, however it was
// wrapped. Whatever the table does not know is EIO, so no error can become an
// errno that a kernel refuses or takes as a statement about the whole mount.
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	kind := fault.KindOf(err)
	if kind == fault.Internal {
		switch {
		case errors.Is(err, context.Canceled):
			kind = fault.Interrupted
		case errors.Is(err, context.DeadlineExceeded):
			kind = fault.Timeout
		}
	}
	if int(kind) >= len(errnos) || errnos[kind] == 0 {
		return syscall.EIO
	}
	return errnos[kind]
}
