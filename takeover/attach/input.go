package attach

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"scvfs/takeover/screen"
)

const (
	// maxPiece is how much goes in one write, of a paste for example: little
	// enough that a terminal's buffer takes it.
	maxPiece = 4 << 10
	// maxQueue is how much may wait for a program that does not read. It is more
	// than anybody types.
	maxQueue = 4 << 20
	// retryPause is between the tries of a write that the tree refused because
	// the program does not read: it waits itself, as long as it wants.
	retryPause = 250 * time.Millisecond
)

// queue is what was typed and has not gone yet.
type queue struct {
	mu     sync.Mutex
	bytes  []byte
	closed bool
	ready  chan struct{} // of one place: bytes or closed has changed
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// push adds what was typed, unless the queue is closed; it tells whether there
// was room.
func (q *queue) push(p []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return true
	}
	if len(q.bytes)+len(p) > maxQueue {
		return false
	}
	q.bytes = append(q.bytes, p...)
	kick(q.ready)
	return true
}

// close says that nothing comes any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	kick(q.ready)
}

// piece returns what comes next, which stays in the queue until it is dropped.
func (q *queue) piece() (p []byte, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes[:min(len(q.bytes), maxPiece)], q.closed
}

func (q *queue) drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes = q.bytes[n:]; len(q.bytes) == 0 {
		q.bytes = nil
	}
}

// interruptKey is Ctrl-C, which no program gets from somebody who only watches.
const interruptKey = 0x03

// keyboard reads what the user types, until they leave.
func (c *client) keyboard() {
	t, detaching := typed{detach: c.o.Detach}, false
	buf := make([]byte, 32<<10)
	for {
		n, err := c.o.Terminal.file.Read(buf)
		for behind := buf[:n]; len(behind) > 0; {
			var out []byte
			var detach bool
			out, behind, detach = t.feed(behind)
			if c.take(out, detach, detaching) {
				return
			}
			detaching = detaching || detach
		}
		if err != nil {
			c.finish(outcome{err: fmt.Errorf("the terminal is gone: %w", err)})
			return
		}
	}
}

// take takes what was typed, and perhaps the detach key behind it. It tells
// whether that was the last. A detach key leaves once all has gone that was
// typed before; the next one leaves at once.
func (c *client) take(out []byte, detach, again bool) bool {
	switch {
	case c.o.ReadOnly:
		detach = detach || bytes.IndexByte(out, interruptKey) >= 0
		again = detach
	case !c.queue.push(out):
		c.ring()
	}
	if detach && again {
		c.finish(outcome{said: detached})
		return true
	}
	if detach {
		c.queue.close() // the goroutine that writes leaves when it is empty
	}
	return false
}

// typing writes what was typed, in order. It alone waits for a program that
// does not read.
func (c *client) typing() {
	for {
		p, closed := c.queue.piece()
		if len(p) == 0 {
			if closed {
				c.finish(outcome{said: detached})
				return
			}
			select {
			case <-c.queue.ready:
			case <-c.done:
				return
			}
			continue
		}
		n, err := c.input.Write(p)
		c.queue.drop(n)
		switch {
		case err == nil:
		case errors.Is(err, syscall.ESTALE):
			c.lostHold()
			return
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ETIMEDOUT):
			if closed {
				c.finish(outcome{said: detached + "; what was typed last has not gone: the program does not read"})
				return
			}
			c.ring()
			select {
			case <-time.After(retryPause):
			case <-c.done:
				return
			}
		default:
			c.finish(outcome{err: err})
			return
		}
	}
}

// sizing gives the takeover the size of the user's terminal, as near as it
// takes it. Of changes that come while one is on its way the newest counts. A
// size that is refused leaves a screen of which a part is shown.
func (c *client) sizing() {
	var asked [2]int
	for c.await(c.resize) {
		cols, rows := Fit(c.o.Terminal.Size())
		if asked == [2]int{cols, rows} {
			continue
		}
		asked = [2]int{cols, rows}
		switch err := write(c.o.Files, "size", fmt.Sprintf("%dx%d", cols, rows)); {
		case errors.Is(err, syscall.ESTALE):
			c.lostHold()
			return
		case err != nil:
			kick(c.recheck) // perhaps because somebody else holds the terminal
		}
	}
}

// The least size of a takeover; the greatest is that of a screen.
const minCols, minRows = 20, 5

// Fit returns the size of a takeover that is nearest to a terminal's.
func Fit(cols, rows int) (int, int) {
	return min(max(cols, minCols), screen.MaxCols), min(max(rows, minRows), screen.MaxRows)
}
