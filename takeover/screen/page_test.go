package screen

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPageHasTheNamesOfTheProtocol(t *testing.T) {
	s := New(Options{Cols: 12, Rows: 2})
	mustWrite(t, s, []byte("\x1b[?1h\x1b[?2004h\x1b[1;31mab\x1b[22;38;2;1;2;3;48;5;200;3;4;7m好\x1b[0mz"))
	got, err := json.Marshal(s.Page(0))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"generation":2,"cols":12,"rows":2,"lines":[{"row":0,"spans":[` +
		`{"text":"ab","fg":{"Index":1},"bold":true,"italic":false,"underline":false,"inverse":false},` +
		`{"text":"好","fg":{"Rgb":[1,2,3]},"bg":{"Index":200},"bold":false,"italic":true,"underline":true,"inverse":true},` +
		`{"text":"z","bold":false,"italic":false,"underline":false,"inverse":false}]},` +
		`{"row":1,"spans":[]}],"full":true,"cursor":[0,5],"application_cursor":true,"bracketed_paste":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back Page
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != want {
		t.Errorf("read back: %s", again)
	}
	mustWrite(t, s, []byte("\x1b[?25l"))
	if hidden, _ := json.Marshal(s.Page(2)); strings.Contains(string(hidden), "cursor\":[") {
		t.Errorf("a hidden cursor is in the page: %s", hidden)
	}
}

func TestPageHoldsOnlyTheRowsThatChanged(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	mustWrite(t, s, []byte("one\r\ntwo\r\nthree"))
	first := s.Page(0)
	if !first.Full || len(first.Lines) != 6 {
		t.Fatalf("the first page is not full: %+v", first)
	}
	if p := s.Page(first.Generation); p.Full || len(p.Lines) != 0 || p.Generation != first.Generation {
		t.Errorf("nothing changed, but the page is %+v", p)
	}
	mustWrite(t, s, []byte("\x1b[2;1Htwo\x1b[3;6H")) // the same text again
	if p := s.Page(first.Generation); len(p.Lines) != 0 {
		t.Errorf("a row was drawn as it was, but the page holds %+v", p.Lines)
	}
	mustWrite(t, s, []byte("\x1b[2;1HTWO"))
	p := s.Page(first.Generation)
	if p.Full || len(p.Lines) != 1 || p.Lines[0].Row != 1 || p.Lines[0].Spans[0].Text != "TWO" {
		t.Errorf("row 1 changed, but the page is %+v", p)
	}
	if p := s.Page(p.Generation + 100); !p.Full {
		t.Errorf("a generation of the future got %+v", p)
	}
	if err := s.Resize(20, 5); err != nil {
		t.Fatal(err)
	}
	if p := s.Page(p.Generation); !p.Full || p.Rows != 5 {
		t.Errorf("after a change of size: %+v", p)
	}
}

func TestGenerationMovesWithWhatCanBeSeenOnly(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	if g := s.Generation(); g != 1 {
		t.Errorf("a new screen has generation %d", g)
	}
	for _, c := range []struct {
		input string
		moves bool
	}{
		{"a", true},
		{"", false},
		{"\x1b[m", false},
		{"\x1b[31m", false},
		{"\x1b[m\ra", false},
		{"\x1b[c", false},
		{"\x1b[5C", true},
		{"\x1b[?25l", true},
		{"\x1b[?25l", false},
		{"\x1b]2;t\x07", true},
		{"\x1b]2;t\x07", false},
		{"\x1b[?2004h", true},
		{"\x1b[?2026h", false},
		{"b", false},
		{"\x1b[?2026l", true},
		{"\x1b]7501;state=idle\x07", false},
	} {
		before := s.Generation()
		mustWrite(t, s, []byte(c.input))
		if moved := s.Generation() != before; moved != c.moves {
			t.Errorf("%q: the generation moved: %v", c.input, moved)
		}
	}
}

// client draws pages as a client of the protocol does.
type client struct {
	gen  uint64
	rows []Row
}

func (c *client) draw(p Page) {
	if p.Full {
		c.rows = make([]Row, p.Rows)
	}
	for _, r := range p.Lines {
		c.rows[r.Row] = r
	}
	c.gen = p.Generation
}

func TestClientThatFollowsPagesSeesTheScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{Cols: rapid.IntRange(1, 12).Draw(t, "cols"), Rows: rapid.IntRange(1, 5).Draw(t, "rows")})
		var c client
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			_, _ = s.Write([]byte(drawProgram(t)))
			if rapid.IntRange(0, 9).Draw(t, "resize") == 0 {
				_ = s.Resize(rapid.IntRange(1, 12).Draw(t, "cols"), rapid.IntRange(1, 5).Draw(t, "rows"))
			}
			c.draw(s.Page(c.gen))
			want, _ := json.Marshal(s.Page(0).Lines)
			if got, _ := json.Marshal(c.rows); string(got) != string(want) {
				t.Fatalf("the client has %s\nthe screen is %s", got, want)
			}
		}
	})
}

func TestANSIDrawsTheSameCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(2, 12).Draw(t, "cols"), rapid.IntRange(1, 5).Draw(t, "rows")
		s, again := New(Options{Cols: cols, Rows: rows}), New(Options{Cols: cols, Rows: rows})
		_, _ = s.Write([]byte(drawProgram(t)))
		s.Expire(s.Held())
		out := s.ANSI()
		for _, r := range out {
			if r != '\n' && r != '\x1b' && !printable(r) {
				t.Fatalf("%q holds %U", out, r)
			}
		}
		_, _ = again.Write([]byte(strings.ReplaceAll(strings.TrimSuffix(out, "\n"), "\n", "\r\n")))
		want, got := s.frame(), again.frame()
		for y := range rows {
			for x := range cols {
				a, b := want.lines[y].cells[x], got.lines[y].cells[x]
				if a.r != b.r || a.rest != b.rest || a.width != b.width || *a.style != *b.style {
					t.Fatalf("row %d column %d: %q is drawn as %+v %+v, was %+v %+v", y, x, out, b, *b.style, a, *a.style)
				}
			}
		}
	})
}

func TestSVGIsWellFormedAndHoldsNoControls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{Cols: 12, Rows: 4})
		_, _ = s.Write([]byte("\x1b]2;<&\"title\x07" + drawProgram(t)))
		svg := s.SVG()
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
		if strings.ContainsFunc(svg, func(r rune) bool { return r != '\n' && !printable(r) }) {
			t.Fatalf("a control in %q", svg)
		}
	})
}

func TestSVGShowsColoursAndCursor(t *testing.T) {
	s := New(Options{Cols: 12, Rows: 2})
	mustWrite(t, s, []byte("\x1b[1;31mred<\x1b[0m\x1b[42m \x1b[0m┌█\x1b[8mhid\x1b[0m好"))
	svg := s.SVG()
	for _, want := range []string{
		`font-weight="bold" textLength="36">red&lt;</text>`, `fill="#cd3131"`,
		`<rect x="36" y="0" width="9" height="20" fill="#0dbc79"/>`, `<path fill="#d8d8d8" d="M`, `text-anchor="middle">好</text>`,
		`<rect x="99" y="0" width="9" height="20" fill="#d8d8d8" fill-opacity="0.5"/>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "hid") {
		t.Error("hidden text is drawn")
	}
	mustWrite(t, s, []byte("\x1b[?25l"))
	if strings.Contains(s.SVG(), "fill-opacity") {
		t.Error("a hidden cursor is drawn")
	}
}
