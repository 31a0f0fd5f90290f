package takeover

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
	"scvfs/takeover/screen"
)

// Size is the size of a terminal in cells.
type Size struct{ Cols, Rows int }

// The sizes that a terminal has, and can have, unless its options say others.
var (
	DefaultSize = Size{120, 40}
	MinSize     = Size{20, 5}
	MaxSize     = Size{screen.MaxCols, screen.MaxRows}
)

// String returns the size as people write it: "120x40".
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

func (s Size) or(other Size) Size {
	if s == (Size{}) {
		return other
	}
	return s
}

// ParseSize parses "120x40"; fault.Invalid for what is no size. Whether a
// terminal can have it is for Resize to say.
func ParseSize(text string) (Size, error) {
	cols, rows, ok := strings.Cut(strings.TrimSpace(text), "x")
	c, okc := side(cols)
	r, okr := side(rows)
	if !ok || !okc || !okr {
		return Size{}, fault.New(fault.Invalid, "%.40q is no size: write columns and rows, such as %s", text, DefaultSize)
	}
	return Size{c, r}, nil
}

// side parses a number of cells: digits, and no more than a screen can have by
// far.
func side(digits string) (int, bool) {
	n, err := strconv.ParseUint(digits, 10, 16)
	return int(n), err == nil && n > 0
}

// fits refuses a size that is out of bounds.
func (o Options) fits(s Size) error {
	if s.Cols < o.Min.Cols || s.Rows < o.Min.Rows || s.Cols > o.Max.Cols || s.Rows > o.Max.Rows {
		return fault.New(fault.Invalid, "a terminal cannot be %s: give a size from %s to %s", s, o.Min, o.Max)
	}
	return nil
}

// resize changes the size of the screen, and then that of the terminal, which
// tells the program: what it draws for the new size finds a screen of that
// size. No write of the program comes between.
func (t *Terminal) resize(h *Hold, s Size) error {
	if err := t.opt.fits(s); err != nil {
		return err
	}
	t.drawing.Lock()
	defer t.drawing.Unlock()
	if err := h.check(); err != nil {
		return err
	}
	st := t.screen.State()
	if s == (Size{st.Cols, st.Rows}) {
		return nil
	}
	if err := t.screen.Resize(s.Cols, s.Rows); err != nil {
		return err
	}
	if err := pty.SetSize(t.master, s.Cols, s.Rows); err != nil {
		_ = t.screen.Resize(st.Cols, st.Rows)
		return t.writeError(err)
	}
	t.mu.Lock()
	t.updated = time.Now()
	t.mu.Unlock()
	t.changed.tell()
	return nil
}
