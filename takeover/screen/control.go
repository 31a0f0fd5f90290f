package screen

// control carries out a C0 or C1 control.
func (t *terminal) control(c rune) {
	t.join = 0
	d := t.d
	switch c {
	case '\b':
		d.restrict()
		d.x = max(d.x-1, 0)
	case '\t':
		d.nextTab()
	case '\n', '\v', '\f':
		if t.modes.Newline {
			d.x = 0
		}
		t.down()
		t.d.restrict()
	case '\r':
		d.x = 0
	case 0x0e:
		t.charsets.gl = 1
	case 0x0f:
		t.charsets.gl = 0
	case 0x84, 0x85, 0x88, 0x8d, 0x8e, 0x8f, 0x9a: // the C1 form of ESC D and so on
		t.simpleEscape(byte(c - 0x40))
	}
}

// escape carries out an escape sequence that is no control sequence or string.
func (t *terminal) escape(q *sequence) {
	t.join = 0
	switch {
	case q.ninter == 0:
		t.simpleEscape(q.final)
	case q.ninter > 1 || t.charsets.designate(q.inter[0], q.final):
	case q.inter[0] == '#' && q.final == '8':
		t.alignment()
	case q.inter[0] == '%' && (q.final == '@' || q.final == 'G'):
		t.charsets.sets[0], t.charsets.gl = 'B', 0
	}
}

// simpleEscape carries out ESC and one character.
func (t *terminal) simpleEscape(final byte) {
	d := t.d
	switch final {
	case '7':
		t.saveCursor()
	case '8':
		t.restoreCursor()
	case 'D': // IND
		d.restrict()
		t.down()
	case 'E': // NEL
		d.x = 0
		t.down()
	case 'H': // HTS
		d.tabs[min(d.x, t.cols-1)] = true
	case 'M': // RI
		d.restrict()
		t.up()
	case 'N', 'O': // SS2, SS3
		t.charsets.next = int(final-'N') + 3
	case 'Z': // DECID
		t.answerAttributes()
	case 'c':
		t.reset()
	case '=':
		t.modes.ApplicationKeypad = true
	case '>':
		t.modes.ApplicationKeypad = false
	case 'n', '}':
		t.charsets.gl = 2
	case 'o', '|':
		t.charsets.gl = 3
	case '~':
		t.charsets.gl = 1
	}
}

// alignment carries out DECALN: a screen full of E.
func (t *terminal) alignment() {
	row := make([]byte, t.cols)
	for x := range row {
		row[x] = 'E'
	}
	for y := range t.rows {
		t.d.write(0, y, row, t.pen())
	}
	t.d.x, t.d.y = 0, 0
	t.moveTo(0, 0)
	t.touchAll()
}

// csi carries out a control sequence.
func (t *terminal) csi(q *sequence) {
	switch {
	case q.prefix != 0 || q.ninter > 0:
		t.markedCSI(q)
	case q.final == 'b': // REP looks back at what the others forget
		t.repeat(q.arg(0, 1))
	case !t.moveCSI(q):
		t.editCSI(q)
	}
	t.join = 0
}

// moveCSI carries out the sequences that move the cursor.
func (t *terminal) moveCSI(q *sequence) bool {
	d, n := t.d, q.arg(0, 1)
	switch q.final {
	case 'A':
		t.vertical(-n)
	case 'B':
		t.vertical(n)
	case 'C', 'a':
		t.moveBy(n, 0)
	case 'D':
		t.moveBy(-n, 0)
	case 'E', 'F':
		t.vertical(either(q.final == 'E', n, -n))
		d.x = 0
	case 'G', '`':
		d.x = min(n-1, t.cols-1)
	case 'H', 'f':
		t.moveTo(q.arg(1, 1)-1, n-1)
	case 'd':
		t.moveTo(d.x, n-1)
	case 'e':
		t.moveBy(0, n)
	case 'I':
		for range min(n, t.cols) {
			d.nextTab()
		}
	case 'Z':
		for range min(n, t.cols) {
			d.prevTab()
		}
	case 's':
		t.saveCursor()
	case 'u':
		t.restoreCursor()
	default:
		return false
	}
	return true
}

// editCSI carries out the other sequences without prefix and intermediates.
func (t *terminal) editCSI(q *sequence) {
	d, n := t.d, q.arg(0, 1)
	switch q.final {
	case '@', 'P', 'X':
		t.editRow(q.final, n)
	case 'J':
		t.eraseDisplay(q.arg(0, 0))
	case 'K':
		t.eraseLine(q.arg(0, 0))
	case 'L', 'M':
		t.editLines(either(q.final == 'L', -n, n))
	case 'S':
		t.scroll(min(n, t.rows))
	case 'T':
		t.scroll(-min(n, t.rows))
	case 'c':
		if q.arg(0, 0) == 0 {
			t.answerAttributes()
		}
	case 'g':
		switch q.arg(0, 0) {
		case 0:
			d.tabs[min(d.x, t.cols-1)] = false
		case 3:
			clear(d.tabs)
		}
	case 'h', 'l':
		for i := range q.params {
			if f := t.modes.ansiFlag(q.params[i].value); f != nil {
				*f = q.final == 'h'
			}
		}
	case 'm':
		s := t.style
		s.sgr(q.params)
		t.setStyle(s)
	case 'n':
		t.answerStatus(q.arg(0, 0))
	case 'r':
		t.setMargins(n, q.arg(1, t.rows))
	case 't':
		t.window(q.arg(0, 0), q.arg(1, 0))
	}
}

// markedCSI carries out the sequences with a prefix or intermediates.
func (t *terminal) markedCSI(q *sequence) {
	switch q.kind() {
	case "?h", "?l":
		for _, p := range q.params {
			t.setPrivate(p.value, q.final == 'h')
		}
	case "?J":
		t.eraseDisplay(q.arg(0, 0))
	case "?K":
		t.eraseLine(q.arg(0, 0))
	case "?n":
		t.answerPrivateStatus(q.arg(0, 0))
	case "?$p":
		t.answerMode("?", q.arg(0, 0), t.privateMode(q.arg(0, 0)))
	case "$p":
		t.answerMode("", q.arg(0, 0), t.ansiMode(q.arg(0, 0)))
	case ">c":
		if q.arg(0, 0) == 0 {
			t.replies.add(secondaryAttributes)
		}
	case ">q":
		if q.arg(0, 0) == 0 {
			t.replies.add("\x1bP>|" + terminalName + "\x1b\\")
		}
	case " q":
		t.modes.CursorShape = uint8(min(q.arg(0, 0), 6))
	case "!p":
		t.softReset()
	case ">u":
		t.pushKitty(q.arg(0, 0))
	case "<u":
		t.popKitty(q.arg(0, 1))
	case "=u":
		t.setKitty(q.arg(0, 0), q.arg(1, 1))
	case "?u":
		t.answerKitty()
	}
}

// editRow carries out ICH, DCH and ECH.
func (t *terminal) editRow(final byte, n int) {
	d := t.d
	d.restrict()
	n = min(n, t.cols-d.x)
	switch final {
	case '@':
		d.insert(d.y, d.x, n, t.eraser())
	case 'P':
		d.remove(d.y, d.x, n, t.eraser())
	default:
		d.erase(d.y, d.x, d.x+n, t.eraser())
	}
	t.touch(d.y)
}

// editLines carries out DL of n lines, and IL of -n.
func (t *terminal) editLines(n int) {
	d := t.d
	d.restrict()
	if d.y < d.top || d.y > d.bottom {
		return
	}
	d.scroll(d.y, d.bottom, n, t.eraser())
	t.touchRows(d.y, d.bottom)
	d.x = 0
}

// eraseDisplay carries out ED.
func (t *terminal) eraseDisplay(how int) {
	d := t.d
	switch how {
	case 0:
		t.eraseLine(0)
		t.eraseRows(d.y+1, t.rows-1)
	case 1:
		t.eraseRows(0, d.y-1)
		t.eraseLine(1)
	case 2:
		t.eraseRows(0, t.rows-1)
	case 3:
		if d == t.main {
			t.history.clear()
		}
	}
}

// eraseLine carries out EL. After the last column nothing is right of the
// cursor.
func (t *terminal) eraseLine(how int) {
	d := t.d
	switch how {
	case 0:
		d.erase(d.y, d.x, t.cols, t.eraser())
	case 1:
		d.erase(d.y, 0, d.x+1, t.eraser())
	case 2:
		d.erase(d.y, 0, t.cols, t.eraser())
	}
	t.touch(d.y)
}

// setMargins carries out DECSTBM. Margins that hold less than two rows are
// refused.
func (t *terminal) setMargins(top, bottom int) {
	if bottom > t.rows {
		bottom = t.rows
	}
	if bottom <= top {
		return
	}
	t.d.top, t.d.bottom = top-1, bottom-1
	t.moveTo(0, 0)
}

// window carries out the window operations that concern a terminal without a
// window: sizes, and the stack of titles.
func (t *terminal) window(op, which int) {
	switch op {
	case 11, 14, 16, 18, 19:
		t.answerWindow(op)
	case 22:
		if which != 1 && len(t.titles) < maxTitles {
			t.titles = append(t.titles, t.title)
		}
	case 23:
		if n := len(t.titles); which != 1 && n > 0 {
			t.title, t.titles = t.titles[n-1], t.titles[:n-1]
		}
	}
}
