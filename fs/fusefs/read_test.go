package fusefs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scvfs/fs"
)

func TestReadGivesExactlyTheContent(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20_000) + "end\n" // more than two requests
	root := newFolder().add("small", newText("hello\n")).add("empty", newText("")).add("big", newText(big))
	s := mountTree(t, root, Options{})

	sh(t, s, `cat $M/small`).want(t, "hello\n")
	sh(t, s, `cat $M/empty`).want(t, "")
	sh(t, s, `cat $M/big`).want(t, big)
	sh(t, s, `wc -c <$M/big; stat -c %s $M/big $M/small $M/empty`).want(t, fmt.Sprintf("%d\n%[1]d\n6\n0\n", len(big)))
	sh(t, s, `dd if=$M/big bs=1000 skip=7 count=1 status=none`).want(t, big[7000:8000])
	sh(t, s, `tail -c 4 $M/big; head -c 5 $M/big`).want(t, "end\n01234")
	sh(t, s, `test -s $M/small && ! test -s $M/empty && echo right`).want(t, "right\n")
	sh(t, s, `while read -r l; do echo "<$l>"; done <$M/small`).want(t, "<hello>\n")
}

func TestReadAtAnyOffset(t *testing.T) {
	need(t, "python3")
	content := strings.Repeat("abcdefghij", 30_000)
	s := mountTree(t, newFolder().add("f", newText(content)), Options{})
	client(t, s, "python3", "-c", `
import os
want = b"abcdefghij" * 30000
fd = os.open(os.environ["M"] + "/f", os.O_RDONLY)
for off in (0, 1, 4095, 4096, 131071, 131072, 299999, 300000, 300001, 1 << 40):
    for n in (1, 10, 4096, 131072, 500000):
        got = b""
        while len(got) < n:
            part = os.pread(fd, n - len(got), off + len(got))
            if not part: break
            got += part
        assert got == want[off:off+n], (off, n, len(got))
print(os.lseek(fd, 0, os.SEEK_END))
`).want(t, "300000\n")
}

func TestOneOpenShowsOneVersion(t *testing.T) {
	need(t, "python3")
	var version atomic.Int64
	f := newText("")
	f.draw = func() string { return strings.Repeat(fmt.Sprint(version.Add(1)%10), 1000) }
	s := mountTree(t, newFolder().add("f", f), Options{})
	client(t, s, "python3", "-c", `
import os
fd = os.open(os.environ["M"] + "/f", os.O_RDONLY)
def whole():
    got = b""
    while True:
        part = os.read(fd, 100)
        if not part: return got
        got += part
a = whole()
os.lseek(fd, 0, 0)
b = whole()
print(len(a), len(set(a)), len(b), len(set(b)), a == b)
`).want(t, "1000 1 1000 1 False\n")
}

func TestTailFollowsAGrowingLog(t *testing.T) {
	log := &growing{ino: newIno(), text: []byte("one\n")}
	s := mountTree(t, newFolder().add("log", log), Options{})
	tail := start(t, s, "tail", "-n", "+1", "-s", ".05", "-f", filepath.Join(s.Dir(), "log"))
	tail.says("one\n")
	for _, line := range []string{"two\n", "three\n", strings.Repeat("x", 200_000) + "\n", "last\n"} {
		log.append(line)
		tail.says(line)
	}
}

func TestArchiversSeeTrueSizes(t *testing.T) {
	need(t, "tar")
	root := newFolder().add("a", newText("first\n")).add("b", newText("second\n")).add("l", link{newIno(), "a"})
	root.add("sub", newFolder().add("c", newText("third\n")))
	root.hide("wait", newStream())
	s := mountTree(t, root, Options{})
	sh(t, s, `tar -C $M -cf - . | tar -tf - | sort`).want(t, "./\n./a\n./b\n./l\n./sub/\n./sub/c\n")
	sh(t, s, `tar -C $M -cf - . | tar -xOf - ./sub/c`).want(t, "third\n")
	sh(t, s, `grep -r o $M | sed s,$M/,, | sort`).want(t, "b:second\n")
	sh(t, s, `cd $M && find . -type f -newermt 2020-01-01 | sort`).want(t, "./a\n./b\n./sub/c\n")
}

func TestAttributesAreFilled(t *testing.T) {
	root := newFolder().add("f", newText(strings.Repeat("x", 5000))).add("d", workshop{newFolder()})
	root.add("l", link{newIno(), "f"}).add("ctl", &control{ino: newIno()})
	s := mountTree(t, root, Options{})
	ids := fmt.Sprintf("%d %d", os.Geteuid(), os.Getegid())
	sh(t, s, `cd $M; stat -c '%n %F %a %s %b %o %h %u %g' . f d l ctl`).want(t, fmt.Sprintf(`. directory 500 0 0 4096 2 %[1]s
f regular file 400 5000 10 4096 1 %[1]s
d directory 700 0 0 4096 2 %[1]s
l symbolic link 777 1 1 4096 1 %[1]s
ctl regular empty file 600 0 0 4096 1 %[1]s
`, ids))
	sh(t, s, `stat -c '%Y %X %Z' $M/f`).want(t, "1700000000 1700000000 1700000000\n")
	sh(t, s, `stat -f -c '%T %s %l' $M`).want(t, "fuseblk 4096 255\n")
	sh(t, s, `test $(stat -f -c %a $M) -gt 0 && du -s --apparent-size -B1 $M/f | cut -f1`).want(t, "5000\n")
	sh(t, s, `du -B512 $M/f | cut -f1`).want(t, "10\n")
	sh(t, s, `readlink $M/l; cat $M/l | wc -c`).want(t, "f\n5000\n")
}

func TestInodeNumbersAreTheTrees(t *testing.T) {
	f := newText("x")
	sub := newFolder().add("f", f)
	root := newFolder().add("sub", sub)
	s := mountTree(t, root, Options{})
	sh(t, s, `stat -c %i $M $M/sub $M/sub/f`).want(t, fmt.Sprintf("%d\n%d\n%d\n", root.ino, sub.ino, f.ino))
	sh(t, s, `ls -aiU $M/sub`).want(t, fmt.Sprintf("%d .\n%d ..\n%d f\n", sub.ino, root.ino, f.ino))
}

func TestMountTableNamesUs(t *testing.T) {
	s := mountTree(t, newFolder(), Options{})
	at, err := mountsAt(s.Dir())
	if err != nil || len(at) != 1 {
		t.Fatalf("mounts on %s: %v, %v", s.Dir(), at, err)
	}
	if m := at[0]; m.kind != "fuse.scvfs" || m.source != "scvfs" || m.uid != os.Geteuid() || m.device != s.device {
		t.Errorf("mounted as %+v", m)
	}
	got := sh(t, s, `grep " $M " /proc/self/mounts`)
	for _, option := range []string{"default_permissions", "nosuid", "nodev", "noexec", "max_read=131072"} {
		if !strings.Contains(got.stdout, option) {
			t.Errorf("%q lacks %s", got.stdout, option)
		}
	}
	if strings.Contains(got.stdout, "allow_other") {
		t.Errorf("%q lets others in", got.stdout)
	}
}

func TestLongNamesAreRefused(t *testing.T) {
	s := mountTree(t, workshop{newFolder()}, Options{})
	name := strings.Repeat("n", 256)
	sh(t, s, `cat $M/`+name).wantRefused(t, "File name too long")
	sh(t, s, `mkdir $M/`+name).wantRefused(t, "File name too long")
	sh(t, s, `cat $M/`+name[1:]).wantRefused(t, "No such file or directory")
}

func TestCachedNamesAndAttributesCanBeTakenBack(t *testing.T) {
	var size atomic.Int64
	size.Store(3)
	f := newText("")
	f.draw = func() string { return strings.Repeat("x", int(size.Load())) }
	f.ttl = time.Hour
	sub := newFolder()
	sub.ttl = time.Hour
	root := newFolder().add("sub", sub.add("f", f))
	root.ttl = time.Hour
	s := mountTree(t, root, Options{})
	look := `stat -c %s $M/sub/f`
	sh(t, s, look).want(t, "3\n")
	size.Store(5)
	sh(t, s, look).want(t, "3\n") // it may be kept, and is
	s.Changed(f.ino)
	sh(t, s, look).want(t, "5\n")

	sub.remove("f")
	sh(t, s, look).want(t, "5\n")
	s.Forget(sub.ino, "f")
	sh(t, s, look).wantRefused(t, "No such file")
	sub.add("f", newText("new one"))
	s.Forget(sub.ino, "f")
	sh(t, s, look).want(t, "7\n")

	root.remove("sub")
	s.Forget(root.ino, "sub") // the root has a number of its own in the protocol
	sh(t, s, look).wantRefused(t, "No such file")
	s.Forget(newIno(), "never seen")
	s.Changed(newIno())
	s.Changed(root.ino)
}

func TestWithoutTTLNothingIsKept(t *testing.T) {
	var content atomic.Value
	content.Store("old")
	f := newText("")
	f.draw = func() string { return content.Load().(string) }
	root := newFolder().add("f", f)
	s := mountTree(t, root, Options{})
	sh(t, s, `cat $M/f; stat -c %s $M/f`).want(t, "old3\n")
	content.Store("newer")
	sh(t, s, `cat $M/f; stat -c %s $M/f`).want(t, "newer5\n")
	root.remove("f")
	sh(t, s, `cat $M/f`).wantRefused(t, "No such file")
	root.add("f", newText("another"))
	sh(t, s, `cat $M/f`).want(t, "another")
}

// A tree whose nodes hold something that ends, as a connection does, gives new
// values for the same things; they must replace the old ones.
func TestTheNewestValueOfANodeIsUsed(t *testing.T) {
	old := newText("old")
	root := newFolder().add("f", old)
	s := mountTree(t, root, Options{})
	hold := start(t, s, "sh", "-c", `exec 3<$M/f; echo open; read x`) // keeps the inode known
	hold.says("open")
	root.remove("f")
	root.add("f", &text{ino: old.ino, draw: func() string { return "new value" }})
	sh(t, s, `cat $M/f`).want(t, "new value")
}

func TestACallersIdentityReachesTheTree(t *testing.T) {
	st := newStream()
	s := mountTree(t, newFolder().hide("wait", st), Options{})
	cat := start(t, s, "cat", filepath.Join(s.Dir(), "wait"))
	eventually(t, "a reader", func() bool { n, _ := st.readers(); return n == 1 })
	st.mu.Lock()
	defer st.mu.Unlock()
	want := fs.Caller{PID: cat.cmd.Process.Pid, UID: uint32(os.Geteuid())}
	if st.callers[0] != want {
		t.Errorf("the caller is %+v, want %+v", st.callers[0], want)
	}
}
