package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// The files of a run's directory that this package knows.
const (
	specName   = "spec.json"
	stdinName  = "stdin"
	stdoutName = "stdout"
	stderrName = "stderr"
	shimName   = "shim"
	agentName  = "agent"
	exitName   = "exit"
	tmpName    = "tmp"
)

// maxSpec bounds spec.json: the kernel takes no longer command line and
// environment than 6 MiB, and base64 adds a third.
const maxSpec = 16 << 20

// maxRecord bounds the small files.
const maxRecord = 64 << 10

// readFile reads a whole file of a run's directory that is at most limit bytes
// long; fault.NotFound when there is none.
func readFile(dir *os.Root, name string, limit int64) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError("read", at(dir, name), err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fileError("read", at(dir, name), err)
	}
	if int64(len(b)) > limit {
		return nil, fault.New(fault.TooLarge, "%s/%s is longer than %d bytes, so it is none of ours", dir.Name(), name, limit)
	}
	return b, nil
}

// writeFile makes or replaces a file of a run's directory in one rename.
func writeFile(dir *os.Root, name string, data []byte) error {
	tmp := scratch(name)
	err := fill(dir, tmp, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}, false)
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp)
		return fileError("write", at(dir, name), err)
	}
	return nil
}

// fill makes a new file and lets write fill it.
func fill(dir *os.Root, name string, write func(*os.File) error, durable bool) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// scratch returns a name for a file on its way to become name.
func scratch(name string) string {
	return fmt.Sprintf(".%s.%016x", name, rand.Uint64())
}

// syncDir makes the names in a directory durable.
func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return fileError("sync", at(dir, "."), err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fileError("sync", at(dir, "."), err)
	}
	return nil
}

// fileError makes a file system's error into ours.
func fileError(verb, path string, err error) error {
	kind := fault.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = fault.NotFound
	case errors.Is(err, fs.ErrExist):
		kind = fault.Exists
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		kind = fault.NoSpace
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		kind = fault.Limit
	}
	return fault.New(kind, "cannot %s %s: %w", verb, path, err)
}

// at returns the path of a file of a directory, for people.
func at(dir *os.Root, name string) string { return filepath.Join(dir.Name(), name) }
