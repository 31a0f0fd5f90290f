package ninep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

const (
	// greeting is the largest frame before the client has said how large they
	// may be.
	greeting = 8 << 10
	// shortest is the smallest msize that all answers without data fit into.
	shortest = 256
	// largeWrites is how many writes of more than small one connection may have
	// under way.
	largeWrites = 16
	// maxListed is how many bytes of listings one connection may hold.
	maxListed = 8 << 20
)

// conn is one connection. Its reader is one goroutine, which calls nothing
// that can wait but the connection itself; each request has one of its own.
type conn struct {
	srv    *Server
	nc     net.Conn
	in     *bufio.Reader
	peer   string
	caller fs.Caller
	ctx    context.Context // of all requests
	cancel context.CancelFunc

	session *session      // nil until Tversion; the reader's
	scratch []byte        // for frames that are no write; the reader's
	large   chan struct{} // tokens of large answers
	running atomic.Int32  // requests
	fids    atomic.Int32
	writes  atomic.Int32   // large ones
	listed  atomic.Int64   // bytes of listings
	jobs    sync.WaitGroup // goroutines besides the reader

	wmu      sync.Mutex // the order of answers: held while one is sent
	out      []byte     // under wmu
	deadline time.Time  // of sending; under wmu
	mute     bool       // nothing can be sent any more; under wmu
}

func newConn(ctx context.Context, s *Server, nc net.Conn, caller fs.Caller) *conn {
	c := &conn{
		srv: s, nc: nc, in: bufio.NewReaderSize(nc, 4<<10), peer: nc.RemoteAddr().String(), caller: caller,
		large: make(chan struct{}, tokens),
	}
	if caller.PID != 0 {
		c.peer = fmt.Sprintf("process %d of user %d", caller.PID, caller.UID)
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// hangUp ends the connection from any goroutine. The reader notices.
func (c *conn) hangUp() {
	c.cancel()
	c.nc.Close()
}

// run serves until the client goes or breaks the protocol, and returns why,
// once nothing of the connection is left.
func (c *conn) run() error {
	stop := context.AfterFunc(c.ctx, func() { c.nc.Close() })
	defer stop()
	c.nc.SetReadDeadline(time.Now().Add(c.srv.opt.WriteTimeout))
	var why error
	for why == nil {
		why = c.next()
	}
	c.hangUp()
	c.reset()
	c.jobs.Wait()
	return why
}

// reset ends the session. Nothing of it is answered any more.
func (c *conn) reset() {
	if s := c.session; s != nil {
		c.session = nil
		s.end()
	}
}

// next takes one frame. An error ends the connection.
func (c *conn) next() error {
	most := uint32(greeting)
	if c.session != nil {
		most = c.session.msize
	}
	h, err := wire.ReadHeader(c.in, most)
	if err != nil {
		return err
	}
	if h.Type == wire.TypeTversion {
		return c.version(h)
	}
	s := c.session
	switch {
	case s == nil:
		return fault.New(fault.Invalid, "the first message is a %s, not a Tversion", h.Type)
	case s.uses(h.Tag):
		return fault.New(fault.Invalid, "tag %d is used again before its answer", h.Tag)
	case h.Type == wire.TypeTwrite:
		return s.takeWrite(h)
	}
	body, err := c.body(h)
	if err != nil {
		return err
	}
	m, err := wire.Decode(s.dialect, h.Type, body)
	if err != nil {
		return s.undecoded(h, err)
	}
	return s.take(h.Tag, m, nil)
}

// body reads a body that nobody keeps a part of.
func (c *conn) body(h wire.Header) ([]byte, error) {
	n := h.Body()
	if n > cap(c.scratch) {
		if n > greeting {
			b := make([]byte, n)
			_, err := io.ReadFull(c.in, b)
			return b, err
		}
		c.scratch = make([]byte, max(n, 512))
	}
	b := c.scratch[:n]
	_, err := io.ReadFull(c.in, b)
	return b, err
}

// version begins a session, after the end of the one before.
func (c *conn) version(h wire.Header) error {
	body, err := c.body(h)
	if err != nil {
		return err
	}
	m, err := wire.Decode(wire.Plain, h.Type, body)
	if err != nil {
		return err
	}
	c.reset()
	asked := m.(*wire.Tversion)
	answer := &wire.Rversion{MSize: min(asked.MSize, c.srv.opt.MaxMessage), Version: wire.Unknown}
	if d, ok := dialectOf(asked.Version); ok && answer.MSize >= shortest {
		answer.Version = d.String()
		if asked.Version == wire.Extended {
			answer.Version = wire.Extended
		}
		c.session = newSession(c, d, answer.MSize)
		c.session.extended = answer.Version == wire.Extended
		if asked.Version != d.String() {
			c.session.step = acquainted
		}
		c.nc.SetReadDeadline(time.Time{})
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.write(wire.Plain, greeting, h.Tag, answer)
}

// dialectOf returns what is spoken with a client that asks for a version.
// What follows a dot is an extension that a server need not know.
func dialectOf(version string) (wire.Dialect, bool) {
	for _, d := range []wire.Dialect{wire.Linux, wire.Plain} {
		if rest, ok := strings.CutPrefix(version, d.String()); ok && (rest == "" || rest[0] == '.') {
			return d, true
		}
	}
	return 0, false
}

// write encodes and sends an answer of at most so many bytes. It needs wmu.
func (c *conn) write(d wire.Dialect, most int, tag uint16, m wire.Message) error {
	frame, err := wire.Append(c.out[:0], d, tag, m)
	if err != nil || len(frame) > most {
		c.srv.opt.Log.Error("an answer is too long for 9P", "type", m.Type().String(), "bytes", len(frame), "msize", most)
		frame, err = wire.Append(c.out[:0], d, tag, wire.NewError(d, syscall.EMSGSIZE))
		if err != nil {
			return err
		}
	}
	c.out = frame[:0]
	return c.writeFrame(frame)
}

// writeFrame needs wmu. A client that does not take it in time is dropped. To
// one that is gone nothing is sent any more, but what it said before it went
// still counts.
func (c *conn) writeFrame(frame []byte) error {
	if c.mute {
		return nil
	}
	timeout := c.srv.opt.WriteTimeout
	if now := time.Now(); c.deadline.Sub(now) < timeout-timeout/8 {
		c.deadline = now.Add(timeout)
		c.nc.SetWriteDeadline(c.deadline)
	}
	_, err := c.nc.Write(frame)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.srv.opt.Log.Warn("a 9P client that takes no answers was dropped", "peer", c.peer, "after", timeout)
		c.hangUp()
		return err
	}
	c.mute = err != nil
	return nil
}
