package screen

import "unicode/utf8"

// Limits of one sequence. What is longer is read to its end and ignored.
const (
	maxParams  = 32
	maxParam   = 65535
	maxInter   = 2
	maxOSC     = 64 << 10
	maxDCS     = 4 << 10
	maxPartial = utf8.UTFMax
)

// sink takes what a tokenizer finds, in the order of the bytes. It must not
// keep the slices and sequences that it is given.
type sink interface {
	ascii(text []byte) // printable ASCII, 0x20 to 0x7e
	char(r rune)       // any other character from U+00A0
	control(c rune)    // C0 or C1, but those that open or end sequences
	escape(seq *sequence)
	csi(seq *sequence)
	osc(data []byte, bell bool) // bell: it ended with BEL, not with ST
	dcs(seq *sequence, data []byte)
	full() bool // the sink wants a pause before the next token
}

// sequence is one escape or control sequence: an optional prefix (one of
// < = > ?), parameters, intermediates, and the final byte.
type sequence struct {
	prefix byte
	inter  [maxInter]byte
	ninter int
	final  byte
	params []param
	open   bool // the last parameter can take more digits
	broken bool // too many intermediates: it means nothing to us
}

// param is one parameter. A sub is one that a colon joins to the parameter
// before it; value is -1 where it was left out.
type param struct {
	value int
	sub   bool
}

func (q *sequence) reset() {
	*q = sequence{params: q.params[:0]}
}

// kind names the sequence for a dispatch table: prefix, intermediates, final.
func (q *sequence) kind() string {
	var b [maxInter + 2]byte
	n := 0
	if q.prefix != 0 {
		b[n] = q.prefix
		n++
	}
	n += copy(b[n:], q.inter[:q.ninter])
	b[n] = q.final
	return string(b[:n+1])
}

// arg returns parameter i, or def where it was left out or is 0. Subparameters
// are not counted.
func (q *sequence) arg(i, def int) int {
	for _, p := range q.params {
		if p.sub {
			continue
		}
		if i == 0 {
			if p.value <= 0 {
				return def
			}
			return p.value
		}
		i--
	}
	return def
}

func (q *sequence) collect(b byte) {
	if q.ninter == maxInter {
		q.broken = true
		return
	}
	q.inter[q.ninter] = b
	q.ninter++
}

// param takes one byte of the parameters: a digit, a colon or a semicolon.
// Parameters past maxParams are dropped, and values stop at maxParam.
func (q *sequence) param(b byte) {
	if len(q.params) == 0 {
		q.params = append(q.params, param{value: -1})
		q.open = true
	}
	if b == ';' || b == ':' {
		if q.open = len(q.params) < maxParams; q.open {
			q.params = append(q.params, param{value: -1, sub: b == ':'})
		}
		return
	}
	if !q.open {
		return
	}
	p := &q.params[len(q.params)-1]
	p.value = min(max(p.value, 0)*10+int(b-'0'), maxParam)
}

// state is where a tokenizer stands in a sequence.
type state uint8

const (
	ground state = iota
	escaped
	escInter
	csiEntry
	csiParam
	csiInter
	csiIgnore
	oscString
	dcsEntry
	dcsParam
	dcsInter
	dcsIgnore
	dcsString
	otherString // SOS, PM, APC, and screen's title (ESC k)
)

// tokenizer cuts a program's bytes into characters, controls and sequences, as
// the VT500 parser does, over characters in UTF-8. How the bytes are cut into
// calls of write makes no difference. Bytes that are no UTF-8 vanish.
type tokenizer struct {
	state   state
	seq     sequence
	str     []byte // of an OSC or DCS
	over    bool   // str is longer than its limit
	partial [maxPartial]byte
	npart   int
}

// write feeds bytes to the sink until they are all read or the sink is full,
// and returns how many it read.
func (t *tokenizer) write(p []byte, to sink) int {
	for i := 0; i < len(p); {
		if to.full() {
			return i
		}
		b := p[i]
		switch {
		case t.npart > 0 && b >= utf8.RuneSelf:
			t.complete(b, to)
			i++
		case t.state == ground && b >= 0x20 && b < 0x7f:
			t.npart = 0
			n := i + 1
			for n < len(p) && p[n] >= 0x20 && p[n] < 0x7f {
				n++
			}
			to.ascii(p[i:n])
			i = n
		case b < utf8.RuneSelf:
			t.npart = 0
			t.rune(rune(b), to)
			i++
		case !utf8.FullRune(p[i:]):
			t.npart = copy(t.partial[:], p[i:])
			return len(p)
		default:
			r, size := utf8.DecodeRune(p[i:])
			t.decoded(r, size, to)
			i += size
		}
	}
	return len(p)
}

// complete adds a byte to a character that an earlier write began.
func (t *tokenizer) complete(b byte, to sink) {
	t.partial[t.npart] = b
	t.npart++
	part := t.partial[:t.npart]
	if !utf8.FullRune(part) {
		return
	}
	t.npart = 0
	if r, size := utf8.DecodeRune(part); size == len(part) {
		t.decoded(r, size, to)
		return
	}
	// The byte does not belong to the character: it may begin another.
	if len(part) > 1 && !utf8.FullRune([]byte{b}) {
		t.partial[0], t.npart = b, 1
	}
}

// decoded takes a decoded character, dropping bytes that are none and the
// byte order mark.
func (t *tokenizer) decoded(r rune, size int, to sink) {
	if r == utf8.RuneError && size == 1 || r == 0xfeff {
		return
	}
	t.rune(r, to)
}

// rune takes one character in any state.
func (t *tokenizer) rune(r rune, to sink) {
	switch {
	case r == 0x1b:
		t.end(true, false, to)
		t.seq.reset()
		t.state = escaped
	case r == 0x18 || r == 0x1a:
		t.end(false, false, to)
		t.state = ground
	case r >= 0x80 && r < 0xa0:
		t.c1(r, to)
	default:
		t.step(r, to)
	}
}

// c1 takes a C1 control (as a character, U+0080 to U+009F), which ends
// whatever is open.
func (t *tokenizer) c1(r rune, to sink) {
	t.end(true, false, to)
	t.seq.reset()
	t.state = ground
	switch r {
	case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
		t.open(byte(r - 0x40))
	case 0x9c: // ST
	default:
		to.control(r)
	}
}

// open starts the string or sequence that ESC b stands for. It tells whether b
// starts one.
func (t *tokenizer) open(b byte) bool {
	switch b {
	case '[':
		t.state = csiEntry
	case ']':
		t.state = oscString
	case 'P':
		t.state = dcsEntry
	case 'X', '^', '_', 'k':
		t.state = otherString
	default:
		return false
	}
	t.str, t.over = t.str[:0], false
	return true
}

// end hands over the string that is open, if one is and it is whole.
func (t *tokenizer) end(whole, bell bool, to sink) {
	if whole && !t.over {
		switch t.state {
		case oscString:
			to.osc(t.str, bell)
		case dcsString:
			to.dcs(&t.seq, t.str)
		default:
		}
	}
	if cap(t.str) > 2*maxDCS {
		t.str = nil
	}
}

// put adds a character to the open string.
func (t *tokenizer) put(r rune, limit int) {
	if t.over || len(t.str)+utf8.RuneLen(r) > limit {
		t.over, t.str = true, t.str[:0]
		return
	}
	t.str = utf8.AppendRune(t.str, r)
}
