package ninep

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"scvfs/fs/ninep/wire"
)

const kib, mib = int64(1) << 10, int64(1) << 20

// memory returns what the program has in use, garbage excluded.
func memory() int64 {
	runtime.GC()
	runtime.GC() // a pool lets go of what it holds at the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// grewBy fails the test if more memory is in use than before by more than
// most.
func grewBy(t *testing.T, before, most int64) {
	t.Helper()
	if grown := memory() - before; grown > most {
		t.Errorf("%d KiB more are in use; %d KiB are promised", grown/kib, most/kib)
	} else {
		t.Logf("%d KiB more are in use of %d", grown/kib, most/kib)
	}
}

// clients returns the connections of a server.
func (s *testServer) clients() (all []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// full waits until a connection has about as many requests as it may: some can
// have ended while the reader waited to refuse one more.
func (s *testServer) full(t *testing.T) {
	t.Helper()
	eventually(t, "the requests", func() bool {
		for _, c := range s.clients() {
			if int(c.running.Load()) > defaultRequests*3/4 {
				return true
			}
		}
		return false
	})
}

// flood sends as many requests as the server takes, until the connection ends.
func flood(c *rawClient, m func(i uint16) wire.Message) {
	c.nc.SetWriteDeadline(time.Time{})
	for i := uint16(1); ; i++ {
		frame, err := wire.Append(nil, c.dialect, i, m(i))
		if err != nil {
			panic(err)
		}
		if _, err := c.nc.Write(frame); err != nil {
			return
		}
	}
}

func TestAClientThatNeverReads(t *testing.T) {
	long := strings.Repeat("x", 512<<10)
	for name, size := range map[string]uint32{"large answers": 512<<10 - wire.IOHeader, "small answers": small} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newFolder().add("long", newText(long)).add("other", newText("fine")), Options{})
			c := s.dial(t)
			c.version(wire.Linux, 512<<10)
			c.attach(0)
			c.open(1, "long", 0)
			before := memory()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				flood(c, func(uint16) wire.Message { return &wire.Tread{Fid: 1, Count: size} })
			}()
			s.full(t)
			if got := s.client(t, wire.Linux).cat("other"); got != "fine" {
				t.Errorf("another client reads %q", got)
			}
			grewBy(t, before, defaultRequests*24*kib+tokens*512*kib+mib)
			c.nc.Close()
			<-ended
		})
	}
}

// Who takes no answers is dropped after a while, and so is who says nothing.
// Who has said its first word may be silent.
func TestClientsThatOnlyHoldAConnectionAreDropped(t *testing.T) {
	s := serve(t, newFolder().add("long", newText(strings.Repeat("x", 60<<10))).add("other", newText("fine")),
		Options{WriteTimeout: 3 * time.Second})
	honest, deaf := s.client(t, wire.Linux), s.client(t, wire.Linux)
	silent, half := s.dial(t), s.dial(t)
	half.raw([]byte{19, 0, 0})
	deaf.open(1, "long", 0)
	flood(deaf, func(uint16) wire.Message { return &wire.Tread{Fid: 1, Count: 60 << 10} }) // it ends by being dropped
	silent.gone()
	half.gone()
	eventually(t, "them to go", func() bool { return len(s.clients()) == 1 })
	if !strings.Contains(s.log.String(), "takes no answers was dropped") {
		t.Error("nobody was told")
	}
	if got := honest.cat("other"); got != "fine" {
		t.Errorf("the honest client reads %q", got)
	}
}

func TestAClientThatWantsTooManyFids(t *testing.T) {
	s := serve(t, newFolder().add("f", newText("fine")), Options{})
	c := s.client(t, wire.Linux)
	before := memory()
	go func() {
		for fid := range uint32(100_000) {
			c.sendAs(uint16(fid%50_000), &wire.Twalk{Fid: 0, NewFid: fid + 1, Names: []string{"f"}})
		}
	}()
	made, refusedBy := 0, map[syscall.Errno]int{}
	for range 100_000 {
		_, m, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if no := errnoOf(m); no != 0 {
			refusedBy[no]++
		} else {
			made++
		}
	}
	if made == 0 || made > defaultFids-1 || refusedBy[syscall.EAGAIN] != 100_000-made {
		t.Errorf("%d fids were made, the others refused by %v", made, refusedBy)
	}
	grewBy(t, before, defaultFids*kib+mib)
	if got := s.client(t, wire.Linux).cat("f"); got != "fine" {
		t.Errorf("another client reads %q", got)
	}
	// One is free again after a clunk.
	for fid := uint32(1); ; fid++ {
		if errnoOf(c.call(&wire.Tclunk{Fid: fid})) == 0 {
			break
		}
	}
	c.want(&wire.Twalk{Fid: 0, NewFid: 200_000})
}

func TestWaitingReadsAreManyAndCheap(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits).add("other", newText("fine")), Options{})
	c := s.dial(t)
	c.version(wire.Linux, 512<<10)
	c.attach(0)
	before := memory()
	for i := range uint32(defaultRequests) {
		c.open(i+1, "waits", 0)
	}
	var first uint16
	for i := range uint32(defaultRequests) {
		tag := c.send(&wire.Tread{Fid: i + 1, Count: 400 << 10})
		if i == 0 {
			first = tag
		}
	}
	eventually(t, "the readers", func() bool { waiting, _ := waits.readers(); return waiting == defaultRequests })
	grewBy(t, before, defaultRequests*25*kib+mib) // a request and a fid each
	c.refused(&wire.Twalk{Fid: 0, NewFid: 50_000}, syscall.EAGAIN)
	if got := s.client(t, wire.Linux).cat("other"); got != "fine" {
		t.Errorf("another client reads %q", got)
	}
	// It can still help itself.
	c.want(&wire.Tflush{OldTag: first})
	c.clunk(1)
	c.clunk(2)
	eventually(t, "room", func() bool { return errnoOf(c.call(&wire.Twalk{Fid: 0, NewFid: 50_000})) == 0 })
}

// Writes beyond what may be under way are refused, and their file is whole no
// more.
func TestWritesBeyondTheLimit(t *testing.T) {
	large := make([]byte, 32<<10)
	g, held, file := newGate(), newScript(), newScript()
	held.stop[string(large)], held.stop["small"] = g, g
	s := serve(t, newFolder().add("stuck", held).add("f", file), Options{MaxMessage: 64 << 10, MaxRequests: 30})
	c := s.client(t, wire.Linux)
	c.open(1, "stuck", 1)
	c.open(2, "f", 1)
	c.open(3, "f", 1)
	var tags []uint16
	for range largeWrites {
		tags = append(tags, c.send(&wire.Twrite{Fid: 1, Data: large}))
	}
	c.refused(&wire.Twrite{Fid: 2, Data: large}, syscall.EAGAIN)
	c.refused(&wire.Twrite{Fid: 77, Data: large}, syscall.EAGAIN)
	c.refused(&wire.Twrite{Fid: 2, Data: []byte("small")}, syscall.ESTALE)
	c.write(3, "small")
	for range 30 - largeWrites {
		tags = append(tags, c.send(&wire.Twrite{Fid: 1, Data: []byte("small")}))
	}
	c.refused(&wire.Twrite{Fid: 3, Data: []byte("too many")}, syscall.EAGAIN)
	c.refused(&wire.Tclunk{Fid: 2}, syscall.ESTALE)
	c.refused(&wire.Tclunk{Fid: 3}, syscall.ESTALE)
	close(g.open)
	for _, tag := range tags {
		if got := c.answer(tag); errnoOf(got) != 0 {
			t.Errorf("%+v", got)
		}
	}
	c.clunk(1)
	if got := strings.Join(file.log(), " "); got != "open open small killed release killed release" {
		t.Errorf("done: %s", got)
	}
}

func TestClientsThatLieAboutSizesAndLeave(t *testing.T) {
	waits := newStream()
	s := serve(t, newFolder().hide("waits", waits).add("ctl", newControl()).add("other", newText("fine")), Options{})
	other := s.client(t, wire.Linux)
	before := memory()
	var liars []*rawClient
	for range defaultClients - 1 {
		c := s.dial(t)
		c.version(wire.Linux, 512<<10)
		c.attach(0)
		c.open(1, "ctl", 1)
		c.open(2, "waits", 0)
		c.send(&wire.Tread{Fid: 2, Count: 500 << 10})
		c.raw(append(header(512<<10, wire.TypeTwrite, 900), 1, 0, 0, 0)) // and no more of it
		liars = append(liars, c)
	}
	eventually(t, "the readers", func() bool { waiting, _ := waits.readers(); return waiting == len(liars) })
	grewBy(t, before, int64(len(liars))*(64+24+512)*kib+mib)
	if got := other.cat("other"); got != "fine" {
		t.Errorf("another client reads %q", got)
	}
	for _, c := range liars {
		c.nc.Close()
	}
	eventually(t, "the liars to go", func() bool { return len(s.clients()) == 1 })
	if waiting, released := waits.readers(); waiting != 0 || released != len(liars) {
		t.Errorf("%d reads wait, %d files were released", waiting, released)
	}
	if got := other.cat("other"); got != "fine" {
		t.Errorf("another client reads %q", got)
	}
	grewBy(t, before, mib)
}

func TestTooManyClients(t *testing.T) {
	s := serve(t, newFolder().add("other", newText("fine")), Options{MaxClients: 2})
	one, two := s.client(t, wire.Linux), s.client(t, wire.Plain)
	s.dial(t).gone()
	one.nc.Close()
	eventually(t, "one to go", func() bool { return len(s.clients()) == 1 })
	for _, c := range []*rawClient{two, s.client(t, wire.Linux)} {
		if got := c.cat("other"); got != "fine" {
			t.Errorf("read %q", got)
		}
	}
}
