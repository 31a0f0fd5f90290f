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

	greeting = 8 << 10
	shortest = 4 << 10
	// maxRoots is how many processes a session keeps a root for.
	maxRoots = 64
)

// call is one request under way.
type call struct {
	msg   wire.Message
	tag   uint16
	done  chan struct{}
	reply wire.Message // after done
	err   error        // after done
	after func()       // runs before done is closed, in the reader; may be nil
	old   *call        // of a Tflush: what it gives up
}

func newCall(m wire.Message) *call { return &call{msg: m, done: make(chan struct{})} }

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

// newSession greets the server on nc, which it owns from then on.
func newSession(c *Client, nc net.Conn, deadline time.Time) (*session, error) {
	s := &session{
		c: c, nc: nc, in: bufio.NewReaderSize(nc, 64<<10), dead: make(chan struct{}), calls: make(map[uint16]*call),
		slots: make(chan struct{}, maxVisits),
	}
	nc.SetDeadline(deadline)
	err := s.greet()
	if err != nil {
		nc.Close()
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	go s.receive()
	return s, nil
}

// greet settles the version and finds the root. It runs alone.
func (s *session) greet() error {
	version := wire.Extended
	if s.c.opt.Plain {
		version = wire.Linux.String()
	}
	for {
		reply, err := s.ask(wire.NoTag, &wire.Tversion{MSize: s.c.opt.MaxMessage, Version: version})
		if err != nil {
			return err
		}
		answer, ok := reply.(*wire.Rversion)
		if !ok {
			return fault.New(fault.Unsupported, "what answers at %s is no 9P server; name the socket of scvfs serve --9p", s.c.address)
		}
		if answer.Version == version {
			s.msize, s.extended = answer.MSize, version == wire.Extended
			break
		}
		if version != wire.Extended {
			return fault.New(fault.Unsupported, "the server at %s speaks %q, not 9P2000.L", s.c.address, answer.Version)
		}
		version = wire.Linux.String()
	}
	if s.msize > s.c.opt.MaxMessage || s.msize < shortest {
		return fault.New(fault.Unsupported, "the server at %s wants messages of %d bytes; 4 KiB are the least that is of use", s.c.address, s.msize)
	}
	fid := s.newFid()
	reply, err := s.ask(0, &wire.Tattach{Fid: fid, AFid: wire.NoFid, UID: wire.NoUID})
	if err != nil {
		return err
	}
	answer, ok := reply.(*wire.Rattach)
	if !ok || answer.Qid.Type&wire.QTDir == 0 {
		return fault.New(fault.Unsupported, "the server at %s does not give its tree: %v", s.c.address, refusalOf(reply))
	}
	s.rootIno = inoOf(answer.Qid)
	s.roots = []root{{0, fid}}
	return nil
}

// ask sends one request and waits for its answer, before there is a reader.
func (s *session) ask(tag uint16, m wire.Message) (wire.Message, error) {
	frame, err := wire.Append(nil, dialect, tag, m)
	if err == nil {
		_, err = s.nc.Write(frame)
	}
	if err != nil {
		return nil, err
	}
	h, reply, err := wire.ReadMessage(s.in, dialect, greeting)
	switch {
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Unsupported), err == nil && h.Tag != tag:
		return nil, fault.New(fault.Unsupported, "what answers at %s is no 9P2000.L server", s.c.address)
	case errors.Is(err, io.EOF):
		return nil, errors.New("it hangs up")
	}
	return reply, err
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

// end settles a call. Nobody else may.
func (k *call) end(reply wire.Message, err error) {
	k.reply, k.err = reply, err
	close(k.done)
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

// await waits for calls, which were sent in this order. When ctx ends it gives
// them up after so long, and then waits for what the server makes of that: an
// answer that came all the same counts.
func (s *session) await(ctx context.Context, after time.Duration, calls ...*call) error {
	for _, k := range calls {
		if after == 0 {
			select {
			case <-k.done:
				continue
			case <-ctx.Done():
			}
		} else if patiently(ctx, k.done, after) {
			continue
		}
		return s.giveUp(calls)
	}
	return nil
}

func (s *session) giveUp(calls []*call) error {
	var flushes []*call
	for _, k := range calls {
		select {
		case <-k.done:
		default:
			f := newCall(&wire.Tflush{OldTag: k.tag})
			f.old = k
			flushes = append(flushes, f)
		}
	}
	if err := s.send(flushes...); err != nil {
		return nil // the calls have failed by that
	}
	timer := time.NewTimer(flushed)
	defer timer.Stop()
	for _, k := range calls {
		select {
		case <-k.done:
		case <-timer.C:
			return gaveUp()
		}
	}
	return nil
}

// refusalOf is what a refusal says, for people.
func refusalOf(m wire.Message) error {
	if no, ok := m.(*wire.Rlerror); ok {
		return syscall.Errno(no.Errno)
	}
	return errors.New("a message of another kind")
}
