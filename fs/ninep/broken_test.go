package ninep

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

func TestAPanicCostsOneRequest(t *testing.T) {
	for _, where := range []string{"attr", "open", "read", "write", "flush", "release", "lookup", "list"} {
		t.Run(where, func(t *testing.T) {
			panics := make(chan any, 100)
			dir, file := bombDir{newBomb("", nil)}, newBomb("", nil)
			s := serve(t, newFolder().add("dir", &dir).add("f", &file).add("other", newText("fine")),
				Options{OnPanic: func(value any, stack []byte) {
					if !strings.Contains(string(stack), "bomb") {
						t.Errorf("the stack is not that of the panic: %s", stack)
					}
					panics <- value
				}})
			c := s.client(t, wire.Linux)
			c.open(1, "dir", 0)
			c.walk(2, "f")
			file = newBomb(where, func() (int, error) { panic("boom") })
			dir.bomb = file
			all := map[string]wire.Message{
				"attr": &wire.Tgetattr{Fid: 2}, "open": &wire.Tlopen{Fid: 2}, "list": &wire.Treaddir{Fid: 1, Count: 1000},
				"lookup": &wire.Twalk{Fid: 1, NewFid: 3, Names: []string{"x"}},
				"read":   &wire.Tread{Fid: 2, Count: 100_000}, "write": &wire.Twrite{Fid: 2, Data: []byte("x")},
				"flush": &wire.Tclunk{Fid: 2}, "release": &wire.Tclunk{Fid: 2},
			}
			if where == "read" || where == "write" || where == "flush" || where == "release" {
				c.want(&wire.Tlopen{Fid: 2, Flags: wire.LReadWrite})
			}
			times := 1
			if where == "read" || where == "list" {
				times = 2 * tokens // what a panic took must not run out
			}
			for range times {
				c.refused(all[where], syscall.EIO)
				if v := await(t, "the panic", panics); v != "boom" {
					t.Errorf("panicked with %v", v)
				}
			}
			if got := c.cat("other"); got != "fine" {
				t.Errorf("another file reads %q", got)
			}
			file, dir.bomb = newBomb("", nil), newBomb("", nil)
		})
	}
}

// A tree that breaks its contract costs one request, and somebody is told.
func TestABrokenTreeIsReported(t *testing.T) {
	many := func() (int, error) { return 1 << 20, nil }
	none := func() (int, error) { return 0, nil }
	for _, b := range []struct {
		bomb bomb
		m    wire.Message
	}{
		{newBomb("read", many), &wire.Tread{Fid: 1, Count: 10}},
		{newBomb("read", func() (int, error) { return -1, nil }), &wire.Tread{Fid: 1, Count: 10}},
		{newBomb("write", many), &wire.Twrite{Fid: 1, Data: []byte("x")}},
		{newBomb("write", none), &wire.Twrite{Fid: 1, Data: []byte("x")}},
		{newBomb("read", func() (int, error) { return 0, errors.New("something") }), &wire.Tread{Fid: 1, Count: 10}},
		{newBomb("open", many), nil},
	} {
		s := serve(t, newFolder().add("f", b.bomb), Options{})
		c := s.client(t, wire.Linux)
		c.walk(1, "f")
		if b.m == nil {
			c.refused(&wire.Tlopen{Fid: 1}, syscall.EIO)
		} else {
			c.want(&wire.Tlopen{Fid: 1, Flags: wire.LReadWrite})
			c.refused(b.m, syscall.EIO)
		}
		if !strings.Contains(s.log.String(), "level=ERROR") {
			t.Errorf("%s: nobody was told", b.bomb.where)
		}
	}
	// Data that came with an error is given.
	some := newBomb("read", func() (int, error) { return 3, fault.New(fault.Busy, "later") })
	c := serve(t, newFolder().add("f", some), Options{}).client(t, wire.Linux)
	c.open(1, "f", 0)
	if got := c.read(1, 0, 10); len(got) != 3 {
		t.Errorf("read %q", got)
	}
}
