package attach

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"scvfs/takeover/screen"
)

// alphabet is what random programs write: narrow, wide, marks, joiners,
// emoji, characters whose width terminals differ about.
var alphabet = []string{"a", "b", "Z", " ", " ", "é", "好", "界", "한", "─", "█", "e\u0301", "o\u0308\u0323", "👍", "👩\u200d🚀", "❤\ufe0f", "✳", "…", "·", "\u3000", "ﷺ"}

// program is a random program for a screen of cols and rows.
func program(t *rapid.T, cols, rows int) string {
	var b strings.Builder
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		switch rapid.IntRange(0, 13).Draw(t, "what") {
		case 0:
			fmt.Fprintf(&b, "\x1b[%d;%dH", rapid.IntRange(1, rows).Draw(t, "row"), rapid.IntRange(1, cols).Draw(t, "col"))
		case 1:
			fmt.Fprintf(&b, "\x1b[%dK", n%3)
		case 2:
			fmt.Fprintf(&b, "\x1b[%dJ", n%3)
		case 3:
			b.WriteString(rapid.SampledFrom([]string{
				"\x1b[m", "\x1b[1m", "\x1b[3;4m", "\x1b[7m", "\x1b[31m", "\x1b[97;104m", "\x1b[38;5;200m", "\x1b[48;5;17m", "\x1b[48;2;1;2;3m", "\x1b[38;2;9;8;7;1m",
			}).Draw(t, "style"))
		case 4:
			b.WriteString("\r\n")
		case 5:
			fmt.Fprintf(&b, "\x1b[%d%s", n, rapid.SampledFrom([]string{"@", "P", "L", "M", "X", "S", "T"}).Draw(t, "edit"))
		case 6:
			b.WriteString(rapid.SampledFrom([]string{"\x1b[?25l", "\x1b[?25h", "\x1b[?1h", "\x1b[?1l", "\x1b[?2004h", "\x1b[?2004l"}).Draw(t, "mode"))
		default:
			for range n {
				b.WriteString(rapid.SampledFrom(alphabet).Draw(t, "text"))
			}
		}
	}
	return b.String()
}

// drawn is a terminal of a user and the canvas that is drawn on it.
type drawn struct {
	terminal *screen.Screen
	canvas   *canvas
}

func newDrawn(cols, rows int) *drawn {
	d := &drawn{screen.New(screen.Options{Cols: cols, Rows: rows}), newCanvas(cols, rows)}
	_, _ = d.terminal.Write([]byte(enter))
	return d
}

func (d *drawn) show(p *picture) {
	now := p.copy()
	_, _ = d.terminal.Write(d.canvas.show(&now, true))
}

// lines are a page's rows, for comparison.
func linesOf(p screen.Page) string {
	b, _ := json.Marshal(p.Lines)
	return string(b)
}

func TestDrawingWhatChangedIsDrawingTheWholeScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(1, 14).Draw(t, "cols"), rapid.IntRange(1, 5).Draw(t, "rows")
		source, user, m := screen.New(screen.Options{Cols: cols, Rows: rows}), newDrawn(cols, rows), newMeasure()
		var p picture
		var after uint64
		for range rapid.IntRange(1, 6).Draw(t, "pages") {
			_, _ = source.Write([]byte(program(t, cols, rows)))
			page := source.Page(after)
			after = page.Generation
			if err := p.apply(&page, m); err != nil {
				t.Fatal(err)
			}
			user.show(&p)
			want, got := source.Page(0), user.terminal.Page(0)
			if linesOf(want) != linesOf(got) {
				t.Fatalf("the terminal shows %s\nthe screen is     %s", linesOf(got), linesOf(want))
			}
			if (want.Cursor == nil) != (got.Cursor == nil) || want.Cursor != nil && *want.Cursor != *got.Cursor {
				t.Fatalf("the cursor is at %v, not %v", got.Cursor, want.Cursor)
			}
			if want.ApplicationCursor != got.ApplicationCursor || want.BracketedPaste != got.BracketedPaste {
				t.Fatalf("the modes are %+v, not those of %+v", user.terminal.Modes(), source.Modes())
			}
			if again := user.canvas.show(&p, true); len(again) != 0 {
				t.Fatalf("drawing the same again writes %q", again)
			}
		}
	})
}

// A terminal that is smaller shows the part with the cursor, and of a wide
// character that its edge cuts, a blank; one that is larger shows blanks beyond.
func TestTerminalOfAnotherSizeShowsAPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(1, 14).Draw(t, "cols"), rapid.IntRange(1, 6).Draw(t, "rows")
		userCols, userRows := rapid.IntRange(1, 14).Draw(t, "user's cols"), rapid.IntRange(1, 6).Draw(t, "user's rows")
		source, user, m := screen.New(screen.Options{Cols: cols, Rows: rows}), newDrawn(userCols, userRows), newMeasure()
		var p picture
		for range rapid.IntRange(1, 4).Draw(t, "pages") {
			_, _ = source.Write([]byte(program(t, cols, rows)))
			page := source.Page(0)
			page.Full = false
			if err := p.apply(&page, m); err != nil {
				t.Fatal(err)
			}
			user.show(&p)
			part := newDrawn(userCols, userRows) // a terminal of its own, drawn whole
			part.canvas.left, part.canvas.top = user.canvas.left, user.canvas.top
			part.show(&p)
			if got, want := linesOf(user.terminal.Page(0)), linesOf(part.terminal.Page(0)); got != want {
				t.Fatalf("the terminal shows %s\ndrawn anew it is   %s", got, want)
			}
			checkPart(t, source, user)
		}
	})
}

// checkPart compares cells, and the cursor, which must be seen.
func checkPart(t *rapid.T, source *screen.Screen, user *drawn) {
	m := newMeasure()
	want, got := source.Page(0), user.terminal.Page(0)
	for y, line := range got.Lines {
		have := layout(line.Spans, got.Cols, m)
		var whole []cell
		if at := y + user.canvas.top; at < want.Rows {
			whole = layout(want.Lines[at].Spans, want.Cols, m)
		}
		for x := range have {
			c := cellAt(whole, x+user.canvas.left)
			if c != have[x] && (x > 0 && x < got.Cols-1 || have[x] != (cell{" ", 1, c.style})) {
				t.Fatalf("row %d column %d shows %+v, not %+v", y, x, have[x], c)
			}
		}
	}
	if want.Cursor == nil {
		if got.Cursor != nil {
			t.Fatal("a hidden cursor is shown")
		}
		return
	}
	if got.Cursor == nil || got.Cursor[0]+user.canvas.top != want.Cursor[0] || got.Cursor[1]+user.canvas.left != want.Cursor[1] {
		t.Fatalf("the cursor is at %v of a window at %d, %d, not at %v", got.Cursor, user.canvas.top, user.canvas.left, want.Cursor)
	}
}

func TestDrawingWritesLittle(t *testing.T) {
	source, user, m := screen.New(screen.Options{Cols: 80, Rows: 24}), newDrawn(80, 24), newMeasure()
	var p picture
	after := uint64(0)
	bytes := func(program string) int {
		_, _ = source.Write([]byte(program))
		page := source.Page(after)
		after = page.Generation
		if err := p.apply(&page, m); err != nil {
			t.Fatal(err)
		}
		out := user.canvas.show(&p, true)
		_, _ = user.terminal.Write(out)
		if linesOf(source.Page(0)) != linesOf(user.terminal.Page(0)) {
			t.Fatalf("%q is not drawn by %q", program, out)
		}
		return len(out)
	}
	bytes("\x1b[2J\x1b[31m" + strings.Repeat("line of text ", 100) + "\x1b[5;10H")
	// The update's brackets and the cursor cost 28 bytes, a place 8, a style 7.
	for _, c := range []struct {
		what, program string
		most          int
	}{
		{"nothing", "\x1b[31m", 0},
		{"the cursor", "\x1b[6;6H", 6},
		{"a character", "\x1b[10;10Hx", 60},
		{"the same text", "\x1b[1;1Hline of text ", 30},
		{"a cleared row", "\x1b[3;1H\x1b[0m\x1b[K", 60},
		{"half a cleared row", "\x1b[4;41H\x1b[K", 60},
		{"two words near each other", "\x1b[31m\x1b[6;1HX\x1b[6;4HX", 65},
		{"a mode", "\x1b[?1h", 6},
		{"a row of Chinese", "\x1b[12;1H" + strings.Repeat("好", 40), 180},
	} {
		if n := bytes(c.program); n > c.most {
			t.Errorf("drawing %s takes %d bytes, more than %d", c.what, n, c.most)
		}
	}
}

// Terminals differ about the width of some characters. What is behind such a
// one is where it belongs all the same.
func TestCursorIsSentBehindCharactersOfDoubtfulWidth(t *testing.T) {
	for text, want := range map[string]string{
		"👍b":       "👍\x1b[3Gb",
		"❤\ufe0fb": "❤\ufe0f\x1b[2Gb",
		"e\u0301b": "e\u0301\x1b[2Gb",
		"✳b":       "✳\x1b[2Gb",
		"好한ー─é█b":  "好한ー─é█b",
	} {
		p := picture{cols: 20, rows: 1, lines: [][]cell{layout([]screen.Span{{Text: text}}, 20, newMeasure())}}
		if got := string(newCanvas(20, 1).show(&p, true)); !strings.Contains(got, want) {
			t.Errorf("%q is drawn as %q, without %q", text, got, want)
		}
	}
}

// What a tree says, on another machine perhaps, presses nothing and moves
// nothing on the user's terminal.
func TestNothingButTextReachesTheTerminal(t *testing.T) {
	hostile := "a\x1b[2Jb\a\x9b31mc\x00\r\nd\u202ee\u2066\x7f\u2028\u0085f"
	page := screen.Page{Cols: 40, Rows: 2, Full: true, Lines: []screen.Row{
		{Row: 0, Spans: []screen.Span{{Text: hostile}, {Text: "\u0301x"}}},
		{Row: 1, Spans: []screen.Span{{Text: "\u0301\u0302"}}},
		{Row: -1},
		{Row: 2},
	}}
	var p picture
	if err := p.apply(&page, newMeasure()); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, c := range p.lines[0] {
		text.WriteString(c.text)
	}
	got := strings.TrimRight(text.String(), " ")
	if want := "a\ufffd[2Jb\ufffd\ufffd31mc\ufffd\ufffd\ufffdde\ufffd\ufffd\ufffdf\u0301x"; got != want {
		t.Errorf("the cells hold %q\nnot            %q", got, want)
	}
	if got := p.lines[1][0].text; got != " \u0301\u0302" {
		t.Errorf("lone marks lie in %q", got)
	}
	if err := p.apply(&screen.Page{Cols: 100000, Rows: 100000}, newMeasure()); err == nil {
		t.Error("a screen of a hundred thousand rows is taken")
	}
}

func TestMarksOfACellAreBounded(t *testing.T) {
	cells := layout([]screen.Span{{Text: "a" + strings.Repeat("\u0301", 1000) + "b"}}, 4, newMeasure())
	if n := len(cells[0].text); n > maxMarks {
		t.Errorf("a cell holds %d bytes", n)
	}
	if cells[1].text != "b" {
		t.Errorf("behind it comes %q", cells[1].text)
	}
}

func TestWidthsAreThoseOfTheScreen(t *testing.T) {
	m := newMeasure()
	for r, want := range map[rune]int{'a': 1, 'é': 1, '好': 2, '\u0301': 0, '👍': 2, '─': 1, '\u200d': 0, '\ufe0f': 0, '가': 2, '\u1160': 0, '\u00ad': 1} {
		for range 2 {
			if got := m.of(r).width; got != want {
				t.Errorf("%U has width %d, not %d", r, got, want)
			}
		}
	}
	for r := rune(0x4e00); r < 0x4e00+2*maxKnown; r++ {
		m.of(r)
	}
	if len(m.known) > maxKnown {
		t.Errorf("%d characters are remembered", len(m.known))
	}
}

func BenchmarkFullScreen(b *testing.B) {
	source := screen.New(screen.Options{Cols: 120, Rows: 40})
	_, _ = source.Write([]byte(strings.Repeat("\x1b[32mword \x1b[mand 好 more ", 400)))
	page, m := source.Page(0), newMeasure()
	for b.Loop() {
		var p picture
		if err := p.apply(&page, m); err != nil {
			b.Fatal(err)
		}
		c := newCanvas(120, 40)
		c.show(&p, true)
	}
}

// fuzzPage draws a page with two texts on a terminal, and looks at what comes.
func fuzzPage(t *testing.T, one, two string, cols, rows, userCols, userRows int) {
	page := screen.Page{Cols: cols, Rows: rows, Full: true, Cursor: &[2]int{rows, cols}, Lines: []screen.Row{
		{Row: rows - 1, Spans: []screen.Span{{Text: one, Bold: true}, {Text: two}}},
	}}
	var p picture
	if p.apply(&page, newMeasure()) != nil {
		return
	}
	if last := p.lines[rows-1]; len(last) != cols {
		t.Fatalf("a row of %d columns has %d cells", cols, len(last))
	}
	out := string(newCanvas(userCols, userRows).show(&p, true))
	for _, s := range []string{beginUpdate, endUpdate, showCursor, hideCursor, "\x1b[0m", "\x1b[0;1m", "\x1b[K"} {
		out = strings.ReplaceAll(out, s, "")
	}
	out = regexp.MustCompile(`\x1b\[[0-9;]+[HG]`).ReplaceAllString(out, "")
	if i := strings.IndexFunc(out, unicode.IsControl); i >= 0 {
		t.Fatalf("%q holds a control character at %d", out, i)
	}
}
