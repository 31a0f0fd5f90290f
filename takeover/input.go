package takeover

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// message is what goes to the program in one piece.
type message struct {
	bytes []byte
	// rest returns what must follow all the same when only n bytes could go, n
	// above 0; nil when nothing must.
	rest func(n int) []byte
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// send writes a message for a hold, and returns how much of it went. It is
// composed when its turn has come, so that it is in the form that the program
// wants then.
func (t *Terminal) send(ctx context.Context, h *Hold, compose func() (message, error)) (n int, err error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	wait, cancel := context.WithTimeout(ctx, t.opt.Patience)
	defer cancel()
	defer context.AfterFunc(h.lost, cancel)()
	defer context.AfterFunc(t.alive, cancel)()
	select {
	case t.turn <- struct{}{}:
	case <-wait.Done():
		return 0, t.waitError(ctx, h)
	}
	defer func() { <-t.turn }()
	if err := h.check(); err != nil {
		return 0, err
	}
	if t.alive.Err() != nil { // the kernel would take it all the same
		return 0, t.writeError(unix.EIO)
	}
	m, err := compose()
	if err != nil {
		return 0, err
	}
	if err = t.pay(wait); err == nil {
		n, err = t.put(wait, m.bytes)
		if err != nil && n > 0 && m.rest != nil {
			t.owe(m.rest(n))
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, t.waitError(ctx, h)
	}
	return n, t.writeError(err)
}

// answer writes the answers to the program's questions, and what input that was
// cut short has left to be said. It waits for a program that does not read, for
// as long as there is one.
func (t *Terminal) answer() {
	for {
		select {
		case <-t.gone:
			return
		case <-t.owing:
		case <-t.screen.ReplyReady():
		}
		select {
		case <-t.gone:
			return
		case t.turn <- struct{}{}:
		}
		if t.pay(t.alive) == nil {
			_, _ = t.put(t.alive, t.screen.Replies()) // it fails when the program is gone
		}
		<-t.turn
	}
}

// owe notes what must go before anything else. The caller has the turn.
func (t *Terminal) owe(b []byte) {
	t.owed = b
	select {
	case t.owing <- struct{}{}:
	default:
	}
}

// pay writes what is owed. The caller has the turn.
func (t *Terminal) pay(ctx context.Context) error {
	n, err := t.put(ctx, t.owed)
	t.owed = t.owed[n:]
	return err
}

// put writes to the master until all has gone or ctx ends, and returns how much
// went. The caller has the turn.
func (t *Terminal) put(ctx context.Context, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = t.master.SetWriteDeadline(past)
		close(cut)
	})
	n, err = t.master.Write(b)
	if !stop() {
		<-cut
		_ = t.master.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// waitError says why a hold waited in vain.
func (t *Terminal) waitError(ctx context.Context, h *Hold) error {
	if err := h.check(); err != nil {
		return err
	}
	if t.alive.Err() != nil {
		return t.writeError(unix.EIO)
	}
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Timeout, "the program did not read its input in time")
	case err != nil:
		return fault.New(fault.Interrupted, "the input was interrupted while the program did not read")
	}
	return fault.New(fault.Limit, "the program does not read, and its terminal is full: try again later, or end it")
}

// writeError makes an error of the master into ours; nil for nil.
func (t *Terminal) writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EIO), errors.Is(err, os.ErrClosed):
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.overError()
	}
	return fault.New(fault.Internal, "the terminal cannot be written to: %w", err)
}
