package ninep

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
)

func TestWalks(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		b := newFolder().add("c", newText("x"))
		s := serve(t, newFolder().add("a", newFolder().add("b", b)), Options{})
		c := s.client(t, d)
		for path, want := range map[string]string{
			"a/b/..": "a", "a/b/../..": "", "..": "", "../../a": "a", "a/../a/b": "a/b",
		} {
			c.walk(1, path)
			c.walk(2, want)
			if got, want := c.qid(1), c.qid(2); got != want {
				t.Errorf("%s leads to %+v, %s to %+v", path, got, path, want)
			}
			c.clunk(1)
			c.clunk(2)
		}
		for name, want := range map[string]syscall.Errno{
			"absent": syscall.ENOENT, "": syscall.EINVAL, ".": syscall.EINVAL, "a/b": syscall.EINVAL, "a\x00": syscall.EINVAL,
			strings.Repeat("x", 256): syscall.ENAMETOOLONG, strings.Repeat("x", 255): syscall.ENOENT,
		} {
			c.refused(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{name}}, want)
			// In the middle it ends the walk there.
			got := c.want(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{"a", name, "b"}}).(*wire.Rwalk)
			if len(got.Qids) != 1 {
				t.Errorf("a, %q: %d qids", name, len(got.Qids))
			}
			c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF)
		}
		c.walk(1, "a/b/c")
		c.refused(&wire.Twalk{Fid: 1, NewFid: 2, Names: []string{"x"}}, syscall.ENOTDIR)
		c.refused(&wire.Twalk{Fid: 1, NewFid: 2, Names: []string{".."}}, syscall.ENOTDIR)
		// A walk in place moves the fid, or leaves it where it was.
		c.walk(3, "a")
		c.want(&wire.Twalk{Fid: 3, NewFid: 3, Names: []string{"b", "absent"}})
		c.want(&wire.Twalk{Fid: 3, NewFid: 3, Names: []string{"b", "c"}})
		c.want(&wire.Twalk{Fid: 3, NewFid: 3})
		if c.qid(3) != c.qid(1) {
			t.Errorf("walked in place to %+v", c.qid(3))
		}
	})
}

// qid returns what a fid stands for.
func (c *rawClient) qid(fid uint32) wire.Qid {
	c.t.Helper()
	if c.dialect == wire.Linux {
		return c.want(&wire.Tgetattr{Fid: fid}).(*wire.Rgetattr).Qid
	}
	return c.want(&wire.Tstat{Fid: fid}).(*wire.Rstat).Stat.Qid
}

// linkTree has links of every kind in dir/links.
func linkTree() (*folder, workshop) {
	links := newWorkshop()
	for name, target := range map[string]string{
		"file": "../file", "dir": "../../dir", "again": "file", "round": "round", "ping": "pong", "pong": "ping",
		"absent": "../absent", "through": "../file/x", "out": "../../../etc/passwd", "far": "../../../../../../..",
		"absolute": "/etc/passwd", "self": ".", "odd": ".//..//file",
	} {
		links.add(name, newLink(target))
	}
	return newFolder().add("dir", newFolder().add("file", newText("content")).add("links", links)), links
}

func TestLinksForLinux(t *testing.T) {
	root, _ := linkTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Linux)
	if got := c.walk(1, "dir/links/out"); got[2].Type != wire.QTSymlink {
		t.Errorf("a link is %+v", got[2])
	}
	if got := c.want(&wire.Treadlink{Fid: 1}).(*wire.Rreadlink); got.Target != "../../../etc/passwd" {
		t.Errorf("it leads to %q", got.Target)
	}
	c.refused(&wire.Twalk{Fid: 1, NewFid: 2, Names: []string{"x"}}, syscall.ENOTDIR)
	c.walk(2, "dir/file")
	c.refused(&wire.Treadlink{Fid: 2}, syscall.EINVAL)
	c.open(3, "dir/links", 0)
	data := c.want(&wire.Treaddir{Fid: 3, Count: 10_000}).(*wire.Rreaddir).Data
	all, err := wire.ParseEntries(data)
	if err != nil || len(all) != 15 || all[2].Type != 10 || all[2].Qid.Type != wire.QTSymlink {
		t.Errorf("listed as %+v, %v", all, err)
	}
}

func TestLinksForPlan9(t *testing.T) {
	root, _ := linkTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Plain)
	for name, want := range map[string]string{
		"file": "content", "again": "content", "odd": "content",
		// What leads nowhere in the tree says where it would lead.
		"absent": "../absent\n", "through": "../file/x\n", "out": "../../../etc/passwd\n",
		"far": "../../../../../../..\n", "absolute": "/etc/passwd\n", "round": "round\n", "ping": "pong\n", "pong": "ping\n",
	} {
		if got := c.cat("dir/links/" + name); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
		c.walk(1, "dir/links/"+name)
		if got := c.want(&wire.Tstat{Fid: 1}).(*wire.Rstat).Stat; got.Name != name || got.Mode != 0o400 {
			t.Errorf("%s: %+v", name, got)
		}
		denied := []syscall.Errno{syscall.EPERM, syscall.EACCES}
		if got := c.call(c.openMessage(1, 1)); !slices.Contains(denied, errnoOf(got)) {
			t.Errorf("%s for writing: %+v", name, got)
		}
		c.clunk(1)
	}
	if got := c.cat("dir/links/dir/links/dir/file"); got != "content" {
		t.Errorf("through directories: %q", got)
	}
	if got := c.cat("dir/links/self/self/file"); got != "content" {
		t.Errorf("through itself: %q", got)
	}
	// The way up is the real one.
	c.walk(1, "dir/links/dir/..")
	if got := c.qid(1); got != s.root.qid {
		t.Errorf("above dir is %+v", got)
	}
	c.open(2, "dir/links", 0)
	if got := c.list(2, 4096); len(got) != 13 || !slices.Contains(got, "out") {
		t.Errorf("listed: %q", got)
	}
}

// Nothing is removed through a link.
func TestALinkIsNotRemoved(t *testing.T) {
	rooms := newWorkshop().add("room", newFolder())
	root := newFolder().add("rooms", workshop{rooms}).add("link", newLink("rooms/room"))
	s := serve(t, root, Options{})
	c := s.client(t, wire.Plain)
	c.walk(1, "link")
	c.refused(&wire.Tremove{Fid: 1}, syscall.EPERM)
	c.walk(1, "rooms/room")
	c.want(&wire.Tremove{Fid: 1})
}

func TestALinkToNoPathIsTheTreesFault(t *testing.T) {
	for _, target := range []string{"", "a\x00b", strings.Repeat("x", 4096)} {
		s := serve(t, newFolder().add("l", newLink(target)), Options{})
		l := s.client(t, wire.Linux)
		l.walk(1, "l")
		l.refused(&wire.Treadlink{Fid: 1}, syscall.EIO)
		s.client(t, wire.Plain).refused(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{"l"}}, syscall.EIO)
	}
}
