package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// bloated makes a ledger that was big once, and returns what it holds.
func bloated(t *testing.T, dir string) string {
	t.Helper()
	l := open(t, dir)
	l.db.NoSync = true // speed; it is closed before anybody looks
	const n = 40
	commit(t, l, func(b *Batch) {
		b.PutSession(aSession("a", 1, n+1))
		for i := uint64(1); i <= n; i++ {
			j := aJob("a", i, i+1)
			j.Detail = strings.Repeat("x", 600<<10)
			b.PutJob(j)
		}
	})
	commit(t, l, func(b *Batch) {
		for i := uint64(1); i < n; i++ {
			b.DeleteJob("a", i)
		}
	})
	putRaw(t, l, runs, "sh-123456", "noise that has to stay")
	text := dump(t, l)
	if l.Size() < compactAbove {
		t.Fatalf("it has only %d bytes", l.Size())
	}
	for _, err := range l.Check() {
		if !strings.Contains(err.Error(), "sh-123456") {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return text
}

func forgetNoise(t *testing.T, l *Ledger) {
	t.Helper()
	commit(t, l, func(b *Batch) { b.DeleteRun("sh-123456") })
}

func TestABigFileThatIsMostlyFreeIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	want := bloated(t, dir)
	writeFile(t, filepath.Join(dir, fileName+".compact"), "half a copy of a daemon that died")
	l := open(t, dir)
	if l.Size() > 2<<20 {
		t.Errorf("it still has %d bytes", l.Size())
	}
	if got := dump(t, l); got != want {
		t.Error("its contents changed")
	}
	if mode(t, fileOf(l)) != 0o600 {
		t.Errorf("mode %v", mode(t, fileOf(l)))
	}
	refused(t, dir, fault.Busy, "another scvfs")
	forgetNoise(t, l)
	size := l.Size()
	l = reopen(t, l)
	if l.Size() != size {
		t.Errorf("reopening changed the size from %d to %d", size, l.Size())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestAFileThatCannotBeCompactedServesAsItIs(t *testing.T) {
	disk := smallDisk(t, "64m")
	dir := filepath.Join(disk, "state")
	want := bloated(t, dir)
	filler := fillUp(t, disk)
	l := open(t, dir)
	if got := dump(t, l); got != want || l.Size() < compactAbove {
		t.Errorf("it has %d bytes, and the same contents: %v", l.Size(), got == want)
	}
	if _, err := os.Lstat(filepath.Join(dir, fileName+".compact")); err == nil {
		t.Error("half a copy stays behind")
	}
	forgetNoise(t, l)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if l = reopen(t, l); l.Size() > 2<<20 {
		t.Errorf("with room again it still has %d bytes", l.Size())
	}
}

func TestASmallFileIsNotCompacted(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir)
	l := open(t, dir)
	commit(t, l, func(b *Batch) {
		for n := uint64(1); n < 200; n++ {
			b.DeleteJob("a", n)
		}
	})
	before := inode(t, fileOf(l))
	l = reopen(t, l)
	if inode(t, fileOf(l)) != before {
		t.Error("the file was replaced")
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}
