package ninep

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

func fsErrno(kind fault.Kind) syscall.Errno { return fs.Errno(fault.New(kind, "x")) }

// Requests that were sent without waiting for the answers before them are done
// in order where they are on one fid.
func TestOneFidsRequestsAreDoneInOrder(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		file, g := newScript(), newGate()
		file.stop["w0"] = g
		s := serve(t, newFolder().add("f", file), Options{})
		c := s.client(t, d)
		var want []string
		tags := []uint16{
			c.send(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{"f"}}),
			c.send(c.openMessage(1, 2)),
		}
		want = append(want, "open")
		for i := range 50 {
			tags = append(tags, c.send(&wire.Twrite{Fid: 1, Data: fmt.Appendf(nil, "w%d", i)}))
			want = append(want, fmt.Sprintf("w%d", i))
		}
		tags = append(tags, c.send(&wire.Tread{Fid: 1, Count: 10}), c.send(&wire.Tclunk{Fid: 1}))
		want = append(want, "read", "flush", "release")
		await(t, "the first write", g.here)
		c.want(&wire.Twalk{Fid: 0, NewFid: 1}) // the number is free already, and others are not held up
		close(g.open)
		for _, tag := range tags {
			if got := c.answer(tag); errnoOf(got) != 0 {
				t.Errorf("%+v", got)
			}
		}
		if got := file.log(); !slices.Equal(got, want) {
			t.Errorf("done: %q\nwant: %q", got, want)
		}
	})
}

// A client that says all it has to say and goes has written and closed its
// file.
func TestAClunkCountsThoughTheClientIsGone(t *testing.T) {
	doc := newDocument()
	s := serve(t, newFolder().add("start", doc), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "start", 1)
	var all []byte
	for i := range 20 {
		all = append(all, c.frame(uint16(1000+i), &wire.Twrite{Fid: 1, Data: []byte("line\n")})...)
	}
	c.raw(append(all, c.frame(2000, &wire.Tclunk{Fid: 1})...))
	c.nc.Close()
	eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
	if sent, drops, _ := doc.state(); len(sent) != 1 || sent[0] != strings.Repeat("line\n", 20) || drops != 0 {
		t.Errorf("sent %q, dropped %d", sent, drops)
	}
}

func TestADocumentIsSentByItsClunk(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		doc := newDocument()
		s := serve(t, newFolder().add("start", doc), Options{})
		c := s.client(t, d)
		c.open(1, "start", 1)
		c.write(1, "one, ")
		c.want(&wire.Twalk{Fid: 1, NewFid: 2}) // a clone is not open
		c.refused(&wire.Twrite{Fid: 2, Data: []byte("x")}, syscall.EBADF)
		c.clunk(2)
		c.write(1, "two")
		if sent, _, open := doc.state(); len(sent) != 0 || open != 1 {
			t.Errorf("before the clunk: sent %q, %d open", sent, open)
		}
		c.clunk(1)
		if sent, _, open := doc.state(); len(sent) != 1 || sent[0] != "one, two" || open != 0 {
			t.Errorf("sent %q, %d open", sent, open)
		}
		if !slices.Equal(doc.closers, []closer{{opener: true, last: true}}) {
			t.Errorf("closed by %+v", doc.closers)
		}
		c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF)
	})
}

func TestARefusedCloseIsTheAnswerToTheClunk(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		doc := newDocument()
		doc.full.Store(true)
		s := serve(t, newFolder().add("start", doc), Options{})
		c := s.client(t, d)
		c.open(1, "start", 1)
		c.write(1, "text")
		c.refused(&wire.Tclunk{Fid: 1}, syscall.EAGAIN)
		c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF) // the fid is gone all the same
		if sent, _, open := doc.state(); len(sent) != 0 || open != 0 {
			t.Errorf("sent %q, %d open", sent, open)
		}
		doc.full.Store(false)
		c.open(1, "start", 0) // a reader's close is no close of a writer
		c.clunk(1)
		if n := len(doc.closers); n != 1 {
			t.Errorf("%d closes", n)
		}
	})
}

func TestAWriterThatIsCutOffSendsNothing(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		doc := newDocument()
		s := serve(t, newFolder().add("start", doc), Options{})
		c := s.client(t, d)
		c.open(1, "start", 2)
		c.write(1, "half")
		c.nc.Close()
		eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
		if sent, drops, _ := doc.state(); len(sent) != 0 || drops != 1 {
			t.Errorf("sent %q, dropped %d", sent, drops)
		}
	})
}

func TestTheServersEndCutsWritersOff(t *testing.T) {
	doc, waits := newDocument(), newStream()
	s := serve(t, newFolder().add("start", doc).hide("waits", waits), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "start", 1)
	c.write(1, "half")
	c.open(2, "waits", 0)
	c.send(&wire.Tread{Fid: 2, Count: 100})
	eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
	s.Close()
	sent, drops, open := doc.state()
	waiting, released := waits.readers()
	if len(sent) != 0 || drops != 1 || open != 0 || waiting != 0 || released != 1 {
		t.Errorf("after Close: sent %q, dropped %d, open %d, waiting %d, released %d", sent, drops, open, waiting, released)
	}
	c.gone()
}

func TestAClunkEndsAWaitingRead(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		waits := newStream()
		s := serve(t, newFolder().hide("waits", waits), Options{})
		c := s.client(t, d)
		c.open(1, "waits", 0)
		read := c.send(&wire.Tread{Fid: 1, Count: 100})
		eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
		clunk := c.send(&wire.Tclunk{Fid: 1})
		if got := c.answer(read); errnoOf(got) != syscall.EINTR {
			t.Errorf("the read: %+v", got)
		}
		if got := c.answer(clunk); errnoOf(got) != 0 {
			t.Errorf("the clunk: %+v", got)
		}
		if _, released := waits.readers(); released != 1 {
			t.Errorf("released %d times", released)
		}
	})
}

// A file that blocks where none should does not hold up any other.
func TestAStuckFileHoldsUpNoOther(t *testing.T) {
	for _, where := range []string{"lookup", "list", "attr", "open", "read", "write", "flush", "release"} {
		t.Run(where, func(t *testing.T) {
			dialects(t, func(t *testing.T, d wire.Dialect) {
				g := newGate()
				dir, file := bombDir{newBomb("", nil)}, newBomb("", nil)
				s := serve(t, newFolder().add("dir", &dir).add("file", &file).add("other", newText("fine")), Options{})
				c := s.client(t, d)
				c.walk(1, "dir")
				c.walk(2, "file")
				dir.bomb, file = stuck(where, g), stuck(where, g)
				var tags []uint16
				switch where {
				case "lookup":
					tags = append(tags, c.send(&wire.Twalk{Fid: 1, NewFid: 10, Names: []string{"x"}}))
				case "list":
					tags = append(tags, c.send(c.openMessage(1, 0)))
					if d == wire.Linux {
						tags = append(tags, c.send(&wire.Treaddir{Fid: 1, Count: 1000}))
					} else {
						tags = append(tags, c.send(&wire.Tread{Fid: 1, Count: 1000}))
					}
				case "attr":
					tags = append(tags, c.send(&wire.Twalk{Fid: 0, NewFid: 10, Names: []string{"file"}}))
				default:
					tags = append(tags, c.send(c.openMessage(2, 2)), c.send(&wire.Tread{Fid: 2, Count: 10}),
						c.send(&wire.Twrite{Fid: 2, Data: []byte("x")}), c.send(&wire.Tclunk{Fid: 2}))
				}
				await(t, "the file to be stuck", g.here)
				if got := c.cat("other"); got != "fine" {
					t.Errorf("another file reads %q", got)
				}
				if got := s.client(t, d).cat("other"); got != "fine" {
					t.Errorf("to another client it reads %q", got)
				}
				// It is not waited for where it is given up.
				for _, tag := range tags {
					c.want(&wire.Tflush{OldTag: tag})
				}
				c.nc.Close()
				close(g.open)
			})
		})
	}
}
