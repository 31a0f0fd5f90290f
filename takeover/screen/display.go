package screen

// display is one of a terminal's two screens, the primary or the alternate: its
// cells, and what belongs to it alone.
type display struct {
	cells       grid
	pool        *pool
	cols, rows  int
	x, y        int // the cursor; x == cols while a wrap is pending
	top, bottom int // the margins, both inside
	tabs        []bool
	saved       savedCursor
	wide        []bool // rows that may hold wide characters
	kitty       []uint8
	work        *int // cells written and moved, of both displays
}

// savedCursor is what DECSC keeps.
type savedCursor struct {
	x, y     int
	pen      Style
	charsets charsets
	origin   bool
}

const tabWidth = 8

func newDisplay(cols, rows int, p *pool, work *int) *display {
	d := &display{
		cells: newGrid(cols, rows), pool: p, cols: cols, rows: rows, bottom: rows - 1,
		wide: make([]bool, rows), tabs: make([]bool, cols), work: work,
	}
	d.defaultTabs(0)
	return d
}

// reset makes d as newDisplay does, without its cost.
func (d *display) reset() {
	for y := range d.rows {
		d.erase(y, 0, d.cols, 0)
	}
	d.x, d.y, d.top, d.bottom = 0, 0, 0, d.rows-1
	d.saved, d.kitty = savedCursor{}, nil
	clear(d.tabs)
	d.defaultTabs(0)
}

func (d *display) defaultTabs(from int) {
	for x := (from + tabWidth - 1) / tabWidth * tabWidth; x < len(d.tabs); x += tabWidth {
		d.tabs[x] = true
	}
}

// restrict ends a pending wrap.
func (d *display) restrict() { d.x = min(d.x, d.cols-1) }

func (d *display) nextTab() {
	if d.x >= d.cols {
		return
	}
	for d.x++; d.x < d.cols && !d.tabs[d.x]; d.x++ {
	}
	d.restrict()
}

func (d *display) prevTab() {
	if d.x >= d.cols {
		return
	}
	for d.x--; d.x > 0 && !d.tabs[d.x]; d.x-- {
	}
	d.x = max(d.x, 0)
}

func (d *display) runeAt(x, y int) rune {
	r, _ := d.cells.cell(x, y)
	return r
}

// leadAt tells whether (x, y) is the left half of a wide character.
func (d *display) leadAt(x, y int) bool {
	return d.pool.width(d.runeAt(x, y)) == 2
}

// split blanks the halves that stay over when the cells from x to before end
// are overwritten: of a wide character that ends at x, and of one that begins
// before end.
func (d *display) split(y, x, end int, st styleID) {
	if !d.wide[y] {
		return
	}
	if x > 0 && d.leadAt(x-1, y) {
		d.cells.erase(x-1, y, 1, st)
	}
	if end < d.cols && d.runeAt(end, y) == filler {
		d.cells.erase(end, y, 1, st)
	}
}

// erase blanks the cells of row y from x to before end.
func (d *display) erase(y, x, end int, st styleID) {
	end = min(end, d.cols)
	if x >= end {
		return
	}
	d.split(y, x, end, st)
	d.cells.erase(x, y, end-x, st)
	*d.work += end - x
	if x == 0 && end == d.cols {
		d.wide[y] = false
	}
}

// write puts ASCII at (x, y).
func (d *display) write(x, y int, text []byte, st styleID) {
	d.split(y, x, x+len(text), st)
	d.cells.putASCII(x, y, text, st)
	*d.work += len(text)
}

// place puts a cell's rune of width w at (x, y).
func (d *display) place(x, y int, r rune, w int, st styleID) {
	d.split(y, x, x+w, st)
	*d.work += w
	if w == 2 {
		d.wide[y] = true
		d.cells.put(x, y, []rune{r, filler}, st)
		return
	}
	d.cells.put(x, y, []rune{r}, st)
}

// replace changes the rune at (x, y) and leaves its style and width.
func (d *display) replace(x, y int, r rune) {
	_, st := d.cells.cell(x, y)
	d.cells.put(x, y, []rune{r}, st)
}

// insert moves the rest of row y right from x on by n cells.
func (d *display) insert(y, x, n int, st styleID) {
	if d.wide[y] && x > 0 && d.leadAt(x-1, y) {
		d.cells.erase(x-1, y, 1, st)
	}
	d.cells.insert(x, y, n, st)
	if d.wide[y] && d.leadAt(d.cols-1, y) {
		d.cells.erase(d.cols-1, y, 1, st)
	}
	*d.work += d.cols - x
}

// remove moves the rest of row y left by n cells, over those from x on.
func (d *display) remove(y, x, n int, st styleID) {
	d.cells.remove(x, y, n, st)
	*d.work += d.cols - x
	if !d.wide[y] {
		return
	}
	if x > 0 && d.leadAt(x-1, y) {
		d.cells.erase(x-1, y, 1, st)
	}
	if d.runeAt(x, y) == filler {
		d.cells.erase(x, y, 1, st)
	}
}

// scroll moves the rows from top to bottom up by n, or down by -n.
func (d *display) scroll(top, bottom, n int, st styleID) {
	d.cells.scroll(top, bottom, n, st)
	*d.work += min(max(n, -n), bottom-top+1)*d.cols + bottom - top
	rows := d.wide[top : bottom+1]
	switch {
	case n >= len(rows) || -n >= len(rows):
		clear(rows)
	case n > 0:
		copy(rows, rows[n:])
		clear(rows[len(rows)-n:])
	case n < 0:
		copy(rows[-n:], rows)
		clear(rows[:-n])
	}
}
