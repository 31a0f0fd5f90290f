package ninep

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// attrTree has a file of each kind.
func attrTree() (*folder, *growing) {
	log := &growing{ino: newIno(), text: []byte(strings.Repeat("line\n", 205))}
	root := newFolder().add("text", newText("generated")).add("log", log).add("ctl", newControl()).
		add("link", newLink("log")).add("dir", newFolder()).hide("waits", newStream())
	return root, log
}

func TestAttributesForLinux(t *testing.T) {
	root, log := attrTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Linux)
	for i, want := range []struct {
		path string
		mode uint32
		size uint64
		qid  uint8
	}{
		{"", syscall.S_IFDIR | 0o500, 0, wire.QTDir},
		{"dir", syscall.S_IFDIR | 0o500, 0, wire.QTDir},
		{"text", syscall.S_IFREG | 0o400, 0, 0},
		{"ctl", syscall.S_IFREG | 0o600, 0, 0},
		{"waits", syscall.S_IFREG | 0o400, 0, 0},
		{"link", syscall.S_IFLNK | 0o777, 3, wire.QTSymlink},
		{"log", syscall.S_IFREG | 0o400, 1025, 0},
	} {
		fid := uint32(i + 1)
		qids := c.walk(fid, want.path)
		got := c.want(&wire.Tgetattr{Fid: fid}).(*wire.Rgetattr)
		if got.Valid != 0x7ff || got.NLink != 1 || got.BlockSize != 4096 || got.UID != uint32(os.Geteuid()) || got.GID != uint32(os.Getegid()) {
			t.Errorf("%s: %+v", want.path, got)
		}
		if got.Mode != want.mode || got.Size != want.size || got.Blocks != (want.size+511)/512 {
			t.Errorf("%s: mode %o, %d bytes, %d blocks", want.path, got.Mode, got.Size, got.Blocks)
		}
		if got.Qid.Type != want.qid || got.Qid.Version != 0 || got.Qid.Path == 0 || len(qids) > 0 && qids[0] != got.Qid {
			t.Errorf("%s: qid %+v, walked to as %+v", want.path, got.Qid, qids)
		}
		atime := uint64(begun.Unix())
		mtime := atime
		if want.path == "log" {
			mtime++
		}
		if got.MtimeSec != mtime || got.CtimeSec != mtime || got.AtimeSec != atime || got.MtimeNsec != 123_000_000 {
			t.Errorf("%s: times %+v", want.path, got)
		}
	}
	log.mu.Lock()
	log.text = append(log.text, "more"...)
	log.mu.Unlock()
	if got := c.want(&wire.Tgetattr{Fid: 7}).(*wire.Rgetattr); got.Size != 1029 {
		t.Errorf("the log has grown to %d", got.Size)
	}
}

func TestAttributesForPlan9(t *testing.T) {
	root, _ := attrTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Plain)
	for i, want := range []struct {
		path, name string
		mode       uint32
		size       uint64
	}{
		{"", "/", wire.DMDir | 0o500, 0},
		{"dir", "dir", wire.DMDir | 0o500, 0},
		{"text", "text", 0o400, 0},
		{"ctl", "ctl", 0o600, 0},
		{"link", "link", 0o400, 1025},
		{"log", "log", 0o400, 1025},
	} {
		fid := uint32(i + 1)
		c.walk(fid, want.path)
		got := c.want(&wire.Tstat{Fid: fid}).(*wire.Rstat).Stat
		if got.Name != want.name || got.Mode != want.mode || got.Length != want.size || got.Qid.Version != 0 {
			t.Errorf("%s: %+v", want.path, got)
		}
		if got.UID != userName(uint32(os.Geteuid())) || got.MUID != got.UID || got.GID != groupName(uint32(os.Getegid())) {
			t.Errorf("%s: owned by %q, %q, %q", want.path, got.UID, got.GID, got.MUID)
		}
		if got.Atime != uint32(begun.Unix()) {
			t.Errorf("%s: atime %d", want.path, got.Atime)
		}
	}
}

func TestUsersWithoutNamesAreNumbers(t *testing.T) {
	if u, g := userName(3_999_999_999), groupName(3_999_999_999); u != "3999999999" || g != u {
		t.Errorf("%q, %q", u, g)
	}
}

func TestWhatASetattrMayDo(t *testing.T) {
	root, _ := attrTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Linux)
	c.walk(1, "ctl")
	c.walk(2, "text")
	c.walk(3, "dir")
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	for _, m := range []*wire.Tsetattr{
		{Fid: 1, Valid: wire.SetSize | wire.SetMtime | wire.SetCtime}, // as Linux truncates
		{Fid: 1, Valid: wire.SetAtime | wire.SetAtimeTo | wire.SetMtime | wire.SetMtimeTo, MtimeSec: 5},
		{Fid: 1, Valid: wire.SetSize, Size: 1 << 40},
		{Fid: 1, Valid: wire.SetMode, Mode: syscall.S_IFREG | 0o600},
		{Fid: 2, Valid: wire.SetMode | wire.SetCtime, Mode: 0o400},
		{Fid: 2, Valid: wire.SetUID | wire.SetGID, UID: uid, GID: gid},
		{Fid: 3, Valid: 0},
	} {
		c.want(m)
	}
	for _, m := range []*wire.Tsetattr{
		{Fid: 1, Valid: wire.SetMode, Mode: 0o666},
		{Fid: 1, Valid: wire.SetUID, UID: uid + 1},
		{Fid: 1, Valid: wire.SetGID, GID: gid + 1},
		{Fid: 2, Valid: wire.SetSize},
		{Fid: 2, Valid: wire.SetMtime},
		{Fid: 3, Valid: wire.SetAtime},
	} {
		c.refused(m, syscall.EPERM)
	}
}

func TestWhatAWstatMayDo(t *testing.T) {
	root, _ := attrTree()
	s := serve(t, root, Options{})
	c := s.client(t, wire.Plain)
	c.walk(1, "ctl")
	c.walk(2, "text")
	ctl := c.want(&wire.Tstat{Fid: 1}).(*wire.Rstat).Stat
	with := func(change func(*wire.Stat)) wire.Stat {
		s := wire.DontTouch()
		change(&s)
		return s
	}
	for _, st := range []wire.Stat{
		with(func(*wire.Stat) {}), // a sync
		with(func(s *wire.Stat) { s.Length = 0 }),
		with(func(s *wire.Stat) { s.Mtime, s.Atime = 1, 2 }),
		with(func(s *wire.Stat) { s.Name, s.Mode, s.UID = ctl.Name, ctl.Mode, ctl.UID }),
		ctl,
	} {
		c.want(&wire.Twstat{Fid: 1, Stat: st})
	}
	for _, st := range []wire.Stat{
		with(func(s *wire.Stat) { s.Name = "other" }),
		with(func(s *wire.Stat) { s.Mode = 0o666 }),
		with(func(s *wire.Stat) { s.UID = "other" }),
		with(func(s *wire.Stat) { s.GID = "other" }),
		with(func(s *wire.Stat) { s.MUID = "other" }),
		with(func(s *wire.Stat) { s.Qid.Path = 5 }),
		with(func(s *wire.Stat) { s.Kind = 5 }),
		with(func(s *wire.Stat) { s.Dev = 5 }),
	} {
		c.refused(&wire.Twstat{Fid: 1, Stat: st}, syscall.EPERM)
	}
	c.refused(&wire.Twstat{Fid: 2, Stat: with(func(s *wire.Stat) { s.Length = 0 })}, syscall.EPERM)
	c.refused(&wire.Twstat{Fid: 2, Stat: with(func(s *wire.Stat) { s.Mtime = 0 })}, syscall.EPERM)
}

func TestWhatTheFileSystemIs(t *testing.T) {
	s := serve(t, newFolder(), Options{})
	c := s.client(t, wire.Linux)
	got := c.want(&wire.Tstatfs{Fid: 0}).(*wire.Rstatfs)
	if got.FSType != 0x65735546 || got.BlockSize != 4096 || got.NameLen != 255 || got.BFree == 0 {
		t.Errorf("%+v", got)
	}
}

// What Linux's client asks for on its way and no tree has.
func TestWhatNoTreeOffers(t *testing.T) {
	s := serve(t, newFolder().add("f", newText("x")), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "f", 0)
	c.refused(&wire.Txattrwalk{Fid: 1, NewFid: 2, Name: "security.capability"}, syscall.EOPNOTSUPP)
	c.refused(&wire.Txattrcreate{Fid: 1, Name: "user.x"}, syscall.EOPNOTSUPP)
	c.refused(&wire.Tlock{Fid: 1}, syscall.EOPNOTSUPP)
	c.refused(&wire.Tgetlock{Fid: 1}, syscall.EOPNOTSUPP)
	c.want(&wire.Tfsync{Fid: 1})
	c.refused(&wire.Tread{Fid: 1, Offset: 1 << 63, Count: 10}, syscall.EINVAL)
	if got := c.read(1, 0, 1<<31); got != "x" { // cut to msize
		t.Errorf("read %q", got)
	}
	c.walk(2, "f")
	c.refused(&wire.Tread{Fid: 2, Count: 1}, syscall.EBADF)
}

func TestOpenModes(t *testing.T) {
	root, _ := attrTree()
	s := serve(t, root, Options{})
	l, p := s.client(t, wire.Linux), s.client(t, wire.Plain)
	for _, c := range []*rawClient{l, p} {
		for fid, path := range map[uint32]string{1: "text", 2: "dir", 3: "ctl", 4: "link"} {
			c.walk(fid, path)
		}
		denied := syscall.EPERM // by the file, for the kernel lets root pass
		if os.Geteuid() != 0 {
			denied = syscall.EACCES
		}
		c.refused(c.openMessage(1, 1), denied)
		c.refused(c.openMessage(2, 1), syscall.EISDIR)
		c.want(c.openMessage(1, 0))
		c.refused(c.openMessage(1, 0), syscall.EBADF)
		c.refused(&wire.Twrite{Fid: 1, Data: []byte("x")}, syscall.EBADF)
		c.refused(&wire.Twalk{Fid: 1, NewFid: 1}, syscall.EBADF)
		c.want(c.openMessage(3, 1))
		c.refused(&wire.Tread{Fid: 3, Count: 1}, syscall.EBADF)
		c.want(&wire.Twrite{Fid: 3}) // no bytes
	}
	l.refused(&wire.Tlopen{Fid: 4}, syscall.ELOOP)
	l.walk(5, "text")
	l.refused(&wire.Tlopen{Fid: 5, Flags: wire.LDirectory}, syscall.ENOTDIR)
	l.refused(&wire.Tlopen{Fid: 5, Flags: 3}, syscall.EINVAL)
	l.walk(6, "ctl")
	l.want(&wire.Tlopen{Fid: 6, Flags: wire.LWriteOnly | wire.LCreate | wire.LTruncate | wire.LAppend})
	p.walk(5, "ctl")
	p.refused(&wire.Topen{Fid: 5, Mode: wire.OExec}, syscall.EACCES)
	p.refused(&wire.Topen{Fid: 5, Mode: wire.ORClose}, syscall.EPERM)
	p.refused(&wire.Topen{Fid: 5, Mode: 0x80}, syscall.EINVAL)
	p.want(&wire.Topen{Fid: 5, Mode: wire.OWrite | wire.OTrunc | wire.OCExec})
}

// Fewer bytes than were given are taken where a later line is refused.
func TestLinesBeforeARefusedOneStayDone(t *testing.T) {
	ctl := newControl()
	s := serve(t, newFolder().add("ctl", ctl), Options{})
	c := s.client(t, wire.Linux)
	c.open(1, "ctl", 1)
	got := c.want(&wire.Twrite{Fid: 1, Data: []byte("a\nrefuse 4\nb\n")}).(*wire.Rwrite)
	if got.Count != 2 || len(ctl.lines()) != 1 {
		t.Errorf("%d bytes were taken, done: %q", got.Count, ctl.lines())
	}
	c.refused(&wire.Twrite{Fid: 1, Offset: 2, Data: []byte("refuse 4\nb\n")}, fsErrno(fault.Kind(4)))
}
