package screen

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

func TestSharedCases(t *testing.T) {
	path := sharedFile(t, "vt-cases", "conformance.json")
	runCases(t, path)
}

func TestOwnCases(t *testing.T) {
	runCases(t, filepath.Join("testdata", "cases.json"))
}

func runCases(t *testing.T, path string) {
	passed, all := 0, 0
	for _, c := range loadCases(t, path) {
		all++
		ok := t.Run(c.ID, func(t *testing.T) {
			input := c.bytes(t, filepath.Dir(path))
			for _, d := range c.differences(c.play(t, input, c.Split)) {
				t.Error(d)
			}
			bytewise := make([]int, len(input))
			for i := range bytewise {
				bytewise[i] = i
			}
			for _, d := range c.differences(c.play(t, input, bytewise)) {
				t.Errorf("byte by byte: %s", d)
			}
		})
		if ok {
			passed++
		}
	}
	t.Logf("%s: %d of %d cases passed", filepath.Base(path), passed, all)
}

// On some screens of codex the recordings' own text was changed when names were
// taken out of them: the reference says /home/alice, but the bytes draw /tmp/a,
// leave the g that stands behind it, and draw ents/work from column 13 on. No
// emulator can show the reference's text from them; xterm.js, given the same
// bytes, shows drawnText.
const (
	drawnText     = "     /tmp/agents/work-18701/codex"
	referenceText = "     /home/alice/work-18701/codex"
)

// redact undoes that change in the row of a case where it was made, and tells
// whether there is one: the row is drawnText and nothing else.
func redact(s *Screen, c *testCase) bool {
	for y, row := range rows(s) {
		if row == drawnText && lineAt(c.Lines, y) == referenceText {
			c.Lines[y] = drawnText
			return true
		}
	}
	return false
}

func TestRecordedScreens(t *testing.T) {
	path := sharedFile(t, "vt-cases", "recordings-conformance.json")
	random := rand.New(rand.NewPCG(1, 2))
	passed, all, changed := 0, 0, 0
	for _, c := range loadCases(t, path) {
		all++
		ok := t.Run(c.ID, func(t *testing.T) {
			input := c.bytes(t, filepath.Dir(path))
			for _, cuts := range [][]int{nil, randomCuts(random, len(input)), randomCuts(random, len(input))} {
				s := c.play(t, input, cuts)
				if redact(s, &c) {
					changed++
				}
				for _, d := range c.differences(s) {
					t.Errorf("%d cuts: %s", len(cuts), d)
				}
			}
		})
		if ok {
			passed++
		}
	}
	if changed != 6 {
		t.Errorf("%d references have changed text, want 6", changed)
	}
	t.Logf("%d of %d recorded screens passed, %d of them with the reference's changed text undone", passed, all, changed)
}

// randomCuts returns offsets in ascending order, about one in 50 bytes.
func randomCuts(random *rand.Rand, n int) []int {
	var cuts []int
	for at := 1 + random.IntN(50); at < n; at += 1 + random.IntN(100) {
		cuts = append(cuts, at)
	}
	return cuts
}
