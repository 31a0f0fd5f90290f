package ninep

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
)

func TestDirectoriesAreMadeAndRemovedByLinux(t *testing.T) {
	rooms := newWorkshop().add("file", newText("x")).add("busy", newFolder())
	s := serve(t, newFolder().add("rooms", workshop{rooms}).add("dir", newFolder().add("sub", newFolder())), Options{})
	c := s.client(t, wire.Linux)
	c.walk(1, "rooms")
	c.walk(2, "dir")
	c.walk(3, "rooms/file")
	long := strings.Repeat("x", 256)
	made := c.want(&wire.Tmkdir{DFid: 1, Name: "new"}).(*wire.Rmkdir)
	if got := c.walk(4, "rooms/new"); got[1] != made.Qid || made.Qid.Type != wire.QTDir {
		t.Errorf("made %+v, found %+v", made.Qid, got[1])
	}
	for _, r := range []struct {
		m    wire.Message
		want syscall.Errno
	}{
		{&wire.Tmkdir{DFid: 2, Name: "new"}, syscall.EPERM},
		{&wire.Tmkdir{DFid: 3, Name: "new"}, syscall.ENOTDIR},
		{&wire.Tmkdir{DFid: 1, Name: long}, syscall.ENAMETOOLONG},
		{&wire.Tmkdir{DFid: 1, Name: ".."}, syscall.EINVAL},
		{&wire.Tmkdir{DFid: 1, Name: "a/b"}, syscall.EINVAL},
		{&wire.Tmkdir{DFid: 1, Name: "Bad"}, syscall.EINVAL}, // the tree's own word
		{&wire.Tunlinkat{DFid: 1, Name: "new"}, syscall.EPERM},
		{&wire.Tunlinkat{DFid: 1, Name: long}, syscall.ENAMETOOLONG},
		{&wire.Tunlinkat{DFid: 1, Name: "file", Flags: wire.RemoveDir}, syscall.ENOTDIR},
		{&wire.Tunlinkat{DFid: 1, Name: "absent", Flags: wire.RemoveDir}, syscall.ENOENT},
		{&wire.Tunlinkat{DFid: 1, Name: "busy", Flags: wire.RemoveDir}, syscall.EBUSY},
		{&wire.Tunlinkat{DFid: 1, Name: "..", Flags: wire.RemoveDir}, syscall.EINVAL},
		{&wire.Tunlinkat{DFid: 1, Name: long, Flags: wire.RemoveDir}, syscall.ENAMETOOLONG},
		{&wire.Tunlinkat{DFid: 2, Name: "sub", Flags: wire.RemoveDir}, syscall.EPERM},
		{&wire.Tunlinkat{DFid: 3, Name: "sub", Flags: wire.RemoveDir}, syscall.ENOTDIR},
		{&wire.Tlcreate{Fid: 1, Name: "f"}, syscall.EPERM},
		{&wire.Tlcreate{Fid: 1, Name: long}, syscall.ENAMETOOLONG},
		{&wire.Tsymlink{Fid: 1, Name: "f", Target: "x"}, syscall.EPERM},
		{&wire.Tmknod{DFid: 1, Name: "f"}, syscall.EPERM},
		{&wire.Tlink{DFid: 1, Fid: 3, Name: "f"}, syscall.EPERM},
		{&wire.Trename{Fid: 3, DFid: 1, Name: "f"}, syscall.EPERM},
		{&wire.Trenameat{OldDirFid: 1, OldName: "file", NewDirFid: 1, NewName: "f"}, syscall.EPERM},
	} {
		c.refused(r.m, r.want)
	}
	c.want(&wire.Tunlinkat{DFid: 1, Name: "new", Flags: wire.RemoveDir})
	if got := rooms.names(); !slices.Equal(got, []string{"file", "busy"}) {
		t.Errorf("left are %q", got)
	}
}

func TestDirectoriesAreMadeAndRemovedByPlan9(t *testing.T) {
	rooms := newWorkshop()
	s := serve(t, newFolder().add("rooms", rooms).add("dir", newFolder()), Options{})
	c := s.client(t, wire.Plain)
	c.walk(1, "rooms")
	c.refused(&wire.Tcreate{Fid: 1, Name: "f", Perm: 0o600}, syscall.EPERM)
	c.refused(&wire.Tcreate{Fid: 1, Name: "d", Perm: wire.DMDir | 0o700, Mode: wire.OWrite}, syscall.EISDIR)
	made := c.want(&wire.Tcreate{Fid: 1, Name: "d", Perm: wire.DMDir | 0o700}).(*wire.Rcreate)
	if got := c.walk(2, "rooms/d"); got[1] != made.Qid || c.qid(1) != made.Qid {
		t.Errorf("made %+v, found %+v, the fid is %+v", made.Qid, got[1], c.qid(1))
	}
	if got := c.list(1, 1000); len(got) > 0 { // it is open
		t.Errorf("the new directory lists %q", got)
	}
	c.refused(&wire.Tcreate{Fid: 1, Name: "e", Perm: wire.DMDir}, syscall.EBADF)
	c.walk(3, "dir")
	c.refused(&wire.Tcreate{Fid: 3, Name: "d", Perm: wire.DMDir}, syscall.EPERM)
}

func TestARemoveEndsTheFidWhateverComesOfIt(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		file := newScript()
		rooms := newWorkshop().add("d", newFolder()).add("busy", newFolder()).add("f", file)
		s := serve(t, newFolder().add("rooms", workshop{rooms}).add("fixed", newFolder()), Options{})
		c := s.client(t, d)
		for path, want := range map[string]syscall.Errno{
			"rooms/d": 0, "rooms/busy": syscall.EBUSY, "rooms/f": syscall.EPERM, "fixed": syscall.EPERM, "": syscall.EPERM,
		} {
			c.walk(1, path)
			if path == "rooms/f" {
				c.want(c.openMessage(1, 2))
			}
			c.refused(&wire.Tremove{Fid: 1}, want)
			c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF)
		}
		if got := rooms.names(); !slices.Equal(got, []string{"busy", "f"}) {
			t.Errorf("left are %q", got)
		}
		if got := file.log(); !slices.Equal(got, []string{"open", "flush", "release"}) {
			t.Errorf("the open file: %q", got)
		}
	})
}

// names returns what is listed.
func (d *folder) names() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.list {
		all = append(all, e.Name)
	}
	return all
}
