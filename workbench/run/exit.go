package run

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// exitRoom is the room that is set aside for an exit on the disk, and exitText
// how much of a start error it takes: six bytes of JSON for each of the text.
const (
	exitRoom = 8 << 10
	exitText = 1 << 10
)

// exitFile is the file exit before it has its name. Its room on the disk is
// taken when the run starts, so that a disk that is full when the run ends
// cannot keep its ending from being written.
type exitFile struct {
	dir  *os.Root
	name string
	f    *os.File
}

// reserveExit makes the file; fault.NoSpace when the disk is full now.
func reserveExit(dir *os.Root) (*exitFile, error) {
	name := scratch(exitName)
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fileError("make", at(dir, exitName), err)
	}
	e := &exitFile{dir: dir, name: name, f: f}
	err = unix.Fallocate(int(f.Fd()), 0, 0, exitRoom)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = f.WriteAt(make([]byte, exitRoom), 0)
	}
	if err != nil {
		e.drop()
		return nil, fileError("set room aside for", at(dir, exitName), err)
	}
	return e, nil
}

// write makes the ending durable and gives the file its name.
func (e *exitFile) write(x Exit) error {
	x.StartError = strings.ToValidUTF8(x.StartError[:min(len(x.StartError), exitText)], "")
	b, err := json.Marshal(x)
	if err != nil {
		return fault.New(fault.Internal, "the ending of a run cannot be written: %w", err)
	}
	if _, err = e.f.WriteAt(b, 0); err == nil {
		err = e.f.Truncate(int64(len(b)))
	}
	if err == nil {
		err = e.f.Sync()
	}
	if err == nil {
		err = e.dir.Rename(e.name, exitName)
	}
	if err != nil {
		return fileError("write", at(e.dir, exitName), err)
	}
	return syncDir(e.dir)
}

// drop removes the file of a run that was not taken.
func (e *exitFile) drop() {
	e.f.Close()
	_ = e.dir.Remove(e.name)
}

// readExit reads how a run ended; ok is false when nobody wrote it, or what is
// there makes no sense.
func readExit(dir *os.Root) (x Exit, ok bool) {
	b, err := readFile(dir, exitName, maxRecord)
	if err != nil {
		return Exit{}, false
	}
	if json.Unmarshal(b, &x) != nil || x.Ended.IsZero() {
		return Exit{}, false
	}
	return x, true
}
