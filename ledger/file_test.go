package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// refused tries to open a ledger that must not be opened.
func refused(t *testing.T, dir string, kind fault.Kind, say string) {
	t.Helper()
	l, err := Open(dir, Options{})
	if err == nil {
		l.Close()
		t.Fatal("it was opened")
	}
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v (%v), want %v and %q", err, fault.KindOf(err), kind, say)
	}
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestOnlyTheOwnerCanLookInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir)
	if mode(t, dir) != 0o700 || mode(t, fileOf(l)) != 0o600 || mode(t, filepath.Join(dir, ownerName)) != 0o600 {
		t.Errorf("modes: %v %v %v", mode(t, dir), mode(t, fileOf(l)), mode(t, filepath.Join(dir, ownerName)))
	}
}

func TestNothingIsOpenedThroughASymbolicLink(t *testing.T) {
	t.Run("the ledger", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
		if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(dir, fileName)); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, fault.Denied, "symbolic link")
		if info, err := os.Stat(elsewhere); err != nil || info.Size() != 0 {
			t.Errorf("what it leads to was written: %v %v", info, err)
		}
	})
	t.Run("the directory", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Fatal(err)
		}
		refused(t, link, fault.Denied, "symbolic link")
		refused(t, link+"/", fault.Denied, "symbolic link")
	})
	t.Run("the owner file", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
		for _, name := range []string{ownerName, ownerName + ".new"} {
			if err := os.Symlink(elsewhere, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		open(t, dir)
		if _, err := os.Lstat(elsewhere); err == nil {
			t.Error("what it leads to was written")
		}
	})
}

func TestADirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	refused(t, file, fault.Internal, "not a directory")
	refused(t, filepath.Join(file, "state"), fault.Internal, "not a directory")
	refused(t, "/proc/scvfs-state", fault.Internal, "scvfs-state cannot be opened")
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	open(t, dir).Close()
	if err := os.Chown(filepath.Join(dir, fileName), 12345, -1); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, fault.Denied, "belongs to user 12345")
	other := t.TempDir()
	if err := os.Chown(other, 12345, -1); err != nil {
		t.Fatal(err)
	}
	refused(t, other, fault.Denied, "belongs to user 12345")
}

func TestWhatIsNoLedgerIsLeftAsItIs(t *testing.T) {
	page := bytes.Repeat([]byte("not a ledger, but somebody's notes\n"), 3000)
	for name, tt := range map[string]struct {
		make func(path string) error
		kind fault.Kind
		say  string
	}{
		"a text":       {func(path string) error { return os.WriteFile(path, page, 0o600) }, fault.Internal, "move it away"},
		"a short text": {func(path string) error { return os.WriteFile(path, page[:100], 0o600) }, fault.Internal, "move it away"},
		"a directory":  {func(path string) error { return os.Mkdir(path, 0o700) }, fault.Internal, "directory"},
		"another database": {func(path string) error {
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				return err
			}
			defer db.Close()
			return db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("cats")); return err })
		}, fault.Invalid, "no ledger of scvfs"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			refused(t, dir, tt.kind, tt.say)
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
		})
	}
}

// filled makes a ledger of some pages and returns its file's path.
func filled(t *testing.T, dir string) string {
	t.Helper()
	l := open(t, dir)
	commit(t, l, func(b *Batch) {
		b.PutSession(aSession("a", 1, 200))
		for n := uint64(1); n < 200; n++ {
			b.PutJob(aJob("a", n, n+1))
		}
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return fileOf(l)
}

func TestADamagedFileIsAnErrorAndNoCrash(t *testing.T) {
	t.Run("its end is missing", func(t *testing.T) {
		for _, size := range []int64{20 << 10, 33 << 10, 64 << 10} {
			dir := t.TempDir()
			if err := os.Truncate(filled(t, dir), size); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, fault.Internal, "backup")
			refused(t, dir, fault.Internal, "backup") // and the lock is free again
		}
	})
	t.Run("a page is noise", func(t *testing.T) {
		dir := t.TempDir()
		path := filled(t, dir)
		damagePages(t, path)
		l, err := Open(dir, Options{})
		if err == nil {
			defer l.Close()
			_, _, err = l.Load()
		}
		if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("got %v", err)
		}
	})
}

// damagePages overwrites all leaf pages that hold jobs.
func damagePages(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, damaged := os.Getpagesize(), 0
	page := make([]byte, size)
	for at := int64(4 * size); ; at += int64(size) {
		if _, err := file.ReadAt(page, at); err != nil {
			break
		}
		if bytes.Count(page, []byte(`"echo hello"`)) > 1 {
			if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, 32), at); err != nil {
				t.Fatal(err)
			}
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("the ledger has no page with jobs")
	}
}

func TestAFileWhoseMakingWasCutOffIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, "fresh"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	fresh, err := os.ReadFile(filepath.Join(dir, "fresh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, begun := range [][]byte{
		{}, fresh[:1], fresh[:100], fresh[:4096], fresh[:8192], fresh[:len(fresh)-1], fresh, make([]byte, 4096), make([]byte, len(fresh)),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), begun, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(dir, Options{})
		if err != nil {
			t.Errorf("%d bytes: %v", len(begun), err)
			continue
		}
		commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 1, 1)) })
		if found := l.Check(); len(found) > 0 {
			t.Errorf("%d bytes: %v", len(begun), found)
		}
		l.Close()
	}
}

// A process that waits for the lock of a file must not serve it when the name
// has another file by then, as after a compaction.
func TestALockOfAReplacedFileIsNotTakenForTheLedgers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	first := open(t, dir)
	commit(t, first, func(b *Batch) { b.PutSession(aSession("before", 1, 1)) })
	opened := make(chan *Ledger)
	go func() {
		second, err := Open(dir, Options{})
		for fault.Is(err, fault.Busy) { // a slow machine
			second, err = Open(dir, Options{})
		}
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	waitOpen(t, path, 2)
	db, _, err := copyTo(path+".compact", first.db)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error {
		_, value, _ := encode(aSession("after", 2, 1))
		return tx.Bucket([]byte("sessions")).Put([]byte("after"), value)
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".compact", path); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	db.Close()
	second := <-opened
	if second == nil {
		return
	}
	defer second.Close()
	if c := load(t, second); len(c.Sessions) != 2 {
		t.Errorf("it serves the file that has no name any more: %+v", c.Sessions)
	}
}

// waitOpen waits until this process has the file open n times.
func waitOpen(t *testing.T, path string, n int) {
	t.Helper()
	want, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, e := range entries {
			if info, err := os.Stat("/proc/self/fd/" + e.Name()); err == nil && os.SameFile(info, want) {
				count++
			}
		}
		if count >= n {
			return
		}
	}
	t.Fatalf("%s is not open %d times", path, n)
}
