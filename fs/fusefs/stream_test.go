package fusefs

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// waiter starts a reader of the stream "wait" and returns once it waits.
func waiter(t *testing.T, s *Server, st *stream) *background {
	t.Helper()
	before, _ := st.readers()
	b := start(t, s, "cat", filepath.Join(s.Dir(), "wait"))
	eventually(t, "one more reader", func() bool { n, _ := st.readers(); return n == before+1 })
	return b
}

func TestAStreamGivesWhatComes(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := waiter(t, s, st)
	for _, line := range []string{"one\n", "two\n", strings.Repeat("x", 300_000) + "\n", "last\n"} {
		st.say(line)
		b.says(line)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if !slices.IsSorted(st.offs) || st.offs[0] != 0 || slices.Index(st.offs[1:], 0) >= 0 {
		t.Errorf("read at offsets %v; only the first may be 0", st.offs)
	}
}

func TestASignalEndsAWaitAtOnce(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			st := newStream()
			s := mountTree(t, newFolder().hide("wait", st), Options{})
			b := waiter(t, s, st)
			b.signal(sig)
			b.wait()
			eventually(t, "the release", func() bool { waiting, released := st.readers(); return waiting == 0 && released == 1 })
		})
	}
}

func TestAnInterruptedWaitDisturbsNoOther(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st).add("f", newText("still here\n")), Options{})
	a, b, c := waiter(t, s, st), waiter(t, s, st), waiter(t, s, st)
	b.signal(syscall.SIGKILL)
	b.wait()
	eventually(t, "two readers", func() bool { n, _ := st.readers(); return n == 2 })
	sh(t, s, `cat $M/f`).want(t, "still here\n")
	st.say("news\n")
	a.says("news\n")
	c.says("news\n")
}

func TestManyWaitsHinderNobody(t *testing.T) {
	need(t, "python3")
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st).add("f", newText("fine\n")), Options{})
	const n = 100
	b := start(t, s, "python3", "-c", `
import os, threading
def wait():
    fd = os.open(os.environ["M"] + "/wait", os.O_RDONLY)
    os.read(fd, 4096)
ts = [threading.Thread(target=wait) for _ in range(100)]
for t in ts: t.start()
for t in ts: t.join()
print("all woke")
`)
	eventually(t, "all readers", func() bool { waiting, _ := st.readers(); return waiting == n })
	sh(t, s, `cat $M/f; ls $M`).want(t, "fine\nf\n")
	st.say("wake up\n")
	b.says("all woke")
}

// A program that handles the signal asks again; no line is lost or doubled.
func TestAReadIsRetriedAfterAHandledSignal(t *testing.T) {
	need(t, "python3")
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	b := start(t, s, "python3", "-u", "-c", `
import os, signal
signal.signal(signal.SIGUSR1, lambda *a: print("signal"))
fd = os.open(os.environ["M"] + "/wait", os.O_RDONLY)
print("got", os.read(fd, 100))
`)
	eventually(t, "a reader", func() bool { n, _ := st.readers(); return n == 1 })
	b.signal(syscall.SIGUSR1)
	b.says("signal")
	eventually(t, "the reader's return", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.waiting == 1 && len(st.offs) == 2
	})
	st.say("news\n")
	b.says(`got b'news\n'`)
}

func TestANonBlockingReadDoesNotWait(t *testing.T) {
	need(t, "python3")
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	client(t, s, "python3", "-c", `
import os
fd = os.open(os.environ["M"] + "/wait", os.O_RDONLY | os.O_NONBLOCK)
try: os.read(fd, 100)
except BlockingIOError: print("nothing yet")
try: os.lseek(fd, 0, os.SEEK_SET)
except OSError as e: print(e.strerror)
`).want(t, "nothing yet\nIllegal seek\n")
}
