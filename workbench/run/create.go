package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// Create makes the directory of a run that can be started from then on, and
// makes it durable. What stdin holds becomes the agent's input; it is nil
// unless spec.Stdin is StdinFile. The environment gets SCV_RUN and SCV_RUN_DIR,
// by which the run's processes are known. On an error nothing is left; fault.Invalid for a spec that
// cannot be started, fault.Exists when the name is taken, fault.NoSpace.
func (m *Manager) Create(spec Spec, stdin io.Reader) error {
	if err := spec.check(); err != nil {
		return err
	}
	if stdin != nil && spec.Stdin != StdinFile {
		return fault.New(fault.Invalid, "run %s has input, but its standard input is %s", spec.Run, spec.Stdin)
	}
	path := m.Path(spec.Run, "")
	spec.mark(path)
	if err := os.Mkdir(path, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.New(fault.Exists, "run %s has a directory already", spec.Run)
		}
		return m.createError(spec.Run, err)
	}
	if err := m.furnish(spec, stdin); err != nil {
		_ = os.RemoveAll(path)
		return m.createError(spec.Run, err)
	}
	return nil
}

func (m *Manager) createError(run string, err error) error {
	var e *fault.Error
	if errors.As(err, &e) {
		return err
	}
	return fileError("make", filepath.Join(m.root, run), err)
}

// furnish fills a run's new directory. A directory whose spec.json is missing
// or broken was left by a daemon that died here.
func (m *Manager) furnish(spec Spec, stdin io.Reader) error {
	dir, err := m.open(spec.Run)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Mkdir(tmpName, 0o700); err != nil {
		return err
	}
	for _, name := range spec.outputs() {
		if err := fill(dir, name, func(*os.File) error { return nil }, false); err != nil {
			return err
		}
	}
	switch spec.Stdin {
	case StdinFile:
		err = fill(dir, stdinName, func(f *os.File) error {
			if stdin == nil {
				return nil
			}
			_, err := io.Copy(f, stdin)
			return err
		}, true)
	case StdinFIFO:
		err = unix.Mkfifo(filepath.Join(m.root, spec.Run, stdinName), 0o600)
	}
	if err != nil {
		return err
	}
	return m.commit(dir, spec)
}

// commit writes spec.json and makes the directory and its name durable.
func (m *Manager) commit(dir *os.Root, spec Spec) error {
	boot, err := proc.Boot()
	if err != nil {
		return err
	}
	b, err := encodeSpec(spec, boot)
	if err != nil {
		return fault.New(fault.Internal, "what run %s starts cannot be written: %w", spec.Run, err)
	}
	if int64(len(b)) > maxSpec {
		return fault.New(fault.TooLarge, "run %s: its arguments and environment are more than any program takes", spec.Run)
	}
	// It needs no rename: before the directory has its durable name, nobody asks
	// for what is in it. So one journal commit of the file system does for all.
	if err := fill(dir, specName, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	}, true); err != nil {
		return fileError("write", at(dir, specName), err)
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncDir(root)
}

// Input opens the FIFO of a run whose standard input is one. Writes park when
// the agent does not read, and obey deadlines; closing the file ends nothing
// for the agent (see EndInput). fault.Gone when nobody reads any more.
func (m *Manager) Input(run string) (*os.File, error) {
	dir, err := m.open(run)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(stdinName, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, unix.ENXIO):
		return nil, fault.New(fault.Gone, "run %s reads no input any more", run)
	case err != nil:
		return nil, fileError("open", at(dir, stdinName), err)
	}
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		f.Close()
		return nil, fault.New(fault.Unsupported, "the standard input of run %s is no FIFO", run)
	}
	return f, nil
}

// EndInput makes the shim of a live run let go of the FIFO, so that the agent
// meets the end of its input when the last writer closes it; for good.
func (m *Manager) EndInput(run string) error {
	p := m.watched(run)
	if p == nil {
		return fault.New(fault.Gone, "run %s does not run", run)
	}
	return p.handle.Signal(unix.SIGUSR1)
}

// RemoveTmp removes the temporary files of a run that is not live; fault.Busy
// when it is.
func (m *Manager) RemoveTmp(run string) error { return m.remove(run, tmpName) }

// Remove removes the whole directory of a run that is not live; fault.Busy
// when it is. It is no error when there is none.
func (m *Manager) Remove(run string) error { return m.remove(run, "") }

func (m *Manager) remove(run, file string) error {
	standing, err := m.Standing(run)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case standing == Live:
		return fault.New(fault.Busy, "run %s is live; stop it before its files are removed", run)
	}
	root, err := os.OpenRoot(m.root)
	if err != nil {
		return fault.New(fault.Internal, "the directory of the runs cannot be opened: %w", err)
	}
	defer root.Close()
	name := filepath.Join(run, file)
	if err := root.RemoveAll(name); err == nil {
		return nil
	}
	// Caches, above all, are full of directories that even their owner cannot
	// write to.
	unlock(root, name)
	if err := root.RemoveAll(name); err != nil {
		return fileError("remove", at(root, name), err)
	}
	return nil
}

// unlock gives the owner access to a directory and all below it.
func unlock(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	_ = fs.WalkDir(root.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
}
