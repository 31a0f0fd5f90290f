package fusefs

import (
	"context"
	"sync/atomic"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"scvfs/fs"
)

// handle is one open file description.
type handle struct {
	srv    *Server
	inner  fs.Handle
	ino    uint64
	write  bool
	stream bool
	opener process      // who opened it; known for writers only
	cursor atomic.Int64 // bytes that a stream has given, where the kernel counts none
}

var (
	_ gofs.FileReader   = (*handle)(nil)
	_ gofs.FileWriter   = (*handle)(nil)
	_ gofs.FileFlusher  = (*handle)(nil)
	_ gofs.FileReleaser = (*handle)(nil)
)

// newHandle wraps what the tree opened and returns the flags for the kernel.
// Who only reads closes without a word to us, which spares a round trip.
func (s *Server) newHandle(ctx context.Context, ino uint64, inner fs.Handle, mode fs.Mode) (*handle, uint32) {
	h := &handle{srv: s, inner: inner, ino: ino, write: mode.Write}
	flags := uint32(fuse.FOPEN_DIRECT_IO)
	if streamer, ok := inner.(fs.Streamer); ok && streamer.Stream() {
		h.stream = true
		flags |= fuse.FOPEN_STREAM | fuse.FOPEN_NONSEEKABLE
	}
	if mode.Write {
		caller, _ := fs.CallerOf(ctx)
		h.opener = processOf(caller.PID)
	} else {
		flags |= fuse.FOPEN_NOFLUSH
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[h] = struct{}{}
	return h, flags
}

// Read implements gofs.FileReader. Data that came is given even if an error
// came with it; the next read meets that again.
func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if h.stream {
		off = h.cursor.Load()
	}
	ctx = withCaller(ctx)
	n, err := h.inner.Read(ctx, dest, off)
	if n < 0 || n > len(dest) {
		return nil, h.srv.broken("read", "%d bytes came where %d were asked for", n, len(dest))
	}
	if n == 0 && err != nil {
		return nil, h.srv.errno(ctx, "read", err)
	}
	h.cursor.Add(int64(n))
	return fuse.ReadResultData(dest[:n]), 0
}

// Write implements gofs.FileWriter. The kernel sends the writes of one file
// one after the other.
func (h *handle) Write(ctx context.Context, data []byte, _ int64) (uint32, syscall.Errno) {
	ctx = withCaller(ctx)
	n, err := h.inner.Write(ctx, data)
	if n < 0 || n > len(data) || n == 0 && err == nil && len(data) > 0 {
		return 0, h.srv.broken("write", "%d of %d bytes were taken, without an error", n, len(data))
	}
	if n == 0 && err != nil {
		return 0, h.srv.errno(ctx, "write", err)
	}
	return uint32(n), 0
}

// Flush implements gofs.FileFlusher: one close(2) of a descriptor that can
// write. Older kernels send it for readers too.
func (h *handle) Flush(ctx context.Context) syscall.Errno {
	if !h.write {
		return 0
	}
	ctx = withCaller(ctx)
	if err := h.inner.Flush(ctx, h.closer(ctx)); err != nil {
		return h.srv.errno(ctx, "close", err)
	}
	return 0
}

// closer finds out who closes. The process stands in the kernel until we
// answer, so what /proc says of it is true now.
func (h *handle) closer(ctx context.Context) fs.Closer {
	caller, _ := fs.CallerOf(ctx)
	p := processOf(caller.PID)
	opener := p.known() && p.same(h.opener)
	by := fs.Closer{Opener: opener, Killed: p.killed}
	if opener && !p.killed {
		by.Last = func() bool { return p.lastOf(h.ino) }
	}
	return by
}

// Release implements gofs.FileReleaser. Nobody waits for it, so nobody can
// interrupt it, and the kernel does not say who asks.
func (h *handle) Release(ctx context.Context) syscall.Errno {
	if h.forget() {
		h.inner.Release(context.WithoutCancel(ctx))
	}
	return 0
}

// forget takes the handle out of the books; true for the first who does.
func (h *handle) forget() bool {
	h.srv.mu.Lock()
	defer h.srv.mu.Unlock()
	_, open := h.srv.handles[h]
	delete(h.srv.handles, h)
	return open
}

// abandoned returns the handles that the kernel never released.
func (s *Server) abandoned() []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*handle, 0, len(s.handles))
	for h := range s.handles {
		all = append(all, h)
	}
	return all
}

// abandon releases a handle that was cut off at the end of the mount. Its
// writer did not get to close it, so what it wrote counts as half a document.
func (h *handle) abandon() {
	defer func() {
		if value := recover(); value != nil {
			h.srv.panicked(value)
		}
	}()
	if !h.forget() {
		return
	}
	ctx := context.Background()
	defer h.inner.Release(ctx)
	if h.write {
		if err := h.inner.Flush(ctx, fs.Closer{Killed: true}); err != nil {
			h.srv.log.Warn("a file that was cut off could not be closed", "mount", h.srv.dir, "err", err)
		}
	}
}
