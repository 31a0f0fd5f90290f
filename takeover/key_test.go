package takeover

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

func TestKeysInEachForm(t *testing.T) {
	plain := screen.Modes{}
	cursor := screen.Modes{ApplicationCursor: true}
	keypad := screen.Modes{ApplicationKeypad: true}
	kitty := screen.Modes{KittyKeys: 1, ApplicationCursor: true}
	all := screen.Modes{KittyKeys: 1 | 4 | 8 | 16}
	for _, c := range []struct {
		name  string
		modes screen.Modes
		want  string
	}{
		{"up", plain, "\x1b[A"},
		{"UP", cursor, "\x1bOA"},
		{"up", kitty, "\x1b[A"},
		{"ctrl-up", cursor, "\x1b[1;5A"},
		{"shift-alt-left", plain, "\x1b[1;4D"},
		{"home", plain, "\x1b[H"},
		{"end", cursor, "\x1bOF"},
		{"insert", plain, "\x1b[2~"},
		{"pageup", cursor, "\x1b[5~"},
		{"page-down", plain, "\x1b[6~"},
		{"ctrl+delete", plain, "\x1b[3;5~"},
		{"f1", plain, "\x1bOP"},
		{"f1", kitty, "\x1b[P"},
		{"shift-f4", plain, "\x1b[1;2S"},
		{"f3", plain, "\x1bOR"},
		{"f3", kitty, "\x1b[13~"},
		{"f5", plain, "\x1b[15~"},
		{"f12", kitty, "\x1b[24~"},
		{"f13", plain, "\x1b[1;2P"},
		{"ctrl-f17", plain, "\x1b[15;6~"},
		{"f13", kitty, "\x1b[57376u"},
		{"f17", screen.Modes{KittyKeys: 2}, "\x1b[15;2~"},
		{"enter", plain, "\r"},
		{"Return", screen.Modes{Newline: true}, "\r\n"},
		{"enter", kitty, "\r"},
		{"shift-enter", plain, "\r"},
		{"shift-enter", kitty, "\x1b[13;2u"},
		{"alt-enter", plain, "\x1b\r"},
		{"enter", all, "\x1b[13u"},
		{"tab", kitty, "\t"},
		{"shift-tab", plain, "\x1b[Z"},
		{"backtab", kitty, "\x1b[9;2u"},
		{"escape", plain, "\x1b"},
		{"esc", kitty, "\x1b[27u"},
		{"backspace", plain, "\x7f"},
		{"ctrl-backspace", plain, "\b"},
		{"alt-backspace", kitty, "\x1b[127;3u"},
		{"space", plain, " "},
		{"ctrl-space", plain, "\x00"},
		{"ctrl-space", kitty, "\x1b[32;5u"},
		{"a", plain, "a"},
		{"a", kitty, "a"},
		{"a", all, "\x1b[97;;97u"},
		{"A", plain, "A"},
		{"shift-a", plain, "A"},
		{"A", all, "\x1b[97:65;2;65u"},
		{"é", plain, "é"},
		{"语", all, "\x1b[35821;;35821u"},
		{"-", plain, "-"},
		{"+", plain, "+"},
		{"alt--", plain, "\x1b-"},
		{"alt-plus", plain, "\x1b+"},
		{"alt-x", plain, "\x1bx"},
		{"alt-x", kitty, "\x1b[120;3u"},
		{"M-X", plain, "\x1bX"},
		{"meta-X", kitty, "\x1b[120;4u"},
		{"ctrl-c", plain, "\x03"},
		{"Ctrl-C", plain, "\x03"},
		{"C-c", plain, "\x03"},
		{"^C", plain, "\x03"},
		{"ctrl-c", kitty, "\x1b[99;5u"},
		{"ctrl-shift-c", kitty, "\x1b[99;6u"},
		{"ctrl-alt-d", plain, "\x1b\x04"},
		{"^[", plain, "\x1b"},
		{"^?", plain, "\x7f"},
		{`ctrl-\`, plain, "\x1c"},
		{"ctrl-/", plain, "\x1f"},
		{"ctrl-_", plain, "\x1f"},
		{"ctrl-1", kitty, "\x1b[49;5u"},
		{"kp5", plain, "5"},
		{"kp5", keypad, "\x1bOu"},
		{"kpenter", plain, "\r"},
		{"kpenter", keypad, "\x1bOM"},
		{"kpenter", kitty, "\x1b[57414u"},
		{"kpplus", kitty, "+"},
		{"alt-kp0", all, "\x1b[57399;3u"},
	} {
		k, ok := parseKey(c.name)
		if !ok {
			t.Errorf("%q is no key", c.name)
			continue
		}
		if got, err := encodeKeys([]key{k}, c.modes, false); err != nil || string(got) != c.want {
			t.Errorf("%q with %+v sends %q, %v; want %q", c.name, c.modes, got, err, c.want)
		}
	}
}

// A program that turned the other forms on and died left the terminal to a
// shell's line, or to one that knows none of them.
func TestKeysOfALineArePlain(t *testing.T) {
	keys, err := parseKeys([]string{"ctrl-c", "up", "escape", "kp1"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := encodeKeys(keys, screen.Modes{KittyKeys: 31, ApplicationCursor: true, ApplicationKeypad: true}, true)
	if want := "\x03\x1b[A\x1b1"; err != nil || string(got) != want {
		t.Errorf("they send %q, %v; want %q", got, err, want)
	}
}

func TestUnknownKeysAreRefusedWithWhatThereIs(t *testing.T) {
	for _, name := range []string{"", "foo", "hyper-a", "ctrl-", "-a", "ab", "f25", "f0", "kp10", "shift-1", "\x1b", "\x00", "\xff", "\u0301", "ctrl-foo", "👍🏽", "\n"} {
		_, err := parseKeys([]string{"up", name})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "pageup") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := parseKeys(nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("no key at all: %v", err)
	}
	if _, err := parseKeys(make([]string, maxKeys+1)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("many keys: %v", err)
	}
	for _, name := range []string{"ctrl-1", "ctrl-;", "ctrl-é"} {
		keys, err := parseKeys([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := encodeKeys(keys, screen.Modes{}, false); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEachNamedKeyIsOne(t *testing.T) {
	for _, name := range regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.Split(KeyNames(), ", or ")[0], -1) {
		if _, ok := parseKey(name); !ok && name != "to" {
			t.Errorf("%q is told to be a key and is none", name)
		}
	}
	for alias := range aliases {
		if _, ok := parseKey(alias); !ok {
			t.Errorf("%q is no key", alias)
		}
	}
}

// What a key may send, in each form.
var (
	legacyForm = regexp.MustCompile(`^\x1b?(?s:.|\r\n|\x1b\[Z|\x1b\[[A-H]|\x1bO[A-Za-z]|\x1b\[[0-9]+(;[0-9]+)?[A-S~])$`)
	kittyForm  = regexp.MustCompile(`^(?s:[^\x1b]|\x1b\[[0-9]+(:[0-9]+)?(;[0-9]*)?(;[0-9]+)?u|\x1b\[(1;[0-9]+)?[A-S]|\x1b\[[0-9]+(;[0-9]+)?~)$`)
)

func checkKey(t interface{ Fatalf(string, ...any) }, name string, m screen.Modes) {
	k, ok := parseKey(name)
	if !ok {
		return
	}
	b, err := encodeKeys([]key{k}, m, false)
	if fault.Is(err, fault.Invalid) {
		return
	}
	form := legacyForm
	if m.KittyKeys&(kittyDisambiguate|kittyAll) != 0 {
		form = kittyForm
	}
	if err != nil || !form.Match(b) {
		t.Fatalf("%q with %+v sends %q, %v", name, m, b, err)
	}
	if r, size := utf8.DecodeRuneInString(name); size == len(name) && form == legacyForm && string(b) != string(r) {
		t.Fatalf("%q sends %q", name, b)
	}
}

func TestEveryKeyHasAForm(t *testing.T) {
	names := []string{"space", "minus"}
	for _, s := range symbols {
		names = append(names, s.name)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"ctrl-", "alt-", "shift+", "C-", "M-", "S-"}), 0, 4).Draw(t, "modifiers"), "") +
			rapid.OneOf(rapid.SampledFrom(names), rapid.Map(rapid.RuneFrom(nil, unicode.L, unicode.P, unicode.N), func(r rune) string { return string(r) })).Draw(t, "key")
		m := screen.Modes{
			ApplicationCursor: rapid.Bool().Draw(t, "cursor"), ApplicationKeypad: rapid.Bool().Draw(t, "keypad"),
			Newline: rapid.Bool().Draw(t, "newline"), KittyKeys: rapid.Uint8Range(0, 31).Draw(t, "kitty"),
		}
		checkKey(t, name, m)
	})
}

func FuzzKey(f *testing.F) {
	for _, name := range []string{"ctrl-c", "alt--", "^[", "M-ß", "page-up", "shift-ǆ", "f24", "\xff"} {
		f.Add(name, uint8(0), false)
		f.Add(name, uint8(31), true)
	}
	f.Fuzz(func(t *testing.T, name string, kitty uint8, app bool) {
		checkKey(t, name, screen.Modes{KittyKeys: kitty & 31, ApplicationCursor: app, ApplicationKeypad: app, Newline: app})
	})
}
