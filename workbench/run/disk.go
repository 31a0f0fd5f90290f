package run

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// block is what holes are rounded down to: most file systems give back no
// less, and would write zeros for the rest.
const block = 4096

// Punch gives the first upTo bytes of a run's stdout back to the disk. The
// file keeps its size, and those bytes read as zeros from then on; the agent
// may write meanwhile. fault.Unsupported where the file system cannot.
func (m *Manager) Punch(run string, upTo int64) error {
	if upTo < 0 {
		return fault.New(fault.Invalid, "run %s: no hole can end before its file begins", run)
	}
	if upTo -= upTo % block; upTo == 0 {
		return nil
	}
	dir, err := m.open(run)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.OpenFile(stdoutName, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fileError("open", at(dir, stdoutName), err)
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, upTo)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
		return fault.New(fault.Unsupported, "the file system of %s gives no part of a file back", dir.Name())
	case err != nil:
		return fileError("punch a hole into", at(dir, stdoutName), err)
	}
	return nil
}

// DiskFree returns how many bytes an ordinary user can still write to the file
// system that path is on.
func DiskFree(path string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fault.New(fault.Internal, "the room left at %s cannot be told: %w", path, err)
		}
		return int64(st.Bavail) * st.Frsize, nil
	}
}
