package takeover

import (
	"slices"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

func TestSizesAreParsed(t *testing.T) {
	for text, want := range map[string]Size{"120x40": {120, 40}, "1x1": {1, 1}, " 80x24\n": {80, 24}, "65535x65535": {65535, 65535}} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "80", "80x", "x24", "80x24x3", "0x24", "80x0", "-80x24", "+80x24", "80 x 24", "8_0x24", "80x65536", "99999999999999999999x1", "80X24", "axb"} {
		if _, err := ParseSize(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := ParseSize(DefaultSize.String()); err != nil || got != DefaultSize {
		t.Errorf("%v is read as %v, %v", DefaultSize, got, err)
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("120x40")
	f.Add("0x0")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSize(text)
		if err != nil {
			return
		}
		if again, err := ParseSize(s.String()); s.Cols < 1 || s.Rows < 1 || err != nil || again != s {
			t.Errorf("%q is %v, and then %v, %v", text, s, again, err)
		}
	})
}

func TestEnvironmentTellsOfThisTerminalOnly(t *testing.T) {
	got := Environ([]string{
		"HOME=/home/alice", "TERM=screen", "COLORTERM=no", "LINES=5", "COLUMNS=7", "TMUX=/tmp/x", "TMUX_PANE=%1", "KITTY_WINDOW_ID=1",
		"TERM_PROGRAM=other", "TERMS=kept", "LANG=C.UTF-8", "STY=1.x", "broken",
	})
	want := []string{"HOME=/home/alice", "TERMS=kept", "LANG=C.UTF-8", "broken", "TERM=xterm-256color", "COLORTERM=truecolor"}
	if !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, " "))
	}
}
