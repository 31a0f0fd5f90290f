package ninep

import (
	"sync"

	"scvfs/fs/ninep/wire"
)

const (
	// small is how much data a buffer holds that any request may have.
	small = 8 << 10
	// tokens is how many larger buffers the answers of one connection have at
	// a time.
	tokens = 8
	// firstWord is how much of a stream is read into before it is known that
	// there is more: what a waiting read costs.
	firstWord = 1 << 10
)

// buffer is memory for one frame.
type buffer struct {
	b    []byte
	home *sync.Pool // nil: none
}

// free gives the memory back. Nobody may use it from then on.
func (b *buffer) free() {
	if b != nil && b.home != nil {
		b.home.Put(b)
	}
}

// isLarge tells whether it is one of those that are counted.
func (b *buffer) isLarge() bool { return b != nil && len(b.b) > small+wire.DataHeader }

// buffers are those of all connections, kept for use again.
type buffers struct {
	large      int // bytes
	smalls, bs sync.Pool
}

// get returns memory for n bytes of data and the header of their frame.
func (p *buffers) get(n int) *buffer {
	pool, size := &p.smalls, small+wire.DataHeader
	if n > small {
		pool, size = &p.bs, p.large
	}
	b, ok := pool.Get().(*buffer)
	if !ok {
		b = &buffer{b: make([]byte, size), home: pool}
	}
	return b
}

// room returns memory for n bytes of an answer's data. Large ones are few, and
// waited for; the request holds its token to its end.
func (r *request) room(n int) (*buffer, error) {
	c := r.s.c
	if n > small {
		select {
		case c.large <- struct{}{}:
			r.large = true
		case <-r.ctx.Done():
			return nil, r.interrupted()
		}
	}
	return c.srv.buffers.get(n), nil
}
