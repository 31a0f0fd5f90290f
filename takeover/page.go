package takeover

import (
	"context"
	"errors"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

// settle is how long Wait lets a change go on before it tells of it, so that
// what a program draws in several writes is one page.
const settle = 10 * time.Millisecond

// Subject says whose terminal it is.
type Subject struct {
	Session      string `json:"session,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Run          string `json:"run,omitempty"`
}

// Page is what a reader that draws the screen itself gets: what changed since a
// generation, and the end. All else of it the reader keeps from before.
type Page struct {
	Subject
	screen.Page
	Ended bool   `json:"ended"`
	Exit  string `json:"exit,omitempty"` // how the program ended
	Note  string `json:"note,omitempty"` // a sentence of the terminal's owner
}

// Page returns what changed since generation after, at once: everything when
// after is 0 or is no generation of this terminal, or the size has changed.
func (t *Terminal) Page(after uint64) Page {
	e, ended := t.Ending() // first: once it is there the screen changes no more
	return Page{Subject: t.opt.Subject, Page: t.screen.Page(after), Ended: ended, Exit: e.Exit, Note: e.Note}
}

// Wait is Page once something has changed since generation after; for 0 it does
// not wait. Once the terminal has ended it returns the last page, however often
// it is asked. fault.Timeout or fault.Interrupted when ctx ends first.
func (t *Terminal) Wait(ctx context.Context, after uint64) (Page, error) {
	for after != 0 {
		changed := t.changed.next() // before it is looked at
		if _, ended := t.Ending(); ended {
			break
		}
		ripe := changed
		if t.screen.Generation() != after {
			ripe = nil
		}
		over, err := t.pause(ctx, ripe)
		if err != nil {
			return Page{}, err
		}
		if over {
			break
		}
	}
	return t.Page(after), nil
}

// pause waits for a change; for nil, which is one that has come, until it has
// settled, and says that the waiting is over.
func (t *Terminal) pause(ctx context.Context, changed <-chan struct{}) (over bool, err error) {
	var settled <-chan time.Time
	if changed == nil {
		timer := time.NewTimer(settle)
		defer timer.Stop()
		settled = timer.C
	}
	select {
	case <-changed:
		return false, nil
	case <-settled:
		return true, nil
	case <-t.ended:
		return true, nil
	case <-ctx.Done():
	}
	kind := fault.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = fault.Timeout
	}
	return false, fault.New(kind, "nothing changed on the terminal while somebody waited for it")
}

// pulse tells any number of waiters that something has changed.
type pulse struct {
	mu   sync.Mutex
	wake chan struct{} // nil while nobody waits
}

// next returns a channel that is closed at the next change.
func (p *pulse) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	return p.wake
}

func (p *pulse) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}
