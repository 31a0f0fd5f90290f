package ninep

import (
	"context"
	"sync"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// stream gives each line to all who wait for it.
type stream struct {
	ino      uint64
	mu       sync.Mutex
	text     []byte
	ended    bool
	more     chan struct{}
	waiting  int
	released int
	callers  []fs.Caller
}

func newStream() *stream { return &stream{ino: newIno(), more: make(chan struct{})} }

func (s *stream) say(line string) { s.change(func() { s.text = append(s.text, line...) }) }
func (s *stream) end()            { s.change(func() { s.ended = true }) }

func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.more)
	s.more = make(chan struct{})
}

// readers returns how many reads wait and how many handles were released.
func (s *stream) readers() (waiting, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting, s.released
}

func (s *stream) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: s.ino, Type: fs.Regular, Perm: 0o400, Mtime: begun}, nil
}

func (s *stream) Open(_ context.Context, mode fs.Mode) (fs.Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &streamHandle{file: s, pos: len(s.text), nonBlock: mode.NonBlock}, nil
}

type streamHandle struct {
	noHandle
	file     *stream
	pos      int // guarded by file.mu
	nonBlock bool
}

func (h *streamHandle) Stream() bool { return true }

func (h *streamHandle) Read(ctx context.Context, p []byte, _ int64) (int, error) {
	caller, _ := fs.CallerOf(ctx)
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.callers = append(h.file.callers, caller)
	for h.pos == len(h.file.text) && !h.file.ended {
		if h.nonBlock {
			return 0, fault.New(fault.Limit, "nothing yet")
		}
		more := h.file.more
		h.file.waiting++
		h.file.mu.Unlock()
		var err error
		select {
		case <-more:
		case <-ctx.Done():
			err = fault.New(fault.Interrupted, "gave up")
		}
		h.file.mu.Lock()
		h.file.waiting--
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, h.file.text[h.pos:])
	h.pos += n
	return n, nil
}

func (h *streamHandle) Release(context.Context) {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.released++
}

// link is a symbolic link.
type link struct {
	ino    uint64
	target string
}

func newLink(target string) link { return link{newIno(), target} }

func (l link) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: l.ino, Type: fs.Symlink, Perm: 0o777, Size: int64(len(l.target)), Mtime: begun}, nil
}
func (l link) Readlink(context.Context) (string, error) { return l.target, nil }

// gate is where something stops until the test lets it go, whatever becomes
// of its context.
type gate struct {
	here chan struct{} // one for each who arrived
	open chan struct{}
}

func newGate() *gate { return &gate{here: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) pass() {
	g.here <- struct{}{}
	<-g.open
}

// bomb is a file, or a directory, that misbehaves in one place.
type bomb struct {
	ino    uint64
	where  string
	action func() (int, error)
}

func newBomb(where string, action func() (int, error)) bomb { return bomb{newIno(), where, action} }

// stuck is a bomb that stops at a gate.
func stuck(where string, g *gate) bomb {
	return newBomb(where, func() (int, error) { g.pass(); return 0, nil })
}

func (b bomb) at(where string) (int, error) {
	if b.where == where {
		return b.action()
	}
	return 0, nil
}

func (b bomb) Attr(context.Context) (fs.Attr, error) {
	_, err := b.at("attr")
	return fs.Attr{Ino: b.ino, Type: fs.Regular, Perm: 0o600, Mtime: begun}, err
}

func (b bomb) Open(context.Context, fs.Mode) (fs.Handle, error) {
	if n, err := b.at("open"); n != 0 || err != nil {
		return nil, err
	}
	return bombHandle{b}, nil
}

type bombHandle struct{ bomb }

func (b bombHandle) Read(context.Context, []byte, int64) (int, error) { return b.at("read") }
func (b bombHandle) Write(_ context.Context, p []byte) (int, error) {
	if b.where == "write" {
		return b.action()
	}
	return len(p), nil
}

func (b bombHandle) Flush(context.Context, fs.Closer) error {
	_, err := b.at("flush")
	return err
}

func (b bombHandle) Release(context.Context) { b.at("release") }

// bombDir is a bomb that is a directory.
type bombDir struct{ bomb }

func (b bombDir) Attr(ctx context.Context) (fs.Attr, error) {
	a, err := b.bomb.Attr(ctx)
	a.Type, a.Perm = fs.Directory, 0o500
	return a, err
}

func (b bombDir) Lookup(context.Context, string) (fs.Node, error) {
	_, err := b.at("lookup")
	return b, err
}

func (b bombDir) List(context.Context) ([]fs.Entry, error) {
	_, err := b.at("list")
	return nil, err
}

// bombDir is no file, though its bomb is.
func (b bombDir) Open() {}

// script is a file whose handle notes what is done, in order, and stops where
// the test says so.
type script struct {
	ino  uint64
	mu   sync.Mutex
	did  []string
	stop map[string]*gate // by what is done
}

func newScript() *script { return &script{ino: newIno(), stop: map[string]*gate{}} }

func (s *script) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: s.ino, Type: fs.Regular, Perm: 0o600, Mtime: begun}, nil
}

func (s *script) Open(context.Context, fs.Mode) (fs.Handle, error) {
	s.do("open")
	return scriptHandle{s}, nil
}

func (s *script) do(what string) {
	if g := s.stop[what]; g != nil {
		g.pass()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
}

func (s *script) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.did...)
}

type scriptHandle struct{ *script }

func (s scriptHandle) Read(_ context.Context, p []byte, _ int64) (int, error) {
	s.do("read")
	return 0, nil
}

func (s scriptHandle) Write(_ context.Context, p []byte) (int, error) {
	s.do(string(p))
	return len(p), nil
}

func (s scriptHandle) Flush(_ context.Context, by fs.Closer) error {
	if by.Killed {
		s.do("killed")
	} else {
		s.do("flush")
	}
	return nil
}

func (s scriptHandle) Release(context.Context) { s.do("release") }

func callerWithUID(uid uint32) fs.Caller { return fs.Caller{UID: uid} }
