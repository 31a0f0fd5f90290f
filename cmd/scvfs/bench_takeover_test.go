package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/takeover/screen"
)

// benchPlain and benchRecorded are how much is written to a terminal in a
// round: plain lines, and an agent's terminal again and again.
const (
	benchPlain    = 4 << 20
	benchRecorded = 1 << 20
)

// BenchmarkTakeover is a takeover of a shell, by its files, beside a window of
// tmux with a shell in it, by its commands.
func BenchmarkTakeover(b *testing.B) {
	w := taken(b, fmt.Sprintf("[limits]\nscrollback = %d\n", benchHistory))
	for _, c := range []struct {
		name  string
		bench func(*testing.B, *world, *filesTerminal, *tmuxServer)
	}{{"input", benchInput}, {"read", benchScreenReads}, {"output", benchOutput}} {
		b.Run(c.name, func(b *testing.B) {
			tmux, ours := w.tmux(b), w.takeover(b)
			c.bench(b, w, ours, tmux)
		})
	}
}

// benchInput is how long after a key began to be typed a reader, which reads
// the screen in a loop, sees what the program draws for it.
func benchInput(b *testing.B, _ *world, ours *filesTerminal, tmux *tmuxServer) {
	for _, t := range []benchTerminal{ours, tmux} {
		t.types("PS1=; stty -icanon -echo; printf 'ready''\\n'; cat\r")
		awaitShown(b, t, "ready\n")
	}
	round := 0
	next := func(b *testing.B, t benchTerminal) time.Duration { round++; return keyTime(b, t, round) }
	b.Run("takeover-key", func(b *testing.B) {
		duel(b, "takeover-key", func() time.Duration { return next(b, ours) }, func() time.Duration { return next(b, tmux) })
	})
	b.Run("takeover-key-kept", func(b *testing.B) {
		kept, control := ours.keep(b, "screen"), tmux.control(b)
		duel(b, "takeover-key-kept", func() time.Duration { return next(b, kept) }, func() time.Duration { return next(b, control) })
	})
}

// keyTime types a line key by key and returns what one typically took.
func keyTime(b *testing.B, t benchTerminal, round int) time.Duration {
	typed := fmt.Sprintf("%d:", round)
	t.types(typed)
	awaitShown(b, t, typed)
	var took []float64
	for _, key := range "each-key-by-itself" {
		typed += string(key)
		begin := time.Now()
		t.types(string(key))
		for !strings.Contains(t.shows(), typed) {
			if time.Since(begin) > patience {
				b.Fatalf("%q is not shown:\n%s", typed, t.shows())
			}
		}
		took = append(took, float64(time.Since(begin)))
	}
	t.types("\r")
	return time.Duration(median(took))
}

// benchScreenReads is what one look at a full screen takes: the time of who
// looks, and the processor's time of who answers.
func benchScreenReads(b *testing.B, w *world, ours *filesTerminal, tmux *tmuxServer) {
	page := filepath.Join(w.dir, "page")
	if err := os.WriteFile(page, colouredPage(), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, t := range []benchTerminal{ours, tmux} {
		t.types("cat " + page + "\r")
		awaitShown(b, t, "the last row")
	}
	control := tmux.control(b)
	for _, c := range []struct {
		name         string
		ours, beside func() string
	}{
		{"takeover-read", ours.shows, tmux.shows},
		{"takeover-read-kept", ours.keep(b, "screen").shows, control.shows},
		{"takeover-read-ansi-kept", ours.keep(b, "screen.ansi").shows, func() string { return control.do("capture-pane -p -e -t a") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			wall := &pair{name: c.name, show: showTime}
			cpu := &pair{name: c.name + "-cpu", show: showTime}
			for b.Loop() {
				wallTime, cpuTime := lookTime(b, w.pid(), c.ours)
				wall.ours, cpu.ours = append(wall.ours, wallTime), append(cpu.ours, cpuTime)
				wallTime, cpuTime = lookTime(b, tmux.pid, c.beside)
				wall.beside, cpu.beside = append(wall.beside, wallTime), append(cpu.beside, cpuTime)
			}
			wall.report(b)
			cpu.report(b)
		})
	}
}

// lookTime is what one look takes of the clock, and of the processor in the
// process that answers.
func lookTime(b *testing.B, server int, look func() string) (wall, cpu float64) {
	b.Helper()
	const count = 100
	was, begin := cpuTime(b, server), time.Now()
	for range count {
		if !strings.Contains(look(), "last row") {
			b.Fatal("the screen is not there")
		}
	}
	wall = float64(time.Since(begin))
	return wall / count, (cpuTime(b, server) - was) / count
}

// colouredPage fills a terminal with text in a few colours.
func colouredPage() []byte {
	var page strings.Builder
	page.WriteString("\x1b[H\x1b[2J")
	for row := range benchRows - 2 {
		fmt.Fprintf(&page, "\x1b[32mrow %2d\x1b[0m of a screen, with \x1b[1mbold\x1b[0m and \x1b[38;5;%dmcolours\x1b[0m, as long as most of a row of it may be\n", row, row*6)
	}
	page.WriteString("the last row\n")
	return []byte(page.String())
}

// cpuTime is the processor's time that a process has had, in nanoseconds.
func cpuTime(b *testing.B, pid int) float64 {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Skipf("the kernel does not tell the time of process %d (%v)", pid, err)
	}
	var total float64
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		var ns, waited, slices float64
		if _, err := fmt.Sscan(string(text), &ns, &waited, &slices); err != nil {
			b.Fatalf("%s: %v", path, err)
		}
		total += ns
	}
	return total
}

// benchOutput is how fast a program can write to the terminal: all the way
// through the pseudo-terminal, and into our screen alone.
func benchOutput(b *testing.B, w *world, ours *filesTerminal, tmux *tmuxServer) {
	streams := []benchStream{{"plain", plainLines(benchPlain)}}
	streams = append(streams, recordedStreams(b)...)
	for _, s := range streams {
		path := filepath.Join(w.dir, s.name)
		if err := os.WriteFile(path, s.text, 0o600); err != nil {
			b.Fatal(err)
		}
		name := "takeover-" + s.name
		b.Run(name, func(b *testing.B) {
			show := func(ns float64) string { return digits(float64(len(s.text))*1e3/ns) + " MB/s" }
			whole := &pair{name: name, show: show}
			model := &pair{name: "screen-" + s.name, show: show}
			whole.alternate(b, func() float64 {
				model.ours = append(model.ours, intoScreen(s.text))
				return flood(b, ours, path)
			}, func() float64 { return flood(b, tmux, path) })
			model.beside = whole.beside
			model.report(b)
		})
	}
}

type benchStream struct {
	name string
	text []byte
}

// plainLines is a log without any colours.
func plainLines(size int) []byte {
	var text bytes.Buffer
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, "2026-11-29T12:00:%02d.%03dZ info worker %d took %d ms for /api/v1/items/%d\r\n", i%60, i%1000, i%8, i%97, i)
	}
	return text.Bytes()
}

// recordedStreams are the recorded terminals of the folder beside the
// repository; none without it.
func recordedStreams(b *testing.B) []benchStream {
	paths, err := filepath.Glob("../../../shared/fixtures/*/tui-120x40.raw")
	if err != nil || len(paths) == 0 {
		b.Log("recorded terminals are left out: shared/fixtures is not here")
		return nil
	}
	var streams []benchStream
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if len(raw) == 0 {
			b.Fatalf("%s is empty", path)
		}
		streams = append(streams, benchStream{filepath.Base(filepath.Dir(path)), bytes.Repeat(raw, 1+benchRecorded/len(raw))})
	}
	return streams
}

// intoScreen is how long our screen takes for what a program writes.
func intoScreen(text []byte) float64 {
	s := screen.New(screen.Options{Cols: benchCols, Rows: benchRows, Scrollback: benchHistory})
	begin := time.Now()
	for rest := text; len(rest) > 0; {
		n := min(len(rest), 4<<10) // what a terminal hands over at once
		_, _ = s.Write(rest[:n])
		s.Replies()
		rest = rest[n:]
	}
	return float64(time.Since(begin))
}

// flood has a worker in the terminal's shell write a file to it, and returns
// how long that took until the terminal had taken all of it.
func flood(b *testing.B, t benchTerminal, path string) float64 {
	b.Helper()
	answer := path + ".took"
	if err := os.Remove(answer); err != nil && !errors.Is(err, os.ErrNotExist) {
		b.Fatal(err)
	}
	t.types(fmt.Sprintf("%s='%s' %s\r", workerVariable, workerTask("flood", 0, path), workerCommand(b, "flood", 0, path).Path))
	var took float64
	await(b, "the end of "+path, func() bool {
		text, err := os.ReadFile(answer)
		if err != nil {
			return false
		}
		if took, err = strconv.ParseFloat(string(text), 64); err != nil {
			b.Fatalf("the worker in the terminal: %s", text)
		}
		return true
	})
	return took
}

// floodEnd asks, at a place of its own, where the cursor is; floodAnswer says
// that all before it is on the screen. What a recording turned on ends there.
const (
	floodEnd    = "\x1b[?2026l\x1b[?6l\x1b[r\x1b[7;33H\x1b[6n"
	floodAnswer = "\x1b[7;33R"
)

// workAtFlooding writes a file to its terminal, waits until that has taken it,
// and leaves the nanoseconds, or what went wrong, in the file path.took.
func workAtFlooding(_ int, path string) error {
	took, err := floodTerminal(path)
	text := strconv.FormatInt(took.Nanoseconds(), 10)
	if err != nil {
		text = err.Error()
	}
	return errors.Join(err, os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path+".took"))
}

func floodTerminal(path string) (time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	was, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return 0, err
	}
	raw := *was
	raw.Iflag, raw.Oflag, raw.Lflag = 0, 0, 0
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(0, unix.TCSETS, &raw); err != nil {
		return 0, err
	}
	taken := make(chan error, 1)
	begin := time.Now()
	go func() { taken <- awaitAnswer() }() // answers to a recording's own questions come meanwhile
	if _, err := os.Stdout.Write(append(text, floodEnd...)); err != nil {
		return 0, err
	}
	err = <-taken
	took := time.Since(begin)
	_, leave := os.Stdout.WriteString("\x1bc")
	return took, errors.Join(err, leave, unix.IoctlSetTermios(0, unix.TCSETS, was))
}

func awaitAnswer() error {
	var got []byte
	buf := make([]byte, 4<<10)
	for !bytes.HasSuffix(got, []byte(floodAnswer)) {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return fmt.Errorf("the terminal: %w", err)
		}
		got = append(got[max(0, len(got)-len(floodAnswer)):], buf[:n]...)
	}
	return nil
}
