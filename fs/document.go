package fs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// document is a file that takes a text of any length in any number of writes
// and sends it once its last descriptor is gone (DESIGN 4.5).
//
// What can be refused is refused by a write, which every shell reports, or by
// the close that follows, which few do. What fails after that is only
// recorded.
type document struct {
	site
	op    string // the word for it in outcomes: start, queue, …
	usage string // one line, shown while nothing was sent yet
	limit int64  // bytes

	mtime    func() (time.Time, error)
	check    func() error             // refuses all writers
	precheck func(part []byte) error  // refuses what no continuation can mend
	accepts  func(whole []byte) error // makes all checks of send and sends nothing
	send     func(ctx context.Context, whole []byte) (address string, err error)
	// by is the document as an agent's that may write to it; nil for one that
	// is the owner's alone.
	by func(who workbench.Caller) document
}

// Attr implements Node. It waits for no closing document: a writer's own fstat
// comes between its closes.
func (d document) Attr(ctx context.Context) (Attr, error) {
	at, err := d.mtime()
	if err != nil {
		return Attr{}, err
	}
	who := d.t.who(ctx)
	last, _ := d.t.outcomes.get(d.key(who))
	a := d.attr(Regular, 0o600, latest(at, last.at))
	a.Size = int64(len(d.shows(who)))
	return a, nil
}

// shows is what a descriptor that wrote nothing reads.
func (d document) shows(who workbench.Caller) []byte {
	if last, ok := d.t.outcomes.get(d.key(who)); ok {
		return []byte(last.line)
	}
	return fmt.Appendf(nil, "# %s\n", d.usage)
}

// Open implements File.
func (d document) Open(ctx context.Context, mode Mode) (Handle, error) {
	if _, err := d.mtime(); err != nil {
		return nil, err
	}
	who := d.t.who(ctx)
	if mode.Write {
		var err error
		if d, err = d.writtenBy(who); err != nil {
			d.t.refuse(as(ctx, who), d.site, d.op, err)
			return nil, err
		}
	} else if err := d.settle(ctx); err != nil {
		return nil, err
	}
	h := &docHandle{d: d, mode: mode, author: who}
	h.view.set(d.shows(who), 0)
	return h, nil
}

// writtenBy is the document as it is for a writer, or why it may not write.
func (d document) writtenBy(who workbench.Caller) (document, error) {
	if err := d.permit(who, d.op); err != nil {
		return d, err
	}
	if !who.Owner() {
		if d.by == nil {
			return d, workbench.OwnersAlone(who)
		}
		d = d.by(who)
	}
	return d, d.check()
}

// docHandle is an open document.
//
// It is in one of these states: empty; filling (buf); closing (buf, and the
// opener has closed it); turned down (buf and refusal: the close was refused,
// and only another write can mend it); broken (nothing of it is ever sent).
//
// It has one author, who opened it. Whoever else has the descriptor by now can
// neither add to it nor send it: an agent's words never go out as the owner's.
type docHandle struct {
	d      document
	mode   Mode
	author workbench.Caller

	mu      sync.Mutex
	buf     []byte
	closing *closing
	refusal error // of the last close, until the next write
	broken  error // a part was refused or its writer was killed
	wrote   bool
	own     []byte // outcome of what was written here, until it is read
	view    view
}

// Write implements Handle: it appends p and refuses what is wrong for good.
func (h *docHandle) Write(ctx context.Context, p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mode.Write {
		return 0, fault.New(fault.Denied, "%s is open for reading only", h.d.path)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := h.isAuthor(ctx, "written to"); err != nil {
		return 0, err
	}
	h.reopen()
	if h.broken != nil {
		return 0, h.broken
	}
	h.wrote = true
	if err := h.add(p); err != nil {
		h.drop(ctx, err)
		return 0, err
	}
	return len(p), nil
}

// isAuthor refuses and records whoever has not opened the document.
func (h *docHandle) isAuthor(ctx context.Context, what string) error {
	if c, ok := CallerOf(ctx); ok && c.Bound {
		return nil
	}
	who := h.d.t.who(ctx)
	if who.Same(h.author) {
		return nil
	}
	err := fault.New(fault.Denied, "this descriptor was opened by %s, and cannot be %s by %s: open %s anew", h.author, what, who, h.d.path)
	h.d.t.refuse(as(ctx, who), h.d.site, h.d.op, err)
	return err
}

// reopen ends what the last close began.
func (h *docHandle) reopen() {
	h.closing.end()
	h.closing, h.refusal = nil, nil
}

func (h *docHandle) add(p []byte) error {
	if err := h.d.check(); err != nil {
		return stale(err)
	}
	if size := int64(len(h.buf)) + int64(len(p)); size > h.d.limit {
		return fault.New(fault.TooLarge, "the text has more than %d bytes (limits.prompt_bytes); put it in a file and name that", h.d.limit)
	}
	h.buf = append(h.buf, p...)
	return h.d.precheck(h.buf)
}

// drop gives the document up for good.
func (h *docHandle) drop(ctx context.Context, err error) {
	h.broken, h.buf = err, nil
	h.own = []byte(h.d.t.refuse(ctx, h.d.site, h.d.op, err))
}

// Flush implements Handle: it refuses what is wrong with the whole, and marks
// the document as closing. A close that is seen to be the last one sends it at
// once: the writer then hears of a failure, and a daemon that is killed right
// after has lost nothing.
func (h *docHandle) Flush(ctx context.Context, by Closer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx = as(ctx, h.author) // who else closes it changes nothing, and is not to be asked for here
	switch {
	case len(h.buf) == 0:
		return nil
	case by.Killed && (by.Opener || h.closing == nil): // else the opener closed it whole
		h.reopen()
		h.drop(ctx, fault.New(fault.Gone, "its writer was killed, so nothing of its %d bytes was sent; open %s and write it again", len(h.buf), h.d.path))
		return nil
	case !by.Opener:
		return nil
	case h.refusal != nil:
		return h.refusal
	}
	h.reopen()
	if err := h.d.accepts(h.buf); err != nil {
		h.refusal = err
		h.own = []byte(h.d.t.refuse(ctx, h.d.site, h.d.op, err))
		return err
	}
	if by.Last != nil && by.Last() {
		return h.send(ctx)
	}
	h.closing = h.d.t.closings.begin(h.d.scope)
	return nil
}

// Release implements Handle: it sends the document.
func (h *docHandle) Release(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing.hold()
	if h.refusal == nil && len(h.buf) > 0 {
		// Nobody hears an error here; send has recorded it.
		_ = h.send(ctx)
	}
	h.reopen()
	h.buf = nil
}

// send makes the job of what was written, which is gone then whatever comes
// of it. A wait that ends early must not leave it open whether there is a job.
func (h *docHandle) send(ctx context.Context) error {
	whole := h.buf
	h.buf = nil
	ctx = as(ctx, h.author)
	address, err := h.d.send(context.WithoutCancel(ctx), whole)
	if err != nil {
		h.own = []byte(h.d.t.refuse(ctx, h.d.site, h.d.op, err))
		return err
	}
	h.own = oneLine(address)
	h.d.t.outcomes.set(h.d.key(h.author), outcome{line: string(h.own), at: h.d.t.opt.Clock()})
	return nil
}

// Read implements Handle. After a write it sends at once, and what came of it
// begins at the offset of that read: a shell's offset stands behind what it
// wrote.
func (h *docHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if !h.mode.Read {
		return 0, fault.New(fault.Denied, "%s is open for writing only", h.d.path)
	}
	if off == 0 && h.fresh() {
		if err := h.d.settle(ctx); err != nil {
			return 0, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.buf) > 0 {
		if err := h.isAuthor(ctx, "sent"); err != nil {
			return 0, err
		}
		err := h.send(ctx)
		h.reopen()
		if err != nil {
			return 0, err
		}
	}
	switch {
	case h.own != nil:
		h.view.set(h.own, off)
		h.own = nil
	case !h.wrote && off == 0:
		h.view.set(h.d.shows(h.author), 0)
	}
	return h.view.read(p, off), nil
}

// fresh tells whether nothing was written here.
func (h *docHandle) fresh() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.wrote
}

var (
	_ File   = document{}
	_ Handle = (*docHandle)(nil)
)
