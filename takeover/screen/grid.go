package screen

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

// grid keeps the cells of one screen, each a rune and the number of a style. It
// knows nothing of widths, modes or the cursor. Places must lie inside.
type grid interface {
	// size returns the columns and rows.
	size() (cols, rows int)
	// put writes narrow runes from (x, y) on. They must fit into the row.
	put(x, y int, text []rune, st styleID)
	// putASCII is put for printable ASCII.
	putASCII(x, y int, text []byte, st styleID)
	// erase blanks n cells from (x, y) on.
	erase(x, y, n int, st styleID)
	// insert moves the rest of the row n cells right and blanks the gap.
	insert(x, y, n int, st styleID)
	// remove moves the rest of the row n cells left over (x, y).
	remove(x, y, n int, st styleID)
	// scroll moves the rows from top to bottom up by n, or down by -n.
	scroll(top, bottom, n int, st styleID)
	// cell returns what (x, y) holds; a space where it is blank.
	cell(x, y int) (rune, styleID)
	// faults counts the panics of the emulator below that were caught.
	faults() int
}

var _ grid = (*vtGrid)(nil)

// vtGrid is a grid kept by vt10x. It sends that a subset of its language which
// is known to be safe: runes, CUP, ECH, ICH, DCH, SU, SD, DECSTBM, and one form
// of SGR, all with numbers that fit the screen. Should vt10x panic all the
// same, it is replaced by a new one with the cells of the old.
type vtGrid struct {
	term        vt10x.Terminal
	cols, rows  int
	buf         []byte // not yet sent
	x, y        int    // vt10x's cursor once buf is sent; x < 0: not known
	st          styleID
	top, bottom int // its margins

	// blankRow holds, for each row known to be all blank in one style, that
	// style plus 1. It saves the work of erasing and scrolling blank rows.
	blankRow []styleID
	caught   int
}

const gridBuffer = 4 << 10

func newGrid(cols, rows int) *vtGrid {
	g := &vtGrid{cols: cols, rows: rows, blankRow: make([]styleID, rows)}
	g.start()
	return g
}

// start gives g a new, blank vt10x.
func (g *vtGrid) start() {
	g.term = vt10x.New(vt10x.WithSize(g.cols, g.rows))
	g.buf = append(g.buf[:0], "\x1b[?7l"...)
	g.x, g.y, g.st, g.top, g.bottom = -1, 0, 0, 0, g.rows-1
	for y := range g.blankRow {
		g.blankRow[y] = 1
	}
}

func (g *vtGrid) size() (cols, rows int) { return g.cols, g.rows }
func (g *vtGrid) faults() int            { return g.caught }

// flush sends what is waiting to vt10x.
func (g *vtGrid) flush() {
	if len(g.buf) == 0 {
		return
	}
	defer func() {
		if recover() != nil {
			g.rebuild()
		}
	}()
	_, _ = g.term.Write(g.buf) // never fails: buf is whole UTF-8
	g.buf = g.buf[:0]
}

// rebuild replaces a vt10x that panicked, keeping what can be read of it.
func (g *vtGrid) rebuild() {
	old := g.term
	g.caught++
	g.start()
	for y := range g.rows {
		for x := range g.cols {
			r, st := cellOf(old, x, y)
			g.put(x, y, []rune{r}, st)
		}
	}
	_, _ = g.term.Write(g.buf)
	g.buf = g.buf[:0]
}

// cellOf reads a cell of vt10x.
func cellOf(term vt10x.Terminal, x, y int) (rune, styleID) {
	c := term.Cell(x, y)
	r, st := c.Char, styleID(c.FG)
	if c.FG == vt10x.DefaultFG {
		st = 0
	}
	if r == 0 {
		r = blank
	}
	return r, st
}

func (g *vtGrid) cell(x, y int) (rune, styleID) {
	g.flush()
	return cellOf(g.term, x, y)
}

func (g *vtGrid) csi(final byte, args ...int) {
	g.buf = append(g.buf, "\x1b["...)
	for i, a := range args {
		if i > 0 {
			g.buf = append(g.buf, ';')
		}
		g.buf = strconv.AppendInt(g.buf, int64(a), 10)
	}
	g.buf = append(g.buf, final)
}

// at moves vt10x's cursor and sets its style.
func (g *vtGrid) at(x, y int, st styleID) {
	if len(g.buf) > gridBuffer {
		g.flush()
	}
	if g.x != x || g.y != y {
		g.csi('H', y+1, x+1)
		g.x, g.y = x, y
	}
	if g.st != st {
		if st == 0 {
			g.csi('m', 39)
		} else {
			g.csi('m', 38, 2, int(st>>16&0xff), int(st>>8&0xff), int(st&0xff))
		}
		g.st = st
	}
}

// moved notes that n runes were written from the cursor on.
func (g *vtGrid) moved(n int) {
	g.blankRow[g.y] = 0
	if g.x += n; g.x >= g.cols {
		g.x = -1
	}
}

func (g *vtGrid) put(x, y int, text []rune, st styleID) {
	g.at(x, y, st)
	for _, r := range text {
		g.buf = utf8.AppendRune(g.buf, r)
	}
	g.moved(len(text))
}

func (g *vtGrid) putASCII(x, y int, text []byte, st styleID) {
	g.at(x, y, st)
	g.buf = append(g.buf, text...)
	g.moved(len(text))
}

func (g *vtGrid) erase(x, y, n int, st styleID) {
	if g.blankRow[y] == st+1 {
		return
	}
	g.at(x, y, st)
	g.csi('X', n)
	g.blankRow[y] = 0
	if x == 0 && n >= g.cols {
		g.blankRow[y] = st + 1
	}
}

func (g *vtGrid) insert(x, y, n int, st styleID) {
	g.shift('@', x, y, n, st)
}

func (g *vtGrid) remove(x, y, n int, st styleID) {
	g.shift('P', x, y, n, st)
}

func (g *vtGrid) shift(final byte, x, y, n int, st styleID) {
	if g.blankRow[y] == st+1 {
		return
	}
	g.at(x, y, st)
	g.csi(final, min(n, g.cols-x))
	g.blankRow[y] = 0
}

func (g *vtGrid) scroll(top, bottom, n int, st styleID) {
	rows := g.blankRow[top : bottom+1]
	if !slices.ContainsFunc(rows, func(b styleID) bool { return b != st+1 }) {
		return
	}
	if g.top != top || g.bottom != bottom {
		g.csi('r', top+1, bottom+1)
		g.top, g.bottom, g.x, g.y = top, bottom, 0, 0
	}
	g.at(max(g.x, 0), g.y, st)
	if n > 0 {
		n = min(n, len(rows))
		g.csi('S', n)
		copy(rows, rows[n:])
		fill(rows[len(rows)-n:], st+1)
	} else if n < 0 {
		n = min(-n, len(rows))
		g.csi('T', n)
		copy(rows[n:], rows)
		fill(rows[:n], st+1)
	}
}

func fill(rows []styleID, v styleID) {
	for i := range rows {
		rows[i] = v
	}
}
