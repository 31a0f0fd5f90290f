package attach

import (
	"strings"

	"scvfs/takeover/screen"
)

// measure tells how characters lie in cells. It must be what the screen of the
// takeover holds of it, or everything behind a character that the two take
// differently would be drawn beside its place; so it asks a small screen of the
// same make, and remembers the answer.
type measure struct {
	screen *screen.Screen
	known  map[rune]glyph
}

// glyph is a character as it is shown.
type glyph struct {
	text  string // printable, whatever was asked for
	width int    // in cells; 0 joins the character before
}

// maxKnown bounds what is remembered; more characters are hardly seen at once.
const maxKnown = 1 << 14

func newMeasure() *measure {
	return &measure{screen: screen.New(screen.Options{Cols: 4, Rows: 1, Scrollback: -1}), known: map[rune]glyph{}}
}

// of returns how r is shown. Controls become U+FFFD: pages hold none, but what
// comes from another machine is not believed, and they would reach the user's
// terminal.
func (m *measure) of(r rune) glyph {
	switch {
	case r >= ' ' && r < 0x7f:
		return glyph{asciiText[r-' ' : r-' '+1], 1}
	case r < 0xa0:
		return glyph{"\ufffd", 1}
	}
	g, ok := m.known[r]
	if ok {
		return g
	}
	_, _ = m.screen.Write([]byte("\r\x1b[Ka" + string(r))) // never fails
	g = glyph{
		text:  strings.TrimPrefix(strings.TrimSuffix(m.screen.Text(), "\n"), "a"),
		width: m.screen.State().Col - 1,
	}
	if len(m.known) >= maxKnown {
		clear(m.known)
	}
	m.known[r] = g
	return g
}

// asciiText holds the printable characters of ASCII, so that cells share them.
var asciiText = func() string {
	var b strings.Builder
	for r := ' '; r < 0x7f; r++ {
		b.WriteRune(r)
	}
	return b.String()
}()
