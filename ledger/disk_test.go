package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// smallDisk mounts a file system of the given size until the test's end.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("scvfs-test", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skip("no small disk can be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp writes a file until there is no room, and returns its path.
func fillUp(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return path
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAFullDisk(t *testing.T) {
	disk := smallDisk(t, "8m")
	l := open(t, filepath.Join(disk, "state"))
	big := func(n uint64) func(*Batch) {
		return func(b *Batch) {
			j := aJob("a", n, n+1)
			j.Detail = strings.Repeat("x", 300<<10)
			b.PutJob(j)
			b.PutSession(aSession("a", 1, n+1))
		}
	}
	commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 1, 1)) })
	filler := fillUp(t, disk)

	// The reserve lets small changes through: ends of jobs, and cancels.
	for n := uint64(1); n <= 100; n++ {
		commit(t, l, func(b *Batch) { b.PutJob(aJob("a", n, n+1)); b.PutSession(aSession("a", 1, n+1)) })
	}
	n := uint64(101)
	var err error
	for ; err == nil && n < 200; n++ {
		err = tryCommit(l, big(n))
	}
	if !fault.Is(err, fault.NoSpace) || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v (%v)", err, fault.KindOf(err))
	}
	n-- // was not recorded
	if got := len(load(t, l).Jobs); got != int(n-1) {
		t.Errorf("%d jobs, want %d", got, n-1)
	}
	// Deleting and small changes still work, again and again.
	for i := range uint64(50) {
		commit(t, l, func(b *Batch) { b.DeleteJob("a", i+1) })
	}
	if err := tryCommit(l, big(n)); !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v", err)
	}
	before := dump(t, l)
	l = reopen(t, l) // on the full disk
	if after := dump(t, l); after != before {
		t.Error("reopening on a full disk changed the contents")
	}
	if _, err := ReadOwner(l.dir); err != nil && !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	commit(t, l, big(n))
	if got := load(t, reopen(t, l)).Jobs; got[len(got)-1].Number != n {
		t.Errorf("the last job is %d, want %d", got[len(got)-1].Number, n)
	}
}

func TestStartingOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "1m")
	dir := filepath.Join(disk, "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	filler := fillUp(t, disk)
	// Room for 0, 1, 2, … pages: each can cut the making off somewhere else.
	for pages := range 8 {
		if err := os.Truncate(filler, int64((1<<20)-4096*(pages+2))); err != nil {
			t.Fatal(err)
		}
		l, err := Open(dir, Options{})
		if err == nil {
			for _, err := range l.Check() {
				t.Errorf("%d pages: %v", pages, err)
			}
			l.Close()
			continue
		}
		if !fault.Is(err, fault.NoSpace) {
			t.Errorf("%d pages: %v", pages, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	commit(t, open(t, dir), func(b *Batch) { b.PutSession(aSession("a", 1, 1)) })
}

func TestFullIsRecognised(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want fault.Kind
	}{
		{unix.ENOSPC, fault.NoSpace},
		{&os.PathError{Op: "write", Path: "/x", Err: unix.EDQUOT}, fault.NoSpace},
		{fmt.Errorf("file resize error: %s", unix.EFBIG), fault.NoSpace},
		{fmt.Errorf("file sync error: %s", unix.ENOSPC), fault.NoSpace},
		{unix.EIO, fault.Internal},
		{errNotOpen, fault.Closed},
		{fault.New(fault.Busy, "held"), fault.Busy},
	} {
		if got := mapped(tt.err); !fault.Is(got, tt.want) {
			t.Errorf("%v became %v (%v)", tt.err, got, fault.KindOf(got))
		}
	}
	if mapped(nil) != nil || diskFault(nil) != nil {
		t.Error("nil became an error")
	}
}
