package ninep

import (
	"context"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// rest is what Linux's client asks for after an answer that was shorter than
// its question: the bytes that are missing. It hands over nothing until an
// answer is empty or all is there, so a stream would never show anything.
type rest struct {
	due  bool
	off  uint64
	left uint32 // bytes missing
	// chunk is how much the question was for, if that was a whole message of
	// a longer read, whose length nobody tells; else 0.
	chunk uint32
}

// is tells whether a read asks for the rest. Whatever it asks for, no rest is
// due afterwards.
func (t *rest) is(m *wire.Tread) bool {
	due := t.due
	t.due = false
	return due && m.Offset == t.off && (m.Count == t.left || m.Count >= t.left && m.Count <= t.chunk)
}

// answered notes an answer of n bytes to m. A reader that does not wait cannot
// be told from one that asks for the rest of a long read, and is not.
func (t *rest) answered(m *wire.Tread, n int, unit uint32, nonBlock bool) {
	if n == 0 || uint32(n) >= m.Count {
		return
	}
	*t = rest{due: true, off: m.Offset + uint64(n), left: m.Count - uint32(n)}
	if m.Count == unit && !nonBlock {
		t.chunk = unit
	}
}

// readStream waits for what a stream says next, unless the read is Linux's
// for the rest of what it got.
func (r *request) readStream(o *file, m *wire.Tread, n int) (answer, error) {
	v9fs := r.s.v9fs.Load()
	hasty := false
	if v9fs {
		o.mu.Lock()
		hasty = o.rest.is(m)
		o.mu.Unlock()
	}
	b, got, err := r.listen(o, m, min(n, small), hasty)
	if err != nil {
		return answer{}, err
	}
	if v9fs {
		o.mu.Lock()
		o.rest.answered(m, got, r.s.unit(), o.mode.NonBlock)
		o.mu.Unlock()
	}
	return data(b, wire.TypeRread, got), nil
}

// listen reads up to n bytes. While it waits, it holds a few.
func (r *request) listen(o *file, m *wire.Tread, n int, hasty bool) (*buffer, int, error) {
	b := &buffer{b: make([]byte, wire.DataHeader+min(n, firstWord))}
	p := b.b[wire.DataHeader:]
	var got int
	var err error
	if hasty {
		got = r.glean(o, p, m.Offset)
	} else if got, err = r.wait(o, p, m.Offset); err != nil {
		return nil, 0, err
	}
	if got < len(p) || got == n {
		return b, got, nil
	}
	more := r.s.c.srv.buffers.get(n)
	copy(more.b, b.b)
	got += r.glean(o, more.b[wire.DataHeader:][got:n], m.Offset+uint64(got))
	return more, got, nil
}

// wait reads what comes, until the fid is clunked.
func (r *request) wait(o *file, p []byte, off uint64) (int, error) {
	if !r.fid.await(r) {
		return 0, r.interrupted()
	}
	defer r.fid.leave(r)
	return r.readInto(o, p, off)
}

// over is a context that has ended.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// glean reads what is there without waiting. What else could be wrong, the
// next read that waits will meet.
func (r *request) glean(o *file, p []byte, off uint64) int {
	n, err := o.handle.Read(fs.WithCaller(over, r.fid.caller), p, int64(off))
	if n < 0 || n > len(p) || err != nil && n == 0 {
		return 0
	}
	return n
}
