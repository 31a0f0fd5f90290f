package ninep

import (
	"encoding/binary"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

func TestVersionsAreAgreedOn(t *testing.T) {
	s := serve(t, newFolder(), Options{MaxMessage: 100_000})
	for _, c := range []struct {
		msize   uint32
		version string
		want    wire.Rversion
	}{
		{8192, "9P2000.L", wire.Rversion{MSize: 8192, Version: "9P2000.L"}},
		{8192, "9P2000", wire.Rversion{MSize: 8192, Version: "9P2000"}},
		{8192, "9P2000.u", wire.Rversion{MSize: 8192, Version: "9P2000"}},
		{8192, "9P2000.L.more", wire.Rversion{MSize: 8192, Version: "9P2000.L"}},
		{8192, "9P2000.Lx", wire.Rversion{MSize: 8192, Version: "9P2000"}},
		{8192, "9P20000", wire.Rversion{MSize: 8192, Version: "unknown"}},
		{8192, "9P1999.L", wire.Rversion{MSize: 8192, Version: "unknown"}},
		{8192, "", wire.Rversion{MSize: 8192, Version: "unknown"}},
		{0xffffffff, "9P2000.L", wire.Rversion{MSize: 100_000, Version: "9P2000.L"}},
		{256, "9P2000.L", wire.Rversion{MSize: 256, Version: "9P2000.L"}},
		{255, "9P2000.L", wire.Rversion{MSize: 255, Version: "unknown"}},
		{0, "9P2000", wire.Rversion{MSize: 0, Version: "unknown"}},
	} {
		got, ok := s.dial(t).ask(wire.NoTag, &wire.Tversion{MSize: c.msize, Version: c.version}).(*wire.Rversion)
		if !ok || *got != c.want {
			t.Errorf("%d, %q: %+v, want %+v", c.msize, c.version, got, c.want)
		}
	}
}

// header is the beginning of a frame that claims a size.
func header(size uint32, typ wire.Type, tag uint16) []byte {
	b := binary.LittleEndian.AppendUint32(nil, size)
	return binary.LittleEndian.AppendUint16(append(b, byte(typ)), tag)
}

func TestWhatBreaksTheProtocolEndsTheConnection(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits), Options{})
	for name, c := range map[string]struct {
		fresh bool // before Tversion
		send  func(c *rawClient)
	}{
		"no Tversion first":        {true, func(c *rawClient) { c.send(&wire.Tattach{AFid: wire.NoFid}) }},
		"too long a first message": {true, func(c *rawClient) { c.raw(header(greeting+1, wire.TypeTversion, wire.NoTag)) }},
		"a first message too short": {true, func(c *rawClient) {
			c.raw(append(header(11, wire.TypeTversion, wire.NoTag), 1, 2, 3, 4))
		}},
		"an unknown version, then a request": {true, func(c *rawClient) {
			c.ask(wire.NoTag, &wire.Tversion{MSize: 8192, Version: "no"})
			c.send(&wire.Tattach{AFid: wire.NoFid})
		}},
		"larger than msize": {false, func(c *rawClient) { c.raw(header(64<<10+1, wire.TypeTclunk, 1)) }},
		"size 4 GiB":        {false, func(c *rawClient) { c.raw(header(0xffffffff, wire.TypeTwrite, 1)) }},
		"size 6":            {false, func(c *rawClient) { c.raw(header(6, wire.TypeTclunk, 1)) }},
		"size 0":            {false, func(c *rawClient) { c.raw(header(0, wire.TypeTclunk, 1)) }},
		"a body too short":  {false, func(c *rawClient) { c.raw(append(header(9, wire.TypeTclunk, 1), 1, 2)) }},
		"a body too long":   {false, func(c *rawClient) { c.raw(append(header(12, wire.TypeTclunk, 1), 1, 2, 3, 4, 5)) }},
		"a write of more than it holds": {false, func(c *rawClient) {
			frame := c.frame(1, &wire.Twrite{Fid: 0, Data: []byte("abc")})
			frame[wire.HeaderSize+12] = 200
			c.raw(frame)
		}},
		"a tag used twice": {false, func(c *rawClient) {
			c.open(1, "waits", 0)
			c.sendAs(500, &wire.Tread{Fid: 1, Count: 10})
			c.sendAs(500, &wire.Tgetattr{Fid: 0})
		}},
		"a tag used twice, for a flush": {false, func(c *rawClient) {
			c.open(1, "waits", 0)
			c.sendAs(500, &wire.Tread{Fid: 1, Count: 10})
			c.sendAs(500, &wire.Tflush{OldTag: 500})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client := s.dial(t)
			if !c.fresh {
				client = s.client(t, wire.Linux)
			}
			c.send(client)
			client.gone()
		})
	}
	s.client(t, wire.Linux).want(&wire.Tgetattr{Fid: 0})
	eventually(t, "all handles to be released", func() bool { _, released := waits.readers(); return released == 2 })
}

func TestWhatCanBeAnsweredIs(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		s := serve(t, newFolder(), Options{})
		c := s.client(t, d)
		other := &wire.Tlopen{Fid: 0}
		c.raw(append(header(15, wire.TypeTlopen, 300), 0, 0, 0, 0, 0, 0, 0, 0))
		if d == wire.Linux {
			c.answer(300)
			c.raw(append(header(12, wire.TypeTopen, 300), 0, 0, 0, 0, 0))
		}
		if got := c.answer(300); errnoOf(got) != syscall.EOPNOTSUPP {
			t.Errorf("%T of the other dialect: %+v", other, got)
		}
		c.raw(header(7, 250, 301))
		if got := c.answer(301); errnoOf(got) != syscall.EOPNOTSUPP {
			t.Errorf("type 250: %+v", got)
		}
		c.refused(&wire.Rflush{}, syscall.EOPNOTSUPP)
		frame := c.frame(302, &wire.Twalk{Fid: 0, NewFid: 1, Names: strings.Split(strings.Repeat("x", 16), "")})
		frame = append(frame, 1, 0, 'x')
		binary.LittleEndian.PutUint32(frame, uint32(len(frame)))
		frame[wire.HeaderSize+8] = 17
		c.raw(frame)
		if got := c.answer(302); errnoOf(got) != syscall.EINVAL {
			t.Errorf("17 names: %+v", got)
		}
		c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF)
	})
}

func TestFidsThatAreNoneAreRefused(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		s := serve(t, newFolder().add("f", newText("x")), Options{})
		c := s.client(t, d)
		for _, fid := range []uint32{7, wire.NoFid} {
			all := []wire.Message{
				&wire.Twalk{Fid: fid, NewFid: 8}, &wire.Tread{Fid: fid, Count: 1}, &wire.Twrite{Fid: fid, Data: []byte("x")},
				&wire.Tclunk{Fid: fid}, &wire.Tremove{Fid: fid},
			}
			if d == wire.Plain {
				all = append(all, &wire.Topen{Fid: fid}, &wire.Tcreate{Fid: fid, Name: "x"}, &wire.Tstat{Fid: fid},
					&wire.Twstat{Fid: fid, Stat: wire.DontTouch()})
			} else {
				all = append(all, &wire.Tstatfs{Fid: fid}, &wire.Tlopen{Fid: fid}, &wire.Tlcreate{Fid: fid, Name: "x"},
					&wire.Tsymlink{Fid: fid}, &wire.Tmknod{DFid: fid}, &wire.Trename{Fid: fid, DFid: 0}, &wire.Trename{Fid: 0, DFid: fid},
					&wire.Treadlink{Fid: fid}, &wire.Tgetattr{Fid: fid}, &wire.Tsetattr{Fid: fid}, &wire.Txattrwalk{Fid: fid},
					&wire.Txattrcreate{Fid: fid}, &wire.Treaddir{Fid: fid}, &wire.Tfsync{Fid: fid}, &wire.Tlock{Fid: fid},
					&wire.Tgetlock{Fid: fid}, &wire.Tlink{DFid: fid, Fid: 0}, &wire.Tlink{DFid: 0, Fid: fid}, &wire.Tmkdir{DFid: fid},
					&wire.Trenameat{OldDirFid: fid}, &wire.Trenameat{NewDirFid: fid}, &wire.Tunlinkat{DFid: fid})
			}
			for _, m := range all {
				c.refused(m, syscall.EBADF)
			}
		}
		c.refused(&wire.Twalk{Fid: 0, NewFid: wire.NoFid}, syscall.EBADF)
		c.refused(&wire.Tattach{Fid: wire.NoFid, AFid: wire.NoFid}, syscall.EBADF)
		c.walk(1, "f")
		c.refused(&wire.Twalk{Fid: 0, NewFid: 1}, syscall.EBADF)
		c.refused(&wire.Tattach{Fid: 1, AFid: wire.NoFid}, syscall.EBADF)
		c.refused(&wire.Tread{Fid: 1, Count: 1}, syscall.EBADF) // it is not open
		c.refused(&wire.Twrite{Fid: 1, Data: []byte("x")}, syscall.EBADF)
	})
}

func TestAttach(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		s := serve(t, newFolder(), Options{})
		c := s.client(t, d)
		c.refused(&wire.Tauth{AFid: 5, UName: "root"}, syscall.ENOENT)
		c.refused(&wire.Tattach{Fid: 5, AFid: 5}, syscall.EBADF)
		c.refused(&wire.Tattach{Fid: 5, AFid: wire.NoFid, AName: "elsewhere"}, syscall.ENOENT)
		got := c.want(&wire.Tattach{Fid: 5, AFid: wire.NoFid, AName: "/"}).(*wire.Rattach)
		if got.Qid != s.root.qid || got.Qid.Type != wire.QTDir {
			t.Errorf("the root is %+v", got.Qid)
		}
	})
}

// A Tversion gives up all that was under way, and closes what was open as if
// its writer had been killed.
func TestAVersionBeginsANewSession(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		doc, waits := newDocument(), newStream()
		s := serve(t, newFolder().add("start", doc).hide("waits", waits), Options{})
		c := s.client(t, d)
		c.open(1, "start", 1)
		c.write(1, "half")
		c.open(2, "waits", 0)
		c.send(&wire.Tread{Fid: 2, Count: 100})
		eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
		// ask fails if an answer to the read comes first, for its tag is unknown then.
		c.sendAs(wire.NoTag, &wire.Tversion{MSize: 8192, Version: d.String()})
		tag, m, err := c.next()
		if v, ok := m.(*wire.Rversion); err != nil || tag != wire.NoTag || !ok || v.MSize != 8192 {
			t.Fatalf("the next answer is %d, %+v, %v", tag, m, err)
		}
		c.refused(&wire.Tclunk{Fid: 1}, syscall.EBADF)
		c.attach(1)
		eventually(t, "the old files to be closed", func() bool {
			waiting, released := waits.readers()
			_, drops, open := doc.state()
			return waiting == 0 && released == 1 && drops == 1 && open == 0
		})
		if sent, _, _ := doc.state(); len(sent) > 0 {
			t.Errorf("sent %q", sent)
		}
	})
}

func TestErrorsAreSaidInEachDialect(t *testing.T) {
	dialects(t, func(t *testing.T, d wire.Dialect) {
		s := serve(t, newFolder().add("ctl", newControl()), Options{})
		c := s.client(t, d)
		c.refused(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{"absent"}}, syscall.ENOENT)
		c.open(1, "ctl", 1)
		for _, kind := range fault.Kinds() {
			if kind == fault.Interrupted {
				continue
			}
			want := fsErrno(kind)
			got := c.call(&wire.Twrite{Fid: 1, Data: []byte("refuse " + string('0'+rune(kind)/10) + string('0'+rune(kind)%10))})
			if errnoOf(got) != want {
				t.Errorf("%v: %+v, want %v", kind, got, want)
			}
			if m, ok := got.(*wire.Rerror); ok && strings.HasPrefix(m.Ename, "Unknown") {
				t.Errorf("%v has no words", kind)
			}
		}
		// Who was not interrupted is not told so.
		if got := c.call(&wire.Twrite{Fid: 1, Data: []byte("refuse 13")}); errnoOf(got) != syscall.EIO {
			t.Errorf("interrupted by nobody: %+v", got)
		}
	})
}
