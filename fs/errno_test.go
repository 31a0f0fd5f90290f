package fs

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"scvfs/ledger/fault"
)

// The contract's own words for each kind, written down a second time so that
// an edit of the table alone is noticed.
var contract = map[fault.Kind]syscall.Errno{
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

func TestErrnoOfEveryKind(t *testing.T) {
	seen := map[syscall.Errno]fault.Kind{}
	for _, kind := range fault.Kinds() {
		want, known := contract[kind]
		if !known {
			t.Errorf("no errno is agreed for kind %q", kind)
			continue
		}
		got := Errno(fault.New(kind, "x"))
		if got != want {
			t.Errorf("Errno(%q) = %v, want %v", kind, got, want)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("kinds %q and %q are both %v", kind, other, got)
		}
		seen[got] = kind
		if got == 0 || got >= 512 || got == syscall.ENOSYS {
			t.Errorf("Errno(%q) = %d, which a FUSE kernel must never see", kind, got)
		}
	}
}

func TestErrnoOfOtherErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"nil", nil, 0},
		{"no kind", errors.New("x"), syscall.EIO},
		{"unknown kind", fault.New(fault.Kind(len(fault.Kinds())), "x"), syscall.EIO},
		{"last possible kind", fault.New(fault.Kind(255), "x"), syscall.EIO},
		{"a system's errno is no kind", fmt.Errorf("open: %w", syscall.ENOSYS), syscall.EIO},
		{"wrapped kind", fmt.Errorf("start: %w", fault.New(fault.Busy, "x")), syscall.EBUSY},
		{"kind with a path", fault.In("cancel", "shop/job-3", fault.New(fault.Done, "x")), syscall.EALREADY},
		{"outermost kind", fault.New(fault.Invalid, "y: %w", fault.New(fault.Busy, "x")), syscall.EINVAL},
		{"cancelled context", context.Canceled, syscall.EINTR},
		{"cancelled context with a path", fault.In("read", "events", context.Canceled), syscall.EINTR},
		{"deadline", fmt.Errorf("call: %w", context.DeadlineExceeded), syscall.ETIMEDOUT},
		{"a kind beats the context in it", fault.New(fault.Busy, "x: %w", context.Canceled), syscall.EBUSY},
	} {
		if got := Errno(c.err); got != c.want {
			t.Errorf("%s: Errno = %v, want %v", c.name, got, c.want)
		}
	}
}
