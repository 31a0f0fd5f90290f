package screen

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxTitle = 1 << 10 // bytes

// osc carries out an operating system command: the title, questions after
// colours, and a program's status. Setting colours is ignored, and so are
// links, notifications, the clipboard and marks.
func (t *terminal) osc(data []byte, bell bool) {
	t.join = 0
	number, rest, _ := bytes.Cut(data, []byte{';'})
	switch string(number) {
	case "0", "2":
		t.title = clean(string(rest), maxTitle)
	case "4":
		t.askPalette(string(rest), bell)
	case "10", "11", "12":
		n, _ := strconv.Atoi(string(number))
		t.askColors(n, string(rest), bell)
	case "7501":
		if string(rest) == "?" {
			t.replies.add("\x1b]7501;?" + stringEnd(bell))
			return
		}
		t.program.update(data)
	}
}

// askPalette answers OSC 4 ; number ; ? for each such pair.
func (t *terminal) askPalette(pairs string, bell bool) {
	p := strings.Split(pairs, ";")
	for i := 0; i+1 < len(p); i += 2 {
		n, err := strconv.ParseUint(p[i], 10, 8)
		if err == nil && p[i+1] == "?" {
			t.answerColor("4;"+p[i], palette(uint8(n)), bell)
		}
	}
}

// askColors answers OSC 10, 11 and 12, where each further question is after the
// next of them.
func (t *terminal) askColors(n int, questions string, bell bool) {
	for q := range strings.SplitSeq(questions, ";") {
		if n > 12 {
			return
		}
		if q == "?" {
			t.answerColor(strconv.Itoa(n), map[int]rgb{10: defaultFG, 11: defaultBG, 12: defaultFG}[n], bell)
		}
		n++
	}
}

// clean returns the printable part of s, cut to at most limit bytes.
func clean(s string, limit int) string {
	var b strings.Builder
	for _, r := range s {
		if !printable(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
