package screen

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

func TestCutsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		program := []byte(drawProgram(t))
		o := Options{Cols: rapid.IntRange(1, 25).Draw(t, "cols"), Rows: rapid.IntRange(1, 6).Draw(t, "rows"), Scrollback: 5}
		whole, cut := New(o), New(o)
		_, _ = whole.Write(program)
		for rest := program; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = cut.Write(rest[:n])
			if rapid.Bool().Draw(t, "read") {
				_ = cut.Text()
			}
			rest = rest[n:]
		}
		if a, b := shown(whole), shown(cut); a != b {
			t.Fatalf("%q\nwhole: %s\ncut:   %s", program, a, b)
		}
	})
}

func FuzzCuts(f *testing.F) {
	f.Add([]byte("a\x1b[2;3H\xe5\xa5\xbd\x1b[31mb\x1b]2;t\x07"), uint16(20), uint16(6), uint8(3), uint8(1))
	f.Add([]byte("\x1b[999999999999I\x1b[-1P\x1b[?1049h\x1b[?2026hx\x1b[5S"), uint16(1), uint16(1), uint8(1), uint8(2))
	f.Add([]byte("\x1bPtmux;\x1b\x1b]2;t\x07\x1b\\\x1b_G\x1b\\\xf0\x9f\x98\x80\xcc\x81\x1b[2147483647b"), uint16(500), uint16(200), uint8(7), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, cols, rows uint16, step, sizes uint8) {
		o := Options{Cols: 1 + int(cols)%60, Rows: 1 + int(rows)%30, Scrollback: 20}
		whole, cut := New(o), New(o)
		at := 0
		for part := range int(sizes)%3 + 1 {
			end := len(data)
			if part < int(sizes)%3 {
				end = min(at+len(data)/3, end)
			}
			mustWrite(t, whole, data[at:end])
			for at < end {
				n := min(1+int(step), end-at)
				mustWrite(t, cut, data[at:at+n])
				at += n
			}
			for _, s := range []*Screen{whole, cut} {
				if err := s.Resize(1+(o.Cols*(part+3))%41, 1+(o.Rows*(part+5))%23); err != nil {
					t.Fatal(err)
				}
			}
		}
		a, b := shown(whole), shown(cut)
		if a != b {
			t.Fatalf("whole: %s\ncut:   %s", a, b)
		}
		if n := whole.State().Faults; n != 0 {
			t.Fatalf("the emulator below panicked %d times", n)
		}
		for _, r := range whole.Text() {
			if r != '\n' && !printable(r) {
				t.Fatalf("%U in %q", r, whole.Text())
			}
		}
	})
}

func FuzzTokenizer(f *testing.F) {
	f.Add([]byte("\x1b[1;2:3?4 mé\x1b]0;x\x1b\\\x9b\xc2\x9b1A"), uint8(1))
	f.Add([]byte("\xe4\xbd\x1b[\xe4\xbd\xa0"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		var whole, cut recorder
		var a, b tokenizer
		if n := a.write(data, &whole); n != len(data) {
			t.Fatalf("%d of %d bytes were read", n, len(data))
		}
		for rest := data; len(rest) > 0; {
			n := min(1+int(step)%9, len(rest))
			b.write(rest[:n], &cut)
			rest = rest[n:]
		}
		if whole.String() != cut.String() {
			t.Fatalf("whole: %s\ncut:   %s", whole.String(), cut.String())
		}
	})
}

// recorder is a sink that writes down what it is given.
type recorder struct{ strings.Builder }

var _ sink = (*recorder)(nil)

func (r *recorder) ascii(text []byte) {
	for _, b := range text {
		fmt.Fprintf(r, "char %q\n", rune(b))
	}
}
func (r *recorder) char(c rune)          { fmt.Fprintf(r, "char %q\n", c) }
func (r *recorder) control(c rune)       { fmt.Fprintf(r, "control %q\n", c) }
func (r *recorder) escape(q *sequence)   { fmt.Fprintf(r, "escape %q\n", q.kind()) }
func (r *recorder) csi(q *sequence)      { fmt.Fprintf(r, "csi %q %v\n", q.kind(), q.params) }
func (r *recorder) osc(d []byte, b bool) { fmt.Fprintf(r, "osc %q %v\n", d, b) }
func (r *recorder) dcs(q *sequence, d []byte) {
	fmt.Fprintf(r, "dcs %q %v %q\n", q.kind(), q.params, d)
}
func (r *recorder) full() bool { return false }

func TestTokenizer(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{"\x1b[1;;3m", `csi "m" [{1 false} {-1 false} {3 false}]`},
		{"\x1b[4:3m", `csi "m" [{4 false} {3 true}]`},
		{"\x1b[;5H", `csi "H" [{-1 false} {5 false}]`},
		{"\x1b[?25h", `csi "?h" [{25 false}]`},
		{"\x1b[!p", `csi "!p" []`},
		{"\x1b[99999999999999999999m", `csi "m" [{65535 false}]`},
		{"\x1b(0", `escape "(0"`},
		{"\x1b]2;a;b\x07", `osc "2;a;b" true`},
		{"\x1b]2;a\x1b\\", "osc \"2;a\" false\nescape \"\\\\\""},
		{"\x1bP1$qm\x1b\\", "dcs \"$q\" [{1 false}] \"m\"\nescape \"\\\\\""},
		{"\x1b[2\x18a", "char 'a'"},
		{"\x1b[ !\"#m", ""},
		{"\x1b[1\xc3\xa92m", "char '2'\nchar 'm'"},
		{"\x1b]2;" + strings.Repeat("a", maxOSC+1) + "\x07b", "char 'b'"},
		{"\x1bP" + "q" + strings.Repeat("a", maxDCS+1) + "\x1b\\b", "escape \"\\\\\"\nchar 'b'"},
		{"\xff\xc0\xaf\xed\xa0\x80a", "char 'a'"},
		{"\xef\xbf\xbd", "char '\ufffd'"},
	} {
		var r recorder
		var tok tokenizer
		tok.write([]byte(c.input), &r)
		if got := strings.TrimSuffix(r.String(), "\n"); got != c.want {
			t.Errorf("%.60q: got %s, want %s", c.input, got, c.want)
		}
	}
}

func TestSynchronizedUpdateShowsTheFrameBefore(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 3})
	mustWrite(t, s, []byte("before\x1b[?2026h\x1b[2J\x1b[Hhalf"))
	if s.Held() == 0 {
		t.Fatal("the update is not held")
	}
	if got := rows(s)[0]; got != "before" {
		t.Errorf("in the update readers see %q", got)
	}
	if st := s.State(); st.Col != 6 || !st.Modes.Synchronized {
		t.Errorf("in the update the state is %+v", st)
	}
	mustWrite(t, s, []byte("\x1b[2;1Hwhole\x1b[?2026l"))
	if got := s.Text(); got != "half\nwhole\n\n" || s.Held() != 0 {
		t.Errorf("after the update readers see %q", got)
	}
}

func TestSynchronizedUpdateExpires(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 3})
	mustWrite(t, s, []byte("a\x1b[?2026hb"))
	first := s.Held()
	s.Expire(first + 1)
	if got := rows(s)[0]; got != "a" {
		t.Errorf("another update's end showed %q", got)
	}
	s.Expire(first)
	if got := rows(s)[0]; got != "ab" {
		t.Errorf("after it expired readers see %q", got)
	}
	mustWrite(t, s, []byte("\x1b[?2026hc"))
	if got := rows(s)[0]; got != "abc" || s.Held() != 0 {
		t.Errorf("an update that began twice hides again: %q", got)
	}
	mustWrite(t, s, []byte("\x1b[?2026l\x1b[?2026hd"))
	if got := rows(s)[0]; got != "abc" || s.Held() == first {
		t.Errorf("the next update does not hide: %q", got)
	}
	s.Expire(first)
	if got := rows(s)[0]; got != "abc" {
		t.Errorf("the end of an old update showed %q", got)
	}
	if err := s.Resize(10, 3); err != nil {
		t.Fatal(err)
	}
	if got := rows(s)[0]; got != "abcd" {
		t.Errorf("after a change of size readers see %q", got)
	}
}

func TestScrollbackDoesNotRunAheadOfTheFrame(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 2})
	mustWrite(t, s, []byte("1\r\n2\r\n3\x1b[?2026h\r\n4\r\n5"))
	if got := fmt.Sprint(s.Scrollback(), rows(s)); got != "[1] [2 3]" {
		t.Errorf("in an update: %s", got)
	}
	mustWrite(t, s, []byte("\x1b[?2026l"))
	if got := fmt.Sprint(s.Scrollback(), rows(s)); got != "[1 2 3] [4 5]" {
		t.Errorf("after it: %s", got)
	}
}

func TestScrollbackKeepsTheNewestLines(t *testing.T) {
	for limit, want := range map[int]int{0: DefaultScrollback, 7: 7, -1: 0} {
		s := New(Options{Cols: 20, Rows: 2, Scrollback: limit})
		for i := range 2*DefaultScrollback + 1 {
			mustWrite(t, s, fmt.Appendf(nil, "line %d\r\n", i))
		}
		got := s.Scrollback()
		if len(got) != want {
			t.Fatalf("limit %d: %d lines, want %d", limit, len(got), want)
		}
		for i, l := range got {
			if n := 2*DefaultScrollback - want + i; l != fmt.Sprintf("line %d", n) {
				t.Fatalf("limit %d: line %d is %q, want line %d", limit, i, l, n)
			}
		}
	}
}

func TestResizeRefusesImpossibleSizes(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	mustWrite(t, s, []byte("kept"))
	for _, size := range [][2]int{{0, 5}, {5, 0}, {-1, -1}, {MaxCols + 1, 5}, {5, MaxRows + 1}} {
		if err := s.Resize(size[0], size[1]); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v", size, err)
		}
	}
	if got := rows(s); len(got) != 6 || got[0] != "kept" {
		t.Errorf("a refused size changed the screen: %q", got)
	}
	if st := New(Options{Cols: -3, Rows: 1 << 20}).State(); st.Cols != 1 || st.Rows != MaxRows {
		t.Errorf("New took %dx%d", st.Cols, st.Rows)
	}
}

func TestOneWriterAndManyReaders(t *testing.T) {
	s := New(Options{Cols: 40, Rows: 10})
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var c client
			for last := uint64(0); !done.Load(); {
				p := s.Page(c.gen)
				c.draw(p)
				if p.Generation < last {
					t.Errorf("the generation went from %d to %d", last, p.Generation)
				}
				last = p.Generation
				_, _, _, _, _ = s.Text(), s.ANSI(), s.SVG(), s.Scrollback(), s.Replies()
				s.Expire(s.Held())
			}
		})
	}
	for i := range 200 {
		mustWrite(t, s, fmt.Appendf(nil, "\x1b[?2026h\x1b[3%dmline %d 好\x1b[?2026l\r\n\x1b[6n", i%8, i))
		if i%20 == 0 {
			if err := s.Resize(30+i%15, 5+i%7); err != nil {
				t.Fatal(err)
			}
		}
	}
	done.Store(true)
	readers.Wait()
	if got := s.Text(); !strings.Contains(got, "line 199 好") {
		t.Errorf("the last line is missing: %q", got)
	}
}

func TestWriteTakesAllOfALongInput(t *testing.T) {
	s := New(Options{Cols: MaxCols, Rows: MaxRows})
	// Each of these is more work than one turn of Write does.
	mustWrite(t, s, append(bytes.Repeat([]byte("\x1b#8\x1b[2J"), 20), "end"...))
	if got := rows(s)[0]; got != "end" {
		t.Errorf("got %q", got)
	}
}
