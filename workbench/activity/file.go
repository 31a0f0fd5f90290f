package activity

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"scvfs/ledger/fault"
)

// file is an append-only file of whole lines. What lies beyond size is the
// torn end of a write that failed, and goes before the next one.
type file struct {
	f    *os.File
	size atomic.Int64
	torn bool
}

// openFile opens a file of a run's directory, making it when it is missing.
func openFile(dir, name string) (*file, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, broken(err, "%s cannot be opened", path)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, broken(err, "%s cannot be the log of a run", path)
	}
	a := &file{f: f}
	a.size.Store(info.Size())
	return a, nil
}

// append writes lines by one write and returns how many of them are in the
// file now: all, unless the write fails.
func (a *file) append(lines [][]byte) (int, error) {
	if a.torn {
		if err := a.cut(a.size.Load()); err != nil {
			return 0, err
		}
	}
	size := a.size.Load()
	buf := bytes.Join(lines, nil)
	written, err := a.f.Write(buf)
	if err == nil {
		a.size.Store(size + int64(len(buf)))
		return len(lines), nil
	}
	n, whole := 0, 0
	for n < len(lines) && whole+len(lines[n]) <= written {
		whole += len(lines[n])
		n++
	}
	a.size.Store(size + int64(whole))
	a.torn = true
	a.cut(size + int64(whole)) // tried again before the next write
	return n, err
}

// cut shortens the file to size.
func (a *file) cut(size int64) error {
	if err := a.f.Truncate(size); err != nil {
		return err
	}
	a.torn = false
	a.size.Store(size)
	return nil
}

// lines calls do for each whole line from offset on, newline included, with
// the offset after it, until do says stop. A line longer than maxLine is given
// as nil. The slice is do's only during the call.
func lines(r io.ReaderAt, from, size int64, do func(line []byte, end int64) (more bool)) error {
	br := bufio.NewReaderSize(io.NewSectionReader(r, from, size-from), 64<<10)
	var long []byte
	for at, start := from, from; ; {
		part, err := br.ReadSlice('\n')
		at += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if at-start <= maxLine {
				long = append(long, part...)
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line := part
		if at-start > maxLine {
			line = nil
		} else if len(long) > 0 {
			line = append(long, part...)
		}
		if !do(line, at) {
			return nil
		}
		long, start = long[:0], at
	}
}

// lastLine returns the last whole line among the first size bytes, newline
// included, and the offset after it; nil and 0 when there is none.
func lastLine(r io.ReaderAt, size int64) (line []byte, end int64, err error) {
	end = -1
	var tail []byte // what is read: the bytes up to size
	for at := size; at > 0; {
		n := min(at, 64<<10)
		at -= n
		chunk := make([]byte, n, n+int64(len(tail)))
		if _, err := r.ReadAt(chunk, at); err != nil {
			return nil, 0, err
		}
		tail = append(chunk, tail...)
		if end < 0 {
			last := bytes.LastIndexByte(tail, '\n')
			if last < 0 {
				tail = nil
				continue
			}
			tail, end = tail[:last+1], at+int64(last)+1
		}
		if i := bytes.LastIndexByte(tail[:len(tail)-1], '\n'); i >= 0 {
			return tail[i+1:], end, nil
		}
		if len(tail) > maxLine {
			return nil, end, nil
		}
	}
	return tail, max(end, 0), nil
}

// broken returns an error about one of the files, of the kind that fits its
// cause.
func broken(cause error, format string, args ...any) error {
	kind := fault.Internal
	switch {
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT):
		kind = fault.NoSpace
	case errors.Is(cause, os.ErrNotExist):
		kind = fault.NotFound
	}
	return fault.New(kind, "%s: %w", fmt.Sprintf(format, args...), cause)
}
