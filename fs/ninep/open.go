package ninep

import (
	"math"
	"sync"
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// file is what a fid has open: a handle of the tree's, or a listing.
type file struct {
	handle  fs.Handle
	mode    fs.Mode
	stream  bool
	listing *listing // of a directory

	mu   sync.Mutex
	rest rest
}

// openLinux is Tlopen. Flags that create, truncate or append mean nothing.
func (r *request) openLinux(m *wire.Tlopen) (answer, error) {
	mode := fs.Mode{NonBlock: m.Flags&wire.LNonBlock != 0}
	switch m.Flags & wire.LAccessMode {
	case wire.LReadOnly:
		mode.Read = true
	case wire.LWriteOnly:
		mode.Write = true
	case wire.LReadWrite:
		mode.Read, mode.Write = true, true
	default:
		return no(syscall.EINVAL)
	}
	qid, undo, err := r.open(mode, m.Flags&wire.LDirectory != 0)
	return answer{message: &wire.Rlopen{Qid: qid, IOUnit: r.s.unit()}, undo: undo}, err
}

// openPlain is Topen.
func (r *request) openPlain(m *wire.Topen) (answer, error) {
	const known = wire.OExec | wire.OTrunc | wire.OCExec | wire.ORClose
	mode := fs.Mode{}
	switch access := m.Mode & wire.OExec; {
	case m.Mode&^known != 0:
		return no(syscall.EINVAL)
	case m.Mode&wire.ORClose != 0:
		return no(syscall.EPERM) // it would remove the file
	case access == wire.OExec:
		return no(syscall.EACCES) // nothing here is a program
	default:
		mode.Read = access == wire.ORead || access == wire.ORdWr
		mode.Write = access == wire.OWrite || access == wire.ORdWr
	}
	qid, undo, err := r.open(mode, false)
	return answer{message: &wire.Ropen{Qid: qid, IOUnit: r.s.unit()}, undo: undo}, err
}

// unit is how much data one message moves.
func (s *session) unit() uint32 { return s.msize - wire.IOHeader }

// open opens the fid of a request, and returns how to undo that.
func (r *request) open(mode fs.Mode, wantDir bool) (wire.Qid, func(), error) {
	at, o, err := r.fid.now()
	if err == nil && o != nil {
		err = refused(syscall.EBADF)
	}
	if err == nil {
		o, err = r.openAt(at, mode, wantDir)
	}
	if err != nil {
		return wire.Qid{}, nil, err
	}
	undo := func() {
		r.fid.put(at, nil)
		// It was not written to, so there is nothing that closing it could refuse.
		_ = r.fid.shut(o, cutOff)
	}
	if !r.fid.put(at, o) {
		undo()
		return wire.Qid{}, nil, refused(syscall.EBADF)
	}
	return r.s.openQid(at.qid, o), undo, nil
}

func (r *request) openAt(at *place, mode fs.Mode, wantDir bool) (*file, error) {
	switch node := at.node.(type) {
	case fs.Dir:
		if mode.Write {
			return nil, refused(syscall.EISDIR)
		}
		return &file{mode: mode, listing: newListing()}, nil
	case fs.File:
		if wantDir {
			return nil, refused(syscall.ENOTDIR)
		}
		return r.openFile(node, mode)
	}
	return nil, refused(syscall.ELOOP)
}

// openFile checks the mode as a kernel would, which lets root pass; Open
// checks it again.
func (r *request) openFile(node fs.File, mode fs.Mode) (*file, error) {
	if r.s.c.caller.UID != 0 {
		attr, err := node.Attr(r.ctx)
		if err != nil {
			return nil, err
		}
		if mode.Read && attr.Perm&0o400 == 0 || mode.Write && attr.Perm&0o200 == 0 {
			return nil, refused(syscall.EACCES)
		}
	}
	handle, err := node.Open(r.ctx, mode)
	if err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, r.s.c.srv.broken("open", "there is neither a handle nor an error")
	}
	streamer, ok := handle.(fs.Streamer)
	return &file{handle: handle, mode: mode, stream: ok && streamer.Stream()}, nil
}

// read is Tread: of a file, of a stream, or in 9P2000 of a directory.
func (r *request) read(m *wire.Tread) (answer, error) {
	at, o, err := r.fid.opened()
	if err == nil {
		err = r.fid.whole()
	}
	n := int(min(m.Count, r.s.msize-wire.DataHeader))
	switch {
	case err != nil:
		return answer{}, err
	case !o.mode.Read:
		return no(syscall.EBADF)
	case o.listing != nil && r.s.dialect == wire.Plain:
		return r.readRecords(at, o.listing, m.Offset, n)
	case o.listing != nil:
		return no(syscall.EISDIR)
	case m.Offset > math.MaxInt64:
		return no(syscall.EINVAL)
	case o.stream && n > 0:
		return r.readStream(o, m, n)
	}
	b, err := r.room(n)
	if err != nil {
		return answer{}, err
	}
	got, err := r.readInto(o, b.b[wire.DataHeader:][:n], m.Offset)
	if err != nil {
		b.free()
		return answer{}, err
	}
	return data(b, wire.TypeRread, got), nil
}

// readInto fills p. Data that came is given even if an error came with it; the
// next read meets that again.
func (r *request) readInto(o *file, p []byte, off uint64) (int, error) {
	n, err := o.handle.Read(r.ctx, p, int64(off))
	if n < 0 || n > len(p) {
		return 0, r.s.c.srv.broken("read", "%d bytes came where %d were asked for", n, len(p))
	}
	if n > 0 {
		err = nil
	}
	return n, err
}

// write is Twrite. Fewer bytes than were given are an answer too: the client
// sends the rest again, and that is refused then.
func (r *request) write(m *wire.Twrite) (answer, error) {
	_, o, err := r.fid.opened()
	if err == nil {
		err = r.fid.whole()
	}
	switch {
	case err != nil:
		return answer{}, err
	case !o.mode.Write:
		return no(syscall.EBADF)
	case len(m.Data) == 0:
		return say(&wire.Rwrite{})
	}
	n, err := o.handle.Write(r.ctx, m.Data)
	if n < 0 || n > len(m.Data) || n == 0 && err == nil {
		return answer{}, r.s.c.srv.broken("write", "%d of %d bytes were taken, without an error", n, len(m.Data))
	}
	if n == 0 {
		if r.ctx.Err() != nil {
			r.fid.tear()
		}
		return answer{}, err
	}
	return say(&wire.Rwrite{Count: uint32(n)})
}
