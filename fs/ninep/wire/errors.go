package wire

import (
	"fmt"
	"syscall"
)

// enames are the words for errors in 9P2000, which has no numbers. They are
// those that Linux knows: its client turns any other into error 526. It has
// none for ESTALE; that is the C library's.
var enames = map[syscall.Errno]string{
	syscall.EPERM:        "Operation not permitted",
	syscall.ENOENT:       "No such file or directory",
	syscall.EINTR:        "Interrupted system call",
	syscall.EIO:          "Input/output error",
	syscall.EBADF:        "Bad file descriptor",
	syscall.EAGAIN:       "Resource temporarily unavailable",
	syscall.ENOMEM:       "Cannot allocate memory",
	syscall.EACCES:       "Permission denied",
	syscall.EBUSY:        "Device or resource busy",
	syscall.EEXIST:       "File exists",
	syscall.EXDEV:        "Invalid cross-device link",
	syscall.ENODEV:       "No such device",
	syscall.ENOTDIR:      "Not a directory",
	syscall.EISDIR:       "Is a directory",
	syscall.EINVAL:       "Invalid argument",
	syscall.ENFILE:       "Too many open files in system",
	syscall.EMFILE:       "Too many open files",
	syscall.EFBIG:        "File too large",
	syscall.ENOSPC:       "No space left on device",
	syscall.ESPIPE:       "Illegal seek",
	syscall.EROFS:        "Read-only file system",
	syscall.EPIPE:        "Broken pipe",
	syscall.ENAMETOOLONG: "File name too long",
	syscall.ENOSYS:       "Function not implemented",
	syscall.ENOTEMPTY:    "Directory not empty",
	syscall.ELOOP:        "Too many levels of symbolic links",
	syscall.ENODATA:      "No data available",
	syscall.EPROTO:       "Protocol error",
	syscall.EMSGSIZE:     "Message too long",
	syscall.EOPNOTSUPP:   "Operation not supported",
	syscall.ECONNRESET:   "Connection reset by peer",
	syscall.ETIMEDOUT:    "Connection timed out",
	syscall.EALREADY:     "Operation already in progress",
	syscall.ESTALE:       "Stale file handle",
	syscall.EDQUOT:       "Disk quota exceeded",
}

var errnos = func() map[string]syscall.Errno {
	all := make(map[string]syscall.Errno, len(enames))
	for no, name := range enames {
		all[name] = no
	}
	return all
}()

// Ename returns the words for an errno in 9P2000.
func Ename(no syscall.Errno) string {
	if s, ok := enames[no]; ok {
		return s
	}
	return fmt.Sprintf("Unknown error %d", int(no))
}

// Errno returns the errno that Ename has these words for; ok is false for
// words of other servers.
func Errno(ename string) (no syscall.Errno, ok bool) {
	no, ok = errnos[ename]
	return no, ok
}

// NewError returns the answer of a dialect that refuses a request with an
// errno.
func NewError(d Dialect, no syscall.Errno) Message {
	if d == Linux {
		return &Rlerror{Errno: uint32(no)}
	}
	return &Rerror{Ename: Ename(no)}
}
