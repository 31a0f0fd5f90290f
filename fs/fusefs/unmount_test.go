package fusefs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scvfs/ledger/fault"
)

func TestUnmountIsOrderlyAndCanBeRepeated(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().add("f", newText("x")).hide("wait", st), Options{})
	sh(t, s, `cat $M/f`).want(t, "x")
	for range 2 {
		if err := s.Unmount(); err != nil {
			t.Fatal(err)
		}
	}
	s.Wait()
	if at, err := mountsAt(s.Dir()); len(at) > 0 || err != nil {
		t.Errorf("still mounted: %v, %v", at, err)
	}
	sh(t, s, `ls -A $M`).want(t, "")
	s.Forget(1, "x") // too late, and no harm
	s.Changed(1)
}

func TestUnmountCutsOffThoseWhoStay(t *testing.T) {
	needControl(t)
	st, doc := newStream(), &document{ino: newIno()}
	root := newFolder().add("sub", newFolder()).add("start", doc).hide("wait", st)
	s := mountTree(t, root, Options{})
	reader := waiter(t, s, st)
	inside := start(t, s, "sh", "-c", `cd $M/sub; echo in; read x; cd .. && echo still here || echo out`)
	writer := start(t, s, "sh", "-c", `exec 3>$M/start; echo half >&3; echo in; read x; echo rest >&3`)
	inside.says("in")
	writer.says("in")
	if err := s.Unmount(); err != nil {
		t.Fatal(err)
	}
	reader.wait()
	if waiting, released := st.readers(); waiting != 0 || released != 1 {
		t.Errorf("%d readers wait, %d were released", waiting, released)
	}
	if sent, drops, open := doc.state(); len(sent) != 0 || drops != 1 || open != 0 {
		t.Errorf("half a document: sent %q, dropped %d, open %d", sent, drops, open)
	}
	if at, _ := mountsAt(s.Dir()); len(at) > 0 {
		t.Errorf("still mounted: %v", at)
	}
}

// Where connections cannot be controlled, the name goes and the daemon is told
// that it has to end before the others are free.
func TestUnmountSaysWhoItCannotCutOff(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := waiter(t, s, st)
	s.abort = func(uint32) error { return os.ErrPermission }
	if err := s.Unmount(); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "permission") {
		t.Errorf("Unmount = %v", err)
	}
	b.signal(syscall.SIGKILL)
	b.wait()
	s.Wait()
}

func TestUnmountWaitsForThoseWhoLeave(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := start(t, s, "sed", "1q", filepath.Join(s.Dir(), "wait"))
	eventually(t, "a reader", func() bool { n, _ := st.readers(); return n == 1 })
	done := make(chan error)
	go func() { done <- s.Unmount() }()
	eventually(t, "the name to go", func() bool { at, _ := mountsAt(s.Dir()); return len(at) == 0 })
	st.say("last words\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.wait()
	if b.status != nil || b.out.String() != "last words\n" {
		t.Errorf("the reader got %q and ended with %v", &b.out, b.status)
	}
}

func TestAnUnmountByOthersEndsTheServer(t *testing.T) {
	need(t, "umount")
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := waiter(t, s, st)
	if got := sh(t, s, `umount $M`); got.code == 0 || !strings.Contains(got.stderr, "busy") {
		t.Errorf("unmounted while busy: %+v", got)
	}
	sh(t, s, `umount -l $M`).want(t, "")
	st.say("bye\n")
	b.says("bye\n")
	b.signal(syscall.SIGTERM)
	b.wait()
	s.Wait()
	if err := s.Unmount(); err != nil {
		t.Error(err)
	}
}

func TestAnAbortedConnectionEndsTheServer(t *testing.T) {
	needControl(t)
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := waiter(t, s, st)
	if err := abort(s.device); err != nil {
		t.Fatal(err)
	}
	b.wait()
	s.Wait()
	if waiting, released := st.readers(); waiting != 0 || released != 1 {
		t.Errorf("%d readers wait, %d were released", waiting, released)
	}
}
