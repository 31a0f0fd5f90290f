package screen

// step takes one character that is neither ESC, CAN, SUB nor C1, by the state.
func (t *tokenizer) step(r rune, to sink) {
	switch t.state {
	case ground:
		t.inGround(r, to)
	case oscString:
		t.inOSC(r, to)
	case dcsString:
		if r != 0x7f {
			t.put(r, maxDCS)
		}
	case otherString, dcsIgnore:
	case dcsEntry, dcsParam, dcsInter:
		t.inDCS(r)
	default:
		t.inSequence(r, to)
	}
}

func (t *tokenizer) inGround(r rune, to sink) {
	switch {
	case r < 0x20:
		to.control(r)
	case r == 0x7f:
	default:
		to.char(r)
	}
}

func (t *tokenizer) inOSC(r rune, to sink) {
	switch {
	case r == 0x07:
		t.end(true, true, to)
		t.state = ground
	case r >= 0x20:
		t.put(r, maxOSC)
	}
}

// inDCS takes a character of a device control string before its data.
func (t *tokenizer) inDCS(r rune) {
	switch {
	case r < 0x20 || r == 0x7f:
	case r > 0x7f:
		t.state = dcsIgnore
	case r >= 0x40:
		t.seq.final = byte(r)
		t.state = dcsString
	case r < 0x30:
		t.seq.collect(byte(r))
		t.state = dcsInter
	case t.state == dcsInter:
		t.state = dcsIgnore
	case r <= ';':
		t.seq.param(byte(r))
		t.state = dcsParam
	case t.state == dcsEntry:
		t.seq.prefix = byte(r)
		t.state = dcsParam
	default:
		t.state = dcsIgnore
	}
}

// inSequence takes a character of an escape or control sequence. Controls in
// its middle are carried out at once, as terminals always did.
func (t *tokenizer) inSequence(r rune, to sink) {
	switch {
	case r < 0x20:
		to.control(r)
	case r == 0x7f:
	case r > 0x7f:
		if t.state != csiIgnore {
			t.state = ground
		}
	case t.state == escaped || t.state == escInter:
		t.inEscape(byte(r), to)
	default:
		t.inCSI(byte(r), to)
	}
}

func (t *tokenizer) inEscape(b byte, to sink) {
	switch {
	case b < 0x30:
		t.seq.collect(b)
		t.state = escInter
	case t.state == escaped && t.open(b):
	default:
		t.seq.final = b
		t.state = ground
		if !t.seq.broken {
			to.escape(&t.seq)
		}
	}
}

func (t *tokenizer) inCSI(b byte, to sink) {
	switch {
	case b >= 0x40:
		ignored := t.state == csiIgnore || t.seq.broken
		t.seq.final = b
		t.state = ground
		if !ignored {
			to.csi(&t.seq)
		}
	case t.state == csiIgnore:
	case b < 0x30:
		t.seq.collect(b)
		t.state = csiInter
	case t.state == csiInter:
		t.state = csiIgnore
	case b <= ';':
		t.seq.param(b)
		t.state = csiParam
	case t.state == csiEntry:
		t.seq.prefix = b
		t.state = csiParam
	default:
		t.state = csiIgnore
	}
}
