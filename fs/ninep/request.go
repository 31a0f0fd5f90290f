package ninep

import (
	"context"
	"sync/atomic"
	"syscall"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// request is one message under way. It has a goroutine of its own.
type request struct {
	s    *session
	tag  uint16
	typ  wire.Type
	body *buffer // of a Twrite; given back at the end
	ctx  context.Context
	// cancel ends ctx: by a Tflush, a Tclunk, a new session, or at the end.
	cancel context.CancelFunc
	skip   atomic.Bool // it is not to begin
	large  bool        // it holds a token for a large answer
	// counted: it is one of the connection's running, and maybe writes.
	counted bool

	plan
	before <-chan struct{} // closed when it may begin; nil: at once
	after  chan struct{}   // closed at its end, if others wait for that
}

// plan is how a message is to be dealt with.
type plan struct {
	// answer is given at once; nil if there is work to do.
	answer wire.Message
	// fid is what the work is on; nil if it has none, or has it to itself.
	fid *fid
	// alone: later requests on fid wait for this one. Without it, they wait
	// only for those before it.
	alone bool
	// made is a fid that comes into being with the answer.
	made *fid
	// always: it is worked on even if nobody will hear of it.
	always bool
	work   func(*request) (answer, error)
}

// answer is what comes of a request.
type answer struct {
	message wire.Message
	// data is what an answer of type kind holds instead of a message: n bytes
	// from wire.DataHeader on.
	data *buffer
	kind wire.Type
	n    int
	// undo takes back what was done when nobody will hear of it.
	undo func()
}

// start begins the work of a request. What comes after it on the same fid is
// put in order here, in the order of arrival.
func (s *session) start(r *request) {
	r.ctx, r.cancel = context.WithCancel(s.contextFor(r.fid, r.made))
	if r.alone || r.made != nil {
		r.after = make(chan struct{})
	}
	if f := r.fid; f != nil {
		f.begin()
		r.before = f.tail
		if r.alone {
			f.tail = r.after
		}
	}
	if r.made != nil {
		r.made.begin()
		r.made.tail = r.after
	}
	s.mu.Lock()
	s.tags[r.tag] = r
	s.mu.Unlock()
	r.counted = true
	s.c.running.Add(1)
	if r.body.isLarge() {
		s.c.writes.Add(1)
	}
	s.c.jobs.Go(r.run)
}

// run is the goroutine of a request.
func (r *request) run() {
	defer r.finish()
	if r.before != nil {
		<-r.before
	}
	if r.skip.Load() {
		return
	}
	a, err := r.do()
	if err != nil {
		if r.made != nil {
			r.s.abort(r.made)
		}
		a.message = wire.NewError(r.s.dialect, r.s.c.srv.errno(r.ctx, r.typ.String(), err))
	}
	if !r.reply(a) && a.undo != nil {
		a.undo()
	}
	a.data.free()
}

// do does the work. A panic there costs only this request.
func (r *request) do() (a answer, err error) {
	defer r.s.c.srv.caught(&err)
	return r.work(r)
}

// reply sends the answer; false if the request was dropped.
func (r *request) reply(a answer) bool {
	c := r.s.c
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !r.s.claim(r) {
		return false
	}
	r.uncount()
	// Where it cannot be sent, the reader meets the end of the connection.
	if a.message != nil {
		_ = r.s.write(r.tag, a.message)
	} else {
		_ = c.writeFrame(wire.PutData(a.data.b, r.tag, a.kind, a.n))
	}
	return true
}

// finish lets those who wait go on.
func (r *request) finish() {
	r.cancel()
	r.uncount()
	r.body.free()
	if r.large {
		<-r.s.c.large
	}
	if r.after != nil {
		close(r.after)
	}
	if r.fid != nil {
		r.fid.end()
	}
	if r.made != nil {
		r.made.end()
	}
}

// uncount makes room for another request, at the first call. It comes before
// the answer: a client that has it may send the next.
func (r *request) uncount() {
	if r.counted {
		r.counted = false
		r.s.c.running.Add(-1)
		if r.body.isLarge() {
			r.s.c.writes.Add(-1)
		}
	}
}

// drop is what happens to a request that will not be answered. One that its
// client has withdrawn counts as not done, whatever comes of it. What was
// written before the end of a session is written all the same: a Tclunk may
// follow. drop needs wmu and a claim.
func (r *request) drop(withdrawn bool) {
	write := r.typ == wire.TypeTwrite
	r.skip.Store(!r.always && (withdrawn || !write))
	r.cancel()
	if r.made != nil {
		r.s.abort(r.made)
	}
	if write && withdrawn {
		r.fid.tear()
	}
}

// interrupted is the error of a wait that was given up.
func (r *request) interrupted() error {
	return fault.New(fault.Interrupted, "the request was given up")
}

// abort takes back a fid that was to come into being. Nothing can be open on
// it, and nothing will be.
func (s *session) abort(f *fid) {
	if s.forget(f) {
		s.c.fids.Add(-1)
	}
	f.annul()
}

// data is an answer of n bytes.
func data(b *buffer, kind wire.Type, n int) answer { return answer{data: b, kind: kind, n: n} }

// say is an answer of a message.
func say(m wire.Message) (answer, error) { return answer{message: m}, nil }

// no is a refusal by this package.
func no(errno syscall.Errno) (answer, error) { return answer{}, refused(errno) }
