package takeover

import (
	"strconv"
	"strings"
	"unicode"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

// The flags of the kitty keyboard protocol that matter for a press. (Releases
// and repeats are never sent.)
const (
	kittyDisambiguate = 1 << 0
	kittyAlternates   = 1 << 2
	kittyAll          = 1 << 3
	kittyText         = 1 << 4
)

// encodeKeys returns what keys send. linewise says that the terminal takes them
// itself, which knows the plain forms only: a program that turned others on and
// left them so is gone.
func encodeKeys(keys []key, m screen.Modes, linewise bool) ([]byte, error) {
	if linewise {
		m.KittyKeys, m.ApplicationCursor, m.ApplicationKeypad = 0, false, false
	}
	var b strings.Builder
	for _, k := range keys {
		if m.KittyKeys&(kittyDisambiguate|kittyAll) != 0 {
			b.WriteString(k.kitty(m))
			continue
		}
		s, ok := k.legacy(m)
		if !ok {
			return nil, fault.New(fault.Invalid, "ctrl with %q has no form that this program would know: terminals have one for letters, @ [ \\ ] ^ _ ? and space", k.char)
		}
		b.WriteString(s)
	}
	return []byte(b.String()), nil
}

// legacy returns the key as terminals have always sent it; ok is false for a
// control character that there is none of.
func (k key) legacy(m screen.Modes) (s string, ok bool) {
	switch {
	case k.sym == nil:
		s = string(k.typed())
		if k.mods&ctrl != 0 {
			if s, ok = control(k.char); !ok {
				return "", false
			}
		}
	case k.sym.final != 0:
		return k.sequence(m), true
	case k.sym.name == "tab" && k.mods&shift != 0:
		s = "\x1b[Z"
	case k.sym.name == "backspace" && k.mods&ctrl != 0:
		s = "\b"
	case k.sym.keypad != 0 && m.ApplicationKeypad:
		s = "\x1bO" + string(rune(k.sym.keypad))
	case k.sym.bytes == "\r" && m.Newline:
		s = "\r\n"
	default:
		s = k.sym.bytes
	}
	if k.mods&alt != 0 {
		s = "\x1b" + s
	}
	return s, true
}

// sequence returns a key that is a control sequence.
func (k key) sequence(m screen.Modes) string {
	s, mod := k.sym, k.mods
	if s.code != 0 { // F13 and up
		mod |= shift
	}
	final := string(rune(s.final))
	switch {
	case mod != 0:
		return "\x1b[" + decimal(s.number) + ";" + decimal(1+int(mod)) + final
	case s.ss3 || s.cursor && m.ApplicationCursor:
		return "\x1bO" + final
	case s.number == 1:
		return "\x1b[" + final
	}
	return "\x1b[" + decimal(s.number) + final
}

// control returns the control character of a character.
func control(r rune) (string, bool) {
	const marks = "@ 2[3{\\4|]5}^6~_7/?8"
	const codes = "\x00\x00\x00\x1b\x1b\x1b\x1c\x1c\x1c\x1d\x1d\x1d\x1e\x1e\x1e\x1f\x1f\x1f\x7f\x7f"
	if r >= 'a' && r <= 'z' {
		return string(r - 'a' + 1), true
	}
	if i := strings.IndexRune(marks, r); i >= 0 {
		return codes[i : i+1], true
	}
	return "", false
}

// kitty returns the key in the form of the kitty keyboard protocol, with what
// the program turned on of it.
func (k key) kitty(m screen.Modes) string {
	all := m.KittyKeys&kittyAll != 0
	if k.sym == nil {
		if k.mods&^shift == 0 && !all {
			return string(k.typed())
		}
		return k.kittyChar(m)
	}
	switch s := k.sym; {
	case s.name == "f3": // R would be taken for the answer to where the cursor is
		return k.kittyCode(13, '~')
	case s.final != 0 && s.code == 0:
		m.ApplicationCursor = false
		plain := *s
		plain.ss3 = false
		return key{sym: &plain, mods: k.mods}.sequence(m)
	case s.code == 27, s.final != 0, all, k.mods != 0, s.name == "kpenter":
		return k.kittyCode(s.code, 'u')
	}
	return k.sym.bytes // enter, tab, backspace and the keypad as text
}

func (k key) kittyCode(code int, final byte) string {
	s := "\x1b[" + decimal(code)
	if k.mods != 0 {
		s += ";" + decimal(1+int(k.mods))
	}
	return s + string(rune(final))
}

// kittyChar returns a character as CSI code:shifted;modifiers;text u.
func (k key) kittyChar(m screen.Modes) string {
	s := "\x1b[" + decimal(int(k.char))
	if shifted := unicode.ToUpper(k.char); m.KittyKeys&kittyAlternates != 0 && k.mods&shift != 0 && shifted != k.char {
		s += ":" + decimal(int(shifted))
	}
	text := m.KittyKeys&(kittyAll|kittyText) == kittyAll|kittyText && k.mods&^shift == 0
	switch {
	case k.mods != 0:
		s += ";" + decimal(1+int(k.mods))
	case text:
		s += ";"
	}
	if text {
		s += ";" + decimal(int(k.typed()))
	}
	return s + "u"
}

func decimal(n int) string { return strconv.Itoa(n) }
