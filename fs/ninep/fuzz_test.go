package ninep

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// fuzzTree has a file of each kind. closed tells whether nothing is open.
func fuzzTree() (root fs.Dir, closed func() bool) {
	waits, doc, file := newStream(), newDocument(), newScript()
	waits.text = []byte("said before")
	closed = func() bool {
		waiting, _ := waits.readers()
		_, _, open := doc.state()
		did := strings.Join(file.log(), " ")
		return waiting == 0 && open == 0 && strings.Count(did, "open") == strings.Count(did, "release")
	}
	return newWorkshop().add("a", newText("text")).add("b", newControl()).add("c", doc).
		add("d", newFolder().add("l", newLink("../a")).add("m", newLink("../../x"))).hide("w", waits).
		add("e", &growing{ino: newIno(), text: []byte("log")}).add("f", file), closed
}

// FuzzServer lets a client say anything, in one breath, and go. The server
// must come to its end, with all that was open released and no answer to what
// was not asked.
func FuzzServer(f *testing.F) {
	for _, d := range []wire.Dialect{wire.Linux, wire.Plain} {
		f.Add(session9p(d))
		f.Add(session9p(d)[:100])
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		root, closed := fuzzTree()
		s, err := New(root, Options{MaxFids: 20, MaxRequests: 10, MaxMessage: leastMessage, WriteTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		ended := make(chan *conn, 1)
		go func() {
			c := newConn(context.Background(), s, far, fs.Caller{UID: s.uid})
			c.run()
			ended <- c
		}()
		answers := make(chan error, 1)
		go func() { answers <- checkAnswers(near) }()
		near.SetWriteDeadline(time.Now().Add(patience))
		if _, err := near.Write(said); err == nil {
			// What comes after this has no meaning that could be known.
			_, _ = near.Write(make([]byte, 4))
		}
		near.Close()
		c := await(t, "the server", ended)
		if err := await(t, "the answers", answers); err != nil {
			t.Error(err)
		}
		if !closed() {
			t.Error("something is still open")
		}
		if c.running.Load() != 0 || c.fids.Load() != 0 || c.writes.Load() != 0 || c.listed.Load() != 0 || len(c.large) != 0 {
			t.Errorf("left: %d requests, %d fids, %d writes, %d bytes of listings, %d tokens",
				c.running.Load(), c.fids.Load(), c.writes.Load(), c.listed.Load(), len(c.large))
		}
	})
}

// checkAnswers reads frames to the end of a connection. Their dialect is
// whatever they parse in.
func checkAnswers(nc net.Conn) error {
	for {
		head := make([]byte, wire.HeaderSize)
		if _, err := io.ReadFull(nc, head); err != nil {
			return nil
		}
		body := make([]byte, int(head[0])|int(head[1])<<8-wire.HeaderSize)
		if _, err := io.ReadFull(nc, body); err != nil {
			return nil
		}
		t := wire.Type(head[4])
		if _, err := wire.Decode(wire.Linux, t, body); err != nil {
			if _, err := wire.Decode(wire.Plain, t, body); err != nil {
				return err
			}
		}
	}
}

// session9p is all that a client could say.
func session9p(d wire.Dialect) []byte {
	var said []byte
	tag := uint16(0)
	say := func(m wire.Message) {
		tag++
		said, _ = wire.Append(said, d, tag, m)
	}
	say(&wire.Tversion{MSize: 8192, Version: d.String()})
	say(&wire.Tattach{AFid: wire.NoFid})
	if d == wire.Linux {
		say(&wire.Tgetattr{})
	}
	for i, path := range strings.Fields("a b c d w e f d/l d/m d/..") {
		fid := uint32(i + 1)
		say(&wire.Twalk{NewFid: fid, Names: strings.Split(path, "/")})
		if d == wire.Linux {
			say(&wire.Tlopen{Fid: fid, Flags: uint32(i % 3)})
			say(&wire.Treaddir{Fid: fid, Count: 500})
			say(&wire.Tsetattr{Fid: fid, Valid: wire.SetSize})
			say(&wire.Treadlink{Fid: fid})
			say(&wire.Tmkdir{Name: "n"})
			say(&wire.Tunlinkat{Name: "n", Flags: wire.RemoveDir})
		} else {
			say(&wire.Topen{Fid: fid, Mode: uint8(i % 3)})
			say(&wire.Tstat{Fid: fid})
			say(&wire.Twstat{Fid: fid, Stat: wire.DontTouch()})
			say(&wire.Tcreate{Fid: fid, Name: "n", Perm: wire.DMDir})
		}
		say(&wire.Twrite{Fid: fid, Data: []byte("words\nrefuse 3\n")})
		say(&wire.Tread{Fid: fid, Count: 100})
		say(&wire.Tread{Fid: fid, Count: 100})
		say(&wire.Tflush{OldTag: tag})
		if i%2 == 0 {
			say(&wire.Tclunk{Fid: fid})
		} else {
			say(&wire.Tremove{Fid: fid})
		}
	}
	say(&wire.Tversion{MSize: 8192, Version: d.String()})
	return said
}
