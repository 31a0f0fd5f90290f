package screen

import (
	"unicode"
	"unicode/utf8"
)

var _ sink = (*terminal)(nil)

// lost is the value of join after a character that there was no room for: its
// marks are lost with it.
const lost = -1

// full asks for a pause once enough work was done that readers may wait.
func (t *terminal) full() bool { return t.work >= workBudget }

// ascii writes a run of printable ASCII.
func (t *terminal) ascii(text []byte) {
	if t.modes.Insert || !t.charsets.plain() {
		for _, b := range text {
			t.print(t.charsets.translate(rune(b)))
		}
		return
	}
	d := t.d
	for len(text) > 0 {
		t.makeRoom(1)
		n := min(len(text), d.cols-d.x)
		if !t.modes.Wrap && n < len(text) {
			// Past the margin each character overwrites the last: only one stays.
			d.write(d.x, d.y, text[:n], t.pen())
			d.x, text = d.cols-1, text[len(text)-1:]
			n = 1
		}
		d.write(d.x, d.y, text[:n], t.pen())
		t.touch(d.y)
		d.x += n
		text = text[n:]
	}
	t.join = 1
}

// char writes a character beyond ASCII.
func (t *terminal) char(r rune) {
	t.charsets.next = 0
	t.print(r)
}

// print writes one character at the cursor, or joins it to the one before.
func (t *terminal) print(r rune) {
	w := runeWidth(r)
	if w == 0 {
		t.printMark(r)
		return
	}
	if !t.makeRoom(w) {
		t.join = lost
		return
	}
	d := t.d
	if t.modes.Insert {
		d.insert(d.y, d.x, w, t.pen())
	}
	d.place(d.x, d.y, t.base(r), w, t.pen())
	t.touch(d.y)
	d.x += w
	t.join = w
}

// base returns the rune that a cell keeps for r.
func (t *terminal) base(r rune) rune {
	switch {
	case !printable(r):
		return utf8.RuneError
	case r >= firstCluster:
		return t.pool.runeOf(cluster{text: string(r), width: 1})
	}
	return r
}

// makeRoom wraps, when the mode says so, or steps back into the row, so that w
// cells fit at the cursor. It tells whether they do.
func (t *terminal) makeRoom(w int) bool {
	d := t.d
	if d.x+w <= d.cols {
		return true
	}
	if w > d.cols {
		return false
	}
	if !t.modes.Wrap {
		d.x = d.cols - 1
		return w == 1
	}
	if d.x < d.cols {
		d.erase(d.y, d.x, d.cols, t.pen())
		t.touch(d.y)
	}
	d.x = 0
	t.down()
	return true
}

// printMark joins a character without width to the one just written. One that
// follows nothing takes a cell of its own.
func (t *terminal) printMark(r rune) {
	d := t.d
	if t.join == lost {
		return
	}
	if t.join == 0 {
		if d.x < d.cols {
			d.place(d.x, d.y, t.loneMark(r), 1, t.pen())
			t.touch(d.y)
			d.x++
		}
		return
	}
	if !printable(r) {
		return
	}
	x := d.x - t.join
	text := t.textOf(d.runeAt(x, d.y))
	if len(text)+utf8.RuneLen(r) > maxClusterSize {
		return
	}
	d.replace(x, d.y, t.pool.runeOf(cluster{text: text + string(r), width: t.join}))
	t.touch(d.y)
}

// loneMark is how a mark without a character to stand on is kept: on a space.
func (t *terminal) loneMark(r rune) rune {
	if !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Me) {
		return blank
	}
	return t.pool.runeOf(cluster{text: " " + string(r), width: 1})
}

// textOf returns the text of a cell's rune.
func (t *terminal) textOf(r rune) string {
	if c, ok := t.pool.cluster(r); ok {
		return c.text
	}
	return string(r)
}

// repeat writes the last character n times more.
func (t *terminal) repeat(n int) {
	if t.join <= 0 {
		return
	}
	text := t.textOf(t.d.runeAt(t.d.x-t.join, t.d.y))
	for range min(n, t.cols*t.rows) {
		for _, r := range text {
			t.print(r)
		}
	}
}
