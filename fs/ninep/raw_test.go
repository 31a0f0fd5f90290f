package ninep

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"scvfs/fs/ninep/wire"
)

// rawClient speaks frames and knows nothing.
type rawClient struct {
	t       testing.TB
	nc      net.Conn
	in      *bufio.Reader
	dialect wire.Dialect
	msize   uint32
	lastTag uint16
	early   map[uint16]wire.Message // answers that came while another was awaited
}

// dial connects. Nothing is said yet.
func (s *testServer) dial(t testing.TB) *rawClient {
	t.Helper()
	nc, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return newRawClient(t, nc)
}

func newRawClient(t testing.TB, nc net.Conn) *rawClient {
	return &rawClient{t: t, nc: nc, in: bufio.NewReader(nc), msize: 1 << 20, early: make(map[uint16]wire.Message)}
}

// client connects, begins a session and makes fid 0 the root.
func (s *testServer) client(t testing.TB, d wire.Dialect) *rawClient {
	t.Helper()
	c := s.dial(t)
	c.version(d, 64<<10)
	c.attach(0)
	return c
}

func (c *rawClient) version(d wire.Dialect, msize uint32) {
	c.t.Helper()
	got, ok := c.ask(wire.NoTag, &wire.Tversion{MSize: msize, Version: d.String()}).(*wire.Rversion)
	if !ok || got.Version != d.String() || got.MSize != msize {
		c.t.Fatalf("version %s, %d: %+v", d, msize, got)
	}
	c.dialect, c.msize = d, msize
}

func (c *rawClient) attach(fid uint32) {
	c.t.Helper()
	c.want(&wire.Tattach{Fid: fid, AFid: wire.NoFid, UName: "nobody in particular", UID: 12345})
}

// tag returns one that was not used before.
func (c *rawClient) tag() uint16 {
	c.lastTag++
	return c.lastTag
}

// raw sends bytes.
func (c *rawClient) raw(b []byte) {
	c.t.Helper()
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// send sends a request and returns its tag.
func (c *rawClient) send(m wire.Message) uint16 {
	c.t.Helper()
	tag := c.tag()
	c.sendAs(tag, m)
	return tag
}

func (c *rawClient) sendAs(tag uint16, m wire.Message) {
	c.t.Helper()
	c.raw(c.frame(tag, m))
}

func (c *rawClient) frame(tag uint16, m wire.Message) []byte {
	c.t.Helper()
	frame, err := wire.Append(nil, c.dialect, tag, m)
	if err != nil {
		c.t.Fatal(err)
	}
	return frame
}

// next returns the next answer, whatever it answers.
func (c *rawClient) next() (uint16, wire.Message, error) {
	c.nc.SetReadDeadline(time.Now().Add(patience))
	h, m, err := wire.ReadMessage(c.in, c.dialect, c.msize)
	return h.Tag, m, err
}

// answer waits for the answer to a tag and keeps the others.
func (c *rawClient) answer(tag uint16) wire.Message {
	c.t.Helper()
	for {
		if m := c.early[tag]; m != nil {
			delete(c.early, tag)
			return m
		}
		got, m, err := c.next()
		if err != nil {
			c.t.Fatalf("waiting for the answer to tag %d: %v", tag, err)
		}
		c.early[got] = m
	}
}

func (c *rawClient) ask(tag uint16, m wire.Message) wire.Message {
	c.t.Helper()
	c.sendAs(tag, m)
	return c.answer(tag)
}

// call asks and returns the answer, also if it refuses.
func (c *rawClient) call(m wire.Message) wire.Message {
	c.t.Helper()
	return c.ask(c.tag(), m)
}

// errnoOf returns what an answer refuses with, 0 if it does not.
func errnoOf(m wire.Message) syscall.Errno {
	switch m := m.(type) {
	case *wire.Rlerror:
		return syscall.Errno(m.Errno)
	case *wire.Rerror:
		if no, ok := wire.Errno(m.Ename); ok {
			return no
		}
		return syscall.Errno(526) // what Linux makes of it
	}
	return 0
}

// want asks, and fails the test if it is refused.
func (c *rawClient) want(m wire.Message) wire.Message {
	c.t.Helper()
	got := c.call(m)
	if no := errnoOf(got); no != 0 {
		c.t.Fatalf("%+v: %v", m, no)
	}
	if got.Type() != m.Type()+1 {
		c.t.Fatalf("%+v was answered by %+v", m, got)
	}
	return got
}

// refused asks, and fails the test unless it is refused with an errno.
func (c *rawClient) refused(m wire.Message, want syscall.Errno) {
	c.t.Helper()
	if got := c.call(m); errnoOf(got) != want {
		c.t.Errorf("%T%+v: %+v, want %v", m, m, got, want)
	}
}

// gone fails the test unless the server hangs up.
func (c *rawClient) gone() {
	c.t.Helper()
	for {
		_, _, err := c.next()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.t.Fatal("the server did not hang up")
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrClosedPipe):
			return
		case err != nil:
			c.t.Fatal(err)
		}
	}
}

// walk makes newFid what a path leads to from the root.
func (c *rawClient) walk(newFid uint32, path string) []wire.Qid {
	c.t.Helper()
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	got := c.want(&wire.Twalk{Fid: 0, NewFid: newFid, Names: names}).(*wire.Rwalk)
	if len(got.Qids) != len(names) {
		c.t.Fatalf("walk to %s: %d qids", path, len(got.Qids))
	}
	return got.Qids
}

// openMessage asks to open a fid for reading (0), writing (1) or both (2).
func (c *rawClient) openMessage(fid uint32, mode uint8) wire.Message {
	if c.dialect == wire.Linux {
		return &wire.Tlopen{Fid: fid, Flags: uint32(mode)}
	}
	return &wire.Topen{Fid: fid, Mode: mode}
}

// open walks fid to a path and opens it.
func (c *rawClient) open(fid uint32, path string, mode uint8) {
	c.t.Helper()
	c.walk(fid, path)
	c.want(c.openMessage(fid, mode))
}

// read returns what one Tread gives.
func (c *rawClient) read(fid uint32, off uint64, count uint32) string {
	c.t.Helper()
	return string(c.want(&wire.Tread{Fid: fid, Offset: off, Count: count}).(*wire.Rread).Data)
}

// readAll reads a file from its start to its end.
func (c *rawClient) readAll(fid uint32) string {
	c.t.Helper()
	var all strings.Builder
	for {
		part := c.read(fid, uint64(all.Len()), c.msize)
		if part == "" {
			return all.String()
		}
		all.WriteString(part)
	}
}

func (c *rawClient) write(fid uint32, text string) {
	c.t.Helper()
	if got := c.want(&wire.Twrite{Fid: fid, Data: []byte(text)}).(*wire.Rwrite); int(got.Count) != len(text) {
		c.t.Fatalf("%d of %d bytes were written", got.Count, len(text))
	}
}

func (c *rawClient) clunk(fid uint32) {
	c.t.Helper()
	c.want(&wire.Tclunk{Fid: fid})
}

// cat walks, opens, reads and clunks.
func (c *rawClient) cat(path string) string {
	c.t.Helper()
	const fid = 9999
	c.open(fid, path, 0)
	defer c.clunk(fid)
	return c.readAll(fid)
}
