package fs

import (
	"context"
	"sync"

	"scvfs/ledger/fault"
)

// view is the version of a content that one open file shows. Its bytes are
// never changed, only replaced.
type view struct {
	mu   sync.Mutex
	data []byte
	base int64 // offset at which data begins
	ok   bool
}

func (v *view) set(data []byte, base int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data, v.base, v.ok = data, base, true
}

// bytes is what the view shows.
func (v *view) bytes() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.data
}

func (v *view) taken() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ok
}

// read copies from offset off; one before the base begins the content anew
// there.
func (v *view) read(p []byte, off int64) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base = min(v.base, max(off, 0))
	if off -= v.base; off >= int64(len(v.data)) {
		return 0
	}
	return copy(p, v.data[max(off, 0):])
}

// readOnly is the half of a handle that takes nothing.
type readOnly struct{}

// Write implements Handle.
func (readOnly) Write(context.Context, []byte) (int, error) {
	return 0, fault.New(fault.Denied, "the file is open for reading only")
}

// Flush implements Handle.
func (readOnly) Flush(context.Context, Closer) error { return nil }

// Release implements Handle.
func (readOnly) Release(context.Context) {}

// checkMode refuses what perm does not allow. The kernel lets root pass, so
// each Open asks again.
func (s site) checkMode(ctx context.Context, perm uint32, mode Mode) error {
	if mode.Write && perm&0o200 == 0 {
		err := fault.New(fault.Denied, "%s is read-only; commands go to a ctl file, prompts to start", s.path)
		s.t.record(ctx, s.path, err)
		return err
	}
	if mode.Read && perm&0o400 == 0 {
		return fault.New(fault.Denied, "%s is write-only", s.path)
	}
	return nil
}

// stale turns the loss of a thing under an open file into its own kind.
func stale(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Gone, "%w", err)
	}
	return err
}
