package screen

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testCase is a case of the shared conformance files and of testdata.
type testCase struct {
	ID         string       `json:"id"`
	Cols       int          `json:"cols"`
	Rows       int          `json:"rows"`
	Input      string       `json:"input"` // with Go's escapes
	Raw        string       `json:"raw"`   // or a file, of which the first Bytes
	Bytes      int          `json:"bytes"`
	Split      []int        `json:"split"`
	Resize     []sizeChange `json:"resize"`
	Lines      []string     `json:"lines"`
	Cursor     []int        `json:"cursor"` // column, row
	Visible    *bool        `json:"cursor_visible"`
	Alt        *bool        `json:"alt"`
	Title      *string      `json:"title"`
	Scrollback *[]string    `json:"scrollback"`
	Replies    *string      `json:"replies"`
	RepliesRE  *string      `json:"replies_re"`
	Styled     []styledCell `json:"styled"`
}

type sizeChange struct{ After, Cols, Rows int }

type styledCell struct {
	Row, Col      int
	Text          string
	FG, BG, Attrs string
}

// sharedFile finds a file of the folder that lies beside the repository.
func sharedFile(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		p := filepath.Join(append([]string{dir, "shared"}, elem...)...)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skipf("skipped: shared/%s is not here", filepath.Join(elem...))
	return ""
}

func loadCases(t testing.TB, path string) []testCase {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s: no cases", path)
	}
	return cases
}

// bytes returns a case's input; dir is where its raw file lies.
func (c *testCase) bytes(t testing.TB, dir string) []byte {
	t.Helper()
	if c.Raw != "" {
		b, err := os.ReadFile(filepath.Join(dir, c.Raw))
		if err != nil {
			t.Fatal(err)
		}
		return b[:c.Bytes]
	}
	s, err := strconv.Unquote(`"` + c.Input + `"`)
	if err != nil {
		t.Fatalf("%s: %v", c.ID, err)
	}
	return []byte(s)
}

// play writes input with the case's size changes, cut at the offsets.
func (c *testCase) play(t testing.TB, input []byte, cuts []int) *Screen {
	t.Helper()
	s := New(Options{Cols: c.Cols, Rows: c.Rows})
	at := 0
	write := func(to int) {
		for _, cut := range cuts {
			if cut > at && cut < to {
				mustWrite(t, s, input[at:cut])
				at = cut
			}
		}
		mustWrite(t, s, input[at:to])
		at = to
	}
	for _, r := range c.Resize {
		write(r.After)
		if err := s.Resize(r.Cols, r.Rows); err != nil {
			t.Fatal(err)
		}
	}
	write(len(input))
	s.Expire(s.Held())
	return s
}

func mustWrite(t testing.TB, s *Screen, p []byte) {
	t.Helper()
	if n, err := s.Write(p); n != len(p) || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v", len(p), n, err)
	}
}

// differences compares a screen with what the case expects.
func (c *testCase) differences(s *Screen) []string {
	var diffs []string
	differ := func(format string, args ...any) { diffs = append(diffs, fmt.Sprintf(format, args...)) }
	got := rows(s)
	for y := range max(len(got), len(c.Lines)) {
		g, w := lineAt(got, y), lineAt(c.Lines, y)
		if plainSpaces(g) != plainSpaces(w) {
			differ("row %d: got %q, want %q", y, g, w)
		}
	}
	st := s.State()
	if c.Cursor != nil && (c.Cursor[0] != st.Col || c.Cursor[1] != st.Row) {
		differ("cursor: got column %d row %d, want %v", st.Col, st.Row, c.Cursor)
	}
	if c.Visible != nil && *c.Visible != st.Modes.CursorVisible {
		differ("cursor visible: got %v", st.Modes.CursorVisible)
	}
	if c.Alt != nil && *c.Alt != st.Modes.Alternate {
		differ("alternate screen: got %v", st.Modes.Alternate)
	}
	if c.Title != nil && *c.Title != st.Title {
		differ("title: got %q, want %q", st.Title, *c.Title)
	}
	if c.Scrollback != nil && !slices.Equal(s.Scrollback(), *c.Scrollback) {
		differ("scrollback: got %q, want %q", s.Scrollback(), *c.Scrollback)
	}
	replies := string(s.Replies())
	if c.Replies != nil && *c.Replies != replies {
		differ("replies: got %q, want %q", replies, *c.Replies)
	}
	if c.RepliesRE != nil && !regexp.MustCompile(*c.RepliesRE).MatchString(replies) {
		differ("replies: got %q, want a match of %q", replies, *c.RepliesRE)
	}
	if st.Faults != 0 {
		differ("the emulator below panicked %d times", st.Faults)
	}
	return append(diffs, c.styleDifferences(s)...)
}

// styleDifferences compares the cells that have text. A case that lists styled
// cells lists all of those.
func (c *testCase) styleDifferences(s *Screen) []string {
	if c.Styled == nil {
		return nil
	}
	want := map[[2]int]styledCell{}
	for _, cell := range c.Styled {
		want[[2]int{cell.Row, cell.Col}] = cell
	}
	var diffs []string
	for y, l := range s.frame().lines {
		for x, cell := range l.cells {
			w := want[[2]int{y, x}]
			if cell.empty() && w.Text == "" || cell.width == 0 {
				continue
			}
			fg, bg, attrs := describe(*cell.style)
			if fg != w.FG || bg != w.BG || attrs != w.Attrs {
				diffs = append(diffs, fmt.Sprintf("style at row %d column %d: got %q %q %q, want %q %q %q",
					y, x, fg, bg, attrs, w.FG, w.BG, w.Attrs))
			}
		}
	}
	return diffs
}

// describe returns a style in the words of the cases.
func describe(s Style) (fg, bg, attrs string) {
	color := func(c Color) string {
		if i, ok := c.Palette(); ok {
			return fmt.Sprintf("p%d", i)
		}
		if r, g, b, ok := c.Direct(); ok {
			return fmt.Sprintf("#%02x%02x%02x", r, g, b)
		}
		return ""
	}
	for _, a := range []struct {
		on     bool
		letter string
	}{
		{s.Has(Bold), "b"},
		{s.Has(Dim), "d"},
		{s.Has(Hidden), "h"},
		{s.Has(Italic), "i"},
		{s.Has(Blink), "k"},
		{s.Has(Inverse), "r"},
		{s.Has(Strike), "s"},
		{s.Underline != NoUnderline, "u"},
	} {
		if a.on {
			attrs += a.letter
		}
	}
	return color(s.FG), color(s.BG), attrs
}

func rows(s *Screen) []string {
	return strings.Split(strings.TrimSuffix(s.Text(), "\n"), "\n")
}

func lineAt(lines []string, y int) string {
	if y < len(lines) {
		return lines[y]
	}
	return "(no row)"
}

func plainSpaces(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\u00a0", " "), " ")
}
