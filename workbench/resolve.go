package workbench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scvfs/ledger/fault"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// resolveDir returns the directory that path names with every symbolic link
// resolved. It refuses a path that leads onto the daemon's own mount before
// touching it: a daemon that waits for itself never wakes (DESIGN 4.9).
func resolveDir(path, mount string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fault.New(fault.Invalid, "%q is not an absolute path", path)
	}
	done, links := "/", 0
	rest := strings.Split(filepath.Clean(path), "/")[1:]
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		if under(next, mount) {
			return "", fault.New(fault.Invalid, "%s lies on the mount point %s: agents cannot work inside it; name a real directory", path, mount)
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", statFault(path, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fault.New(fault.Invalid, "%s leads through more than %d symbolic links", path, maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", statFault(path, err)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	info, err := os.Stat(done)
	switch {
	case err != nil:
		return "", statFault(path, err)
	case !info.IsDir():
		return "", fault.New(fault.Invalid, "%s is not a directory", path)
	}
	return done, nil
}

func statFault(path string, err error) error {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Invalid, "directory %s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Invalid, "directory %s cannot be entered: permission denied", path)
	}
	return fault.New(fault.Invalid, "directory %s: %w", path, err)
}

// under tells whether path is dir or lies below it. Both are clean; an empty
// dir holds nothing.
func under(path, dir string) bool {
	if dir == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
