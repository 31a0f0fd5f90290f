package fs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"scvfs/ledger/fault"
)

// closeWait is how long look-ups wait for the release of a document that its
// writer has closed.
const closeWait = 50 * time.Millisecond

// scope says which sessions' new jobs could show in a file: none, one
// session's, or all.
type scope string

const (
	noSession scope = ""
	allOfThem scope = "/" // no session's name
)

// closings are the documents whose writer has closed them and whose jobs are
// not made yet. The kernel tells of the last close a moment after close(2) has
// returned, so whoever looks in that moment waits for it; otherwise a script
// would not see the job that it just started.
//
// Its lock is a leaf.
type closings struct {
	n    atomic.Int32 // how many are open, so that nobody locks for nothing
	mu   sync.Mutex
	open map[*closing]struct{}
}

// closing is one document between its close and its job. A nil closing is one
// that is over.
type closing struct {
	all     *closings
	session scope
	over    chan struct{}
	timer   *time.Timer // ends the wait when no release comes
	held    bool        // the release came in time: only end ends it
}

// begin makes look-ups wait for a document of the session.
func (a *closings) begin(session scope) *closing {
	c := &closing{all: a, session: session, over: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = make(map[*closing]struct{})
	}
	a.open[c] = struct{}{}
	a.n.Add(1)
	c.timer = time.AfterFunc(closeWait, c.expire)
	return c
}

// hold says that the release has come: look-ups wait until the job is made,
// unless they have stopped waiting already.
func (c *closing) hold() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.held = true
	c.timer.Stop()
}

// end lets all waiting look-ups go on.
func (c *closing) end() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.finish()
}

// expire is end for a document whose release does not come.
func (c *closing) expire() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.held {
		c.finish()
	}
}

// finish needs the lock.
func (c *closing) finish() {
	if _, open := c.all.open[c]; !open {
		return
	}
	c.timer.Stop()
	delete(c.all.open, c)
	c.all.n.Add(-1)
	close(c.over)
}

// wait returns once the documents in scope that are closing now have become
// jobs, or fault.Interrupted when ctx ends first.
func (a *closings) wait(ctx context.Context, s scope) error {
	if s == noSession || a.n.Load() == 0 {
		return nil
	}
	for _, c := range a.in(s) {
		select {
		case <-c.over:
		case <-ctx.Done():
			return fault.New(fault.Interrupted, "interrupted while a job was being made")
		}
	}
	return nil
}

// in returns the documents in scope.
func (a *closings) in(s scope) []*closing {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*closing
	for c := range a.open {
		if s == allOfThem || s == c.session {
			found = append(found, c)
		}
	}
	return found
}
