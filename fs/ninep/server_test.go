package ninep

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

func TestServingOverTCP(t *testing.T) {
	l, err := ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(newFolder().add("f", newText("content")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := newRawClient(t, nc)
	c.version(wire.Linux, 8192)
	c.attach(0)
	if got := c.cat("f"); got != "content" {
		t.Errorf("read %q", got)
	}
	cancel() // ends the connections too
	if err := await(t, "the end", served); err != nil {
		t.Error(err)
	}
	c.gone()
	s.Close()
	l, err = ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(context.Background(), l); !fault.Is(err, fault.Gone) {
		t.Errorf("serving on a closed server: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("it left the listener open")
	}
}

func TestAFailingListenerEndsServe(t *testing.T) {
	s, err := New(newFolder(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Serve(context.Background(), l); !fault.Is(err, fault.Internal) {
		t.Errorf("%v", err)
	}
	s.Close()
}

func TestARootThatIsNoDirectoryIsRefused(t *testing.T) {
	if _, err := New(bombDir{newBomb("attr", func() (int, error) { return 0, fault.New(fault.Busy, "no") })}, Options{}); !fault.Is(err, fault.Busy) {
		t.Errorf("%v", err)
	}
	if _, err := New(&folder{}, Options{}); !fault.Is(err, fault.Internal) {
		t.Errorf("%v", err)
	}
}

// poor is a listener that runs out of descriptors before it gives one.
type poor struct {
	net.Listener
	failures int
}

func (p *poor) Accept() (net.Conn, error) {
	if p.failures--; p.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return p.Listener.Accept()
}

func TestRunningOutOfDescriptorsIsNotTheEnd(t *testing.T) {
	s := serve(t, newFolder(), Options{})
	path := s.path + "2"
	served := make(chan error, 1)
	l := &poor{Listener: listenAt(t, path), failures: 2}
	go func() { served <- s.Serve(context.Background(), l) }()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	newRawClient(t, nc).version(wire.Linux, 8192)
	s.Close()
	if err := await(t, "the end", served); err != nil {
		t.Error(err)
	}
}
