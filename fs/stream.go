package fs

import (
	"context"
	"io"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// streamFile is a file whose reads wait for what comes next. It is found by
// name and never listed.
type streamFile struct {
	site
	mtime func() (time.Time, error)
	open  func() (source, error)
}

// source gives what a stream says, piece by piece.
type source interface {
	// next waits for the next piece. It returns io.EOF at the end, and
	// fault.Interrupted when ctx ends; with a context that has ended already
	// it returns what is there without waiting.
	next(ctx context.Context) ([]byte, error)
}

// Attr implements Node. A stream has no size.
func (f streamFile) Attr(context.Context) (Attr, error) {
	at, err := f.mtime()
	if err != nil {
		return Attr{}, err
	}
	return f.attr(Regular, 0o400, at), nil
}

// Open implements File.
func (f streamFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	if err := f.checkMode(ctx, 0o400, mode); err != nil {
		return nil, err
	}
	src, err := f.open()
	if err != nil {
		return nil, err
	}
	return &streamHandle{src: src, nonBlock: mode.NonBlock, turn: make(chan struct{}, 1)}, nil
}

// streamHandle is an open stream.
type streamHandle struct {
	readOnly
	src      source
	nonBlock bool

	turn chan struct{} // held by the one read at a time; guards the below
	rest []byte        // of a piece that did not fit into a read
	end  bool
}

// Stream implements Streamer.
func (h *streamHandle) Stream() bool { return true }

// ended is a context for asking without waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Read implements Handle. It waits for one piece, then adds those that are
// there.
func (h *streamHandle) Read(ctx context.Context, p []byte, _ int64) (int, error) {
	if err := h.lock(ctx); err != nil {
		return 0, err
	}
	defer func() { <-h.turn }()
	n := h.fill(p)
	defer func() {
		if t, ok := h.src.(teller); ok && n > 0 {
			t.told(ctx)
		}
	}()
	for n < len(p) && !h.end {
		wait := ctx
		if n > 0 || h.nonBlock {
			wait = ended
		}
		piece, err := h.src.next(wait)
		switch {
		case err == io.EOF:
			h.end = true
		case n > 0 && err != nil:
			return n, nil
		case err != nil:
			return 0, h.interrupted(ctx, err)
		}
		h.rest = piece
		n += h.fill(p[n:])
	}
	return n, nil
}

// lock takes the turn, waiting only as long as the reader would.
func (h *streamHandle) lock(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	if h.nonBlock {
		return fault.New(fault.Limit, "another read of this descriptor waits")
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Interrupted, "interrupted while waiting for another read")
	}
}

// fill copies what is left of the last piece.
func (h *streamHandle) fill(p []byte) int {
	n := copy(p, h.rest)
	if h.rest = h.rest[n:]; len(h.rest) == 0 {
		h.rest = nil
	}
	return n
}

func (h *streamHandle) interrupted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "interrupted while waiting")
	case h.nonBlock && fault.Is(err, fault.Interrupted):
		return fault.New(fault.Limit, "nothing has come yet")
	}
	return stale(err)
}

// changeSource gives one line of JSON for each change that it has words for.
type changeSource struct {
	feed  feed
	queue []workbench.Change
	// words returns what to say of a change: nil for nothing. It returns
	// io.EOF after which there is nothing more to say.
	words func(workbench.Change) (any, error)
}

func (s *changeSource) next(ctx context.Context) ([]byte, error) {
	for {
		for len(s.queue) == 0 {
			got, err := s.feed.Next(ctx)
			if err != nil {
				return nil, err
			}
			s.queue = got
		}
		c := s.queue[0]
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		v, err := s.words(c)
		if err != nil {
			return nil, err
		}
		if v != nil {
			return jsonText(v, "")
		}
	}
}

// everyChange says each change as it is.
func everyChange(c workbench.Change) (any, error) { return c, nil }

// lostChanges is what a session's stream says to a reader that was too slow.
type lostChanges struct {
	Lost uint64 `json:"lost"`
}

// approvalChange is what a session's stream says of an agent's request: that it
// waits and what for, or how it was decided.
type approvalChange struct {
	Approval uint64               `json:"approval"`
	Job      string               `json:"job"`
	Outcome  ledger.ApprovalState `json:"outcome"`
	Detail   string               `json:"detail"`
}

// jobChanges says of the jobs of one session that they started and how they
// ended, each once, of the requests of their agents, and which turns the
// workbench started by itself.
func jobChanges(session string) func(workbench.Change) (any, error) {
	told := make(map[string]bool) // jobs that ended and are not gone
	return func(c workbench.Change) (any, error) {
		if c.Kind == workbench.ChangesLost {
			return lostChanges{c.Lost}, nil
		}
		if c.Session != session {
			return nil, nil
		}
		switch c.Kind {
		case workbench.ApprovalRaised, workbench.ApprovalResolved:
			return approvalChange{c.Approval, c.Job, c.Outcome, c.Detail}, nil
		case workbench.SessionGone:
			return nil, io.EOF
		case workbench.JobGone:
			delete(told, c.Job)
		}
		if turn, ok := c.OwnTurn(); ok {
			return turn, nil
		}
		j, ok := c.JobChange()
		if !ok || told[c.Job] {
			return nil, nil
		}
		told[c.Job] = !j.Started()
		return j, nil
	}
}

// waitSource gives a job's status once it has ended.
type waitSource struct {
	t    *Tree
	get  subject[*ledger.Job]
	done bool
}

func (s *waitSource) next(ctx context.Context) ([]byte, error) {
	if s.done {
		return nil, io.EOF
	}
	j, err := s.get()
	if err != nil {
		return nil, err
	}
	status := j.State.Status()
	if !j.State.Terminal() {
		if ctx.Err() != nil {
			return nil, fault.New(fault.Interrupted, "%s/%s has not ended", j.Session, workbench.JobName(j.Number))
		}
		if status, err = s.t.bench.Wait(ctx, j.Session, j.Number); err != nil {
			return nil, err
		}
	}
	s.done = true
	return oneLine(string(status)), nil
}

// stream is a row of a stream.
func stream[S any](name string, open func(d tableDir[S]) (source, error)) row[S] {
	return row[S]{name: name, typ: Regular, hidden: true, node: func(d tableDir[S], at site, _ S) Node {
		return streamFile{site: at, mtime: d.when(d.table.changed), open: func() (source, error) {
			if _, err := d.get(); err != nil {
				return nil, err
			}
			return open(d)
		}}
	}}
}

var (
	_ File     = streamFile{}
	_ Handle   = (*streamHandle)(nil)
	_ Streamer = (*streamHandle)(nil)
)
