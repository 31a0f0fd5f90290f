package screen

// terminal is the emulator: it turns a program's bytes into cells, modes,
// replies and scrollback. It is not safe for use by several goroutines; Screen
// makes it so.
type terminal struct {
	tok        tokenizer
	pool       *pool
	cols, rows int
	main       *display
	alt        *display // nil until the alternate screen is first shown
	d          *display // main or alt: the one that shows

	style    Style
	styleID  styleID
	erasedID styleID
	charsets charsets
	modes    Modes
	join     int // width of the character just written; 0: nothing was; or lost

	title   string
	titles  []string // pushed by XTWINOPS 22
	program Program
	replies replies
	history history

	frame   *frame // what readers see
	dirty   []bool // rows that frame does not show yet
	scratch []cell // of row
	hold    uint64 // number of the synchronized update that hides them; 0: none
	holds   uint64
	work    int // done since write began, in cells
	faults  int // of grids that are gone
	kitty   bool
}

// workBudget is the work after which write pauses, about 5 ms.
const workBudget = 128 << 10

const maxTitles = 16

func newTerminal(cols, rows, scrollback int, kitty bool) *terminal {
	t := &terminal{cols: cols, rows: rows, kitty: kitty, replies: replies{ready: make(chan struct{}, 1)}}
	t.history.limit = scrollback
	t.pool = newPool(t.markUsed)
	t.main = newDisplay(cols, rows, t.pool, &t.work)
	t.d = t.main
	t.modes = defaultModes()
	t.dirty = make([]bool, rows)
	t.frame = &frame{}
	t.publish()
	return t
}

// write takes bytes of the program until they are all read or it has worked
// long enough, and returns how many it read.
func (t *terminal) write(p []byte) int {
	t.work = 0
	return t.tok.write(p, t)
}

// markUsed tells the pool what cells and pens refer to.
func (t *terminal) markUsed(u *usage) {
	u.cell(blank, t.styleID)
	u.cell(blank, t.erasedID)
	for _, d := range []*display{t.main, t.alt} {
		if d == nil {
			continue
		}
		for y := range d.rows {
			for x := range d.cols {
				u.cell(d.cells.cell(x, y))
			}
		}
		t.work += d.rows * d.cols
	}
}

// setStyle changes the style of what is written from now on.
func (t *terminal) setStyle(s Style) {
	if s == t.style {
		return
	}
	if s.BG != t.style.BG {
		t.erasedID = t.pool.styleOf(s.erased())
	}
	t.style = s
	t.styleID = t.pool.styleOf(s)
}

// pen is the style of what is written.
func (t *terminal) pen() styleID { return t.styleID }

// eraser is the style of what is erased.
func (t *terminal) eraser() styleID { return t.erasedID }

// touch notes that row y changed.
func (t *terminal) touch(y int) { t.dirty[y] = true }

func (t *terminal) touchRows(from, to int) {
	for y := from; y <= to; y++ {
		t.dirty[y] = true
	}
}

func (t *terminal) touchAll() { t.touchRows(0, t.rows-1) }

// down moves the cursor one row down; at the lower margin the rows move up
// instead.
func (t *terminal) down() {
	d := t.d
	switch {
	case d.y == d.bottom:
		t.scroll(1)
	case d.y < t.rows-1:
		d.y++
	}
}

// up moves the cursor one row up; at the upper margin the rows move down.
func (t *terminal) up() {
	d := t.d
	switch {
	case d.y == d.top:
		t.scroll(-1)
	case d.y > 0:
		d.y--
	}
}

// scroll moves the rows between the margins up by n, or down by -n. What leaves
// the primary screen at its top goes to the history.
func (t *terminal) scroll(n int) {
	d := t.d
	if n > 0 && d == t.main && d.top == 0 {
		for y := range min(n, d.bottom+1) {
			t.keep(y)
		}
	}
	d.scroll(d.top, d.bottom, n, t.eraser())
	t.touchRows(d.top, d.bottom)
}

// keep adds a row of the primary screen to the history.
func (t *terminal) keep(y int) {
	if t.history.limit > 0 {
		t.history.push(spansOf(t.row(t.main, y)))
	}
}

// moveTo puts the cursor at a place that counts from the upper margin in origin
// mode.
func (t *terminal) moveTo(x, y int) {
	top, bottom := 0, t.rows-1
	if t.modes.Origin {
		top, bottom = t.d.top, t.d.bottom
		y += top
	}
	t.d.x = min(max(x, 0), t.cols-1)
	t.d.y = min(max(y, top), bottom)
}

// moveBy moves the cursor, which stays in the screen, and in the margins in
// origin mode.
func (t *terminal) moveBy(dx, dy int) {
	t.d.restrict()
	top := 0
	if t.modes.Origin {
		top = t.d.top
	}
	t.moveTo(t.d.x+dx, t.d.y+dy-top)
}

// vertical moves the cursor by n rows but not over a margin that it is inside
// of.
func (t *terminal) vertical(n int) {
	d := t.d
	if n < 0 && d.y >= d.top {
		n = max(n, d.top-d.y)
	}
	if n > 0 && d.y <= d.bottom {
		n = min(n, d.bottom-d.y)
	}
	t.moveBy(0, n)
}

// saveCursor carries out DECSC.
func (t *terminal) saveCursor() {
	t.d.saved = savedCursor{x: t.d.x, y: t.d.y, pen: t.style, charsets: t.charsets, origin: t.modes.Origin}
}

// restoreCursor carries out DECRC.
func (t *terminal) restoreCursor() {
	s := t.d.saved
	t.setStyle(s.pen)
	t.charsets = s.charsets
	t.modes.Origin = s.origin
	t.d.x, t.d.y = min(s.x, t.cols-1), min(s.y, t.rows-1)
	if s.origin {
		t.d.y = min(max(t.d.y, t.d.top), t.d.bottom)
	}
}

// alternate shows the alternate screen, which is always blank at first.
func (t *terminal) alternate() {
	if t.modes.Alternate {
		return
	}
	if t.alt == nil {
		t.alt = newDisplay(t.cols, t.rows, t.pool, &t.work)
		t.work += t.rows * t.cols
	}
	t.alt.reset()
	t.alt.x, t.alt.y = t.main.x, t.main.y
	t.show(t.alt)
	if t.eraser() != 0 {
		t.eraseRows(0, t.rows-1)
	}
}

// primary goes back from the alternate screen.
func (t *terminal) primary() {
	if !t.modes.Alternate {
		return
	}
	t.main.x, t.main.y = t.alt.x, t.alt.y
	t.show(t.main)
}

func (t *terminal) show(d *display) {
	t.d = d
	t.modes.Alternate = d != t.main
	t.touchAll()
}

// reset carries out RIS: all is as at the start, but for what the program said
// of itself and the questions that wait for their answers.
func (t *terminal) reset() {
	t.primary()
	t.main.reset()
	t.setStyle(Style{})
	t.charsets = charsets{}
	t.modes = defaultModes()
	t.title, t.titles = "", nil
	t.history.clear()
	t.endHold()
	t.touchAll()
}

// softReset carries out DECSTR.
func (t *terminal) softReset() {
	m := &t.modes
	m.Insert, m.Origin, m.ApplicationCursor, m.ApplicationKeypad = false, false, false, false
	m.Wrap, m.CursorVisible = true, true
	t.d.top, t.d.bottom = 0, t.rows-1
	t.d.saved = savedCursor{}
	t.setStyle(Style{})
	t.charsets = charsets{}
}

// eraseRows blanks whole rows.
func (t *terminal) eraseRows(from, to int) {
	for y := from; y <= to; y++ {
		t.d.erase(y, 0, t.cols, t.eraser())
	}
	t.touchRows(from, to)
}

// caught counts the panics of vt10x.
func (t *terminal) caught() int {
	n := t.faults + t.main.cells.faults()
	if t.alt != nil {
		n += t.alt.cells.faults()
	}
	return n
}
