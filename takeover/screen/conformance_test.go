package screen

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
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

// rewritten are the screens of codex on which the recordings' own text was
// changed when names were taken out of them: the reference says /home/alice,
// but the bytes still draw /tmp/a, leave the g that stands there, and draw
// ents/work (column 13 on). No emulator can show the reference's text from
// them; xterm.js and tmux show what is compared here.
var rewritten = strings.NewReplacer("     /tmp/agents/work-18701/codex", "     /home/alice/work-18701/codex")

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
				if got := s.Text(); strings.HasPrefix(c.ID, "agent-codex") && rewritten.Replace(got) != got {
					changed++
					c.Lines = strings.Split(strings.ReplaceAll(strings.Join(c.Lines, "\n"),
						"     /home/alice/work-18701/codex", "     /tmp/agents/work-18701/codex"), "\n")
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
	t.Logf("%d of %d recorded screens passed, %d of them with the reference's changed text undone", passed, all, changed/3)
}

// randomCuts returns offsets in ascending order, about one in 50 bytes.
func randomCuts(random *rand.Rand, n int) []int {
	var cuts []int
	for at := 1 + random.IntN(50); at < n; at += 1 + random.IntN(100) {
		cuts = append(cuts, at)
	}
	return cuts
}
