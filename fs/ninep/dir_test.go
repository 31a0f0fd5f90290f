package ninep

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// list reads an open directory from its start to its end.
func (c *rawClient) list(fid, count uint32) []string {
	c.t.Helper()
	var names []string
	for off := uint64(0); ; {
		next, part := c.entries(fid, off, count)
		if len(part) == 0 {
			return names
		}
		off = next
		names = append(names, part...)
	}
}

// entries reads a directory once; next is where to go on.
func (c *rawClient) entries(fid uint32, off uint64, count uint32) (next uint64, names []string) {
	c.t.Helper()
	if c.dialect == wire.Linux {
		data := c.want(&wire.Treaddir{Fid: fid, Offset: off, Count: count}).(*wire.Rreaddir).Data
		all, err := wire.ParseEntries(data)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range all {
			next = e.Offset
			if e.Name != "." && e.Name != ".." {
				names = append(names, e.Name)
			}
		}
		if len(names) == 0 && len(all) > 0 { // only dots
			return c.entries(fid, next, count)
		}
		return next, names
	}
	data := c.read(fid, off, count)
	all, err := wire.ParseStats([]byte(data))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range all {
		names = append(names, s.Name)
	}
	return off + uint64(len(data)), names
}

func TestListings(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		dir := newFolder()
		var want []string
		for i := range 300 {
			name := fmt.Sprintf("%0*d", 1+i%200, i)
			dir.add(name, newText("x"))
			want = append(want, name)
		}
		s := serve(t, newFolder().add("dir", dir), Options{})
		c := s.client(t, d)
		c.open(1, "dir", 0)
		for _, count := range []uint32{300, 512, 4096, 1 << 30} {
			if got := c.list(1, count); !slices.Equal(got, want) {
				t.Errorf("by %d bytes: %d names: %.100q", count, len(got), got)
			}
		}
		if n := s.held(); n != 0 {
			t.Errorf("%d bytes of listings are kept after their end", n)
		}
		// A version is kept however the directory changes, until reading begins
		// again; what has gone is left out where it would have to be looked at.
		next, first := c.entries(1, 0, 600)
		dir.remove(want[299])
		dir.remove(want[0])
		dir.add("new", newText("x"))
		var rest []string
		for {
			var part []string
			if next, part = c.entries(1, next, 2000); len(part) == 0 {
				break
			}
			rest = append(rest, part...)
		}
		old := want
		if d == wire.Plain {
			old = want[:299]
		}
		if got := append(first, rest...); !slices.Equal(got, old) {
			t.Errorf("during a change: %d names: %.100q", len(got), got)
		}
		if got := c.list(1, 4096); !slices.Equal(got, append(slices.Clone(want[1:299]), "new")) {
			t.Errorf("after a change: %d names", len(got))
		}
		c.entries(1, 0, 600)
		if n := s.held(); n == 0 {
			t.Error("a listing under way is not counted")
		}
		c.clunk(1)
		if n := s.held(); n != 0 {
			t.Errorf("%d bytes of listings are kept after the clunk", n)
		}
	})
}

// held is what the connections keep of listings.
func (s *testServer) held() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		n += c.listed.Load()
	}
	return n
}

func TestTheEndOfAListing(t *testing.T) {
	s := serve(t, newFolder().add("a", newText("x")), Options{})
	l := s.client(t, wire.Linux)
	l.open(1, "", 0)
	for _, off := range []uint64{3, 4, 1 << 63, 3} { // asked for again, or nonsense
		if _, names := l.entries(1, off, 1000); len(names) > 0 {
			t.Errorf("from %d: %q", off, names)
		}
	}
	data := l.want(&wire.Treaddir{Fid: 1, Count: 1000}).(*wire.Rreaddir).Data
	all, err := wire.ParseEntries(data)
	if err != nil || len(all) != 3 || all[0].Name != "." || all[1].Name != ".." || all[0].Qid != s.root.qid || all[1].Qid != s.root.qid {
		t.Errorf("the root lists %+v, %v", all, err)
	}
	for i, want := range []uint8{4, 4, 8} {
		if all[i].Type != want || all[i].Offset != uint64(i+1) {
			t.Errorf("entry %d: %+v", i, all[i])
		}
	}
	l.refused(&wire.Treaddir{Fid: 1, Count: 10}, syscall.EINVAL) // no entry fits
	l.refused(&wire.Tread{Fid: 1, Count: 10}, syscall.EISDIR)
	l.open(2, "a", 0)
	l.refused(&wire.Treaddir{Fid: 2, Count: 1000}, syscall.ENOTDIR)
	l.walk(3, "")
	l.refused(&wire.Treaddir{Fid: 3, Count: 1000}, syscall.EBADF)

	p := s.client(t, wire.Plain)
	p.open(1, "", 0)
	p.refused(&wire.Tread{Fid: 1, Count: 10}, syscall.EINVAL)
	next, _ := p.entries(1, 0, 1000)
	p.refused(&wire.Tread{Fid: 1, Offset: next - 1, Count: 1000}, syscall.EINVAL)
	for range 2 {
		if _, names := p.entries(1, next, 1000); len(names) > 0 {
			t.Errorf("at the end: %q", names)
		}
	}
}

// Names that no kernel would take are left out, and said to whom it concerns.
func TestBadNamesAreNotListed(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		dir := newFolder().add("good", newText("x"))
		for _, name := range []string{"", ".", "..", "a/b", "a\x00b", strings.Repeat("x", 256)} {
			dir.add(name, newText("x"))
		}
		s := serve(t, dir, Options{})
		c := s.client(t, d)
		c.open(1, "", 0)
		if got := c.list(1, 4096); !slices.Equal(got, []string{"good"}) {
			t.Errorf("%q", got)
		}
		if !strings.Contains(s.log.String(), "is no name for a file") {
			t.Error("nobody was told")
		}
	})
}

func TestListingsHaveALimit(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		dir := newFolder()
		for i := range 20_000 {
			name := fmt.Sprintf("%0150d", i)
			dir.list = append(dir.list, fs.Entry{Name: name, Ino: newIno(), Type: fs.Regular})
			dir.nodes[name] = newText("x")
		}
		s := serve(t, newFolder().add("dir", dir), Options{})
		c := s.client(t, d)
		begin := func(fid uint32) wire.Message {
			c.open(fid, "dir", 0)
			if d == wire.Linux {
				return c.call(&wire.Treaddir{Fid: fid, Count: 1000})
			}
			return c.call(&wire.Tread{Fid: fid, Count: 1000})
		}
		for fid := range uint32(2) {
			if got := begin(fid + 1); errnoOf(got) != 0 {
				t.Fatalf("listing %d: %+v", fid, got)
			}
		}
		if got := begin(3); errnoOf(got) != syscall.EAGAIN {
			t.Errorf("one too many: %v", errnoOf(got))
		}
		if n := s.held(); n > maxListed {
			t.Errorf("%d bytes are kept", n)
		}
		c.clunk(1)
		if got := begin(4); errnoOf(got) != 0 {
			t.Errorf("after one has ended: %+v", got)
		}
	})
}
