package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/origin"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

const (
	wireGone = syscall.ENOTCONN

	// patience is how long a short request may go on after its caller has given
	// up, and flushed how long the answer to a Tflush is waited for.
	patience = 2 * time.Second
	flushed  = 2 * time.Second
	// sending is how long the server may take to take one batch of requests.
	sending = 30 * time.Second
	// parting is how long Close waits for answers.
	parting = 2 * time.Second
	// maxRoots is how many processes a session keeps a root for.
	maxRoots = 64
)

// session is one connection.
type session struct {
	c        *Client
	nc       net.Conn
	in       *bufio.Reader
	msize    uint32
	extended bool
	rootIno  uint64
	dead     chan struct{} // closed at the end
	why      error         // after dead
	slots    chan struct{} // held by visits

	wmu   sync.Mutex // the order of what is sent
	out   []byte
	roots []root // least recently used first

	mu      sync.Mutex
	calls   map[uint16]*call
	lastTag uint16
	fids    []uint32 // free ones
	nextFid uint32
}

// root is the root of the tree as a process sees it.
type root struct {
	pid int
	fid uint32
}

func (s *session) alive() bool {
	select {
	case <-s.dead:
		return false
	default:
		return true
	}
}

// newFid takes a free number.
func (s *session) newFid() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.fids); n > 0 {
		fid := s.fids[n-1]
		s.fids = s.fids[:n-1]
		return fid
	}
	s.nextFid++
	return s.nextFid
}

// freeFid gives a number back that the server has let go of.
func (s *session) freeFid(fid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fids = append(s.fids, fid)
}

// clunk is the request to let go of a fid.
func (s *session) clunk(fid uint32) *call {
	k := newCall(&wire.Tclunk{Fid: fid})
	k.after = func() { s.freeFid(fid) }
	return k
}

// rootOf returns the fid of the root for a process, with what has to be sent
// before it is used. It needs wmu, as does all that is sent on that fid.
func (s *session) rootOf(pid int) (uint32, []*call) {
	if !s.extended {
		pid = 0
	}
	for i, r := range s.roots {
		if r.pid == pid {
			s.roots = append(slices.Delete(s.roots, i, i+1), r)
			return r.fid, nil
		}
	}
	r := root{pid, s.newFid()}
	calls := []*call{newCall(&wire.Tattach{Fid: r.fid, AFid: wire.NoFid, UName: origin.Of(pid), UID: wire.NoUID})}
	if len(s.roots) >= maxRoots {
		calls = append(calls, s.clunk(s.roots[0].fid))
		s.roots = slices.Delete(s.roots, 0, 1)
	}
	s.roots = append(s.roots, r)
	return r.fid, calls
}

// send sends requests in one piece. Each of them is answered, or fails, also
// when send does.
func (s *session) send(calls ...*call) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	return s.write(calls)
}

// sendFrom is send for requests that need the root of the process that ctx is
// for.
func (s *session) sendFrom(ctx context.Context, build func(root uint32) []*call) error {
	caller, _ := fs.CallerOf(ctx)
	s.wmu.Lock()
	defer s.wmu.Unlock()
	fid, before := s.rootOf(caller.PID)
	return s.write(append(before, build(fid)...))
}

// write needs wmu.
func (s *session) write(calls []*call) error {
	if err := s.enter(calls); err != nil {
		return err
	}
	out := s.out[:0]
	var err error
	for _, k := range calls {
		if out, err = wire.Append(out, dialect, k.tag, k.msg); err != nil {
			s.fail(err) // numbers have been given that the server does not know
			return err
		}
	}
	if s.out = out; cap(out) > 64<<10 {
		s.out = nil
	}
	s.nc.SetWriteDeadline(time.Now().Add(sending))
	if _, err := s.nc.Write(out); err != nil {
		s.fail(err)
		return lost(s.c.address, err)
	}
	return nil
}

// enter gives each call a tag.
func (s *session) enter(calls []*call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() || len(s.calls)+len(calls) >= int(wire.NoTag) {
		err := lost(s.c.address, errors.New("it has ended"))
		if s.alive() {
			err = refuse(syscall.EAGAIN, "too many requests are under way at %s", s.c.address)
		}
		for _, k := range calls {
			k.end(nil, err)
		}
		return err
	}
	for _, k := range calls {
		for s.lastTag++; s.lastTag == wire.NoTag || s.calls[s.lastTag] != nil; s.lastTag++ {
		}
		k.tag = s.lastTag
		s.calls[k.tag] = k
	}
	return nil
}

// receive is the reader.
func (s *session) receive() {
	for {
		h, m, err := wire.ReadMessage(s.in, dialect, s.msize)
		if err == nil {
			err = s.answered(h.Tag, m)
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// answered settles the call that has the tag. What a Tflush gave up and what
// was not answered before it never will be.
func (s *session) answered(tag uint16, m wire.Message) error {
	s.mu.Lock()
	k := s.calls[tag]
	delete(s.calls, tag)
	var old *call
	if k != nil && k.old != nil && s.calls[k.old.tag] == k.old {
		old = k.old
		delete(s.calls, old.tag)
	}
	s.mu.Unlock()
	if k == nil {
		return fault.New(fault.Invalid, "a %s came for tag %d, which asked nothing", m.Type(), tag)
	}
	if old != nil {
		old.end(nil, gaveUp())
	}
	if k.after != nil {
		k.after()
	}
	if no, ok := m.(*wire.Rlerror); ok {
		if _, root := k.msg.(*wire.Tattach); root { // others count on it already
			k.end(nil, lost(s.c.address, syscall.Errno(no.Errno)))
			return k.err
		}
		k.end(nil, refuse(syscall.Errno(no.Errno), "the server refused: %w", syscall.Errno(no.Errno)))
		return nil
	}
	if m.Type() != k.msg.Type()+1 {
		k.end(nil, lost(s.c.address, fault.New(fault.Invalid, "%s was answered by %s", k.msg.Type(), m.Type())))
		return k.err
	}
	k.end(m, nil)
	return nil
}

// fail ends the session, once.
func (s *session) fail(err error) {
	s.mu.Lock()
	if !s.alive() {
		s.mu.Unlock()
		return
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it hung up")
	}
	s.why = err
	close(s.dead)
	calls := s.calls
	s.calls = nil
	s.mu.Unlock()
	s.nc.Close()
	for _, k := range calls {
		k.end(nil, lost(s.c.address, err))
	}
	s.c.gone(s, err)
}

// close ends the session after what is under way, or a moment.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	s.mu.Lock()
	var under []*call
	for _, k := range s.calls {
		under = append(under, k)
	}
	s.mu.Unlock()
	for _, k := range under {
		select {
		case <-k.done:
		case <-ctx.Done():
		}
	}
	s.fail(net.ErrClosed)
}
