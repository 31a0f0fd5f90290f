package screen

import (
	"strconv"
	"strings"
)

// Modes are the modes that a program has set. They tell how its input must be
// sent, and what it takes the terminal to be.
type Modes struct {
	Alternate         bool  `json:"alternate"`          // the alternate screen shows
	ApplicationCursor bool  `json:"application_cursor"` // arrow keys are ESC O A, not ESC [ A
	ApplicationKeypad bool  `json:"application_keypad"`
	BracketedPaste    bool  `json:"bracketed_paste"` // pastes go between ESC [200~ and ESC [201~
	FocusEvents       bool  `json:"focus_events"`    // ESC [I and ESC [O
	Mouse             int   `json:"mouse"`           // 0, or 9, 1000, 1002, 1003: which events
	MouseEncoding     int   `json:"mouse_encoding"`  // 0, or 1005, 1006, 1015, 1016
	AlternateScroll   bool  `json:"alternate_scroll"`
	KittyKeys         uint8 `json:"kitty_keys"` // flags of the kitty keyboard protocol
	CursorVisible     bool  `json:"cursor_visible"`
	CursorShape       uint8 `json:"cursor_shape"` // DECSCUSR's number; 0: the terminal's own
	CursorBlink       bool  `json:"cursor_blink"`
	Wrap              bool  `json:"wrap"`
	Insert            bool  `json:"insert"`
	Origin            bool  `json:"origin"`
	Newline           bool  `json:"newline"` // LF does CR too, and Enter sends both
	Reverse           bool  `json:"reverse"` // dark on light
	ColorScheme       bool  `json:"color_scheme"`
	Synchronized      bool  `json:"synchronized"` // an update is being drawn
}

func defaultModes() Modes { return Modes{Wrap: true, CursorVisible: true} }

// String returns the modes that are not as at the start, one word each.
func (m Modes) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		word string
	}{
		{m.Alternate, "alternate"},
		{m.ApplicationCursor, "application-cursor"},
		{m.ApplicationKeypad, "application-keypad"},
		{m.BracketedPaste, "bracketed-paste"},
		{m.FocusEvents, "focus-events"},
		{m.Mouse != 0, "mouse=" + strconv.Itoa(m.Mouse)},
		{m.MouseEncoding != 0, "mouse-encoding=" + strconv.Itoa(m.MouseEncoding)},
		{m.AlternateScroll, "alternate-scroll"},
		{m.KittyKeys != 0, "kitty-keys=" + strconv.Itoa(int(m.KittyKeys))},
		{!m.CursorVisible, "cursor-hidden"},
		{!m.Wrap, "no-wrap"},
		{m.Insert, "insert"},
		{m.Origin, "origin"},
		{m.Newline, "newline"},
		{m.Reverse, "reverse"},
		{m.Synchronized, "synchronized"},
	} {
		if w.on {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// flag returns the private mode that is one switch and has no effect but its
// own; nil when n is no such mode.
func (m *Modes) flag(n int) *bool {
	switch n {
	case 1:
		return &m.ApplicationCursor
	case 5:
		return &m.Reverse
	case 7:
		return &m.Wrap
	case 12:
		return &m.CursorBlink
	case 25:
		return &m.CursorVisible
	case 66:
		return &m.ApplicationKeypad
	case 1004:
		return &m.FocusEvents
	case 1007:
		return &m.AlternateScroll
	case 2004:
		return &m.BracketedPaste
	case 2031:
		return &m.ColorScheme
	}
	return nil
}

// ansiFlag returns the mode that SM and RM switch; nil when n is none.
func (m *Modes) ansiFlag(n int) *bool {
	switch n {
	case 4:
		return &m.Insert
	case 20:
		return &m.Newline
	}
	return nil
}

// setPrivate carries out DECSET and DECRST of one mode.
func (t *terminal) setPrivate(n int, on bool) {
	m := &t.modes
	if f := m.flag(n); f != nil {
		*f = on
		return
	}
	switch n {
	case 6:
		m.Origin = on
		t.moveTo(0, 0)
	case 9, 1000, 1002, 1003:
		m.Mouse = either(on, n, 0)
	case 1005, 1006, 1015, 1016:
		m.MouseEncoding = either(on, n, 0)
	case 47, 1047, 1048, 1049:
		t.setScreen(n, on)
	case 2026:
		if on && !m.Synchronized { // one that is begun again goes on, and does not last longer
			t.startHold()
		}
		if !on {
			t.endHold()
		}
		m.Synchronized = on
	}
}

// setScreen carries out the modes that choose the screen, and 1048, which is
// one half of 1049.
func (t *terminal) setScreen(n int, on bool) {
	if on && n >= 1048 {
		t.saveCursor()
	}
	if n != 1048 {
		if on {
			t.alternate()
		} else {
			t.primary()
		}
		t.modes.KittyKeys = t.d.kittyFlags()
	}
	if !on && n >= 1048 {
		t.restoreCursor()
	}
}

func either(on bool, a, b int) int {
	if on {
		return a
	}
	return b
}

// Answers of DECRQM.
const (
	modeUnknown = iota
	modeSet
	modeReset
	modeAlwaysSet
	modeNeverSet
)

// privateMode says how a private mode is, as DECRQM answers.
func (t *terminal) privateMode(n int) int {
	m := &t.modes
	if f := m.flag(n); f != nil {
		return either(*f, modeSet, modeReset)
	}
	switch n {
	case 6:
		return either(m.Origin, modeSet, modeReset)
	case 8, 1048:
		return modeSet
	case 9, 1000, 1002, 1003:
		return either(m.Mouse == n, modeSet, modeReset)
	case 1005, 1006, 1015, 1016:
		return either(m.MouseEncoding == n, modeSet, modeReset)
	case 47, 1047, 1049:
		return either(m.Alternate, modeSet, modeReset)
	case 2026:
		return either(m.Synchronized, modeSet, modeReset)
	}
	return modeUnknown
}

// ansiMode says how a mode of SM and RM is, as DECRQM answers.
func (t *terminal) ansiMode(n int) int {
	if f := t.modes.ansiFlag(n); f != nil {
		return either(*f, modeSet, modeReset)
	}
	switch n {
	case 2:
		return modeNeverSet
	case 12:
		return modeAlwaysSet
	}
	return modeUnknown
}

const maxKitty = 16

// kittyFlags returns the flags of the kitty keyboard protocol on top of d's
// stack.
func (d *display) kittyFlags() uint8 {
	if n := len(d.kitty); n > 0 {
		return d.kitty[n-1]
	}
	return 0
}

// pushKitty, popKitty and setKitty keep a display's stack of flags.
func (t *terminal) pushKitty(flags int) {
	d := t.d
	if len(d.kitty) == maxKitty {
		d.kitty = append(d.kitty[:0], d.kitty[1:]...)
	}
	d.kitty = append(d.kitty, uint8(flags&0x1f))
	t.modes.KittyKeys = d.kittyFlags()
}

func (t *terminal) popKitty(n int) {
	d := t.d
	d.kitty = d.kitty[:max(0, len(d.kitty)-n)]
	t.modes.KittyKeys = d.kittyFlags()
}

func (t *terminal) setKitty(flags, how int) {
	f, d := uint8(flags&0x1f), t.d
	if len(d.kitty) == 0 {
		d.kitty = append(d.kitty, 0)
	}
	top := &d.kitty[len(d.kitty)-1]
	switch how {
	case 1:
		*top = f
	case 2:
		*top |= f
	case 3:
		*top &^= f
	}
	t.modes.KittyKeys = *top
}
