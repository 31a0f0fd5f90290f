package screen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// plainLog is about 1 MiB of ASCII lines.
func plainLog() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "2026-11-29T12:00:%02d.%03dZ info worker %d took %d ms for /api/v1/items/%d\r\n", i%60, i%1000, i%8, i%97, i)
	}
	return b.Bytes()
}

// mixedLog is about 1 MiB of coloured lines with wide characters.
func mixedLog() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "\x1b[32m✓\x1b[0m 测试 %d \x1b[2mpassed in\x1b[22m \x1b[38;5;%dm%d ms\x1b[0m\r\n", i, i%256, i%97)
	}
	return b.Bytes()
}

func benchWrite(b *testing.B, data []byte) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s := New(Options{Cols: 120, Rows: 40})
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 4<<10)
			mustWrite(b, s, rest[:n])
			rest = rest[n:]
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchWrite(b, plainLog()) })
	b.Run("mixed", func(b *testing.B) { benchWrite(b, mixedLog()) })
	for _, name := range []string{"claude", "codex", "gemini", "opencode", "pi"} {
		b.Run(name, func(b *testing.B) {
			path := sharedFile(b, "fixtures", name, "tui-120x40.raw")
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			benchWrite(b, bytes.Repeat(data, 1+(1<<19)/len(data)))
		})
	}
}

func BenchmarkRead(b *testing.B) {
	path := sharedFile(b, "fixtures", "claude", "tui-120x40.raw")
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{Cols: 120, Rows: 40})
	mustWrite(b, s, data[:len(data)/2])
	for name, read := range map[string]func(){
		"Text": func() { _ = s.Text() }, "ANSI": func() { _ = s.ANSI() },
		"SVG": func() { _ = s.SVG() }, "Page": func() { _ = s.Page(0) },
		"changed": func() { mustWrite(b, s, []byte("\x1b[Hx")); _ = s.Text(); mustWrite(b, s, []byte("\x1b[Hy")) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
		})
	}
	_ = filepath.Base(path)
}
