package ninep

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// linuxClient is a client that begins as Linux's does.
func (s *testServer) linuxClient(t testing.TB) *rawClient {
	t.Helper()
	c := s.client(t, wire.Linux)
	c.want(&wire.Tgetattr{Fid: 0, Mask: wire.GetBasic})
	return c
}

// readWaits sends a read and returns once it waits; answer tells what comes.
func readWaits(t *testing.T, c *rawClient, waits *stream, off uint64, count uint32) (answer func() string) {
	t.Helper()
	before, _ := waits.readers()
	tag := c.send(&wire.Tread{Fid: 1, Offset: off, Count: count})
	eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == before+1 })
	return func() string {
		t.Helper()
		got, ok := c.answer(tag).(*wire.Rread)
		if !ok {
			t.Fatalf("the read: %+v", got)
		}
		return string(got.Data)
	}
}

// Linux asks for the rest of what it did not get, and is told at once that
// there is nothing, so that its reader gets what there is.
func TestLinuxIsToldThatThereIsNoRestYet(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits), Options{})
	c := s.linuxClient(t)
	c.open(1, "waits", 0)
	unit := c.msize - wire.IOHeader
	off := uint64(0)
	for _, q := range []struct{ count, rest uint32 }{
		{4096, 4096 - 5}, // a buffer that fits into a message
		{1000, 1000 - 5},
		{unit, unit},         // a buffer of more than two messages
		{unit, unit - 1},     // a buffer that ends in the second message
		{unit, unit - 5},     // a buffer of just one message
		{unit, unit - 5 + 1}, // one of one byte more
	} {
		answer := readWaits(t, c, waits, off, q.count)
		waits.say("event")
		if got := answer(); got != "event" {
			t.Fatalf("read %q", got)
		}
		off += 5
		if got := c.read(1, off, q.rest); got != "" {
			t.Fatalf("the rest is %q", got)
		}
	}
	// The rest comes if there is some, and then there is a rest of that.
	answer := readWaits(t, c, waits, off, 100)
	waits.say("one")
	answer()
	waits.say("two")
	if got := c.read(1, off+3, 97); got != "two" {
		t.Errorf("the rest is %q", got)
	}
	if got := c.read(1, off+6, 94); got != "" {
		t.Errorf("the rest of the rest is %q", got)
	}
	// What asks for something else waits.
	for _, other := range []struct{ off, count uint32 }{{1, 100}, {4, 100}, {4, 50}, {0, 97}} {
		answer := readWaits(t, c, waits, off, 100)
		waits.say("more")
		answer()
		answer = readWaits(t, c, waits, off+uint64(other.off), other.count)
		waits.say("again")
		answer()
	}
	// An answer that fills the buffer has no rest.
	answer = readWaits(t, c, waits, off, 4)
	waits.say("full")
	answer()
	answer = readWaits(t, c, waits, off+4, 4)
	waits.end()
	if got := answer(); got != "" {
		t.Errorf("at the end: %q", got)
	}
}

// Who is not Linux asks for what it asks for.
func TestOthersWaitForTheRest(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits), Options{})
	for name, begin := range map[string]func() *rawClient{
		"Plan 9":              func() *rawClient { return s.client(t, wire.Plain) },
		"no look at the root": func() *rawClient { return s.client(t, wire.Linux) },
		"a look at it later": func() *rawClient {
			c := s.client(t, wire.Linux)
			c.walk(5, "")
			c.want(&wire.Tgetattr{Fid: 0})
			return c
		},
		"an extension": func() *rawClient {
			c := s.dial(t)
			c.dialect = wire.Linux
			c.ask(wire.NoTag, &wire.Tversion{MSize: 8192, Version: "9P2000.L.Google.7"})
			c.attach(0)
			c.want(&wire.Tgetattr{Fid: 0})
			return c
		},
		"a try at authentication": func() *rawClient {
			c := s.dial(t)
			c.version(wire.Linux, 64<<10)
			c.refused(&wire.Tauth{AFid: 1}, syscall.ENOENT)
			c.attach(0)
			c.want(&wire.Tgetattr{Fid: 0})
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin()
			c.open(1, "waits", 0)
			answer := readWaits(t, c, waits, 0, 100)
			waits.say("event")
			if got := answer(); got != "event" {
				t.Fatalf("read %q", got)
			}
			answer = readWaits(t, c, waits, 5, 95)
			waits.say("next")
			if got := answer(); got != "next" {
				t.Fatalf("read %q", got)
			}
		})
	}
}

func TestAStreamThatDoesNotWait(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits), Options{})
	c := s.linuxClient(t)
	c.walk(1, "waits")
	c.want(&wire.Tlopen{Fid: 1, Flags: wire.LNonBlock})
	unit := c.msize - wire.IOHeader
	c.refused(&wire.Tread{Fid: 1, Count: 100}, syscall.EAGAIN)
	waits.say("event")
	if got := c.read(1, 0, unit); got != "event" {
		t.Errorf("read %q", got)
	}
	if got := c.read(1, 5, unit-5); got != "" {
		t.Errorf("the rest is %q", got)
	}
	// Linux 6.1 asks for no rest here, so this is the next read, not at its end.
	waits.say("event")
	if got := c.read(1, 5, unit); got != "event" {
		t.Errorf("read %q", got)
	}
	c.refused(&wire.Tread{Fid: 1, Offset: 10, Count: unit}, syscall.EAGAIN)
}

// What comes at once is not cut to what a waiting read has room for.
func TestALongPieceOfAStream(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		waits := newStream()
		s := serve(t, newFolder().hide("waits", waits), Options{})
		c := s.client(t, d)
		c.open(1, "waits", 0)
		long := strings.Repeat("0123456789", 3000)
		answer := readWaits(t, c, waits, 0, 50_000)
		waits.say(long)
		waits.end()
		first := answer()
		if len(first) != small {
			t.Errorf("the first answer has %d bytes", len(first))
		}
		got := first
		for {
			part := c.read(1, uint64(len(got)), 50_000)
			if got += part; part == "" {
				break
			}
		}
		if got != long {
			t.Errorf("read %d bytes of %d, or others", len(got), len(long))
		}
		if got := c.read(1, 0, 0); got != "" {
			t.Errorf("no bytes are %q", got)
		}
	})
}

func TestWhoAsksIsKnown(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "waits", 0)
	waits.say(strings.Repeat("x", firstWord+1)) // so that it is read twice
	c.read(1, 0, 10_000)
	want := fs.Caller{PID: os.Getpid(), UID: uint32(os.Geteuid()), Bound: true}
	for _, got := range waits.callers {
		if got != want {
			t.Errorf("asked by %+v, want %+v", got, want)
		}
	}
	if len(waits.callers) != 2 {
		t.Errorf("asked %d times", len(waits.callers))
	}
}
