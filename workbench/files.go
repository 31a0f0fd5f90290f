package workbench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// commit makes a batch durable.
func (w *Workbench) commit(fill func(*ledger.Batch)) error {
	var b ledger.Batch
	fill(&b)
	return w.opt.Ledger.Commit(&b)
}

// sessionDir holds the files of a session's jobs. The serial keeps two
// sessions apart that had one name after the other.
func (w *Workbench) sessionDir(rec *ledger.Session) string {
	return filepath.Join(w.opt.State, "jobs", rec.ID+"."+strconv.FormatUint(rec.Serial, 10))
}

// JobFile returns the path of a job's prompt or result.
func (w *Workbench) JobFile(j *ledger.Job, name string) string {
	serial := uint64(0)
	if rec, ok := w.Session(j.Session); ok {
		serial = rec.Serial
	}
	return filepath.Join(w.sessionDir(&ledger.Session{ID: j.Session, Serial: serial}), JobName(j.Number), name)
}

func (w *Workbench) writePrompt(rec *ledger.Job, prompt []byte) error {
	return writeFile(w.JobFile(rec, "prompt"), bytes.NewReader(prompt))
}

// writeResult writes the result's file, from its beginning also when a full
// disk made an earlier try fail; none when there is no result.
func (w *Workbench) writeResult(rec *ledger.Job, from *io.SectionReader) error {
	if from == nil {
		return nil
	}
	return writeFile(w.JobFile(rec, "result"), io.NewSectionReader(from, 0, from.Size()))
}

// writeFile writes a file whole and durable, or not at all: a new file,
// synced, takes the name.
func writeFile(path string, from io.Reader) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return diskFault(path, err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*") // 0600, by its documentation
	if err != nil {
		return diskFault(path, err)
	}
	_, err = io.Copy(tmp, from)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return diskFault(path, err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return diskFault(dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return diskFault(dir, err)
	}
	return nil
}

func diskFault(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.NoSpace, "the disk is full: %s cannot be written; nothing was started or lost", path)
	}
	return fault.New(fault.Internal, "%s cannot be written: %w", path, err)
}

// OpenRegular opens a file that an agent can reach, and so may have put
// something in the place of that would hold us: a FIFO, or a link.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.Internal, "%s is no regular file any more", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
