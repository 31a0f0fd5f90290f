package ninep

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// session is what a connection holds from one Tversion to the next. Its
// methods are the reader's, unless they say otherwise.
type session struct {
	c       *conn
	dialect wire.Dialect
	msize   uint32
	// extended: the client is of our own.
	extended bool
	ctx      context.Context
	cancel   context.CancelFunc

	step greetings
	v9fs atomic.Bool // the client is Linux's

	mu   sync.Mutex
	tags map[uint16]*request // not yet answered
	fids map[uint32]*fid
}

func newSession(c *conn, d wire.Dialect, msize uint32) *session {
	s := &session{c: c, dialect: d, msize: msize, tags: make(map[uint16]*request), fids: make(map[uint32]*fid)}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	return s
}

// greetings are the first steps of a client, by which Linux's is known: it asks
// for 9P2000.L and no more, attaches without a word about authentication, and
// looks at the root at once.
type greetings uint8

const (
	silent greetings = iota
	attached
	acquainted
)

// watch looks at how a client begins.
func (s *session) watch(t wire.Type) {
	switch {
	case s.step == silent && t == wire.TypeTattach:
		s.step = attached
	case s.step == attached && t == wire.TypeTgetattr:
		s.v9fs.Store(true)
		fallthrough
	default:
		s.step = acquainted
	}
}

// uses tells whether a tag belongs to a request without an answer.
func (s *session) uses(tag uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tags[tag] != nil
}

// take begins what a message asks for. body is the memory that the message
// lies in, nil if it is its own. An error ends the connection.
func (s *session) take(tag uint16, m wire.Message, body *buffer) error {
	s.watch(m.Type())
	if flush, ok := m.(*wire.Tflush); ok {
		return s.flush(tag, flush)
	}
	p, err := s.plan(m)
	switch {
	case err != nil:
		body.free()
		return s.refuse(tag, m.Type(), err)
	case p.answer != nil:
		body.free()
		return s.send(tag, p.answer)
	}
	s.start(&request{s: s, tag: tag, typ: m.Type(), body: body, plan: p})
	return nil
}

// takeWrite reads the rest of a Twrite and begins it. One that finds no room
// is thrown away as it comes, and its file with it: a part of what was meant
// to be written would be missing.
func (s *session) takeWrite(h wire.Header) error {
	c, n := s.c, h.Body()
	if s.crowded() || n > small && c.writes.Load() >= largeWrites {
		if fid, err := c.in.Peek(4); err == nil && n >= 4 {
			s.tear(uint32(fid[0]) | uint32(fid[1])<<8 | uint32(fid[2])<<16 | uint32(fid[3])<<24)
		}
		if _, err := c.in.Discard(n); err != nil {
			return err
		}
		return s.refuse(h.Tag, h.Type, errCrowded)
	}
	body := c.srv.buffers.get(n)
	if _, err := io.ReadFull(c.in, body.b[:n]); err != nil {
		body.free()
		return err
	}
	m, err := wire.Decode(s.dialect, h.Type, body.b[:n])
	if err != nil {
		body.free()
		return err
	}
	return s.take(h.Tag, m, body)
}

// errCrowded refuses what would exceed MaxRequests or the memory that a
// connection may use.
var errCrowded = fault.New(fault.Limit, "too many 9P requests are under way on this connection; wait for some to end")

// crowded tells whether the connection has as many requests as it may.
func (s *session) crowded() bool { return int(s.c.running.Load()) >= s.c.srv.opt.MaxRequests }

// undecoded answers what can be answered though it could not be read.
func (s *session) undecoded(h wire.Header, err error) error {
	s.watch(h.Type)
	switch {
	case fault.Is(err, fault.Unsupported):
		return s.refuse(h.Tag, h.Type, refused(syscall.EOPNOTSUPP))
	case fault.Is(err, fault.TooLarge):
		return s.refuse(h.Tag, h.Type, refused(syscall.EINVAL))
	}
	return err
}

// refuse sends an error.
func (s *session) refuse(tag uint16, t wire.Type, err error) error {
	return s.send(tag, wire.NewError(s.dialect, s.c.srv.errno(s.ctx, t.String(), err)))
}

// send sends an answer that the reader has at once.
func (s *session) send(tag uint16, m wire.Message) error {
	s.c.wmu.Lock()
	defer s.c.wmu.Unlock()
	return s.write(tag, m)
}

// write needs the connection's wmu. Any goroutine may call it.
func (s *session) write(tag uint16, m wire.Message) error {
	return s.c.write(s.dialect, int(s.msize), tag, m)
}

// flush gives up a request. It is cancelled before its turn to answer is
// awaited, for a client that takes no answers can hold that up. From the
// answer on, nothing about the old request is sent any more.
func (s *session) flush(tag uint16, m *wire.Tflush) error {
	s.mu.Lock()
	old := s.tags[m.OldTag]
	s.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	s.c.wmu.Lock()
	defer s.c.wmu.Unlock()
	if old != nil && s.claim(old) {
		old.drop(true)
	}
	return s.write(tag, &wire.Rflush{})
}

// claim takes the right to answer a request, or to drop it; true for the first
// who does. It needs wmu, so that answers are sent in the order of the claims.
// Any goroutine may call it.
func (s *session) claim(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tags[r.tag] != r {
		return false
	}
	delete(s.tags, r.tag)
	return true
}

// end drops all requests and fids. What they had open counts as cut off.
func (s *session) end() {
	s.c.wmu.Lock()
	s.mu.Lock()
	requests, fids := s.tags, s.fids
	s.tags, s.fids = make(map[uint16]*request), make(map[uint32]*fid)
	s.mu.Unlock()
	for _, r := range requests {
		r.drop(false)
	}
	s.c.wmu.Unlock()
	s.cancel()
	s.c.jobs.Go(func() { s.discardAll(fids) })
}

// discardAll releases what fids have open. One with a request that does not
// end holds up no other.
func (s *session) discardAll(fids map[uint32]*fid) {
	for _, f := range fids {
		if f.busy() {
			s.c.jobs.Go(func() { f.discard(cutOff) })
		} else {
			f.discard(cutOff)
		}
	}
}

// find returns a fid that is in use.
func (s *session) find(num uint32) (*fid, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fids[num]
	if f == nil {
		return nil, refused(syscall.EBADF)
	}
	return f, nil
}

// make brings a fid into being, which stands for nothing yet.
func (s *session) make(num uint32, caller fs.Caller) (*fid, error) {
	if int(s.c.fids.Load()) >= s.c.srv.opt.MaxFids {
		return nil, fault.New(fault.Limit, "this connection has %d fids, which is the limit; clunk some", s.c.srv.opt.MaxFids)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if num == wire.NoFid || s.fids[num] != nil {
		return nil, refused(syscall.EBADF)
	}
	f := &fid{s: s, num: num, caller: caller}
	s.fids[num] = f
	s.c.fids.Add(1)
	return f, nil
}

// forget takes a fid out of the table; true for the first who does, who is to
// discard it. Any goroutine may call it.
func (s *session) forget(f *fid) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fids[f.num] != f {
		return false
	}
	delete(s.fids, f.num)
	return true
}

// tear marks a fid of whose writes one was not taken.
func (s *session) tear(num uint32) {
	if f, err := s.find(num); err == nil {
		f.tear()
	}
}
