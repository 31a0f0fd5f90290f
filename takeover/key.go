package takeover

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"scvfs/ledger/fault"
)

// maxKeys is how many keys one call presses at most.
const maxKeys = 256

// mods are the modifiers that are held with a key, as bits of the number that
// terminals send (which is one more).
type mods uint8

const (
	shift mods = 1 << iota
	alt
	ctrl
)

// modNames are the modifiers by what stands before the '-' or '+'.
var modNames = map[string]mods{
	"shift": shift, "alt": alt, "meta": alt, "option": alt, "ctrl": ctrl, "control": ctrl,
}

// shortMods are those of other programs, which only capitals are.
var shortMods = map[string]mods{"S": shift, "M": alt, "C": ctrl}

// key is one key with its modifiers: a symbol, or a character.
type key struct {
	sym  *symbol
	char rune // as written without shift
	mods mods
}

// symbol is a key that has a name.
type symbol struct {
	name string
	// Keys of the cursor and function kind are sequences: CSI number final. A
	// number of 1 is left out where no modifier follows.
	number int
	final  byte
	ss3    bool // without modifiers it is SS3 final: always for F1 to F4, on application cursor keys for the others
	cursor bool
	// Other keys are bytes.
	bytes string
	// keypad is the SS3 final in the keypad's application mode.
	keypad byte
	// code is the number in the kitty keyboard protocol, where it has a form of
	// its own there.
	code int
}

// symbols are the keys that have names, in the order that people are told.
var symbols = makeSymbols()

func makeSymbols() []symbol {
	s := []symbol{
		{name: "enter", bytes: "\r", code: 13},
		{name: "tab", bytes: "\t", code: 9},
		{name: "backspace", bytes: "\x7f", code: 127},
		{name: "escape", bytes: "\x1b", code: 27},
		{name: "up", number: 1, final: 'A', cursor: true},
		{name: "down", number: 1, final: 'B', cursor: true},
		{name: "right", number: 1, final: 'C', cursor: true},
		{name: "left", number: 1, final: 'D', cursor: true},
		{name: "home", number: 1, final: 'H', cursor: true},
		{name: "end", number: 1, final: 'F', cursor: true},
		{name: "insert", number: 2, final: '~'},
		{name: "delete", number: 3, final: '~'},
		{name: "pageup", number: 5, final: '~'},
		{name: "pagedown", number: 6, final: '~'},
		{name: "f1", number: 1, final: 'P', ss3: true},
		{name: "f2", number: 1, final: 'Q', ss3: true},
		{name: "f3", number: 1, final: 'R', ss3: true},
		{name: "f4", number: 1, final: 'S', ss3: true},
	}
	for i, number := range []int{15, 17, 18, 19, 20, 21, 23, 24} {
		s = append(s, symbol{name: "f" + decimal(5+i), number: number, final: '~'})
	}
	for i := range 12 { // xterm's: those of F1 to F12 with shift
		plain := s[slices.IndexFunc(s, func(k symbol) bool { return k.name == "f"+decimal(1+i) })]
		s = append(s, symbol{name: "f" + decimal(13+i), number: plain.number, final: plain.final, code: 57376 + i})
	}
	for i := range 10 {
		s = append(s, symbol{name: "kp" + decimal(i), bytes: decimal(i), keypad: 'p' + byte(i), code: 57399 + i})
	}
	return append(s,
		symbol{name: "kpdecimal", bytes: ".", keypad: 'n', code: 57409},
		symbol{name: "kpdivide", bytes: "/", keypad: 'o', code: 57410},
		symbol{name: "kpmultiply", bytes: "*", keypad: 'j', code: 57411},
		symbol{name: "kpminus", bytes: "-", keypad: 'm', code: 57412},
		symbol{name: "kpplus", bytes: "+", keypad: 'k', code: 57413},
		symbol{name: "kpenter", bytes: "\r", keypad: 'M', code: 57414},
		symbol{name: "kpequal", bytes: "=", keypad: 'X', code: 57415},
	)
}

// aliases are other names of keys.
var aliases = map[string]string{
	"return": "enter", "cr": "enter", "esc": "escape", "bs": "backspace", "bspace": "backspace",
	"del": "delete", "dc": "delete", "ins": "insert", "ic": "insert",
	"pgup": "pageup", "page-up": "pageup", "ppage": "pageup", "prior": "pageup",
	"pgdn": "pagedown", "pgdown": "pagedown", "page-down": "pagedown", "npage": "pagedown", "next": "pagedown",
	"arrowup": "up", "arrowdown": "down", "arrowright": "right", "arrowleft": "left",
	"backtab": "shift-tab", "btab": "shift-tab", "space": " ", "spc": " ", "minus": "-", "plus": "+",
}

// KeyNames tells people what keys there are.
func KeyNames() string {
	var names []string
	for _, s := range symbols {
		if !strings.HasPrefix(s.name, "kp") && (s.name[0] != 'f' || len(s.name) == 1) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ") + ", space, f1 to f24, kp0 to kp9, kpenter, kpplus, kpminus, kpmultiply, kpdivide, kpdecimal, kpequal, or a character; with ctrl-, alt- and shift- before it"
}

// parseKeys parses the names of keys.
func parseKeys(names []string) ([]key, error) {
	if len(names) == 0 {
		return nil, fault.New(fault.Invalid, "no key is named; there are %s", KeyNames())
	}
	if len(names) > maxKeys {
		return nil, fault.New(fault.TooLarge, "%d keys are more than the %d that can be pressed at once", len(names), maxKeys)
	}
	keys := make([]key, 0, len(names))
	for _, name := range names {
		k, ok := parseKey(name)
		if !ok {
			return nil, fault.New(fault.Invalid, "%.40q is no key; there are %s", name, KeyNames())
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// parseKey parses the name of a key: modifiers, each with '-' or '+' behind it,
// and a symbol or a character. Case tells only for a character without ctrl.
func parseKey(name string) (k key, ok bool) {
	rest := name
	if char, found := strings.CutPrefix(name, "^"); found && char != "" { // ^C
		rest = "ctrl-" + char
	}
	for {
		if full, known := aliases[strings.ToLower(rest)]; known {
			rest = full
		}
		i := strings.IndexAny(rest, "-+")
		if i <= 0 || i == len(rest)-1 {
			break
		}
		mod, known := shortMods[rest[:i]]
		if !known {
			mod, known = modNames[strings.ToLower(rest[:i])]
		}
		if !known {
			return key{}, false
		}
		k.mods |= mod
		rest = rest[i+1:]
	}
	lower := strings.ToLower(rest)
	for i := range symbols {
		if symbols[i].name == lower {
			k.sym = &symbols[i]
			return k, true
		}
	}
	return k.with(rest)
}

// with makes k the key of one character. Shift has a meaning for letters only:
// which character it makes of another, keyboards do not agree on.
func (k key) with(char string) (key, bool) {
	r, size := utf8.DecodeRuneInString(char)
	if size != len(char) || r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsMark(r) {
		return key{}, false
	}
	k.char = r
	if lower := unicode.ToLower(r); lower != r && unicode.ToUpper(lower) == r {
		if k.char = lower; k.mods&ctrl == 0 {
			k.mods |= shift
		}
	}
	if k.mods&shift != 0 && unicode.ToUpper(k.char) == k.char && k.char != ' ' {
		return key{}, false
	}
	return k, true
}

// typed returns the character that the key types with its shift.
func (k key) typed() rune {
	if k.mods&shift != 0 {
		return unicode.ToUpper(k.char)
	}
	return k.char
}
