package client

import (
	"bytes"
	"context"
	"math"
	"sync"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// handle is an open file. It is a fid of one connection.
type handle struct {
	s      *session
	fid    uint32
	at     string // its path, for people
	mode   fs.Mode
	unit   int           // bytes of one message
	stream bool          // reads wait
	after  time.Duration // how long a read goes on after its reader has given up

	mu    sync.Mutex
	off   uint64 // of the next write; means nothing to a server of our own
	dirty bool   // something was written since the last close
}

var (
	_ fs.Handle   = (*handle)(nil)
	_ fs.Streamer = (*handle)(nil)
)

func newHandle(f *file, v *visit, mode fs.Mode, open *wire.Rlopen) *handle {
	h := &handle{s: v.s, fid: v.fid, at: f.at(), mode: mode, unit: int(v.s.msize - wire.IOHeader), after: patience}
	if open.IOUnit > 0 && open.IOUnit < uint32(h.unit) {
		h.unit = int(open.IOUnit)
	}
	h.stream = v.s.extended && open.Qid.Type&wire.QTStream != 0
	if h.stream || !v.s.extended {
		h.after = 0
	}
	return h
}

// Stream implements fs.Streamer.
func (h *handle) Stream() bool { return h.stream }

// Read implements fs.Handle.
func (h *handle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		want := min(len(p)-n, h.unit)
		got, err := h.read(ctx, p[n:n+want], off+int64(n))
		if n += got; err != nil && n > 0 {
			return n, nil
		}
		if err != nil || got < want {
			return n, err
		}
		if h.stream {
			break
		}
	}
	return n, nil
}

// read is one message.
func (h *handle) read(ctx context.Context, p []byte, off int64) (int, error) {
	if !h.s.alive() {
		return 0, stale(h.at)
	}
	k := newCall(&wire.Tread{Fid: h.fid, Offset: uint64(off), Count: uint32(len(p))})
	if err := h.s.do(ctx, h.after, k); err != nil {
		return 0, err
	}
	data := k.reply.(*wire.Rread).Data
	if len(data) > len(p) {
		return 0, refuse(syscall.EIO, "the 9P server gave %d bytes of %s where %d were asked for", len(data), h.at, len(p))
	}
	return copy(p, data), nil
}

// Write implements fs.Handle. What does not fit into one message is cut behind
// a line, since each write is whole lines to a command file.
func (h *handle) Write(ctx context.Context, p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.s.alive() {
		return 0, stale(h.at)
	}
	h.dirty = true
	n := 0
	for n < len(p) {
		part := p[n:min(len(p), n+h.unit)]
		if end := bytes.LastIndexByte(part, '\n') + 1; end > 0 && n+len(part) < len(p) {
			part = part[:end]
		}
		k := newCall(&wire.Twrite{Fid: h.fid, Offset: h.off, Data: part})
		err := h.s.do(ctx, patience, k)
		var took int
		if err == nil {
			took = int(min(k.reply.(*wire.Rwrite).Count, math.MaxInt32))
		}
		if err == nil && (took == 0 || took > len(part)) {
			err = refuse(syscall.EIO, "the 9P server took %d of %d bytes for %s", took, len(part), h.at)
		}
		if err != nil && n > 0 {
			return n, nil // what is left comes again, and meets this again
		}
		if err != nil {
			return 0, err
		}
		n += took
		h.off += uint64(took)
		if took < len(part) {
			break
		}
	}
	return n, nil
}

// Flush implements fs.Handle. It is not given up when its process is
// interrupted, which dying ones are.
func (h *handle) Flush(ctx context.Context, by fs.Closer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	dirty := h.dirty
	h.dirty = false
	switch {
	case !h.mode.Write:
		return nil
	case !h.s.alive() && dirty:
		return stale(h.at)
	case !h.s.alive() || !h.s.extended:
		return nil
	}
	k := newCall(&wire.Tshut{Fid: h.fid, Flags: flagsOf(by, dirty)})
	if err := h.s.do(context.WithoutCancel(ctx), patience, k); err != nil {
		return err
	}
	return nil
}

// flagsOf says who closes. Whether it is the last close is found out only
// where something was written, because that costs a look at all processes.
func flagsOf(by fs.Closer, dirty bool) uint32 {
	var flags uint32
	if by.Opener {
		flags |= wire.ShutOpener
	}
	if by.Killed {
		flags |= wire.ShutKilled
	} else if dirty && by.Last != nil && by.Last() {
		flags |= wire.ShutLast
	}
	return flags
}

// Release implements fs.Handle. It waits for the server, which may have a
// document to send, but for no server that hangs.
func (h *handle) Release(context.Context) {
	if !h.s.alive() {
		return
	}
	k := h.s.clunk(h.fid)
	if h.s.send(k) != nil {
		return // it is gone, and the file with it
	}
	timer := time.NewTimer(parting)
	defer timer.Stop()
	select {
	case <-k.done:
	case <-timer.C:
	}
}
