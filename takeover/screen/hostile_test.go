package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hinshun/vt10x"
)

// hostileInputs are what a program could write to hang, break or bloat a
// terminal.
var hostileInputs = map[string]string{
	"huge counts":          hugeCounts("99999999999999999999"),
	"negative counts":      hugeCounts("-1"),
	"largest counts":       hugeCounts("9223372036854775807"),
	"40 SGR numbers":       "\x1b[" + strings.Repeat("1;", 39) + "1m",
	"1000 SGR numbers":     "\x1b[" + strings.Repeat("38;5;", 1000) + "m" + strings.Repeat("\x1b[38:2", 500) + "m",
	"endless OSC":          "\x1b]0;" + strings.Repeat("x", 1<<20),
	"endless DCS":          "\x1bPq" + strings.Repeat("x", 1<<20),
	"endless APC":          "\x1b_G" + strings.Repeat("x", 1<<20),
	"endless CSI":          "\x1b[" + strings.Repeat("1;", 1<<19),
	"endless escape":       "\x1b" + strings.Repeat("(", 1<<20),
	"half sequences":       strings.Repeat("\x1b[", 1000) + strings.Repeat("\x1b]", 1000) + strings.Repeat("\x1bP", 1000),
	"half characters":      strings.Repeat("\xf0\x9f\x98", 1000) + strings.Repeat("\xe4", 1000),
	"marks without end":    "e" + strings.Repeat("\u0301", 100_000),
	"marks without base":   strings.Repeat("\u0301", 100_000),
	"wide at every margin": strings.Repeat("好", 5000) + "\x1b[?7l" + strings.Repeat("好", 5000),
	"repeat a lot":         strings.Repeat("好\x1b[65535b", 20),
	"screens in turn":      strings.Repeat("\x1b[?1049h\x1b[?1049l", 500),
	"resets":               strings.Repeat("\x1bc", 500),
	"fill and clear":       strings.Repeat("\x1b#8\x1b[2J", 50),
	"margins of one row":   "\x1b[1;1r\x1b[5;5r\x1b[65535;65535r\x1b[2;1r" + strings.Repeat("\n", 100),
	"kitty pushes":         strings.Repeat("\x1b[>1u", 10_000) + "\x1b[<65535u",
	"title pushes":         strings.Repeat("\x1b]2;"+strings.Repeat("t", 2000)+"\x07\x1b[22t", 1000),
	"palette":              "\x1b]4;" + strings.Repeat("1;?;", 10_000) + "\x07",
	"updates in turn":      strings.Repeat("x\x1b[?2026h\x1b[?2026l", 2000),
	"all bytes":            allBytes(),
}

// hugeCounts gives a count to each control sequence that there can be.
func hugeCounts(n string) string {
	var b strings.Builder
	for final := byte(0x40); final < 0x7f; final++ {
		for _, prefix := range []string{"", "?", ">", "<", "="} {
			for _, inter := range []string{"", " ", "!", "$", "\""} {
				fmt.Fprintf(&b, "好a\x1b[%s%s;%s%s%c", prefix, n, n, inter, final)
			}
		}
	}
	return b.String()
}

func allBytes() string {
	random := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, 1<<18)
	for i := range b {
		b[i] = byte(random.Uint32())
		if random.IntN(8) == 0 {
			b[i] = 0x1b
		}
	}
	return string(b)
}

func TestHostileInput(t *testing.T) {
	for name, input := range hostileInputs {
		for _, size := range [][2]int{{1, 1}, {2, 1}, {1, 5}, {20, 6}, {MaxCols, MaxRows}} {
			t.Run(fmt.Sprintf("%s at %dx%d", name, size[0], size[1]), func(t *testing.T) {
				s := New(Options{Cols: size[0], Rows: size[1]})
				done := make(chan struct{})
				go func() {
					defer close(done)
					mustWrite(t, s, []byte(input))
					mustWrite(t, s, []byte("\x18\x1bcalive"))
				}()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Fatal("Write hangs")
				}
				st := s.State()
				if st.Faults != 0 {
					t.Errorf("the emulator below panicked %d times", st.Faults)
				}
				if size[0] >= 20 && rows(s)[0] != "alive" {
					t.Errorf("afterwards it shows %q", rows(s)[0])
				}
				if s.SVG() == "" || s.ANSI() == "" || len(s.Page(0).Lines) != size[1] {
					t.Error("it cannot be read")
				}
			})
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const bound = 48 << 20
	random := rand.New(rand.NewPCG(7, 8))
	for name, next := range map[string]func(b *bytes.Buffer){
		"styles": func(b *bytes.Buffer) {
			fmt.Fprintf(b, "\x1b[38;2;%d;%d;%dmx", random.IntN(256), random.IntN(256), random.IntN(256))
		},
		"clusters": func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%c%c%c", 'a'+random.IntN(26), 0x300+random.IntN(100), 0x300+random.IntN(100))
		},
		"lines":   func(b *bytes.Buffer) { fmt.Fprintf(b, "\x1b[%dm%s\r\n", 31+random.IntN(7), strings.Repeat("好", 200)) },
		"titles":  func(b *bytes.Buffer) { fmt.Fprintf(b, "\x1b]2;%s\x07\x1b[22t\x1b[c", strings.Repeat("t", 5000)) },
		"strings": func(b *bytes.Buffer) { b.WriteString("\x1b]9;" + strings.Repeat("x", 1<<15)) },
		"screens": func(b *bytes.Buffer) { b.WriteString("\x1b[?1049hx\x1b[?1049l") },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			s := New(Options{Cols: 200, Rows: 60})
			var b bytes.Buffer
			for range 60 {
				for b.Reset(); b.Len() < 32<<10; {
					next(&b)
				}
				mustWrite(t, s, b.Bytes())
			}
			if grown := heap() - before; grown > bound {
				t.Errorf("2 MiB of %s take %d KiB", name, grown>>10)
			} else {
				t.Logf("%d KiB", grown>>10)
			}
			runtime.KeepAlive(s)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTablesForgetWhatNoCellHas(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 2})
	for i := range 20_000 {
		mustWrite(t, s, fmt.Appendf(nil, "\r\x1b[38;2;%d;%d;1me%c%c", i>>8, i&0xff, 0x300+i%100, 0x300+i/100%60))
	}
	p := s.t.pool
	if n, c := len(p.styles.entries), len(p.clusters.entries); n > minTable || c > minTable {
		t.Errorf("%d styles and %d clusters are kept", n, c)
	}
	c := s.frame().lines[0].cells[0]
	if r, g, b, _ := c.style.FG.Direct(); int(r)<<8|int(g) != 19_999 || b != 1 {
		t.Errorf("the last style is %d %d %d", r, g, b)
	}
}

func TestFullTableRefusesAndRecovers(t *testing.T) {
	tab, used := newTable[int](minTable), true
	sweeps := 0
	sweep := func() {
		sweeps++
		all := make([]bool, len(tab.entries))
		for i := range all {
			all[i] = used
		}
		tab.keep(all)
	}
	for i := range 2 * minTable {
		if _, ok := tab.id(i, sweep); ok != (i < minTable) {
			t.Fatalf("value %d: taken is %v", i, ok)
		}
	}
	if sweeps > 9 {
		t.Errorf("a full table was swept %d times", sweeps)
	}
	used = false
	for i := range minTable {
		tab.id(i+10*minTable, sweep)
	}
	if id, ok := tab.id(-1, sweep); !ok || tab.entries[id] != -1 {
		t.Errorf("the table did not recover: %d %v", id, ok)
	}
}

// brittle is a vt10x that panics at the next write.
type brittle struct{ vt10x.Terminal }

func (brittle) Write([]byte) (int, error) { panic("out of range") }

func TestPanicOfTheEmulatorBelowIsSurvived(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 3})
	mustWrite(t, s, []byte("\x1b[31mkept 好\x1b[m\r\n"))
	_ = s.Text()
	g := s.t.main.cells.(*vtGrid)
	g.term = brittle{g.term}
	mustWrite(t, s, []byte("lost\r\n"))
	_ = s.Text()
	mustWrite(t, s, []byte("after"))
	if got := rows(s); got[0] != "kept 好" || got[2] != "after" {
		t.Errorf("got %q", got)
	}
	if st := s.State(); st.Faults != 1 {
		t.Errorf("%d faults are counted", st.Faults)
	}
	if c := s.frame().lines[0].cells[0]; c.style.FG != Index(1) {
		t.Errorf("the style is %+v", c.style)
	}
}
