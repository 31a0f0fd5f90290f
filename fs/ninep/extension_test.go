package ninep

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/fs"
	"scvfs/fs/ninep/origin"
	"scvfs/fs/ninep/wire"
)

// ownClient connects as package client does, for a process.
func (s *testServer) ownClient(t testing.TB, forPID int) *rawClient {
	t.Helper()
	c := s.dial(t)
	c.dialect, c.msize = wire.Linux, 64<<10
	got, ok := c.ask(wire.NoTag, &wire.Tversion{MSize: c.msize, Version: wire.Extended}).(*wire.Rversion)
	if !ok || got.Version != wire.Extended {
		t.Fatalf("the version is %+v", got)
	}
	c.want(&wire.Tattach{Fid: 0, AFid: wire.NoFid, UName: origin.Of(forPID)})
	return c
}

func TestOurOwnClientTellsOfEachClose(t *testing.T) {
	doc := newDocument()
	s := serve(t, newFolder().add("start", doc), Options{})
	c := s.ownClient(t, os.Getpid())
	c.open(1, "start", 1)
	for _, flags := range []uint32{0, wire.ShutOpener, wire.ShutOpener | wire.ShutLast} {
		c.write(1, "x")
		c.want(&wire.Tshut{Fid: 1, Flags: flags})
	}
	c.clunk(1)
	if want := []closer{{}, {opener: true}, {opener: true, last: true}}; !slices.Equal(doc.closers, want) {
		t.Errorf("closed by %+v, want %+v", doc.closers, want)
	}
	if sent, drops, open := doc.state(); !slices.Equal(sent, []string{"xxx"}) || drops != 0 || open != 0 {
		t.Errorf("sent %q, dropped %d, %d open", sent, drops, open)
	}
	c.open(1, "start", 1)
	c.write(1, "half")
	c.want(&wire.Tshut{Fid: 1, Flags: wire.ShutKilled})
	c.clunk(1)
	doc.full.Store(true)
	c.open(1, "start", 1)
	c.write(1, "refused")
	c.refused(&wire.Tshut{Fid: 1, Flags: wire.ShutOpener}, syscall.EAGAIN)
	if _, drops, _ := doc.state(); drops != 1 {
		t.Errorf("%d writers were killed", drops)
	}
	c.walk(2, "start")
	c.refused(&wire.Tshut{Fid: 2}, syscall.EBADF)
	other := s.client(t, wire.Linux)
	other.open(1, "start", 1)
	other.refused(&wire.Tshut{Fid: 1}, syscall.EOPNOTSUPP)
}

func TestOurOwnClientSeesSizesAndStreams(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().add("text", newText("four")).hide("waits", waits), Options{})
	c := s.ownClient(t, os.Getpid())
	c.walk(1, "text")
	if got := c.want(&wire.Tgetattr{Fid: 1}).(*wire.Rgetattr); got.Size != 4 {
		t.Errorf("the size is %d", got.Size)
	}
	if got := c.want(&wire.Tlopen{Fid: 1}).(*wire.Rlopen); got.Qid.Type != 0 {
		t.Errorf("a text is opened as %+v", got.Qid)
	}
	c.walk(2, "waits")
	if got := c.want(&wire.Tlopen{Fid: 2}).(*wire.Rlopen); got.Qid.Type != wire.QTStream {
		t.Errorf("a stream is opened as %+v", got.Qid)
	}
}

// Who may speak for others is asked of Relay; nobody may without it.
func TestOnlyARelaySpeaksForOthers(t *testing.T) {
	own, init := os.Getpid(), 1
	for name, c := range map[string]struct {
		relay func(int) bool
		as    int
		want  int
	}{
		"no relay":                 {nil, init, own},
		"not this one":             {func(pid int) bool { return pid != own }, init, own},
		"this one":                 {func(pid int) bool { return pid == own }, init, init},
		"for nobody in particular": {func(int) bool { return true }, 0, own},
	} {
		t.Run(name, func(t *testing.T) {
			waits := newStream()
			s := serve(t, newFolder().hide("waits", waits), Options{Relay: c.relay})
			client := s.ownClient(t, c.as)
			client.open(1, "waits", 0)
			waits.say("x")
			client.read(1, 0, 10)
			if got, want := waits.callers[0], (fs.Caller{PID: c.want, UID: uint32(os.Geteuid()), Bound: true}); got != want {
				t.Errorf("asked by %+v, want %+v", got, want)
			}
		})
	}
}

// An answer that msize has no room for is an error, not a longer frame.
func TestAnAnswerThatDoesNotFit(t *testing.T) {
	target := strings.Repeat("long/", 100)
	s := serve(t, newFolder().add("l", newLink(target)), Options{})
	c := s.dial(t)
	c.version(wire.Linux, shortest)
	c.attach(0)
	c.walk(1, "l")
	c.refused(&wire.Treadlink{Fid: 1}, syscall.EMSGSIZE)
	c.want(&wire.Tgetattr{Fid: 1})
	c.want(&wire.Tstatfs{Fid: 1})
	c.want(&wire.Twalk{Fid: 0, NewFid: 2, Names: slices.Repeat([]string{".."}, wire.MaxWalk)})
}

// A request that is long and no write is taken like any other.
func TestALongRequest(t *testing.T) {
	s := serve(t, newFolder(), Options{})
	c := s.client(t, wire.Linux)
	c.refused(&wire.Tsymlink{Name: "x", Target: strings.Repeat("x", 20_000)}, syscall.EPERM)
	c.refused(&wire.Twalk{Fid: 0, NewFid: 1, Names: []string{strings.Repeat("x", 50_000)}}, syscall.ENAMETOOLONG)
}
