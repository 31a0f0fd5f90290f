// Package attach is a full-screen client of a takeover: it draws the takeover's
// screen on the user's terminal and sends what is typed.
//
// It knows a takeover by its files alone, which it opens, reads, writes and
// closes, so it does not matter what they are mounted by, nor how far away they
// are.
//
// # Who does what
//
// One goroutine reads changes into the picture; another draws the picture as it
// is by then, so a slow terminal skips what it has no time for. A third reads
// the keyboard into a queue, from which a fourth writes to input; a program
// that does not read holds up that one alone. A fifth sets the size, a sixth
// looks after the hold. Whoever is the first to find a reason to leave says so
// by finish, and Run puts the user's terminal back.
//
// # Locks
//
// client.mu and queue.mu are leaves and guard a copy at most.
//
// # Invariants
//
//   - The user's terminal is put back however Run ends, by a panic too.
//   - Only the drawing goroutine writes to it in between, and nothing of what it
//     writes but printable text comes from the tree.
//   - What the user typed reaches input in order, each byte once.
package attach

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

// Options are what to attach to, and how.
type Options struct {
	Files    Files
	Terminal *Terminal
	Name     string // of the takeover, for people
	Detach   Keys
	ReadOnly bool // watch, without taking the terminal
	// Signals are signals to the process: those that end it, SIGWINCH, SIGCONT.
	// Nil: those that it gets.
	Signals <-chan os.Signal
}

// client is one attachment.
type client struct {
	o       Options
	changes io.ReadCloser
	input   io.WriteCloser // nil when only watching
	holder  string         // what the tree calls us; empty when not known
	queue   *queue

	redraw, resize, recheck chan struct{} // of one place each

	mu      sync.Mutex
	picture picture
	lost    bool // what the terminal shows is not known any more
	foreign bool // nor its modes: somebody else had it
	bell    bool // it shall ring

	leaving sync.Once
	end     outcome       // set before done is closed
	done    chan struct{} // closed when there is a reason to leave
}

// outcome is why a client leaves.
type outcome struct {
	said   string // when that is no error
	err    error
	forget bool // what the user types now was meant for the agent
	panic  any
}

const detached = "detached; the agent goes on"

// Run attaches until the user detaches or the takeover ends, and returns what
// there is to say then. It fails with fault.Busy when somebody else took the
// terminal. However it ends, the user's terminal is as it was before.
func Run(o Options) (said string, err error) {
	c := &client{
		o: o, queue: newQueue(), done: make(chan struct{}),
		redraw: make(chan struct{}, 1), resize: make(chan struct{}, 1), recheck: make(chan struct{}, 1),
	}
	if err := c.open(); err != nil {
		return "", err
	}
	defer c.close()
	signals := o.Signals
	if signals == nil {
		own := make(chan os.Signal, 8)
		signal.Notify(own, append([]os.Signal{unix.SIGWINCH, unix.SIGCONT}, fatal...)...)
		defer signal.Stop(own)
		// Stopped, it would leave the terminal as it is. Ctrl-Z is the program's.
		signal.Ignore(unix.SIGTSTP)
		defer signal.Reset(unix.SIGTSTP)
		signals = own
	}
	c.run(signals)
	if c.end.panic != nil {
		panic(c.end.panic)
	}
	return c.end.said, c.end.err
}

// fatal are the signals that end the client.
var fatal = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}

// run does everything between taking the user's terminal and putting it back.
func (c *client) run(signals <-chan os.Signal) {
	var onTerminal sync.WaitGroup
	defer func() {
		c.finish(outcome{}) // of no effect but in a panic
		c.o.Terminal.cut()
		onTerminal.Wait()
		c.o.Terminal.leave(c.end.forget)
	}()
	if err := c.begin(); err != nil {
		c.finish(outcome{err: err})
		return
	}
	onTerminal.Go(c.kept(c.drawing))
	onTerminal.Go(c.kept(c.keyboard))
	go c.kept(c.watching)()
	if !c.o.ReadOnly {
		go c.kept(c.typing)()
		go c.kept(c.sizing)()
		go c.kept(c.guarding)()
		kick(c.resize)
	}
	for {
		select {
		case <-c.done:
			return
		case s := <-signals:
			c.signal(s)
		}
	}
}

// begin takes the user's terminal. A line before it tells how to leave, and
// stays in the terminal's history; the title tells it all along.
func (c *client) begin() error {
	how := "detach with " + c.o.Detach.String()
	if len(c.o.Detach) == 0 {
		how = "no key detaches"
	}
	if c.o.ReadOnly {
		how = "watching; leave with " + Keys{interruptKey}.String() + " or " + c.o.Detach.String()
	}
	line := oneLine("attach: " + c.o.Name + ": " + how)
	if _, err := c.o.Terminal.file.WriteString("\r" + line + "\r\n" + pushTitle); err != nil {
		return err
	}
	if err := c.o.Terminal.own(); err != nil {
		return err
	}
	_, err := c.o.Terminal.file.WriteString("\x1b]2;" + line + "\x1b\\")
	return err
}

// kept returns f with a panic turned into a reason to leave.
func (c *client) kept(f func()) func() {
	return func() {
		defer func() {
			if p := recover(); p != nil {
				c.finish(outcome{forget: true, panic: fmt.Sprintf("%v\n\n%s", p, debug.Stack())})
			}
		}()
		f()
	}
}

// finish gives a reason to leave; the first one counts.
func (c *client) finish(o outcome) {
	c.leaving.Do(func() {
		c.end = o
		close(c.done)
	})
}

func (c *client) signal(s os.Signal) {
	switch s {
	case unix.SIGWINCH, unix.SIGCONT:
		c.mu.Lock()
		c.lost, c.foreign = true, c.foreign || s == unix.SIGCONT
		c.mu.Unlock()
		kick(c.redraw)
		kick(c.resize)
	default:
		c.finish(outcome{forget: true, err: fmt.Errorf("ended by signal %v; the agent goes on", s)})
	}
}

// drawing shows the picture whenever that has changed, as it is by then.
func (c *client) drawing() {
	shown := newCanvas(c.o.Terminal.Size())
	for c.await(c.redraw) {
		c.mu.Lock()
		now, lost, foreign, ring := c.picture.copy(), c.lost, c.foreign, c.bell
		c.lost, c.foreign, c.bell = false, false, false
		c.mu.Unlock()
		var err error
		if foreign {
			err = c.o.Terminal.own()
		}
		var out []byte
		if lost {
			shown = newCanvas(c.o.Terminal.Size())
			out = append(out, prepare...)
		}
		out = append(out, shown.show(&now, !c.o.ReadOnly)...)
		if ring {
			out = append(out, bell...)
		}
		if err == nil && len(out) > 0 {
			_, err = c.o.Terminal.file.Write(out)
		}
		if err != nil {
			c.finish(outcome{err: fmt.Errorf("the terminal is gone: %w", err)})
			return
		}
	}
}

// ring says that what is typed does not go where it should.
func (c *client) ring() {
	c.mu.Lock()
	c.bell = true
	c.mu.Unlock()
	kick(c.redraw)
}

// await waits for a kick; it returns false when there is a reason to leave.
func (c *client) await(kicked <-chan struct{}) bool {
	select {
	case <-kicked:
	case <-c.done:
	}
	return !c.left()
}

// left tells whether there is a reason to leave.
func (c *client) left() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// kick wakes whoever waits on a channel of one place, now or the next time.
func kick(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
