// Package takeover is a terminal that is taken over: the master of a
// pseudo-terminal that an agent runs on, the screen that it draws, and whoever
// holds it and types.
//
// A Terminal is given a master and knows nothing of the process behind it. Its
// owner starts that, hangs it up, and calls End with how it ended.
//
// # Who does what
//
// One goroutine reads the master into the screen. Another writes the answers
// to the program's questions, in their order; the first never does, so a
// program that asks without reading stops nothing but its own answers. Input
// is written by whoever gives it. A program that floods is held back by the
// terminal, which the kernel bounds; so is a holder whose program does not
// read.
//
// # Lock order
//
// Terminal.turn is the right to write to the master, for one whole message at
// a time; Terminal.drawing makes one of the program's writes and the changes of
// size. They are never held together. Terminal.mu is taken under either and is
// a leaf, as are pulse.mu and the screen's own.
//
// # Invariants
//
//   - Nothing comes between the bytes of a key, a paste, or an answer. A paste
//     that could not go as a whole still ends where its brackets do.
//   - At most one Hold is in force. What was written by another before has gone
//     or failed before the first byte of its successor goes.
//   - Readers take nothing from anybody: a slow one gets one page of all that
//     changed, never a backlog.
//   - All that the program wrote is on the screen before the terminal has
//     ended, unless it was closed before.
//   - Raw bytes of the program never leave: what readers get is made of cells.
package takeover

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
	"scvfs/takeover/screen"
)

// DefaultPatience is how long input waits for a program that does not read.
const DefaultPatience = 5 * time.Second

// lostWakeup is how long a read waits before it looks again by itself. Under a
// flood the kernel can fill a terminal without a word to whoever polls its
// master, and the program, held back, then waits for ever.
const lostWakeup = 250 * time.Millisecond

// drainPatience is how long End waits for the rest of what the program wrote,
// should a process that nobody could stop have the terminal open still.
const drainPatience = 2 * time.Second

// Options are what a Terminal starts with.
type Options struct {
	Size       Size // zero: DefaultSize
	Min, Max   Size // what it can be resized to; zero: MinSize and MaxSize
	Scrollback int  // lines; 0: screen.DefaultScrollback; less: none
	// KittyKeys says that the program is told, when it asks, that the terminal
	// knows the kitty keyboard protocol. Keys are sent in its form, asked or
	// not, to a program that turned it on; bytes written are sent as they are.
	KittyKeys bool
	// Patience is how long input waits for a program that does not read; 0:
	// DefaultPatience.
	Patience time.Duration
	// OnProgram is called with what the program says of itself whenever that
	// changes, by one goroutine, which reads nothing meanwhile. It may be nil.
	OnProgram func(screen.Program)
	// Subject is copied into each page.
	Subject Subject
}

// Terminal is a terminal that is taken over. All its methods may be called by
// any goroutine.
type Terminal struct {
	opt    Options
	master *os.File
	screen *screen.Screen

	drawing sync.Mutex
	program screen.Program // the reading goroutine's: what OnProgram was told
	held    uint64         // the reading goroutine's: the update that expires
	expires *time.Timer    // the reading goroutine's

	turn  chan struct{} // full while somebody writes
	owed  []byte        // what must go before anything else; for who has the turn
	owing chan struct{} // of one place: owed wants to go

	changed pulse
	gone    chan struct{}   // closed when nothing more can be read
	alive   context.Context // ends then
	writes  sync.WaitGroup  // the goroutine that answers
	closing sync.Once
	ended   chan struct{} // closed when ending is set

	mu      sync.Mutex
	hold    *Hold
	ending  Ending
	updated time.Time
}

// New returns a terminal on a master, which is the terminal's from then on and
// is closed by it, also when there is an error: fault.Invalid for a size that
// is out of bounds, fault.Unsupported for a file that is no master or whose
// reads would not end with it. The terminal gets the size.
func New(master *os.File, o Options) (*Terminal, error) {
	t, err := newTerminal(master, o)
	if err != nil {
		master.Close()
		return nil, err
	}
	alive, cancel := context.WithCancel(context.Background())
	t.alive = alive
	go func() {
		defer cancel()
		t.read()
	}()
	t.writes.Go(t.answer)
	return t, nil
}

func newTerminal(master *os.File, o Options) (*Terminal, error) {
	o.Size, o.Min, o.Max = o.Size.or(DefaultSize), o.Min.or(MinSize), o.Max.or(MaxSize)
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if err := o.fits(o.Size); err != nil {
		return nil, err
	}
	t := &Terminal{
		opt: o, master: master, updated: time.Now(),
		screen: screen.New(screen.Options{Cols: o.Size.Cols, Rows: o.Size.Rows, Scrollback: o.Scrollback, KittyKeys: o.KittyKeys}),
		turn:   make(chan struct{}, 1), owing: make(chan struct{}, 1),
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	err := master.SetDeadline(time.Time{}) // refused for what is not polled
	if err == nil {
		err = pty.SetSize(master, o.Size.Cols, o.Size.Rows)
	}
	if err != nil {
		return nil, fault.New(fault.Unsupported, "a terminal cannot be taken over by %s: %w", master.Name(), err)
	}
	return t, nil
}

// read draws what the program writes, until nobody has its terminal any more
// or the master is closed.
func (t *Terminal) read() {
	defer close(t.gone)
	buf := make([]byte, 32<<10)
	for {
		_ = t.master.SetReadDeadline(time.Now().Add(lostWakeup))
		n, err := t.master.Read(buf)
		if n > 0 {
			t.draw(buf[:n])
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// draw takes what the program wrote.
func (t *Terminal) draw(p []byte) {
	t.drawing.Lock()
	_, _ = t.screen.Write(p) // it never fails
	t.drawing.Unlock()
	t.expire()
	t.mu.Lock()
	t.updated = time.Now()
	t.mu.Unlock()
	if said := t.screen.Program(); said != t.program {
		if t.program = said; t.opt.OnProgram != nil {
			t.opt.OnProgram(said)
		}
	}
	t.changed.tell()
}

// expire sees to it that no synchronized update hides the screen for long.
func (t *Terminal) expire() {
	hold := t.screen.Held()
	if hold == t.held {
		return
	}
	if t.held = hold; t.expires != nil {
		t.expires.Stop()
	}
	if hold != 0 {
		t.expires = time.AfterFunc(screen.HoldLimit, func() {
			t.screen.Expire(hold)
			t.changed.tell()
		})
	}
}

// Text returns the screen as text: a line for each row, without the blanks at
// its end.
func (t *Terminal) Text() string { return t.screen.Text() }

// ANSI returns the screen as text with colours and attributes, made from its
// cells, a line for each row.
func (t *Terminal) ANSI() string { return t.screen.ANSI() }

// SVG returns a picture of the screen.
func (t *Terminal) SVG() string { return t.screen.SVG() }

// Scrollback returns the lines that left the screen at its top, oldest first.
func (t *Terminal) Scrollback() []string { return t.screen.Scrollback() }

// State returns the screen in short: generation, size, cursor, title, modes,
// and what the program says of itself.
func (t *Terminal) State() screen.State { return t.screen.State() }

// Updated returns when the program wrote last, or the size or the ending came.
func (t *Terminal) Updated() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.updated
}
