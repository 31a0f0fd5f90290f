package takeover

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

// read reads exactly n bytes of what was typed.
func read(t testing.TB, slave *os.File, n int) string {
	t.Helper()
	b := make([]byte, n)
	if got, err := io.ReadFull(slave, b); err != nil {
		t.Fatalf("of %d bytes %q came: %v", n, b[:got], err)
	}
	return string(b)
}

// write plays the program's output.
func write(t testing.TB, slave *os.File, text string) {
	t.Helper()
	if _, err := slave.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestHoldIsTakenFromWhoHadIt(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{})
	if term.Holder() != "" {
		t.Errorf("%q holds a new terminal", term.Holder())
	}
	first := term.Hold("alice on pts/3")
	if _, err := first.Write(t.Context(), []byte("one")); err != nil {
		t.Error(err)
	}
	second := term.Hold("bob over ssh")
	closes(t, first.Lost(), "the first hold is lost")
	for what, err := range map[string]error{
		"write":  must(first.Write(t.Context(), []byte("stale"))),
		"key":    first.Key(t.Context(), "up"),
		"paste":  first.Paste(t.Context(), "stale"),
		"empty":  first.Paste(t.Context(), "\x1b"),
		"resize": first.Resize(Size{90, 30}),
	} {
		if !fault.Is(err, fault.Gone) || !strings.Contains(err.Error(), "bob over ssh") {
			t.Errorf("a stale %s: %v", what, err)
		}
	}
	first.Release() // of what it has no more
	if _, err := second.Write(t.Context(), []byte("two")); err != nil || term.Holder() != "bob over ssh" {
		t.Errorf("%q has it: %v", term.Holder(), err)
	}
	if got := read(t, slave, 6); got != "onetwo" {
		t.Errorf("the program read %q", got)
	}
	second.Release()
	if err := second.Key(t.Context(), "up"); !fault.Is(err, fault.Gone) || !strings.Contains(err.Error(), "let go") || term.Holder() != "" {
		t.Errorf("%q has it: %v", term.Holder(), err)
	}
	if err := first.Key(t.Context(), "up"); !fault.Is(err, fault.Gone) || !strings.Contains(err.Error(), "let go since") {
		t.Errorf("stale, and nobody has it: %v", err)
	}
	third := term.Hold("carol")
	term.Close()
	closes(t, third.Lost(), "the third hold is lost")
	if err := third.Key(t.Context(), "up"); !fault.Is(err, fault.Gone) || term.Holder() != "" {
		t.Errorf("%q has what has ended: %v", term.Holder(), err)
	}
}

func must(_ int, err error) error { return err }

// fill writes until the program, which does not read, has no room left, and
// returns what it has.
func fill(t testing.TB, h *Hold) []byte {
	t.Helper()
	flood, all := bytes.Repeat([]byte("0123456789abcdef"), 64<<10), []byte(nil)
	for {
		n, err := h.Write(t.Context(), flood)
		if !fault.Is(err, fault.Limit) || n == len(flood) {
			t.Fatalf("%d bytes went to a program that does not read: %v", n, err)
		}
		if all = append(all, flood[:n]...); n == 0 && len(all) > 0 {
			return all
		}
	}
}

func TestInputWaitsForAProgramNotForEver(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{Patience: 100 * time.Millisecond})
	h := term.Hold("test")
	full := fill(t, h)
	if n, err := h.Write(t.Context(), []byte("x")); n != 0 || !fault.Is(err, fault.Limit) || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("%d bytes went: %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := h.Key(ctx, "up"); !fault.Is(err, fault.Timeout) {
		t.Errorf("in its time: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := h.Paste(ctx, "x"); !fault.Is(err, fault.Interrupted) {
		t.Errorf("interrupted: %v", err)
	}
	write(t, slave, "still drawn") // nothing of this stops the reading
	shows(t, term, "still drawn")
	if got := read(t, slave, len(full)); got != string(full) {
		t.Error("the program read something else")
	}
	if err := h.Key(t.Context(), "up"); err != nil {
		t.Error(err)
	}
	if got := read(t, slave, 3); got != "\x1b[A" {
		t.Errorf("then it read %q", got)
	}
}

func TestInputGoesOnWhenTheProgramReads(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{Patience: deadline})
	text := bytes.Repeat([]byte("0123456789abcdef"), 32<<10)
	wrote := make(chan error, 1)
	go func() { wrote <- must(term.Hold("test").Write(context.Background(), text)) }()
	if got := read(t, slave, len(text)); got != string(text) {
		t.Error("the program read something else")
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestWaitingInputOfATakenHoldFails(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{Patience: time.Hour})
	first := term.Hold("first")
	wrote := make(chan error, 1)
	go func() { wrote <- must(first.Write(context.Background(), make([]byte, 1<<20))) }()
	for len(wrote) == 0 && len(term.turn) == 0 {
		time.Sleep(time.Millisecond)
	}
	term.Hold("second")
	if err := <-wrote; !fault.Is(err, fault.Gone) || !strings.Contains(err.Error(), "second has it") {
		t.Errorf("the first: %v", err)
	}
	slave.Close()
	closes(t, term.Gone(), "the program is gone")
	if n, err := term.Hold("third").Write(t.Context(), []byte("x")); n != 0 || !fault.Is(err, fault.Gone) {
		t.Errorf("%d bytes went to nobody: %v", n, err)
	}
}

// A paste that is cut ends where its bracket does, before anything else goes.
func TestCutPasteIsClosedFirst(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{Patience: 100 * time.Millisecond})
	write(t, slave, "\x1b[?2004hon")
	shows(t, term, "on")
	h := term.Hold("test")
	text := strings.Repeat("日本語", 60<<10)
	err := h.Paste(t.Context(), text)
	if !fault.Is(err, fault.Limit) || !strings.Contains(err.Error(), "bytes of the paste went") {
		t.Fatalf("a paste to a program that does not read: %v", err)
	}
	got, buf := "", make([]byte, 64<<10)
	for !strings.HasSuffix(got, pasteEnd) { // which comes by itself
		n, err := slave.Read(buf)
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
		got += string(buf[:n])
	}
	inner, ok := strings.CutPrefix(strings.TrimSuffix(got, pasteEnd), pasteStart)
	if !ok || !strings.HasPrefix(text, inner) || len(inner)%3 != 0 {
		t.Errorf("%d bytes went, ending in %q", len(inner), inner[max(0, len(inner)-20):])
	}
	if err := h.Paste(t.Context(), "next"); err != nil {
		t.Error(err)
	}
	if got := read(t, slave, 16); got != pasteStart+"next"+pasteEnd {
		t.Errorf("then %q came", got)
	}
	if err := h.Paste(t.Context(), strings.Repeat("x", MaxPaste+1)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a huge paste: %v", err)
	}
}

// Whatever holders and the program's questions do at once, each key and each
// answer arrives in one piece.
func TestPiecesAreNeverMixed(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{})
	const each = 200
	var writers sync.WaitGroup
	h := term.Hold("test")
	for range 2 {
		writers.Go(func() {
			for range each {
				if err := h.Key(context.Background(), "ctrl-shift-f5", "é"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Go(func() {
		for range each {
			write(t, slave, "\x1b[c")
		}
	})
	key, answer := "\x1b[15;6~é", "\x1b[?62;22c"
	got := read(t, slave, each*(2*len(key)+len(answer)))
	writers.Wait()
	rest := strings.ReplaceAll(strings.ReplaceAll(got, key, ""), answer, "")
	if rest != "" || strings.Count(got, key) != 2*each || strings.Count(got, answer) != each {
		t.Errorf("mixed: %q", rest)
	}
}

func TestKeysFollowTheProgram(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{})
	h := term.Hold("test")
	for i, c := range []struct{ says, key, want string }{
		{"", "up", "\x1b[A"},
		{"\x1b[?1h", "up", "\x1bOA"},
		{"\x1b=", "kp1", "\x1bOq"},
		{"\x1b[>1u", "ctrl-c", "\x1b[99;5u"},
		{"\x1b[<u", "ctrl-c", "\x03"},
	} {
		mark := "step" + decimal(i)
		write(t, slave, c.says+mark)
		shows(t, term, mark)
		if err := h.Key(t.Context(), c.key); err != nil {
			t.Fatal(err)
		}
		if got := read(t, slave, len(c.want)); got != c.want {
			t.Errorf("after %q %s sends %q, not %q", c.says, c.key, got, c.want)
		}
	}
	if err := h.Key(t.Context(), "up", "nonsense"); !fault.Is(err, fault.Invalid) {
		t.Errorf("nonsense: %v", err)
	}
	if err := h.Key(t.Context(), "up", "ctrl-1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("no form: %v", err)
	}
	if err := h.Key(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, slave, 1); got != "x" {
		t.Errorf("a key before the one that was refused was pressed: %q", got)
	}
}

func TestPasteFollowsTheProgram(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{})
	h := term.Hold("test")
	for i, c := range []struct{ says, want string }{
		{"", "a\rb"}, {"\x1b[?2004h", pasteStart + "a\rb" + pasteEnd}, {"\x1b[?2004l", "a\rb"},
	} {
		mark := "step" + decimal(i)
		write(t, slave, c.says+mark)
		shows(t, term, mark)
		if err := h.Paste(t.Context(), "a\nb"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, slave, len(c.want)); got != c.want {
			t.Errorf("after %q it sends %q, not %q", c.says, got, c.want)
		}
	}
}
