package attach

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLargePasteGoesInPiecesAndInOrder(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	r := start(u, f, nil)
	f.draw("\x1b[?2004hhello")
	u.until("the mode", func() bool { return u.screen.Modes().BracketedPaste })
	var b strings.Builder
	for i := range 20000 {
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), i%7))
		b.WriteString("好\n")
	}
	paste := pasteBegin + b.String() + pasteEnd
	u.types(paste)
	f.until("the paste", func() bool { return len(f.typed) >= len(paste) })
	if string(f.typed) != paste {
		t.Error("the paste came otherwise than it went")
	}
	if least := len(paste) / maxPiece; f.pieces < least {
		t.Errorf("%d bytes went in %d pieces", len(paste), f.pieces)
	}
	u.types("\x1c")
	if _, err := r.leaves(); err != nil {
		t.Error(err)
	}
}

// A program that does not read delays what is typed, and nothing else; nothing
// of it is lost, and nothing goes twice.
func TestProgramThatDoesNotReadDelaysTypingAlone(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	tries := 0
	f.refuse = func() error { tries++; return syscall.EAGAIN }
	start(u, f, nil)
	u.types("one ")
	f.until("a try", func() bool { return tries > 0 })
	u.until("the bell", func() bool { return strings.Contains(u.raw.String(), bell) })
	f.draw("still drawn")
	u.sees(f.screen)
	u.types("two")
	f.until("another try", func() bool { return tries > 1 })
	f.set(func() { f.refuse = nil })
	f.until("what was typed", func() bool { return string(f.typed) == "one two" })
}

func TestDetachingFromAProgramThatDoesNotRead(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	f.refuse = func() error { return syscall.EAGAIN }
	r := start(u, f, nil)
	u.types("lost\x1c")
	if said, err := r.leaves(); err != nil || said != detached+"; what was typed last has not gone: the program does not read" {
		t.Errorf("it says %q, %v", said, err)
	}
}

// A second detach key does not wait for a write that waits itself.
func TestSecondDetachKeyLeavesAtOnce(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	waits, free := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(free) })
	f.refuse = func() error {
		f.mu.Unlock()
		defer f.mu.Lock()
		close(waits)
		<-free
		return syscall.EAGAIN
	}
	r := start(u, f, nil)
	u.types("x")
	<-waits
	u.types("\x1c\x1c")
	if said, err := r.leaves(); err != nil || said != detached {
		t.Errorf("it says %q, %v", said, err)
	}
}

func TestRefusedWriteIsTold(t *testing.T) {
	f, u := newFake(t, 60, 12), newUser(t, 60, 12)
	f.refuse = func() error { return syscall.EPERM }
	r := start(u, f, nil)
	u.types("x")
	if _, err := r.leaves(); err == nil || err.Error() != "write input: operation not permitted" {
		t.Errorf("the error is %v", err)
	}
}

// What the user types while the client leaves by itself was meant for the
// agent: their shell must not run it.
func TestShellDoesNotGetWhatWasTypedForTheAgent(t *testing.T) {
	u := newUser(t, 60, 12)
	term := u.terminal()
	if err := term.own(); err != nil {
		t.Fatal(err)
	}
	u.types("rm -rf build\r")
	waiting := func() int {
		n, err := unix.IoctlGetInt(int(u.slave.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	term.leave(true)
	if n := waiting(); n != 0 {
		t.Errorf("%d bytes wait for the shell", n)
	}
	u.isBack()
}

func TestQueueIsBounded(t *testing.T) {
	q := newQueue()
	if !q.push(make([]byte, maxQueue)) || q.push([]byte("x")) {
		t.Error("the bound is another")
	}
	q.drop(maxPiece)
	q.close()
	if !q.push([]byte("x")) {
		t.Error("a closed queue is full")
	}
	total := 0
	for p, _ := q.piece(); len(p) > 0; p, _ = q.piece() {
		total += len(p)
		q.drop(len(p))
	}
	if total != maxQueue-maxPiece {
		t.Errorf("%d bytes were left", total)
	}
}

// A terminal that takes no output, as one behind a dead connection, does not
// keep the client from ending.
func TestTerminalThatTakesNoOutputDoesNotHoldItUp(t *testing.T) {
	f, u := newFake(t, 200, 50), newUser(t, 200, 50)
	r := start(u, f, nil)
	u.mu.Lock() // nobody reads the terminal from here on
	defer u.mu.Unlock()
	for i := range 100 {
		f.draw("\x1b[H" + strings.Repeat(string(rune('a'+i%26)), 200*50))
	}
	r.signals <- unix.SIGTERM
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatal("the client does not leave")
	}
	if now := u.settings(); now != u.before {
		t.Errorf("the terminal's settings are %+v, were %+v", now, u.before)
	}
}
