package screen

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recording is a session with an agent's terminal, as the fixtures keep it.
type recording struct {
	Events []struct {
		Offset  int    `json:"offset"`
		Do      string `json:"do"`
		File    string `json:"file"`
		Cols    int    `json:"cols"`
		Rows    int    `json:"rows"`
		Cursor  []int  `json:"cursor"`
		Alt     *bool  `json:"alternate"`
		Visible *bool  `json:"cursor_visible"`
	} `json:"events"`
}

// reflowed is the one capture after which tmux had rewrapped lines to a new
// width: lines of a screen do not reflow here.
const reflowed = "gemini/tui-120x40.5-resized.txt"

// TestAgentRecordings replays what agents' terminals wrote, with cuts anywhere,
// and compares each capture with the screen that tmux showed.
func TestAgentRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedFile(t, "fixtures"), "*", "tui-*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("skipped: shared/fixtures has no recordings (%v)", err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	captures, same := 0, 0
	for _, file := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
		t.Run(name, func(t *testing.T) {
			c, ok := replay(t, file, random)
			captures, same = captures+c, same+ok
		})
	}
	t.Logf("%d of %d captures are the same as tmux's, cell for cell", same, captures)
}

func replay(t *testing.T, file string, random *rand.Rand) (captures, same int) {
	var rec recording
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".raw")
	if err != nil {
		t.Fatal(err)
	}
	var s *Screen
	at := 0
	for _, e := range rec.Events {
		for s != nil && at < e.Offset {
			n := min(1+random.IntN(1<<random.IntN(12)), e.Offset-at)
			mustWrite(t, s, raw[at:at+n])
			at += n
		}
		switch e.Do {
		case "start":
			s = New(Options{Cols: e.Cols, Rows: e.Rows})
		case "resize":
			if err := s.Resize(e.Cols, e.Rows); err != nil {
				t.Fatal(err)
			}
		case "capture":
			s.Expire(s.Held())
			want, err := os.ReadFile(filepath.Join(filepath.Dir(file), e.File))
			if err != nil {
				t.Fatal(err)
			}
			captures++
			if strings.HasSuffix(filepath.Join(filepath.Base(filepath.Dir(file)), e.File), reflowed) {
				continue
			}
			// tmux leaves blank rows at the end out, takes an APC for a title, and
			// hides the cursor once the program has ended.
			c := testCase{Lines: strings.Split(strings.TrimRight(string(want), "\n"), "\n"), Alt: e.Alt}
			if !strings.HasSuffix(e.File, "-end.txt") {
				c.Visible = e.Visible
			}
			redact(s, &c)
			for len(c.Lines) < e.Rows {
				c.Lines = append(c.Lines, "")
			}
			if len(e.Cursor) == 2 {
				c.Cursor = []int{min(e.Cursor[0], e.Cols-1), e.Cursor[1]}
			}
			diffs := c.differences(s)
			for _, d := range diffs {
				t.Errorf("%s: %s", e.File, d)
			}
			if len(diffs) == 0 {
				same++
			}
		}
	}
	return captures, same
}
