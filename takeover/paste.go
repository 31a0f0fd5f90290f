package takeover

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// MaxPaste is the most bytes that one Paste takes.
const MaxPaste = 1 << 20

// The brackets of a paste.
const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// endings are what could be taken for a bracket, and the ends of lines, which
// the Enter key writes as CR.
var endings = strings.NewReplacer(
	pasteStart, "", pasteEnd, "", "\u009b200~", "", "\u009b201~", "",
	"\r\n", "\r", "\n", "\r",
)

// pasteable returns text without what would act: brackets as a whole, and then
// every control character but tabs and ends of lines, and whatever is no UTF-8.
// No bracket can be left: each begins with a control character.
func pasteable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(endings.Replace(text), ""))
}

// paste makes a message of a text that pasteable made. When it is cut, the
// character that was cut and the bracket still follow.
func paste(text string, bracketed bool) message {
	start, end := "", ""
	if bracketed {
		start, end = pasteStart, pasteEnd
	}
	b := []byte(start + text + end)
	return message{bytes: b, rest: func(n int) []byte {
		if n < len(start) {
			return []byte(start[n:] + end)
		}
		last := len(b) - len(end)
		if n >= last {
			return b[n:]
		}
		next := n
		for next < last && !utf8.RuneStart(b[next]) {
			next++
		}
		return bytes.Join([][]byte{b[n:next], []byte(end)}, nil)
	}}
}
