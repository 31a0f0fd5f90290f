package ninep

import (
	"context"
	"sync"
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// place is a node and the way to it. It never changes.
type place struct {
	node fs.Node
	qid  wire.Qid
	name string // as it was walked to
	up   *place // nil for the root
	// linked: the name is a symbolic link to the node, whose place is above
	// up in truth but whose own name is another.
	linked bool
}

// parent returns the place above; the root is its own.
func (p *place) parent() *place {
	if p.up == nil {
		return p
	}
	return p.up
}

// fid is what a client has a number for.
type fid struct {
	s      *session
	num    uint32
	caller fs.Caller // who requests on it are for
	// tail is closed once all those before have ended that a new request has
	// to wait for. It is the reader's.
	tail <-chan struct{}

	mu      sync.Mutex
	at      *place                // nil until the walk to it has ended well
	file    *file                 // nil unless open
	pending int                   // requests that have begun
	idle    chan struct{}         // closed at the end of the last of them, if somebody waits
	closing bool                  // it is being discarded
	void    bool                  // it was taken back before it stood for anything
	torn    bool                  // a write was not taken, or nobody knows whether it was
	waiting map[*request]struct{} // reads of a stream
}

func (f *fid) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending++
}

func (f *fid) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending--; f.pending == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

func (f *fid) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending > 0
}

// bare tells whether there is nothing to end.
func (f *fid) bare() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending == 0 && f.file == nil
}

// now returns where the fid is and what it has open, nil if nothing.
func (f *fid) now() (*place, *file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		return nil, nil, refused(syscall.EBADF)
	}
	return f.at, f.file, nil
}

// place is now for requests that do not care whether it is open.
func (f *fid) place() (*place, error) {
	at, _, err := f.now()
	return at, err
}

// opened is now for requests that need it open.
func (f *fid) opened() (*place, *file, error) {
	at, o, err := f.now()
	if err == nil && o == nil {
		err = refused(syscall.EBADF)
	}
	return at, o, err
}

// put moves the fid, and opens or shuts it; false if it was taken back
// meanwhile and stands for nothing.
func (f *fid) put(at *place, o *file) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.void {
		return false
	}
	f.at, f.file = at, o
	return true
}

// await says that a read may wait until it is given up; false if it has to be
// at once. leave ends that.
func (f *fid) await(r *request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return false
	}
	if f.waiting == nil {
		f.waiting = make(map[*request]struct{})
	}
	f.waiting[r] = struct{}{}
	return true
}

func (f *fid) leave(r *request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, r)
}

// annul makes it stand for nothing for good.
func (f *fid) annul() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.void, f.at = true, nil
}

func (f *fid) tear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.torn = true
}

// whole refuses to go on with a file of whose text a part may be missing.
func (f *fid) whole() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.torn {
		return refused(syscall.ESTALE)
	}
	return nil
}

// ending is how a fid ends.
type ending bool

const (
	clunked ending = true
	cutOff  ending = false // as if its writer had been killed
)

// discard ends a fid that was forgotten, once its requests have ended, and
// releases what it has open. Reads that wait are not waited for. The error is
// that of the close.
func (f *fid) discard(how ending) error {
	f.quiet()
	f.mu.Lock()
	o, torn := f.file, f.torn
	f.file = nil
	f.mu.Unlock()
	f.s.c.fids.Add(-1)
	if o == nil {
		return nil
	}
	if torn {
		how = cutOff
	}
	err := f.shut(o, how)
	if torn && err == nil {
		err = refused(syscall.ESTALE)
	}
	return err
}

// quiet waits until no request is under way. None can begin, because the fid
// is in no table.
func (f *fid) quiet() {
	f.mu.Lock()
	f.closing = true
	for r := range f.waiting {
		r.cancel()
	}
	if f.pending == 0 {
		f.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	f.idle = idle
	f.mu.Unlock()
	<-idle
}

// shut closes and releases an open file. Neither can be given up: a client
// that goes right after its Tclunk has closed the file.
func (f *fid) shut(o *file, how ending) (err error) {
	c := f.s.c
	ctx := fs.WithCaller(context.Background(), f.caller)
	defer c.srv.caught(&err)
	if o.listing != nil {
		o.listing.drop(c)
		return nil
	}
	defer o.handle.Release(ctx)
	if !o.mode.Write || f.s.extended && how == clunked {
		return nil
	}
	by := fs.Closer{Opener: true, Last: func() bool { return true }}
	if how == cutOff {
		by = fs.Closer{Killed: true}
	}
	return o.handle.Flush(ctx, by)
}
