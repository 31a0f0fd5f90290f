package fusefs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// Prepare makes dir ready to be mounted on and returns its absolute path with
// all symbolic links above it resolved, which is the path that the mount table
// will show. It recovers a stale mount (see Recover for who may call it) and
// creates the directory, private to this user, when it is missing.
//
// Errors are those of Recover, and fault.Invalid for a symbolic link, for
// something that is no directory, for a directory that is not empty, and for
// one inside another mount of this program.
func Prepare(dir string) (string, error) {
	path, err := Locate(dir)
	if err != nil {
		return "", err
	}
	if _, err := Recover(path); err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fault.New(fault.Invalid, "the mount point %s cannot be made: %w", path, err)
	}
	point, err := openPoint(path)
	if err != nil {
		return "", err
	}
	return path, point.Close()
}

// Locate returns the path that the mount table will show of a mount on dir:
// absolute, with the links above its last element resolved. It makes the
// directories above, and does not look at dir itself. Errors are fault.Invalid
// for a place that cannot be, or lies inside a mount of this program.
func Locate(dir string) (string, error) {
	abs, err := absolute(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return "", fault.New(fault.Invalid, "the mount point %s cannot be made: %w", abs, err)
	}
	return resolve(abs)
}

// Mounted tells whether a tree of this program, dead or alive, is what is seen
// on dir, and returns the path that the mount table has of it. It goes by that
// table alone: a dead mount hangs whoever looks at it.
func Mounted(dir string) (path string, ours bool, err error) {
	if path, err = resolve(dir); err != nil {
		return "", false, err
	}
	at, err := mountsAt(path)
	return path, len(at) > 0 && at[len(at)-1].ours(), err
}

// absolute returns dir as an absolute path that is safe to look at, but for
// its last element.
func absolute(dir string) (string, error) {
	if dir == "" {
		return "", fault.New(fault.Invalid, "the mount point is empty; name a directory")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.New(fault.Internal, "the directory of this process is gone: %w", err)
	}
	return abs, outsideOurs(abs)
}

// resolve returns dir as an absolute path, with the links above its last
// element resolved. It does not look at the last element.
func resolve(dir string) (string, error) {
	abs, err := absolute(dir)
	if err != nil {
		return "", err
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fault.New(fault.Invalid, "the mount point %s cannot be found: %w", abs, err)
	}
	path := filepath.Join(above, filepath.Base(abs))
	return path, outsideOurs(path)
}

// outsideOurs refuses a path below a mount of this program: to look there is
// to ask a daemon that may be dead, or to ask oneself.
func outsideOurs(path string) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.ours() && strings.HasPrefix(path, m.point+"/") {
			return fault.New(fault.Invalid, "%s lies inside the mount on %s; choose a directory outside it", path, m.point)
		}
	}
	return nil
}

// openPoint opens the directory to mount on, which nothing is mounted on. The
// descriptor is what gets mounted on, so that a path which changes meanwhile
// leads nowhere else.
func openPoint(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the mount point %s cannot be used: %w", path, err)
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return nil, fault.New(fault.Invalid, "the mount point %s is a symbolic link; name the directory that it leads to", path)
	case !info.IsDir():
		return nil, fault.New(fault.Invalid, "the mount point %s is no directory; choose another path", path)
	}
	point, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the mount point %s cannot be used: %w", path, err)
	}
	_, err = point.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return point, nil
	}
	point.Close()
	if err != nil {
		return nil, fault.New(fault.Invalid, "the mount point %s cannot be read: %w", path, err)
	}
	return nil, fault.New(fault.Invalid, "the mount point %s is not empty, and a mount would hide what it holds; choose an empty directory", path)
}
