package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text of unknown origin safe to show: escape sequences and
// control characters are removed, as are the marks that turn the direction of
// writing, and bytes that are no UTF-8 become U+FFFD. Newlines and tabs stay,
// and a carriage return within a line becomes a space, because programs use it
// to write over what they wrote. Printable of its own result changes nothing.
func Printable(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	unended := 0 // no command string that begins before this byte ends
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b' && introduces(s[i:]):
			n = 2
			if i >= unended {
				length, ended := commandString(s[i+n:])
				if ended {
					n += length
				} else {
					unended = i + n + length
				}
			}
		case r == '\x1b':
			n = sequence(s[i:])
		case r == '\u009b':
			n += parameters(s[i+n:])
		case r == '\r':
			if i+1 < len(s) && s[i+1] != '\n' && s[i+1] != '\r' {
				b.WriteByte(' ')
			}
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// OneLine is Printable text on one line: each run of white space is one space,
// none stands at the ends, and what is longer than limit characters ends in
// "…" as the last of them. A limit of 0 or less means none.
func OneLine(s string, limit int) string {
	var b strings.Builder
	chars, cutAt, gap := 0, 0, false
	for _, r := range Printable(s) {
		if unicode.IsSpace(r) {
			gap = chars > 0
			continue
		}
		for _, r := range [2]rune{' ', r} {
			if r == ' ' && !gap {
				continue
			}
			if limit > 0 && chars == limit {
				return strings.TrimSuffix(b.String()[:cutAt], " ") + "…"
			}
			if limit > 0 && chars < limit {
				cutAt = b.Len() // without this one there is room for the mark
			}
			b.WriteRune(r)
			chars++
		}
		gap = false
	}
	return b.String()
}

// plain tells whether s holds nothing but printable ASCII, tabs and newlines.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden tells whether a character is one that Printable leaves out.
func hidden(r rune) bool {
	switch r {
	case '\u061c', '\u200e', '\u200f', '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// introduces tells whether s begins with the introducer of a string such as a
// window title, which reaches up to a terminator.
func introduces(s string) bool {
	return len(s) > 1 && strings.IndexByte("]PX^_", s[1]) >= 0
}

// sequence returns the length of any other escape sequence that s begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + parameters(s[2:])
	case c >= 0x20 && c <= 0x2f:
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			i++
		}
		return i
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// parameters returns the length of a control sequence after its introducer.
func parameters(s string) int {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// commandString returns the length of a string after its introducer, with its
// terminator. One that does not end on its own line is none, so that it
// swallows no text; the length is that of the line then.
func commandString(s string) (length int, ended bool) {
	for i := range len(s) {
		switch {
		case s[i] == '\a':
			return i + 1, true
		case s[i] == '\x1b' && i+1 < len(s) && s[i+1] == '\\':
			return i + 2, true
		case s[i] == '\n':
			return i, false
		}
	}
	return len(s), false
}
