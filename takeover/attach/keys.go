package attach

import (
	"bytes"
	"strings"

	"scvfs/ledger/fault"
)

// DefaultDetachKey is what dtach and abduco use, and hardly a program.
const DefaultDetachKey = `ctrl-\`

// Keys are keys to be pressed one after the other, as bytes that a terminal
// sends for them. None are never pressed.
type Keys []byte

// maxKeys is how many keys make a detach key at most.
const maxKeys = 4

// ParseKeys parses keys as people write them: ctrl-\, C-b d, ^A,^D; none for
// none. The first must be one with Ctrl; fault.Invalid for anything else.
func ParseKeys(text string) (Keys, error) {
	if text == "none" {
		return nil, nil
	}
	var keys Keys
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		key, ok := parseKey(name)
		if !ok {
			return nil, fault.New(fault.Invalid, `%.40q is no key to detach with: write ctrl-\, "ctrl-b d", or none`, name)
		}
		keys = append(keys, key)
	}
	if len(keys) > 0 && keys[0] == '\x1b' {
		return nil, fault.New(fault.Invalid, "%.40q cannot detach: the Esc key is the beginning of many others", text)
	}
	if len(keys) == 0 || len(keys) > maxKeys || keys[0] >= ' ' && keys[0] != 0x7f {
		return nil, fault.New(fault.Invalid, `%.40q cannot detach: write one to %d keys, the first with Ctrl, such as ctrl-\ or "ctrl-b d"`, text, maxKeys)
	}
	return keys, nil
}

// parseKey returns the byte of one key.
func parseKey(name string) (byte, bool) {
	if len(name) == 1 && name[0] > ' ' && name[0] < 0x7f {
		return name[0], true
	}
	for _, prefix := range []string{"ctrl-", "C-", "^"} {
		if len(name) != len(prefix)+1 || !strings.EqualFold(name[:len(prefix)], prefix) {
			continue
		}
		switch c := name[len(prefix)]; {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 1, true
		case c >= '@' && c <= '_':
			return c - '@', true
		case c == '?':
			return 0x7f, true
		}
	}
	return 0, false
}

// String returns the keys as people press them: Ctrl-B d.
func (k Keys) String() string {
	if len(k) == 0 {
		return "none"
	}
	names := make([]string, len(k))
	for i, b := range k {
		switch {
		case b == 0x7f:
			names[i] = "Ctrl-?"
		case b < ' ':
			names[i] = "Ctrl-" + string(rune(b+'@'))
		default:
			names[i] = string(rune(b))
		}
	}
	return strings.Join(names, " ")
}

// The brackets that a terminal puts around a paste.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// typed looks for the detach key in what the user types. It is not looked for
// in a paste that stands in brackets.
type typed struct {
	detach  Keys
	held    []byte // begins like detach
	pasting bool
	bracket int // how much of the next bracket has come
}

// feed takes what was typed. It returns what of it is for the program, and, when
// the detach key is in it, true and what was typed behind that.
func (t *typed) feed(p []byte) (out, behind []byte, detach bool) {
	for i, b := range p {
		t.follow(b)
		if len(t.detach) == 0 || t.pasting {
			out = append(append(out, t.held...), b)
			t.held = nil
			continue
		}
		t.held = append(t.held, b)
		for !bytes.HasPrefix(t.detach, t.held) {
			out = append(out, t.held[0])
			t.held = t.held[1:]
		}
		if len(t.held) == len(t.detach) {
			t.held = nil
			return out, p[i+1:], true
		}
	}
	return out, nil, false
}

// follow looks for the bracket that begins or ends a paste.
func (t *typed) follow(b byte) {
	bracket := pasteBegin
	if t.pasting {
		bracket = pasteEnd
	}
	switch {
	case b == bracket[t.bracket]:
		t.bracket++
	case b == bracket[0]:
		t.bracket = 1
	default:
		t.bracket = 0
	}
	if t.bracket == len(bracket) {
		t.pasting, t.bracket = !t.pasting, 0
	}
}
