package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// errnoOf is what a kernel would tell.
func errnoOf(err error) syscall.Errno {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Errno()
	}
	return fs.Errno(err)
}

func both(t *testing.T, test func(t *testing.T, opt Options)) {
	t.Run("extended", func(t *testing.T) { test(t, Options{}) })
	t.Run("plain", func(t *testing.T) { test(t, Options{Plain: true}) })
}

func TestFilesAreWhatTheServerHas(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := serve(t)
		c := s.dial(opt)
		file := at[fs.File](t, c, "text")
		for range 2 { // the first is what Lookup found
			a, err := file.Attr(t.Context())
			want := int64(len(s.f.text))
			if opt.Plain {
				want = 0
			}
			if err != nil || a.Size != want || a.Ino != 10 || a.Perm != 0o600 || !a.Mtime.Equal(time.Unix(1_700_000_000, 5)) {
				t.Errorf("%+v, %v", a, err)
			}
		}
		h, err := file.Open(t.Context(), fs.Mode{Read: true})
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 300<<10)
		if n, err := h.Read(t.Context(), p, 5); err != nil || string(p[:n]) != "text\n" {
			t.Errorf("%q, %v", p[:n], err)
		}
		h.Release(t.Context())
		if target, err := at[fs.Link](t, c, "link").Readlink(t.Context()); err != nil || target != "sub/deep" {
			t.Errorf("%q, %v", target, err)
		}
		if _, err := c.Root().Lookup(t.Context(), "nothing"); errnoOf(err) != syscall.ENOENT || !fault.Is(err, fault.NotFound) {
			t.Errorf("nothing: %v", err)
		}
	})
}

func TestListingsAreWholeAndShowNoStreams(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		opt.MaxMessage = 8 << 10 // so that they come in parts
		s := serve(t)
		c := s.dial(opt)
		top, err := c.Root().List(t.Context())
		if err != nil || len(top) != len(names)-1 || top[4].Name != "sub" || top[4].Type != fs.Directory || top[5].Type != fs.Symlink {
			t.Errorf("%v, %v", top, err)
		}
		many, err := at[fs.Dir](t, c, "sub").List(t.Context())
		if err != nil || len(many) != 5000 || many[4999].Ino != 5999 {
			t.Errorf("%d entries, %v", len(many), err)
		}
	})
}

func TestDirectoriesAreMadeAndRemoved(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := serve(t)
		c := s.dial(opt)
		sub := at[*dir](t, c, "sub")
		made, err := sub.Mkdir(t.Context(), "new")
		if err != nil {
			t.Fatal(err)
		}
		if a, err := made.Attr(t.Context()); err != nil || a.Type != fs.Directory || a.Links != 0 {
			t.Errorf("%+v, %v", a, err)
		}
		if err := sub.Rmdir(t.Context(), "new"); err != nil {
			t.Error(err)
		}
		if _, err := c.root.Mkdir(t.Context(), "new"); errnoOf(err) != syscall.EPERM {
			t.Errorf("mkdir at the top: %v", err)
		}
		if err := sub.Rmdir(t.Context(), "deep"); errnoOf(err) != syscall.EBUSY {
			t.Errorf("rmdir of what stays: %v", err)
		}
	})
}

// What a kernel tells of closes arrives as it is.
func TestClosesArrive(t *testing.T) {
	yes := func() bool { return true }
	for _, c := range []struct {
		by   fs.Closer
		want string
	}{
		{fs.Closer{}, "write x; flush; release"},
		{fs.Closer{Opener: true}, "write x; flush opener; release"},
		{fs.Closer{Opener: true, Last: yes}, "write x; flush opener last; release"},
		{fs.Closer{Opener: true, Killed: true, Last: yes}, "write x; flush opener killed; release"},
	} {
		s := serve(t)
		client := s.dial(Options{})
		h, err := at[fs.File](t, client, "document").Open(t.Context(), fs.Mode{Write: true})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := h.Write(t.Context(), []byte("x")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if err := h.Flush(t.Context(), c.by); err != nil {
			t.Fatal(err)
		}
		h.Release(t.Context())
		client.Close()
		if got := s.f.all(); got != c.want {
			t.Errorf("%+v: %s; want %s", c.by, got, c.want)
		}
	}
}

func TestRefusalsArriveExactly(t *testing.T) {
	s := serve(t)
	c := s.dial(Options{})
	h, err := at[fs.File](t, c, "refusing").Open(t.Context(), fs.Mode{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), []byte("x")); errnoOf(err) != syscall.EALREADY {
		t.Errorf("write: %v", err)
	}
	h.Release(t.Context())
	s.f.text = "refuse at close"
	h, err = at[fs.File](t, c, "document").Open(t.Context(), fs.Mode{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release(t.Context())
	if err := h.Flush(t.Context(), fs.Closer{Opener: true}); errnoOf(err) != syscall.EFBIG {
		t.Errorf("close: %v", err)
	}
	if _, err := at[*dir](t, c, "sub").Lookup(t.Context(), strings.Repeat("x", 300)); errnoOf(err) != syscall.ENAMETOOLONG {
		t.Errorf("a long name: %v", err) // an errno that no kind has
	}
}

func TestAWriterThatIsCutOffHasSentNothing(t *testing.T) {
	s := serve(t)
	c := s.dial(Options{})
	h, err := at[fs.File](t, c, "document").Open(t.Context(), fs.Mode{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), []byte("half")); err != nil {
		t.Fatal(err)
	}
	live := c.live
	live.nc.Close()
	<-live.dead
	s.shut() // waits until all is released
	if got := s.f.all(); got != "write half; flush killed; release" {
		t.Errorf("the server has %s", got)
	}
	if err := h.Flush(t.Context(), fs.Closer{Opener: true}); errnoOf(err) != syscall.ESTALE {
		t.Errorf("close: %v", err)
	}
}

func TestAStreamWaitsAndIsGivenUpAtOnce(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := serve(t)
		c := s.dial(opt)
		h, err := at[fs.File](t, c, "stream").Open(t.Context(), fs.Mode{Read: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Release(t.Context())
		if got := h.(fs.Streamer).Stream(); got == opt.Plain {
			t.Errorf("stream is %v", got)
		}
		p := make([]byte, 100)
		go func() { <-s.f.reads; s.f.pieces <- "piece" }()
		if n, err := h.Read(t.Context(), p, 0); err != nil || string(p[:n]) != "piece" {
			t.Fatalf("%q, %v", p[:n], err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.f.reads; cancel() }()
		begin := time.Now()
		if _, err := h.Read(ctx, p, 5); errnoOf(err) != syscall.EINTR || !fault.Is(err, fault.Interrupted) {
			t.Errorf("given up: %v", err)
		}
		if d := time.Since(begin); d > patience {
			t.Errorf("giving up took %v", d)
		}
		go func() { <-s.f.reads; close(s.f.pieces) }()
		if n, err := h.Read(t.Context(), p, 5); n != 0 || err != nil {
			t.Errorf("the end: %d, %v", n, err)
		}
		// The client goes on at once; the server's side learns of it on its own.
		for deadline := time.Now().Add(patience); s.f.all() != "interrupted"; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the server has %q", s.f.all())
			}
		}
	})
}

func TestShortRequestsAreNotInterrupted(t *testing.T) {
	s := serve(t)
	c := s.dial(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Root().Lookup(ctx, "text"); err != nil {
		t.Error(err)
	}
	if _, err := c.Root().List(ctx); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreForTheProcessThatAsks(t *testing.T) {
	s := serve(t)
	c := s.dial(Options{})
	for pid := 100; pid < 100+2*maxRoots; pid++ {
		ctx := fs.WithCaller(t.Context(), fs.Caller{PID: pid})
		n, err := c.Root().Lookup(ctx, "text")
		if err == nil {
			_, err = n.Attr(ctx)
		}
		if err == nil {
			_, err = n.Attr(ctx)
		}
		if err != nil || s.f.caller.PID != pid || s.f.caller.UID != uint32(os.Geteuid()) {
			t.Fatalf("process %d: %v, %v", pid, s.f.caller, err)
		}
	}
	if _, err := c.Root().Attr(t.Context()); err != nil || s.f.caller.PID != os.Getpid() {
		t.Errorf("nobody in particular is %v, %v", s.f.caller, err)
	}
}

// Who may not speak for others is taken for itself, and what a mount adds to
// the protocol is nothing to a client that did not ask for it.
func TestOnlyWhoMayRelayIsBelieved(t *testing.T) {
	for _, relay := range []func(int) bool{nil, func(pid int) bool { return pid != os.Getpid() }} {
		s := serveWith(t, relay)
		c := s.dial(Options{})
		if _, err := c.Root().Attr(fs.WithCaller(t.Context(), fs.Caller{PID: 4711})); err != nil || s.f.caller.PID != os.Getpid() {
			t.Errorf("%v, %v", s.f.caller, err)
		}
	}
	s := serve(t)
	c := s.dial(Options{Plain: true})
	if _, err := c.Root().Attr(fs.WithCaller(t.Context(), fs.Caller{PID: 4711})); err != nil || s.f.caller.PID != os.Getpid() {
		t.Errorf("plain: %v, %v", s.f.caller, err)
	}
	session, err := c.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.do(t.Context(), patience, newCall(&wire.Tshut{Fid: 1})); errnoOf(err) != syscall.EOPNOTSUPP {
		t.Errorf("Tshut without the extension: %v", err)
	}
}

func TestTheTreeIsBackWhenTheServerIs(t *testing.T) {
	var log lockedBuffer
	s := serve(t)
	c := s.dial(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	file := at[fs.File](t, c, "text")
	if _, err := file.Attr(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := file.Open(t.Context(), fs.Mode{Read: true})
	if err != nil {
		t.Fatal(err)
	}
	s.shut()
	for range 3 {
		if _, err := file.Attr(t.Context()); errnoOf(err) != syscall.ECONNREFUSED && errnoOf(err) != syscall.EIO {
			t.Errorf("while it is gone: %v", err)
		}
	}
	if _, err := h.Read(t.Context(), make([]byte, 10), 0); errnoOf(err) != syscall.ESTALE {
		t.Errorf("what was open: %v", err)
	}
	s.open()
	if a, err := file.Attr(t.Context()); err != nil || a.Ino != 10 {
		t.Errorf("when it is back: %+v, %v", a, err)
	}
	if _, err := h.Read(t.Context(), make([]byte, 10), 0); errnoOf(err) != syscall.ESTALE {
		t.Errorf("what was open before: %v", err)
	}
	h.Release(t.Context())
	if text := log.String(); strings.Count(text, "WARN") != 1 || strings.Count(text, "INFO") != 1 {
		t.Errorf("the log has\n%s", text)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

func TestManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := serve(t)
		c := s.dial(opt)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				ctx := fs.WithCaller(t.Context(), fs.Caller{PID: 1 + i})
				n, err := c.Root().Lookup(ctx, "text")
				if err != nil {
					t.Error(err)
					return
				}
				h, err := n.(fs.File).Open(ctx, fs.Mode{Read: true})
				if err != nil {
					t.Error(err)
					return
				}
				p := make([]byte, 100)
				if n, err := h.Read(ctx, p, 0); err != nil || string(p[:n]) != s.f.text {
					t.Errorf("%q, %v", p[:n], err)
				}
				h.Release(ctx)
			})
		}
		all.Wait()
		c.Close()
		if n := strings.Count(s.f.all(), "release"); n != 300 {
			t.Errorf("%d of 300 are released", n)
		}
	})
}

// Whoever is no 9P server, or hangs, is found out at once or in time.
func TestWhatIsNoServerIsRefused(t *testing.T) {
	for name, act := range map[string]func(net.Conn){
		"hangs up":  func(nc net.Conn) { nc.Close() },
		"says http": func(nc net.Conn) { nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"is silent": func(net.Conn) {},
		"says unknown": func(nc net.Conn) {
			for range 2 {
				nc.Read(make([]byte, 100))
				nc.Write([]byte{20, 0, 0, 0, 101, 0xff, 0xff, 0, 0x20, 0, 0, 7, 0, 'u', 'n', 'k', 'n', 'o', 'w', 'n'})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/s"
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					act(nc)
				}
			}()
			if c, err := Dial(t.Context(), path, Options{Timeout: 200 * time.Millisecond}); err == nil {
				c.Close()
				t.Error("it is taken for a server")
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for s, want := range map[string]string{
		"/a/b": "unix /a/b", "./b": "unix ./b", "a/b": "unix a/b", "unix:b": "unix b", "127.0.0.1:1": "tcp 127.0.0.1:1",
		"tcp:127.0.0.1:1": "tcp 127.0.0.1:1", "[::1]:5": "tcp [::1]:5", "": "", "b": "", "tcp:b": "", "unix:": "", "192.0.2.1:5": "", ":5": "",
	} {
		network, address, err := ParseAddress(s)
		if got := strings.TrimSpace(network + " " + address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", s, got, err, want)
		}
	}
}
