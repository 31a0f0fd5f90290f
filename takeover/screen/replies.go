package screen

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxReplies = 64 << 10

	terminalName        = "scvfs"
	primaryAttributes   = "\x1b[?62;22c" // a VT220 with colours
	secondaryAttributes = "\x1b[>0;276;0c"

	// The size of a cell that programs are told, in pixels. SVG draws them so.
	cellWidth, cellHeight = 9, 20
)

// replies is the queue of answers to a program's questions, in their order. An
// answer that does not fit is dropped whole: a program that asks without
// reading has lost it either way.
type replies struct {
	queue   []byte
	dropped uint64
	ready   chan struct{} // of one place: something was added
}

func (r *replies) add(answer string) {
	if len(r.queue)+len(answer) > maxReplies {
		r.dropped++
		return
	}
	r.queue = append(r.queue, answer...)
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (r *replies) take() []byte {
	q := r.queue
	r.queue = nil
	return q
}

func (t *terminal) answer(format string, args ...any) { t.replies.add(fmt.Sprintf(format, args...)) }

func (t *terminal) answerAttributes() { t.replies.add(primaryAttributes) }

// answerStatus carries out DSR.
func (t *terminal) answerStatus(what int) {
	switch what {
	case 5:
		t.replies.add("\x1b[0n")
	case 6:
		y, x := t.position()
		t.answer("\x1b[%d;%dR", y, x)
	}
}

// answerPrivateStatus carries out DEC's DSR, and the question after the colour
// scheme, which is dark.
func (t *terminal) answerPrivateStatus(what int) {
	switch what {
	case 6:
		y, x := t.position()
		t.answer("\x1b[?%d;%dR", y, x)
	case 996:
		t.replies.add("\x1b[?997;1n")
	}
}

// position is where the cursor is, from 1, as the program counts. While a wrap
// is pending it is on the last column.
func (t *terminal) position() (row, col int) {
	y := t.d.y
	if t.modes.Origin {
		y -= t.d.top
	}
	return y + 1, min(t.d.x, t.cols-1) + 1
}

func (t *terminal) answerMode(prefix string, mode, is int) {
	t.answer("\x1b[%s%d;%d$y", prefix, mode, is)
}

// answerKitty tells the flags of the kitty keyboard protocol, where the owner
// said that keys are sent in that form. No answer means that they are not.
func (t *terminal) answerKitty() {
	if t.kitty {
		t.answer("\x1b[?%du", t.modes.KittyKeys)
	}
}

func (t *terminal) answerWindow(op int) {
	switch op {
	case 11:
		t.replies.add("\x1b[1t")
	case 14:
		t.answer("\x1b[4;%d;%dt", t.rows*cellHeight, t.cols*cellWidth)
	case 16:
		t.answer("\x1b[6;%d;%dt", cellHeight, cellWidth)
	case 18, 19:
		t.answer("\x1b[%d;%d;%dt", op-10, t.rows, t.cols)
	}
}

// dcs carries out a device control string: the questions after a setting
// (DECRQSS) and after capabilities (XTGETTCAP). All others are ignored.
func (t *terminal) dcs(q *sequence, data []byte) {
	t.join = 0
	switch q.kind() {
	case "$q":
		t.answerSetting(string(data))
	case "+q":
		for name := range strings.SplitSeq(string(data), ";") {
			t.answerCapability(name)
		}
	}
}

func (t *terminal) answerSetting(which string) {
	switch which {
	case "m":
		t.answer("\x1bP1$r%sm\x1b\\", strings.Join(append([]string{"0"}, t.style.params()...), ";"))
	case "r":
		t.answer("\x1bP1$r%d;%dr\x1b\\", t.d.top+1, t.d.bottom+1)
	case " q":
		t.answer("\x1bP1$r%d q\x1b\\", max(t.modes.CursorShape, 1))
	case `"p`:
		t.replies.add("\x1bP1$r62;1\"p\x1b\\")
	case `"q`:
		t.replies.add("\x1bP1$r0\"q\x1b\\")
	default:
		t.replies.add("\x1bP0$r\x1b\\")
	}
}

// capabilities are what XTGETTCAP is told, by their terminfo names.
var capabilities = map[string]string{
	"TN": "xterm-256color", "name": "xterm-256color",
	"Co": "256", "colors": "256", "RGB": "8",
}

func (t *terminal) answerCapability(name string) {
	plain, err := hex.DecodeString(name)
	value, ok := capabilities[string(plain)]
	if err != nil || !ok || name == "" {
		t.answer("\x1bP0+r%s\x1b\\", onlyHex(name))
		return
	}
	t.answer("\x1bP1+r%s=%s\x1b\\", name, strings.ToUpper(hex.EncodeToString([]byte(value))))
}

// onlyHex keeps a program from having more than its own digits typed to it.
func onlyHex(s string) string {
	if strings.Trim(s, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return s
}

// answerColor tells the colour of an OSC, and ends as the question did.
func (t *terminal) answerColor(osc string, c rgb, bell bool) {
	t.answer("\x1b]%s;rgb:%02x%02x/%02x%02x/%02x%02x%s", osc, c[0], c[0], c[1], c[1], c[2], c[2], stringEnd(bell))
}

func stringEnd(bell bool) string {
	if bell {
		return "\a"
	}
	return "\x1b\\"
}

// params are the SGR parameters that make s out of the default style.
func (s Style) params() []string {
	var p []string
	for _, a := range [...]struct {
		attr Attr
		n    string
	}{{Bold, "1"}, {Dim, "2"}, {Italic, "3"}, {Blink, "5"}, {Inverse, "7"}, {Hidden, "8"}, {Strike, "9"}, {Overline, "53"}} {
		if s.Has(a.attr) {
			p = append(p, a.n)
		}
	}
	switch s.Underline {
	case NoUnderline:
	case SingleUnderline:
		p = append(p, "4")
	default:
		p = append(p, "4:"+strconv.Itoa(int(s.Underline)))
	}
	p = colorParams(p, s.FG, 30, "38", ";")
	p = colorParams(p, s.BG, 40, "48", ";")
	return colorParams(p, s.UnderlineColor, -1, "58", ":")
}

// colorParams adds the parameters of a colour. base is where the short form of
// the first eight begins; below 0 there is none.
func colorParams(p []string, c Color, base int, long, sep string) []string {
	if i, ok := c.Palette(); ok {
		switch {
		case base >= 0 && i < 8:
			return append(p, strconv.Itoa(base+int(i)))
		case base >= 0 && i < 16:
			return append(p, strconv.Itoa(base+60+int(i)-8))
		}
		return append(p, fmt.Sprint(long, sep, 5, sep, i))
	}
	if r, g, b, ok := c.Direct(); ok {
		space := ""
		if sep == ":" {
			space = ":"
		}
		return append(p, fmt.Sprint(long, sep, 2, sep, space, r, sep, g, sep, b))
	}
	return p
}
