package ledger

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// compactAbove is the size from which a file that is mostly free is written
// anew, in bytes. Below it there is nothing to win.
const compactAbove = 16 << 20

// compact replaces a big file, more than half of which is free, by a smaller
// one with the same contents. It is housekeeping: when the new file cannot be
// written (a full disk, a page that cannot be read), the old one stays.
//
// The new file is locked before it gets the name, and the old one until after
// that, so at no time is the name without its lock. Whoever waited for the old
// file's lock sees that the name has another file, and tries again
// (openLocked).
func (l *Ledger) compact() error {
	temp := filepath.Join(l.dir, fileName+".compact")
	os.Remove(temp) // of a daemon that died here
	if !l.wasteful() {
		return nil
	}
	db, file, err := copyTo(temp, l.db)
	if err == nil {
		err = os.Rename(temp, filepath.Join(l.dir, fileName))
	}
	if err != nil {
		os.Remove(temp)
		if db != nil {
			db.Close()
		}
		return nil
	}
	old := l.db
	l.db, l.file = db, file
	// From here on it is the new file that has to be there after a crash.
	return errors.Join(diskFault(old.Close()), syncDir(l.dir))
}

// wasteful tells whether the file is worth to be written anew. What the file
// system has set aside behind its last page does not count.
func (l *Ledger) wasteful() bool {
	total := l.Size()
	stats := l.db.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN) * int64(l.db.Info().PageSize)
	return total > compactAbove && free > total/2
}

// copyTo writes what src holds to a new database, synced and locked.
func copyTo(path string, src *bolt.DB) (*bolt.DB, *os.File, error) {
	db, file, err := openDB(path)
	if err != nil {
		return nil, nil, err
	}
	// One transaction for each 4 MiB bounds the memory.
	if err := guard(func() error { return bolt.Compact(db, src, 4<<20) }); err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, file, nil
}
