package attach

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

func TestParseKeys(t *testing.T) {
	for text, want := range map[string]string{
		`ctrl-\`: "\x1c", "Ctrl-]": "\x1d", "C-b d": "\x02d", "^a,^D": "\x01\x04", "ctrl-^": "\x1e", "^^": "\x1e", "ctrl-@": "\x00", "ctrl-?": "\x7f", "none": "",
		"ctrl-b C-b C-b x": "\x02\x02\x02x",
	} {
		keys, err := ParseKeys(text)
		if err != nil || string(keys) != want {
			t.Errorf("%q is %q, %v, not %q", text, keys, err, want)
		}
	}
	for _, text := range []string{"", " ", "d", "d ctrl-b", "ctrl-", "ctrl-é", "ctrl-aa", "escape", "ctrl-[", "^[ d", "ctrl-a b c d e", "ctrl-b \x01"} {
		if keys, err := ParseKeys(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q is %q, %v", text, keys, err)
		}
	}
}

func TestKeysAsPeoplePressThem(t *testing.T) {
	for text, want := range map[string]string{`ctrl-\`: `Ctrl-\`, "^b,d": "Ctrl-B d", "none": "none", "^?": "Ctrl-?"} {
		keys, err := ParseKeys(text)
		if err != nil || keys.String() != want {
			t.Errorf("%q reads %q, %v, not %q", text, keys, err, want)
		}
		if again, err := ParseKeys(keys.String()); err != nil || !bytes.Equal(again, keys) {
			t.Errorf("%q is read as %q, %v", keys, again, err)
		}
	}
}

func TestDetachKeyIsFound(t *testing.T) {
	for _, c := range []struct {
		keys, typed, out string
		detach           bool
	}{
		{"\x1c", "abc\x1cdef", "abc", true},
		{"\x1c", "abc", "abc", false},
		{"", "a\x1cb", "a\x1cb", false},
		{"\x02d", "a\x02xb\x02dc", "a\x02xb", true},
		{"\x02d", "\x02\x02d", "\x02", true},
		{"\x01\x01d", "\x01\x01\x01d", "\x01", true},
		{"\x02d", "a\x02", "a", false}, // held until it is known what follows
		{"\x1c", "a" + pasteBegin + "b\x1cc" + pasteEnd + "d\x1c", "a" + pasteBegin + "b\x1cc" + pasteEnd + "d", true},
		{"\x1c", "\x1b\x1b[200~\x1c\x1b[20\x1b[201~\x1c", "\x1b\x1b[200~\x1c\x1b[20\x1b[201~", true},
		{"\x1c", "\x1b[201~\x1c", "\x1b[201~", true},
	} {
		for size := 1; size <= len(c.typed); size++ {
			out, detach := feedIn(&typed{detach: Keys(c.keys)}, c.typed, size)
			if out != c.out || detach != c.detach {
				t.Errorf("%q of %q in pieces of %d: %q, %v", c.keys, c.typed, size, out, detach)
			}
		}
	}
}

func feedIn(t *typed, text string, size int) (string, bool) {
	var all []byte
	for len(text) > 0 {
		n := min(size, len(text))
		out, _, detach := t.feed([]byte(text[:n]))
		all, text = append(all, out...), text[n:]
		if detach {
			return string(all), true
		}
	}
	return string(all), false
}

// However what is typed is cut into reads, the program gets all that comes
// before the detach key, which is its first occurrence outside of pastes.
func TestNothingTypedIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.StringMatching(`[\x01\x02][\x01\x02d]{0,3}`).Draw(t, "keys")
		text := rapid.StringMatching(`[\x01\x02dx]{0,20}`).Draw(t, "text")
		f := &typed{detach: Keys(keys)}
		out, detach := feedIn(f, text, rapid.IntRange(1, 5).Draw(t, "size"))
		want, _, found := strings.Cut(text, keys)
		if detach != found {
			t.Fatalf("%q in %q: %v", keys, text, detach)
		}
		if out += string(f.held); out != want {
			t.Fatalf("%q in %q: the program gets %q, not %q", keys, text, out, want)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, text := range []string{DefaultDetachKey, "C-b d", "^A,^D", "none"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		if len(keys) > maxKeys {
			t.Errorf("%q is %d keys", text, len(keys))
		}
		if again, err := ParseKeys(keys.String()); err != nil || !bytes.Equal(again, keys) {
			t.Errorf("%q reads %q, which is %q, %v", text, keys, again, err)
		}
	})
}

// FuzzPage draws whatever a tree may say; nothing but text and our own
// sequences may come of it, and the terminal shows a picture of that size.
func FuzzPage(f *testing.F) {
	f.Add("plain", "好\u0301", 20, 3, 10, 2)
	f.Add("\x1b[2J", "\u202e\u0085", 1, 1, 3, 3)
	f.Fuzz(func(t *testing.T, one, two string, cols, rows, userCols, userRows int) {
		fuzzPage(t, one, two, cols, rows, 1+abs(userCols)%40, 1+abs(userRows)%10)
	})
}

func abs(n int) int { return max(n, -max(n, -1<<62)) }
