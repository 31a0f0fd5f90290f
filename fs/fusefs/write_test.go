package fusefs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scvfs/ledger/fault"
)

func TestAControlFileRefusesInTheWrite(t *testing.T) {
	ctl := &control{ino: newIno()}
	s := mountTree(t, newFolder().add("ctl", ctl), Options{})
	for kind, text := range map[fault.Kind]string{
		fault.Invalid: "Invalid argument", fault.Busy: "Device or resource busy", fault.Denied: "Operation not permitted",
		fault.Done: "Operation already in progress", fault.Gone: "Stale file handle", fault.Closed: "Read-only file system",
		fault.Internal: "Input/output error",
	} {
		command := fmt.Sprintf("refuse %d", kind)
		if kind != fault.Internal { // logged as our own fault, which is tested elsewhere
			client(t, s, "bash", "-c", `echo `+command+` >$M/ctl`).wantRefused(t, text)
		}
		sh(t, s, `echo `+command+` | tee -a $M/ctl`).wantRefused(t, text)
		sh(t, s, `echo `+command+` >$M/ctl`).wantRefused(t, "I/O error") // all that dash says
	}
	if got := ctl.lines(); len(got) > 0 {
		t.Errorf("refused commands were done: %q", got)
	}
}

func TestAControlFileDoesEachLineOnce(t *testing.T) {
	ctl := &control{ino: newIno()}
	s := mountTree(t, newFolder().add("ctl", ctl), Options{})
	sh(t, s, `echo one >$M/ctl && echo two >>$M/ctl && printf 'three\nfour' >$M/ctl`).want(t, "")
	client(t, s, "bash", "-c", `printf 'five\nsix\n' >$M/ctl && exec 3<>$M/ctl && echo seven >&3 && cat <&3 >/dev/null`).want(t, "")
	sh(t, s, `: >$M/ctl; truncate -s 0 $M/ctl; touch $M/ctl`).want(t, "")
	want := []string{"one", "two", "three", "four", "five", "six", "seven"}
	if got := ctl.lines(); !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
	sh(t, s, `cat $M/ctl`).want(t, strings.Join(want, "\n"))
}

func TestLinesBeforeARefusedOneStayDone(t *testing.T) {
	ctl := &control{ino: newIno()}
	s := mountTree(t, newFolder().add("ctl", ctl), Options{})
	refusal := fmt.Sprintf("refuse %d", fault.Busy)
	sh(t, s, `printf 'a\nb\n`+refusal+`\nc\n' | tee $M/ctl >/dev/null`).wantRefused(t, "busy")
	if got := ctl.lines(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("done: %q", got)
	}
}

func TestAReadOnlyFileCannotBeOpenedForWriting(t *testing.T) {
	s := mountTree(t, newFolder().add("f", newText("x")), Options{})
	for _, script := range []string{
		`echo y >$M/f`, `echo y >>$M/f`, `truncate -s 0 $M/f`, `touch $M/f`, `: <>$M/f`,
	} {
		if got := sh(t, s, script); got.code == 0 {
			t.Errorf("%s succeeded", script)
		}
	}
	sh(t, s, `cat $M/f`).want(t, "x")
}

// sentBy runs a client on a fresh document and returns what was sent once all
// descriptors are gone.
func sentBy(t *testing.T, program string, args ...string) (sent []string, drops int) {
	t.Helper()
	doc := &document{ino: newIno()}
	s := mountTree(t, newFolder().add("start", doc), Options{})
	client(t, s, program, args...).want(t, "")
	eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
	sent, drops, _ = doc.state()
	return sent, drops
}

func TestADocumentIsSentOnceHoweverItIsWritten(t *testing.T) {
	big := strings.Repeat("0123456789\n", 40_000)
	for _, c := range []struct {
		name, program, script, want string
	}{
		{"dash echo", "dash", `echo hello >$M/start`, "hello\n"},
		{"bash echo", "bash", `echo hello >$M/start`, "hello\n"},
		{"bash append", "bash", `echo hello >>$M/start`, "hello\n"},
		{"bash lines", "bash", `printf 'a\nb\nc\n' >$M/start`, "a\nb\nc\n"},
		{"group", "bash", `{ echo a; echo b; } >$M/start`, "a\nb\n"},
		{"group with other processes", "bash", `{ cat /dev/null; printf a | cat; echo b; } >$M/start`, "ab\n"},
		{"subshell", "dash", `(echo a; (echo b); echo c) >$M/start`, "a\nb\nc\n"},
		{"duplicates", "bash", `exec 3>$M/start 4>&3 5>&4; echo a >&4; exec 4>&-; echo b >&5; exec 5>&-`, "a\nb\n"},
		{"long", "sh", `i=0; yes 0123456789 | head -n 40000 >$M/start`, big},
		{"cat", "sh", `yes 0123456789 | head -n 40000 | cat >$M/start`, big},
		{"here document", "bash", "cat >$M/start <<E\nfirst\nsecond\nE", "first\nsecond\n"},
		{"cp", "sh", `echo x >$TMPDIR/x.$$; cp $TMPDIR/x.$$ $M/start; rm $TMPDIR/x.$$`, "x\n"},
		{"dd", "sh", `printf abc | dd of=$M/start bs=1 status=none conv=fsync`, "abc"},
		{"tee", "sh", `echo x | tee $M/start >/dev/null`, "x\n"},
		{"exit with an error", "bash", `{ echo x; (exit 3); } >$M/start; true`, "x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, c.program)
			t.Setenv("TMPDIR", t.TempDir())
			sent, drops := sentBy(t, c.program, "-c", c.script)
			if len(sent) != 1 || sent[0] != c.want || drops != 0 {
				t.Errorf("sent %d documents, the first %.40q; dropped %d", len(sent), append(sent, "")[0], drops)
			}
		})
	}
}

func TestAnEmptyDocumentIsNotSent(t *testing.T) {
	if sent, _ := sentBy(t, "bash", "-c", `: >$M/start; touch $M/start; exec 3>$M/start; exec 3>&-`); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
}

func TestADocumentIsSentOnceFromPrograms(t *testing.T) {
	for name, c := range map[string]struct{ program, flag, script, want string }{
		"python": {"python3", "-c", `
import os, subprocess
with open(os.environ["M"] + "/start", "w") as f:
    f.write("from python")
    f.flush()
    subprocess.run(["true"], stdout=f)   # closes it, but is not who opened it
    f.write(", twice")
`, "from python, twice"},
		"python threads": {"python3", "-c", `
import os, threading
fd = os.open(os.environ["M"] + "/start", os.O_WRONLY)
def work():
    os.write(fd, b"written by a thread")
    os.close(fd)
t = threading.Thread(target=work); t.start(); t.join()
`, "written by a thread"},
		"node": {"node", "-e", `
const fs = require("fs/promises");
fs.writeFile(process.env.M + "/start", "from node");
`, "from node"},
		"perl": {"perl", "-e", `open F, ">$ENV{M}/start"; print F "from perl"; close F or die`, "from perl"},
	} {
		t.Run(name, func(t *testing.T) {
			need(t, c.program)
			sent, drops := sentBy(t, c.program, c.flag, c.script)
			if len(sent) != 1 || sent[0] != c.want || drops != 0 {
				t.Errorf("sent %q, dropped %d", sent, drops)
			}
		})
	}
}

func TestVimWritesADocument(t *testing.T) {
	need(t, "vim")
	doc := &document{ino: newIno()}
	s := mountTree(t, newFolder().add("start", doc), Options{})
	got := client(t, s, "vim", "-Nu", "NONE", "-es", "-c", "call setline(1, 'from vim')", "-c", "wq", filepath.Join(s.Dir(), "start"))
	if got.code != 0 {
		t.Errorf("vim ended with %+v", got)
	}
	eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
	if sent, drops, _ := doc.state(); len(sent) != 1 || sent[0] != "from vim\n" || drops != 0 {
		t.Errorf("sent %q, dropped %d", sent, drops)
	}
}

func TestASubshellThatOutlivesItsParentSends(t *testing.T) {
	doc := &document{ino: newIno()}
	s := mountTree(t, newFolder().add("start", doc), Options{})
	r := start(t, s, "bash", "-c", `exec 3>$M/start; (read x; echo from the child >&3) <&0 & exit`)
	r.wait()
	if sent, _, _ := doc.state(); len(sent) > 0 {
		t.Fatalf("sent %q while a descriptor is open", sent)
	}
	fmt.Fprintln(r.stdin, "go on")
	eventually(t, "the document", func() bool { sent, _, _ := doc.state(); return len(sent) == 1 })
	if sent, drops, _ := doc.state(); sent[0] != "from the child\n" || drops != 0 {
		t.Errorf("sent %q, dropped %d", sent, drops)
	}
}

func TestAKilledWriterSendsNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			doc := &document{ino: newIno()}
			s := mountTree(t, newFolder().add("start", doc), Options{})
			// A shell cannot be hung up where the tests run under nohup, unless
			// the signal is given back its default.
			w := start(t, s, "env", "--default-signal", "bash", "-c", `exec 3>$M/start; echo half >&3; echo written; read x; echo more >&3`)
			w.says("written")
			w.signal(sig)
			w.wait()
			eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
			if sent, drops, _ := doc.state(); len(sent) > 0 || drops != 1 {
				t.Errorf("sent %q, dropped %d", sent, drops)
			}
		})
	}
}

// Who closes is told apart: the opener, in whatever thread, from others that
// inherited the descriptor.
func TestACloseNamesItsProcess(t *testing.T) {
	need(t, "python3")
	doc := &document{ino: newIno()}
	s := mountTree(t, newFolder().add("start", doc), Options{})
	client(t, s, "python3", "-c", `
import os, threading
fd = os.open(os.environ["M"] + "/start", os.O_WRONLY)
os.write(fd, b"text")
def child(how):
    pid = os.fork()
    if pid == 0: how()
    os.waitpid(pid, 0)
def thread(how):
    t = threading.Thread(target=how); t.start(); t.join()
os.close(os.dup(fd))                                # the opener
child(lambda: (os.close(fd), os._exit(0)))          # another
child(lambda: os._exit(3))                          # another, on exit
child(lambda: os.kill(os.getpid(), 9))              # another, killed
os.write(fd, b"more")
thread(lambda: os.close(os.dup(fd)))                # the opener's other thread
os.close(fd)                                        # the opener
`).want(t, "")
	want := []closer{{opener: true}, {}, {}, {killed: true}, {opener: true}, {opener: true, last: true}}
	doc.mu.Lock()
	defer doc.mu.Unlock()
	if !slices.Equal(doc.closers, want) {
		t.Errorf("closed by %+v, want %+v", doc.closers, want)
	}
}

// The last close is told apart from those after which somebody can still
// write.
func TestALastCloseIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		last   bool // the closes before never are
	}{
		"plain":                {`echo x > $M/start`, true},
		"another descriptor":   {`exec 3>$M/start; echo x >&3; exec 3>&-`, true},
		"a group":              {`{ echo x; echo y; } > $M/start`, true},
		"a child that goes on": {`exec 3>$M/start; sleep 1000 & exec 4>&3 3>&-; echo x >&4; exec 4>&-; kill $!`, false},
		"a child without it":   {`sleep 1000 & echo x > $M/start; kill $!`, true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := &document{ino: newIno()}
			s := mountTree(t, newFolder().add("start", doc), Options{})
			client(t, s, "bash", "-c", c.script).want(t, "")
			eventually(t, "the release", func() bool { _, _, open := doc.state(); return open == 0 })
			doc.mu.Lock()
			defer doc.mu.Unlock()
			for i, by := range doc.closers {
				if want := c.last && i == len(doc.closers)-1; by.last != want {
					t.Errorf("close %d of %d was seen as last: %v", i+1, len(doc.closers), by.last)
				}
			}
		})
	}
}

func TestAFailedCloseIsSeen(t *testing.T) {
	doc := &document{ino: newIno()}
	doc.full.Store(true)
	s := mountTree(t, newFolder().add("start", doc), Options{})
	sh(t, s, `echo x | tee $M/start`).wantRefused(t, "Resource temporarily unavailable")
	if sent, _, _ := doc.state(); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
}
