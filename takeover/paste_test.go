package takeover

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPasteIsOnlyText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain", "plain"},
		{"two\nlines\r\nand\rthree", "two\rlines\rand\rthree"},
		{"tab\there", "tab\there"},
		{"a\x1b[201~b\x1b[200~c", "abc"},
		{"a\x1b[20\x1b[201~1~rm", "a[201~rm"},
		{"a\u009b201~b\u009bc", "abc"},
		{"\x03\x04\x1a\x7f\x00\u0085", ""},
		{"\x1b[31mred\x1b[0m", "[31mred[0m"},
		{"bad \xff\xc3 utf8 \xe2\x82", "bad  utf8 "},
		{"日本語 é 👍🏽", "日本語 é 👍🏽"},
		{"", ""},
	} {
		if got := pasteable(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
	if got := string(paste("x", true).bytes); got != "\x1b[200~x\x1b[201~" {
		t.Errorf("a bracketed paste sends %q", got)
	}
	if got := string(paste("x", false).bytes); got != "x" {
		t.Errorf("a plain paste sends %q", got)
	}
}

// checkPaste checks that a program which reads a paste, cut or not, has it as
// one piece of plain text.
func checkPaste(t interface{ Fatalf(string, ...any) }, text string, bracketed bool, cut int) {
	m := paste(pasteable(text), bracketed)
	sent := string(m.bytes)
	if n := cut % (len(m.bytes) + 1); n > 0 && n < len(m.bytes) {
		sent = string(m.bytes[:n]) + string(m.rest(n))
	}
	inner := sent
	if bracketed {
		var started, ended bool
		inner, started = strings.CutPrefix(inner, pasteStart)
		inner, ended = strings.CutSuffix(inner, pasteEnd)
		if !started || !ended {
			t.Fatalf("%q cut at %d sends %q", text, cut, sent)
		}
	}
	if !utf8.ValidString(inner) || strings.ContainsFunc(inner, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\r' || r >= 0x7f && r <= 0x9f
	}) {
		t.Fatalf("%q cut at %d sends %q", text, cut, sent)
	}
	if !strings.HasPrefix(pasteable(text), inner) {
		t.Fatalf("%q cut at %d sends %q, which is none of it", text, cut, sent)
	}
}

func TestPasteNeverLeavesItsBracket(t *testing.T) {
	piece := rapid.OneOf(
		rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"\x1b", "\x1b[20", "0~", "1~", "\x1b[201~", "\x1b[200~", "\u009b", "\x9b", "201~", "\r\n", "日"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		checkPaste(t, text, rapid.Bool().Draw(t, "bracketed"), rapid.IntRange(0, 100).Draw(t, "cut"))
	})
}

func FuzzPaste(f *testing.F) {
	f.Add("a\x1b[20\x1b[201~1~b", true, 9)
	f.Add("日本\u009b201~\xff", true, 8)
	f.Add("two\nlines", false, 3)
	f.Fuzz(func(t *testing.T, text string, bracketed bool, cut int) {
		checkPaste(t, text, bracketed, max(cut, 0))
	})
}
