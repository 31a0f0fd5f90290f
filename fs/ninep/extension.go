package ninep

import (
	"context"

	"scvfs/fs"
	"scvfs/fs/ninep/origin"
	"scvfs/fs/ninep/wire"
)

// What a client of our own (package client) gets beyond 9P2000.L; package wire
// has the words of it.

// callerFor is who the requests of an attach are for: the process that it
// names, where the peer may speak for others, else the peer.
func (s *session) callerFor(m *wire.Tattach) fs.Caller {
	caller := s.c.caller
	if !s.extended || s.c.srv.opt.Relay == nil || caller.PID == 0 {
		return caller
	}
	if pid := origin.PID(m.UName); pid != 0 && s.c.srv.opt.Relay(caller.PID) {
		return fs.Caller{PID: pid, UID: caller.UID, Bound: true}
	}
	return caller
}

// contextFor is the context of a request on a fid, or that makes one.
func (s *session) contextFor(fids ...*fid) context.Context {
	for _, f := range fids {
		if f != nil && f.caller != s.c.caller {
			return fs.WithCaller(s.ctx, f.caller)
		}
	}
	return s.ctx
}

// sizeFor is the size that a client is told.
func (s *session) sizeFor(attr fs.Attr) uint64 {
	if s.extended && attr.Type == fs.Regular {
		return uint64(max(attr.Size, 0))
	}
	return sizeOf(attr)
}

// openQid is what a client is told of a file that it has opened.
func (s *session) openQid(q wire.Qid, o *file) wire.Qid {
	if s.extended && o.stream {
		q.Type |= wire.QTStream
	}
	return q
}

// close is Tshut: one close(2) of one descriptor.
func (r *request) close(m *wire.Tshut) (answer, error) {
	_, o, err := r.fid.opened()
	if err == nil {
		err = r.fid.whole()
	}
	if err != nil {
		return answer{}, err
	}
	if o.handle != nil && o.mode.Write {
		by := fs.Closer{Opener: m.Flags&wire.ShutOpener != 0, Killed: m.Flags&wire.ShutKilled != 0}
		if m.Flags&wire.ShutLast != 0 {
			by.Last = func() bool { return true }
		}
		err = o.handle.Flush(context.WithoutCancel(r.ctx), by)
	}
	if err != nil {
		return answer{}, err
	}
	return say(&wire.Rshut{})
}
