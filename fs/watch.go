package fs

import (
	"context"
	"sync"

	"scvfs/ledger"
	"scvfs/workbench"
)

// looked says that somebody reads approvals, which counts as watching when it
// is the owner.
func (t *Tree) looked(ctx context.Context) {
	if t.who(ctx).Owner() {
		t.bench.Looked()
	}
}

// watching says that somebody watches, until stop is called.
func (t *Tree) watching(ctx context.Context) (stop func()) {
	if t.who(ctx).Owner() {
		return t.bench.Watch()
	}
	return func() {}
}

// watched makes reads of a row's file count as watching.
func watched[S any](r row[S]) row[S] {
	node := r.node
	r.node = func(d tableDir[S], at site, s S) Node {
		if f, ok := node(d, at, s).(File); ok {
			return watchedFile{f, at}
		}
		panic("only reads of a file can be watched: " + r.name)
	}
	return r
}

// watchedFile is a file whose reads count as watching.
type watchedFile struct {
	File
	site
}

// Open implements File.
func (f watchedFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	h, err := f.File.Open(ctx, mode)
	if err != nil || !mode.Read {
		return h, err
	}
	f.t.looked(ctx)
	return watchedHandle{h, f.t}, nil
}

// watchedHandle is an open file whose reads count as watching.
type watchedHandle struct {
	Handle
	t *Tree
}

// Read implements Handle.
func (h watchedHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	h.t.looked(ctx)
	return h.Handle.Read(ctx, p, off)
}

const watchName = "watch"

// watchFile is approvals/watch: whoever holds it open watches.
type watchFile struct{ streamFile }

func newWatchFile(at site) Node {
	return watchFile{streamFile{site: at, mtime: always(at.t.lastChange), open: func() (source, error) {
		s := &watchSource{t: at.t, feed: at.t.subscribe(), told: map[uint64]bool{}}
		s.look() // after the feed began, so that none is missed
		return s, nil
	}}}
}

// Open implements File.
func (f watchFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	h, err := f.streamFile.Open(ctx, mode)
	if err != nil {
		return nil, err
	}
	return &watchHandle{streamHandle: h.(*streamHandle), stop: f.t.watching(ctx)}, nil
}

// watchHandle is watch, held open.
type watchHandle struct {
	*streamHandle
	once sync.Once
	stop func()
}

// Release implements Handle.
func (h *watchHandle) Release(context.Context) { h.once.Do(h.stop) }

// watchSource gives a line for each request that waits and each that comes.
type watchSource struct {
	t     *Tree
	feed  feed
	queue []uint64
	told  map[uint64]bool // requests that were not decided when they were told
}

// look tells of those that wait and were not told.
func (s *watchSource) look() {
	for _, a := range s.t.bench.Approvals("", 0) {
		s.add(a.Number)
	}
}

func (s *watchSource) add(n uint64) {
	if !s.told[n] {
		s.told[n] = true
		s.queue = append(s.queue, n)
	}
}

// next implements source.
func (s *watchSource) next(ctx context.Context) ([]byte, error) {
	for {
		for len(s.queue) > 0 {
			n := s.queue[0]
			s.queue = s.queue[1:]
			if a, ok := s.t.bench.Approval(n); ok {
				return s.t.waitingLine(a, address(a.Session, a.Job)), nil
			}
		}
		came, err := s.feed.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range came {
			s.take(c)
		}
	}
}

func (s *watchSource) take(c workbench.Change) {
	switch c.Kind {
	case workbench.ApprovalRaised:
		s.add(c.Approval)
	case workbench.ApprovalResolved:
		delete(s.told, c.Approval)
	case workbench.ChangesLost:
		for n := range s.told {
			if a, ok := s.t.bench.Approval(n); !ok || a.State != ledger.ApprovalWaiting {
				delete(s.told, n)
			}
		}
		s.look()
	}
}

var (
	_ File     = watchedFile{}
	_ Handle   = watchedHandle{}
	_ File     = watchFile{}
	_ Handle   = (*watchHandle)(nil)
	_ Streamer = (*watchHandle)(nil)
)
