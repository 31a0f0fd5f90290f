// Package screen is the model of a terminal's screen: it takes the bytes that a
// program writes to its terminal and keeps what a person would see, the modes
// that the program set, and the answers to its questions.
//
// # Layers
//
// A tokenizer cuts the bytes into characters and sequences. The terminal
// carries them out: it keeps modes, margins, tabs, character sets, cursors,
// widths, styles, titles and the history. Its two displays keep their cells in
// a grid, which is vt10x behind a small interface: it is sent a safe subset
// only, never the program's bytes, since it can be hung and made to panic, has
// no wide characters, and misreads what today's programs send. A frame is what
// readers see; it never changes once it is published.
//
// Raw bytes of the program never leave: Text, ANSI, SVG and Page are made from
// cells, whose text is printable.
//
// # Locks
//
// Screen.mu guards all, is a leaf, and is held for milliseconds at most: Write
// lets go of it after a budget of work. One goroutine writes; any number read.
// Write never waits for a reader, for the program, or for a clock.
//
// # Invariants
//
//   - How the bytes are cut into writes makes no difference to what is shown.
//   - Memory is bounded by the size of the screen and the limits of this
//     package, whatever the program writes.
//   - Answers wait in a bounded queue, in the order of the questions, until the
//     owner takes them.
//   - The generation grows with each change that a reader can see, and with no
//     other; a page after a generation holds every row that changed since.
//   - While the program draws a synchronized update, readers see the frame
//     before it, until it ends or the owner calls Expire.
package screen

import (
	"sync"
	"time"

	"scvfs/ledger/fault"
)

// The sizes that a Screen can have.
const (
	MaxCols = 500
	MaxRows = 200
)

// HoldLimit is how long an owner should let a synchronized update hide what is
// drawn before it calls Expire.
const HoldLimit = time.Second

// Options are what a Screen starts with.
type Options struct {
	Cols, Rows int // 1x1 to MaxCols x MaxRows; what is outside is brought inside
	// Scrollback is how many lines are kept that left the top; 0 is
	// DefaultScrollback, and less than 0 is none.
	Scrollback int
	// KittyKeys says that the owner sends keys in the form of the kitty keyboard
	// protocol, by Modes.KittyKeys. Only then does the Screen answer the
	// program's question after it.
	KittyKeys bool
}

// Screen is a terminal's screen. Its methods may be called by any goroutine,
// Write and Resize by one at a time.
type Screen struct {
	mu sync.Mutex
	t  *terminal
}

// New returns a blank screen.
func New(o Options) *Screen {
	if o.Scrollback == 0 {
		o.Scrollback = DefaultScrollback
	}
	cols, rows := min(max(o.Cols, 1), MaxCols), min(max(o.Rows, 1), MaxRows)
	return &Screen{t: newTerminal(cols, rows, o.Scrollback, o.KittyKeys)}
}

// Write takes what the program wrote. It never fails, and never waits for
// anything but readers, for milliseconds.
func (s *Screen) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		s.mu.Lock()
		n := s.t.write(rest)
		s.mu.Unlock()
		rest = rest[n:]
	}
	return len(p), nil
}

// Resize changes the size, ending a synchronized update. It refuses sizes
// outside 1x1 to MaxCols x MaxRows with fault.Invalid.
func (s *Screen) Resize(cols, rows int) error {
	if cols < 1 || cols > MaxCols || rows < 1 || rows > MaxRows {
		return fault.New(fault.Invalid, "a screen of %dx%d is not possible: give COLSxROWS from 1x1 to %dx%d",
			cols, rows, MaxCols, MaxRows)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.resize(cols, rows)
	return nil
}

// Replies takes the answers that wait for the program, in the order of its
// questions; nil when there is none. The owner writes them to the terminal.
func (s *Screen) Replies() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.replies.take()
}

// ReplyReady returns a channel that gets a value after answers were added. One
// goroutine may wait on it and call Replies then.
func (s *Screen) ReplyReady() <-chan struct{} { return s.t.replies.ready }

// Held returns the number of the synchronized update that hides what the
// program draws now; 0 while none does.
func (s *Screen) Held() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.hold
}

// Expire ends the hiding by the synchronized update of that number, if it still
// does. The owner calls it HoldLimit after Held first returned the number.
func (s *Screen) Expire(hold uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hold != 0 && s.t.hold == hold {
		s.t.endHold()
	}
}

// frame returns what readers see now.
func (s *Screen) frame() *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.publish()
	return s.t.frame
}

// Generation returns the number of the latest change that readers can see. It
// begins at 1.
func (s *Screen) Generation() uint64 { return s.frame().gen }

// Page returns what changed since generation after: everything when after is 0,
// is not one of this screen, or is older than the latest change of size.
func (s *Screen) Page(after uint64) Page { return s.frame().page(after) }

// Text returns the screen as text: a line for each row, without the blanks at
// its end.
func (s *Screen) Text() string { return s.frame().text() }

// ANSI returns the screen as text with colours and attributes, a line for each
// row, each in its own right.
func (s *Screen) ANSI() string { return s.frame().ansi() }

// SVG returns a picture of the screen.
func (s *Screen) SVG() string { return s.frame().svg() }

// Scrollback returns the lines that left the screen at its top, oldest first,
// up to those that readers of the screen still see there.
func (s *Screen) Scrollback() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.publish()
	return s.t.history.text(s.t.frame.history)
}

// State is a screen in short.
type State struct {
	Generation uint64  `json:"generation"`
	Cols       int     `json:"cols"`
	Rows       int     `json:"rows"`
	Row        int     `json:"row"` // the cursor's, from 0
	Col        int     `json:"col"`
	Title      string  `json:"title"`
	Modes      Modes   `json:"modes"`
	Program    Program `json:"program"`
	Scrollback int     `json:"scrollback"` // lines
	// DroppedReplies counts answers lost because nobody took those before them.
	DroppedReplies uint64 `json:"dropped_replies,omitempty"`
	// Faults counts panics of the emulator below. The screen goes on.
	Faults int `json:"faults,omitempty"`
}

// State returns the screen in short. The cursor and the title are as readers
// see them; the modes and the program's words are as they are now, since input
// follows them.
func (s *Screen) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.t
	t.publish()
	f := t.frame
	return State{
		Generation: f.gen, Cols: f.cols, Rows: f.rows, Row: f.y, Col: f.x, Title: f.title,
		Modes: t.modes, Program: t.program, Scrollback: t.history.len(),
		DroppedReplies: t.replies.dropped, Faults: t.caught(),
	}
}

// Title returns the title that the program set last, in one printable line.
func (s *Screen) Title() string { return s.frame().title }

// Modes returns the modes as they are now.
func (s *Screen) Modes() Modes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.modes
}

// Program returns what the program says of itself.
func (s *Screen) Program() Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.program
}
