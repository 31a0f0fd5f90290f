package screen

import (
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// frame is what readers see: a screen at one moment. It and its lines never
// change once they are published, so readers need no lock for them.
type frame struct {
	gen        uint64 // of this frame
	since      uint64 // generation of the last change of size
	cols, rows int
	lines      []*line
	x, y       int // the cursor, inside the screen
	modes      Modes
	title      string
	history    uint64 // number of the first line that is not in it
}

// line is one row of a frame.
type line struct {
	gen   uint64 // when it last changed
	cells []cell
	drawn atomic.Pointer[string] // its text, once somebody read it
}

// cell is one cell: the first rune of its character and the rest, which joins
// it. The right half of a wide character has width 0 and no text.
type cell struct {
	r     rune
	width uint8
	rest  string
	style *Style
}

func (c *cell) empty() bool { return c.r == blank && c.rest == "" }

// text adds the cell's text to b.
func (c *cell) text(b *strings.Builder) {
	if c.width > 0 {
		b.WriteRune(c.r)
		b.WriteString(c.rest)
	}
}

// render reads row y of a display into cells, which must be as long as a row.
func (t *terminal) render(d *display, y int, cells []cell) {
	for x := range cells {
		r, id := d.cells.cell(x, y)
		c := &cells[x]
		*c = cell{r: r, width: 1, style: t.pool.style(id)}
		switch {
		case r < 0x1100:
		case r == filler:
			c.r = blank
			if x > 0 && cells[x-1].width == 2 {
				c.width = 0
			}
		default:
			if k, ok := t.pool.cluster(r); ok {
				_, size := utf8.DecodeRuneInString(k.text)
				c.r, _ = utf8.DecodeRuneInString(k.text)
				c.rest = k.text[size:]
			}
			c.width = uint8(t.pool.width(r))
		}
	}
	// A left half without its right one does not come from display.
	for x := range cells {
		if cells[x].width == 2 && (x+1 == len(cells) || cells[x+1].width != 0) {
			cells[x] = cell{r: blank, width: 1, style: cells[x].style}
		}
	}
}

// row is render into a buffer that the next call uses again.
func (t *terminal) row(d *display, y int) []cell {
	t.scratch = slices.Grow(t.scratch[:0], d.cols)[:d.cols]
	t.render(d, y, t.scratch)
	return t.scratch
}

// publish makes a frame of what changed since the last one, unless a
// synchronized update hides it.
func (t *terminal) publish() {
	if t.hold != 0 {
		return
	}
	old := t.frame
	f := &frame{
		gen: old.gen + 1, since: old.since, cols: t.cols, rows: t.rows,
		x: min(t.d.x, t.cols-1), y: t.d.y, modes: t.modes, title: t.title, history: t.history.next,
	}
	f.modes.Synchronized = false
	changed := !f.same(old)
	if f.cols != old.cols || f.rows != old.rows {
		f.since, f.lines = f.gen, make([]*line, f.rows)
		t.touchAll()
	} else if slices.Contains(t.dirty, true) {
		f.lines = slices.Clone(old.lines)
	} else {
		f.lines = old.lines
	}
	for y, dirty := range t.dirty {
		if !dirty {
			continue
		}
		t.dirty[y] = false
		cells := t.row(t.d, y)
		if f.lines[y] == nil || !slices.Equal(f.lines[y].cells, cells) {
			f.lines[y] = &line{gen: f.gen, cells: slices.Clone(cells)}
			changed = true
		}
	}
	if changed {
		t.frame = f
	}
}

// same tells whether f is like old in all but its lines.
func (f *frame) same(old *frame) bool {
	return f.cols == old.cols && f.rows == old.rows && f.x == old.x && f.y == old.y &&
		f.modes == old.modes && f.title == old.title && f.history == old.history
}

// holdWork is the work of publishing a frame, for the work budget.
const holdWork = 2 << 10

// startHold begins a synchronized update: readers see the frame before it until
// it ends or expires.
func (t *terminal) startHold() {
	t.publish()
	t.holds++
	t.hold = t.holds
	t.work += holdWork
}

// endHold shows what the update drew.
func (t *terminal) endHold() {
	t.hold = 0
}

// text returns the row as text. A reader that looks again and again mostly sees
// rows that it has seen.
func (l *line) text() string {
	if s := l.drawn.Load(); s != nil {
		return *s
	}
	var b strings.Builder
	b.Grow(len(l.cells))
	for i := range l.cells {
		l.cells[i].text(&b)
	}
	s := strings.TrimRight(b.String(), " ")
	l.drawn.Store(&s)
	return s
}

// spansOf joins the cells of a row to spans, without the blanks of the default
// style at its end.
func spansOf(cells []cell) []span {
	end := len(cells)
	for end > 0 && cells[end-1].empty() && *cells[end-1].style == (Style{}) {
		end--
	}
	n := 0
	for x := range cells[:end] {
		if x == 0 || cells[x].style != cells[x-1].style {
			n++
		}
	}
	spans := make([]span, 0, n)
	for x := 0; x < end; {
		first := x
		var b strings.Builder
		for ; x < end && cells[x].style == cells[first].style; x++ {
			cells[x].text(&b)
		}
		spans = append(spans, span{b.String(), cells[first].style})
	}
	return spans
}
