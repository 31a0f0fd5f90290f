package client

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

const (
	greeting = 8 << 10
	shortest = 4 << 10
)

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

// refusalOf is what a refusal says, for people.
func refusalOf(m wire.Message) error {
	if no, ok := m.(*wire.Rlerror); ok {
		return syscall.Errno(no.Errno)
	}
	return errors.New("a message of another kind")
}
