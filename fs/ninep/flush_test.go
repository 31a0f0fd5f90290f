package ninep

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
)

// onlyFlushed fails the test unless the next answer is that of a flush.
func onlyFlushed(t *testing.T, c *rawClient, flush uint16) {
	t.Helper()
	tag, m, err := c.next()
	if _, ok := m.(*wire.Rflush); err != nil || tag != flush || !ok {
		t.Fatalf("the next answer is %d, %+v, %v; want that of the flush, %d", tag, m, err, flush)
	}
}

func TestAFlushEndsAWaitingRead(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		waits := newStream()
		s := serve(t, newFolder().hide("waits", waits), Options{})
		c := s.client(t, d)
		c.open(1, "waits", 0)
		for range 20 {
			read := c.send(&wire.Tread{Fid: 1, Count: 100})
			eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
			flush := c.send(&wire.Tflush{OldTag: read})
			// The read may have been answered first, that it was interrupted.
			if tag, m, err := c.next(); err != nil {
				t.Fatal(err)
			} else if tag == read {
				if errnoOf(m) != syscall.EINTR {
					t.Fatalf("the read: %+v", m)
				}
				onlyFlushed(t, c, flush)
			} else if tag != flush {
				t.Fatalf("an answer to tag %d: %+v", tag, m)
			}
			// The tag is free again, and nothing more comes of the old request.
			if got := c.ask(read, c.openMessage(0xbad, 0)); errnoOf(got) != syscall.EBADF {
				t.Fatalf("the tag used again: %+v", got)
			}
			eventually(t, "the reader to go", func() bool { waiting, _ := waits.readers(); return waiting == 0 })
		}
		// The fid is as good as before.
		read := c.send(&wire.Tread{Fid: 1, Count: 100})
		waits.say("news")
		if got, ok := c.answer(read).(*wire.Rread); !ok || string(got.Data) != "news" {
			t.Errorf("after all that: %+v", got)
		}
	})
}

func TestAFlushOfNothingIsAnswered(t *testing.T) {
	s := serve(t, newFolder(), Options{})
	c := s.client(t, wire.Linux)
	c.want(&wire.Tflush{OldTag: 12345})
	c.want(&wire.Tflush{OldTag: c.lastTag + 1}) // itself
	c.want(&wire.Tflush{OldTag: wire.NoTag})
	c.want(&wire.Tgetattr{Fid: 0})
}

// What does not heed its context is given up all the same, at once.
func TestAFlushDoesNotWaitForAStuckFile(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		g := newGate()
		s := serve(t, newFolder().add("f", stuck("read", g)), Options{})
		c := s.client(t, d)
		c.open(1, "f", 0)
		read := c.send(&wire.Tread{Fid: 1, Count: 100})
		await(t, "the file to be stuck", g.here)
		onlyFlushed(t, c, c.send(&wire.Tflush{OldTag: read}))
		again := c.ask(read, c.openMessage(0xbad, 0))
		if errnoOf(again) != syscall.EBADF {
			t.Errorf("the tag used again: %+v", again)
		}
		close(g.open)
		c.clunk(1)
		if len(c.early) > 0 {
			t.Errorf("answers that nobody asked for: %+v", c.early)
		}
	})
}

// A flushed walk has made no fid, and a flushed open has opened nothing.
func TestWhatWasFlushedIsUndone(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		file, g := newScript(), newGate()
		dir := bombDir{newBomb("", nil)}
		s := serve(t, newFolder().add("dir", &dir).add("f", file), Options{})
		c := s.client(t, d)
		c.walk(1, "dir")
		dir.bomb = stuck("lookup", g)
		walk := c.send(&wire.Twalk{Fid: 1, NewFid: 2, Names: []string{"x"}})
		open := c.send(c.openMessage(2, 0)) // waits for the walk
		await(t, "the walk", g.here)
		onlyFlushed(t, c, c.send(&wire.Tflush{OldTag: walk}))
		c.walk(2, "f") // the number is free
		close(g.open)
		if got := c.answer(open); errnoOf(got) != syscall.EBADF {
			t.Errorf("what came after the walk: %+v", got)
		}

		opening := newGate()
		file.stop["open"] = opening
		open = c.send(c.openMessage(2, 2))
		await(t, "the open", opening.here)
		onlyFlushed(t, c, c.send(&wire.Tflush{OldTag: open}))
		read := c.send(&wire.Tread{Fid: 2, Count: 10}) // waits for the open
		close(opening.open)
		if got := c.answer(read); errnoOf(got) != syscall.EBADF {
			t.Errorf("a read of what was not opened: %+v", got)
		}
		if want := []string{"open", "killed", "release"}; !slices.Equal(file.log(), want) {
			t.Errorf("done: %q, want %q", file.log(), want)
		}
		c.want(c.openMessage(2, 2))
		c.write(2, "text")
		c.clunk(2)
	})
}

// A text with a hole is never sent: neither where a write was given up, nor
// where one was not taken.
func TestATextWithAHoleIsNotSent(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		file, g := newScript(), newGate()
		file.stop["one"] = g
		s := serve(t, newFolder().add("f", file), Options{})
		c := s.client(t, d)
		c.open(1, "f", 2)
		one := c.send(&wire.Twrite{Fid: 1, Data: []byte("one")})
		await(t, "the first write", g.here)
		two := c.send(&wire.Twrite{Fid: 1, Data: []byte("two")})
		c.want(&wire.Tflush{OldTag: two}) // it never began
		close(g.open)
		if got := c.answer(one); errnoOf(got) != 0 {
			t.Errorf("the first write: %+v", got)
		}
		c.refused(&wire.Twrite{Fid: 1, Data: []byte("three")}, syscall.ESTALE)
		c.refused(&wire.Tread{Fid: 1, Count: 10}, syscall.ESTALE)
		c.refused(&wire.Tclunk{Fid: 1}, syscall.ESTALE)
		if want := []string{"open", "one", "killed", "release"}; !slices.Equal(file.log(), want) {
			t.Errorf("done: %q, want %q", file.log(), want)
		}
	})
}

func TestAFlushedClunkIsDone(t *testing.T) {
	file, g := newScript(), newGate()
	file.stop["flush"] = g
	s := serve(t, newFolder().add("f", file), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "f", 2)
	clunk := c.send(&wire.Tclunk{Fid: 1})
	await(t, "the close", g.here)
	onlyFlushed(t, c, c.send(&wire.Tflush{OldTag: clunk}))
	c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF) // as Linux tries
	close(g.open)
	eventually(t, "the release", func() bool { return slices.Equal(file.log(), []string{"open", "flush", "release"}) })
}

func TestADisconnectEndsAllThatWaits(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		waits := newStream()
		s := serve(t, newFolder().hide("waits", waits), Options{})
		c := s.client(t, d)
		const readers = 50
		for i := range uint32(readers) {
			c.open(i+1, "waits", 0)
			c.send(&wire.Tread{Fid: i + 1, Count: 1 << 15})
		}
		eventually(t, "the readers", func() bool { waiting, _ := waits.readers(); return waiting == readers })
		c.nc.Close()
		eventually(t, "the readers to go", func() bool {
			waiting, released := waits.readers()
			return waiting == 0 && released == readers
		})
	})
}

// A client that takes no answers can still give up what waits.
func TestAFlushCancelsBeforeItCanBeAnswered(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits).add("long", newText(strings.Repeat("x", 60<<10))), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "waits", 0)
	c.open(2, "long", 0)
	read := c.send(&wire.Tread{Fid: 1, Count: 100})
	eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
	for range 100 { // more than a socket holds
		c.send(&wire.Tread{Fid: 2, Count: 60 << 10})
	}
	flush := c.send(&wire.Tflush{OldTag: read})
	eventually(t, "the reader to go", func() bool { waiting, _ := waits.readers(); return waiting == 0 })
	if got, ok := c.answer(flush).(*wire.Rflush); !ok {
		t.Errorf("the flush: %+v", got)
	}
}
