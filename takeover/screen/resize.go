package screen

// resize changes the size of the screens. Rows that do not fit any more leave
// the primary screen at its top, to the history, once none is left below the
// cursor; rows that are added take lines back from there, when the cursor is on
// the last row. Lines do not reflow.
func (t *terminal) resize(cols, rows int) {
	if cols == t.cols && rows == t.rows {
		return
	}
	t.endHold()
	at := t.d.x
	top := t.main.cutTop(rows)
	for y := range top {
		t.keep(y)
	}
	var back [][]span
	if t.main.y == t.rows-1 {
		for len(back) < rows-t.rows && t.history.len() > 0 {
			back = append(back, t.history.pop())
		}
	}
	t.faults += t.main.cells.faults()
	t.main.resize(cols, rows, top-len(back))
	if t.alt != nil {
		t.faults += t.alt.cells.faults()
	}
	if t.modes.Alternate {
		t.alt.resize(cols, rows, t.alt.cutTop(rows))
	} else {
		t.alt = nil
	}
	t.cols, t.rows = cols, rows
	t.dirty = make([]bool, rows)
	t.replay(back)
	if t.d.x != at {
		t.join = 0
	}
	t.publish()
}

// replay writes lines of the history, newest first, to the top rows of the
// primary screen.
func (t *terminal) replay(lines [][]span) {
	d, x, y := t.main, t.main.x, t.main.y
	shown, modes, style, join := t.d, t.modes, t.style, t.join
	t.d, t.modes = d, defaultModes()
	for i, line := range lines {
		d.x, d.y, t.join = 0, len(lines)-1-i, 0
		t.replayLine(line)
	}
	d.x, d.y = x, y
	t.d, t.modes, t.join = shown, modes, join
	t.setStyle(style)
}

// replayLine writes a line as far as it fits.
func (t *terminal) replayLine(line []span) {
	for _, s := range line {
		t.setStyle(*s.style)
		for _, r := range s.text {
			if t.d.x+runeWidth(r) > t.cols {
				return
			}
			t.print(r)
		}
	}
}

// cutTop returns how many rows must leave at the top so that the cursor stays
// when only rows are left.
func (d *display) cutTop(rows int) int {
	below := d.rows - 1 - d.y
	return max(d.rows-rows-below, 0)
}

// resize makes d's cells anew, leaving out top rows at the top, or adding -top
// blank ones.
func (d *display) resize(cols, rows, top int) {
	cells, wide := newGrid(cols, rows), make([]bool, rows)
	for y := range rows {
		if from := y + top; from >= 0 && from < d.rows {
			wide[y] = d.wide[from]
			d.copyRow(cells, y, from)
		}
	}
	had := d.cols
	d.cells, d.wide, d.cols, d.rows = cells, wide, cols, rows
	*d.work += 2 * cols * rows
	d.tabs = append(d.tabs[:min(cols, had)], make([]bool, max(cols-had, 0))...)
	d.defaultTabs(had)
	d.top, d.bottom = 0, rows-1
	d.x, d.y = min(d.x, cols-1), min(max(d.y-top, 0), rows-1)
	d.saved.x, d.saved.y = min(d.saved.x, cols-1), min(max(d.saved.y-top, 0), rows-1)
}

// copyRow copies what fits of a row of d to a blank grid. Of a wide character
// that the edge cuts, a blank stays.
func (d *display) copyRow(to grid, y, from int) {
	n := d.cols
	if cols, _ := to.size(); cols < n {
		n = cols
	}
	for x := 0; x < n; {
		first, plain := x, true
		_, st := d.cells.cell(x, from)
		var run []rune
		for ; x < n; x++ {
			r, id := d.cells.cell(x, from)
			if id != st {
				break
			}
			if x == d.cols-1 || x < n-1 || d.pool.width(r) < 2 {
				run = append(run, r)
			} else {
				run = append(run, blank)
			}
			plain = plain && run[len(run)-1] == blank
		}
		if !plain || st != 0 {
			to.put(first, y, run, st)
		}
	}
}
