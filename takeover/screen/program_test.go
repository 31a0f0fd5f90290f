package screen

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// drawProgram returns what a terminal program might write, and sometimes what
// none should.
func drawProgram(t *rapid.T) string {
	number := rapid.SampledFrom([]string{"", "0", "1", "2", "3", "5", "9", "40", "65535", "99999999999"})
	piece := rapid.Custom(func(t *rapid.T) string {
		n := func() string { return number.Draw(t, "n") }
		pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "piece") }
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0, 1:
			return rapid.StringMatching(`[a-z ]{1,9}`).Draw(t, "word")
		case 2:
			return pick("好", "日本", "😀", "e\u0301", "\u0301", "❤\ufe0f", "a\u200d", "\u202e", "\U00100000", "\u2028", "─┐", "░")
		case 3:
			return pick("\r", "\n", "\r\n", "\b", "\t", "\v", "\x0e", "\x0f", "\x00", "\x7f", "\u0085", "\u009b2C")
		case 4:
			return "\x1b[" + n() + ";" + n() + pick("H", "r", "f")
		case 5:
			return "\x1b[" + n() + pick("A", "B", "C", "D", "E", "F", "G", "d", "I", "Z", "b")
		case 6:
			return "\x1b[" + n() + pick("@", "P", "X", "L", "M", "S", "T", "J", "K", "g")
		case 7:
			return "\x1b[" + pick("", "0", "1", "31", "4:3", "7", "8", "38;5;9", "48;2;1;2;3", "58:2::9:8:7", "38:2:1:2:3", "9;53", "22;27") + "m"
		case 8:
			return "\x1b[?" + pick("7", "6", "25", "47", "1047", "1048", "1049", "2026", "2004", "1;1000") + pick("h", "l")
		case 9:
			return "\x1b[" + pick("4h", "4l", "20h", "20l", "s", "u", "!p", "6n", "c", ">q", "?u", ">1u", "<u")
		case 10:
			return "\x1b" + pick("7", "8", "D", "E", "M", "H", "c", "(0", "(B", ")0", "N", "#8", "%G", "=", ">")
		case 11:
			return pick("\x1b]2;t\x07", "\x1b]8;;http://x\x1b\\", "\x1b]7501;state=idle\x1b\\", "\x1bP$qm\x1b\\", "\x1b_x\x1b\\", "\x1b]11;?\x07", "\x1b]2;open", "\x1bPq")
		default:
			return pick("\xe4", "\xbd", "\xff", "\xf0\x9f", "\x1b", "\x1b[", "\x1b[3", "\x18")
		}
	})
	return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "program"), "")
}

// shown is all that can be read from a screen, in one string.
func shown(s *Screen) string {
	st := s.State()
	st.Generation = 0 // readers make it move
	return fmt.Sprintf("%+v\n%s\n%q\n%q", st, s.ANSI(), s.Scrollback(), s.Replies())
}
