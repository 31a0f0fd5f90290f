package attach

import (
	"strconv"
	"unicode/utf8"

	"scvfs/takeover/screen"
)

// canvas is what the user's terminal shows. It writes what makes that into a
// picture, and no more than a little beyond what differs.
//
// It relies on three things of the terminal: it is cleared when the canvas is
// new, it does not wrap at the margin, and nobody else writes to it. It does not
// rely on the terminal's idea of how wide a character is, but for those that all
// terminals agree on: behind others the cursor is sent to its place.
type canvas struct {
	cols, rows int
	lines      [][]cell // what is shown; nil: blank
	left, top  int      // where the window onto the picture begins
	x, y       int      // the terminal's cursor; x < 0: the column is not known, y < 0: nothing is
	pen        style

	shown                             bool // the cursor is
	applicationCursor, bracketedPaste bool

	out []byte
}

// newCanvas is a cleared terminal with hidden cursor and modes reset.
func newCanvas(cols, rows int) *canvas {
	return &canvas{cols: cols, rows: rows, lines: make([][]cell, rows), x: -1, y: -1}
}

const (
	beginUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
)

// show returns what must be sent to the terminal so that it shows p, or as much
// of p as has room: the part with the cursor. keys says that the modes that
// decide the form of keys and pastes shall be p's.
func (c *canvas) show(p *picture, keys bool) []byte {
	c.out = c.out[:0]
	y, x := -1, -1
	if p.cursor != nil {
		y, x = p.cursor[0], p.cursor[1]
	}
	c.top, c.left = pan(c.top, c.rows, p.rows, y), pan(c.left, c.cols, p.cols, x)
	for row := range c.rows {
		var want []cell
		if at := c.top + row; at < p.rows {
			want = cut(p.lines[at], c.left, c.cols)
		}
		c.row(row, want)
	}
	if len(c.out) > 0 {
		begin := beginUpdate
		if c.shown {
			begin += hideCursor
			c.shown = false
		}
		c.out = append([]byte(begin), c.out...)
	}
	drawn := len(c.out) > 0
	c.cursor(y-c.top, x-c.left)
	if drawn {
		c.out = append(c.out, endUpdate...)
	}
	if keys {
		c.mode(&c.applicationCursor, p.applicationCursor, "1")
		c.mode(&c.bracketedPaste, p.bracketedPaste, "2004")
	}
	return c.out
}

// cursor shows the cursor at its place; hides it outside of the window.
func (c *canvas) cursor(y, x int) {
	visible := y >= 0 && y < c.rows && x >= 0 && x < c.cols
	if visible {
		c.move(x, y, nil)
	}
	if visible != c.shown {
		c.shown = visible
		if visible {
			c.out = append(c.out, showCursor...)
		} else {
			c.out = append(c.out, hideCursor...)
		}
	}
}

// mode switches a private mode of the terminal.
func (c *canvas) mode(have *bool, want bool, number string) {
	if *have == want {
		return
	}
	*have = want
	c.out = append(c.out, "\x1b[?"+number...)
	if want {
		c.out = append(c.out, 'h')
	} else {
		c.out = append(c.out, 'l')
	}
}

// row makes row y show want and blanks behind it. Cells are compared with their
// halves, so that of two wide characters that overlap in turn all that the
// terminal would blank is drawn anew, from left to right.
func (c *canvas) row(y int, want []cell) {
	have := c.lines[y]
	if len(have) == len(want) && (len(have) == 0 || &have[0] == &want[0]) {
		return
	}
	end := content(want)
	for x := 0; x < end; {
		if cellAt(have, x) == want[x] {
			x++
			continue
		}
		c.move(x, y, want)
		c.put(&want[x])
		x += max(1, want[x].width)
	}
	if content(have) > end {
		c.move(end, y, want)
		c.style(style{})
		c.out = append(c.out, "\x1b[K"...)
	}
	c.lines[y] = want
}

func cellAt(cells []cell, x int) cell {
	if x < len(cells) {
		return cells[x]
	}
	return blank
}

// content returns how many cells there are before the blanks at the end.
func content(cells []cell) int {
	n := len(cells)
	for n > 0 && cells[n-1] == blank {
		n--
	}
	return n
}

// shortGap is how many cells are written again rather than stepped over.
const shortGap = 4

// move sends the cursor to (x, y). want is the row that is being drawn, from
// which a short gap is filled; nil when there is none.
func (c *canvas) move(x, y int, want []cell) {
	if c.x == x && c.y == y {
		return
	}
	if c.y == y && c.x >= 0 && c.x < x && x-c.x <= shortGap && x <= len(want) && c.plain(want[c.x:x]) {
		for _, one := range want[c.x:x] {
			c.out = append(c.out, one.text...)
		}
		c.x = x
		return
	}
	c.out = append(c.out, "\x1b["...)
	if c.y != y {
		c.out = append(strconv.AppendInt(c.out, int64(y+1), 10), ';')
		c.out = append(strconv.AppendInt(c.out, int64(x+1), 10), 'H')
	} else {
		c.out = append(strconv.AppendInt(c.out, int64(x+1), 10), 'G')
	}
	c.x, c.y = x, y
}

// plain tells whether cells can be written as they are now, for a byte each.
func (c *canvas) plain(cells []cell) bool {
	for i := range cells {
		if cells[i].style != c.pen || len(cells[i].text) != 1 {
			return false
		}
	}
	return true
}

// put writes a cell at the cursor.
func (c *canvas) put(one *cell) {
	c.style(one.style)
	c.out = append(c.out, one.text...)
	if c.x += one.width; !agreed(one.text) {
		c.x = -1
	}
}

// agreed tells whether all terminals give a cell's text the same width.
func agreed(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case size != len(text):
		return false // marks, joiners, variation selectors
	case r < 0x250, r >= 0x2500 && r < 0x25a0: // letters; lines and blocks
		return true
	}
	return r >= 0x3041 && r < 0xa000 || r >= 0xac00 && r < 0xd7a4 // kana, ideographs, Hangul
}

// style changes the pen.
func (c *canvas) style(s style) {
	if c.pen == s {
		return
	}
	c.pen = s
	c.out = append(c.out, "\x1b[0"...)
	for _, a := range []struct {
		on    bool
		param string
	}{{s.bold, ";1"}, {s.italic, ";3"}, {s.underline, ";4"}, {s.inverse, ";7"}} {
		if a.on {
			c.out = append(c.out, a.param...)
		}
	}
	c.color(s.fg, 30)
	c.color(s.bg, 40)
	c.out = append(c.out, 'm')
}

// color adds the parameters of a colour; base is 30 for the foreground and 40
// for the background.
func (c *canvas) color(color screen.Color, base int) {
	number := func(n int) { c.out = strconv.AppendInt(append(c.out, ';'), int64(n), 10) }
	if i, ok := color.Palette(); ok {
		switch {
		case i < 8:
			number(base + int(i))
		case i < 16:
			number(base + 60 + int(i) - 8)
		default:
			number(base + 8)
			number(5)
			number(int(i))
		}
	}
	if r, g, b, ok := color.Direct(); ok {
		for _, n := range []int{base + 8, 2, int(r), int(g), int(b)} {
			number(n)
		}
	}
}
