package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const (
	// lockWait is how long Open waits for a daemon that is stopping.
	lockWait = time.Second
	// mapSize is mapped from the start. Below it a growing file needs no new
	// mapping, for which the writer would have to wait for all readers.
	mapSize = 64 << 20
	// growBy is the step in which the file grows.
	growBy = 1 << 20
)

// secureDir makes a directory that only its owner can enter, and refuses one
// that is somebody else's.
func secureDir(dir string) error {
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pathFault(dir, err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathFault(dir, err)
	}
	defer f.Close()
	return ours(f)
}

// ours refuses an open file or directory of another user, and takes all rights
// from everybody else.
func ours(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return pathFault(f.Name(), err)
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fault.New(fault.Denied, "%s belongs to user %d, and this is user %d: use --state", filepath.Base(f.Name()), st.Uid, uid)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	if err := f.Chmod(os.FileMode(st.Mode & 0o700)); err != nil {
		return pathFault(f.Name(), err)
	}
	return nil
}

// pathFault says why a path could not be opened or made.
func pathFault(path string, err error) error {
	info, _ := os.Lstat(path)
	path = filepath.Base(path)
	switch {
	case info != nil && info.Mode()&os.ModeSymlink != 0:
		return fault.New(fault.Denied, "%s is a symbolic link, which is never followed here: name what it leads to with --state, or remove it", path)
	case isFull(err):
		return diskFault(err)
	case errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS):
		return fault.New(fault.Denied, "%s cannot be opened for writing: use --state (%w)", path, err)
	}
	return fault.New(fault.Internal, "%s cannot be opened: %w", path, err)
}

// openFile opens the ledger's file for bbolt, which locks it after that.
func openFile(path string, flag int, _ os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, pathFault(path, err)
	}
	if err := usable(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func usable(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return pathFault(f.Name(), err)
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.Invalid, "%s is no regular file: move it away", filepath.Base(f.Name()))
	}
	if err := ours(f); err != nil {
		return err
	}
	return clearStillborn(f, info.Size())
}

// clearStillborn empties a file whose making was cut off: a full disk, or a
// power cut, left a part of the first pages. bbolt makes four at first, and
// more before it stores anything, so such a file never held a record.
func clearStillborn(f *os.File, size int64) error {
	if size == 0 || size > int64(4*os.Getpagesize()) {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // somebody is just making it
	}
	begun := make([]byte, size)
	if _, err := f.ReadAt(begun, 0); err != nil {
		return pathFault(f.Name(), err)
	}
	magic := len(begun) >= 20 && binary.NativeEndian.Uint32(begun[16:]) == 0xED0CDAED
	if !magic && len(bytes.Trim(begun, "\x00")) > 0 {
		return nil // no work of ours; bbolt refuses it
	}
	if err := f.Truncate(0); err != nil {
		return pathFault(f.Name(), err)
	}
	return nil
}

// openLocked opens the database at path and takes its lock. The file is the
// one that path names then: another process may have replaced it (compact)
// while this one waited for the lock of the file before.
func openLocked(path string) (*bolt.DB, *os.File, error) {
	for range 5 {
		db, f, err := openDB(path)
		if err != nil {
			return nil, nil, err
		}
		current, err := isNamed(f, path)
		if err == nil && current {
			err = syncNew(path)
		}
		if err == nil && current {
			return db, f, nil
		}
		db.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fault.New(fault.Internal, "%s is another file each time that it is opened: use --state with a directory of a local disk", fileName)
}

// isNamed tells whether path names the open file.
func isNamed(f *os.File, path string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, pathFault(path, err)
	}
	named, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, pathFault(path, err)
	}
	return named != nil && os.SameFile(opened, named), nil
}

// openDB opens the database at path, whatever path comes to name meanwhile.
func openDB(path string) (db *bolt.DB, f *os.File, err error) {
	err = guard(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: lockWait, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapSize,
			OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
				f, err = openFile(path, flag, mode)
				return f, err
			},
		})
		return openFault(f, err)
	})
	if err != nil {
		if f != nil {
			unlock(f) // bbolt keeps it open, and locked, when it panicked
		}
		return nil, nil, err
	}
	db.AllocSize = growBy
	return db, f, nil
}

// unlock gives back the lock on f and closes it, for a bbolt that cannot any
// more. A mapping of the file that is left would keep the lock.
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// openFault says why bbolt did not open f.
func openFault(f *os.File, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return heldFault(f)
	case errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch):
		return damaged(err)
	}
	return err
}

// syncNew makes the name of a new ledger as durable as its contents.
func syncNew(path string) error {
	dir := filepath.Dir(path)
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil // not ours, so not made by us
		}
		return pathFault(dir, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // no such thing on some file systems
		return diskFault(err)
	}
	return nil
}

// reserve sets disk space aside behind the pages in use, so that on a full
// disk there is still room to record how jobs end and that one was cancelled.
// It is renewed each time the file has grown. Where it cannot be had, nothing
// is lost but the reserve.
func (l *Ledger) reserve() {
	info, err := l.file.Stat()
	if err != nil || info.Size() == l.reserved {
		return
	}
	l.reserved = info.Size()
	_ = unix.Fallocate(int(l.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, l.reserved+growBy)
}
