package screen

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestWidthsAreThoseOfXtermJS(t *testing.T) {
	f, err := os.Open("testdata/widths.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked, wrong := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var first, last rune
		var width int
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		if _, err := fmt.Sscanf(s.Text(), "%x %x %d", &first, &last, &width); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		for r := first; r <= last; r++ {
			checked++
			if got := runeWidth(r); got != width {
				if wrong++; wrong < 20 {
					t.Errorf("%U: got width %d, want %d", r, got, width)
				}
			}
		}
	}
	if checked < 250_000 {
		t.Errorf("only %d characters were checked", checked)
	}
}

func TestLaterCharactersHaveTheWidthOfTheirKind(t *testing.T) {
	for r, want := range map[rune]int{0x1fae0: 2, 0x1f972: 2, 0x1faf8: 2, 0x1ab0f: 1, 0x16ff0: 2, 0x11f00: 0} {
		if got := runeWidth(r); got != want {
			t.Errorf("%U: got width %d, want %d", r, got, want)
		}
	}
}

func TestNoCellHoldsControls(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if (r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e) && printable(r) {
			t.Errorf("%U counts as printable", r)
		}
	}
	for _, r := range "aé好😀\u0301\u200d\ufe0f\ue0b0\u00a0" {
		if !printable(r) {
			t.Errorf("%U does not count as printable", r)
		}
	}
}
