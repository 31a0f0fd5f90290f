package attach

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Files are the files of one takeover, by the names that they have in its
// directory.
type Files interface {
	// Reader opens a file for reading.
	Reader(name string) (io.ReadCloser, error)
	// Writer opens a file that is there for writing, and does not truncate it.
	Writer(name string) (io.WriteCloser, error)
}

// Dir is the Files of a directory, on whatever it is mounted by.
type Dir string

var _ Files = Dir("")

// Reader implements Files.
func (d Dir) Reader(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), name))
}

// Writer implements Files.
func (d Dir) Writer(name string) (io.WriteCloser, error) {
	return openWriter(filepath.Join(string(d), name), os.O_WRONLY)
}

// writer is a file of the tree that is written to.
type writer struct{ *os.File }

func openWriter(path string, flag int) (writer, error) {
	f, err := os.OpenFile(path, flag, 0)
	return writer{f}, err
}

// Write implements io.Writer. The 9P client of some kernels loses what a write
// was refused with, says that nothing was written, and tells only an fsync.
func (w writer) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if why := w.Sync(); why != nil {
			err = why
		}
	}
	return n, err
}

// maxFile is how much is read of a file that holds a line or two.
const maxFile = 64 << 10

// read returns a short file without its last newline.
func read(files Files, name string) (string, error) {
	f, err := files.Reader(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return strings.TrimSuffix(string(text), "\n"), err
}

// write writes one line to a file in one piece.
func write(files Files, name, line string) error {
	f, err := files.Writer(name)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(line + "\n"))
	return errors.Join(err, f.Close())
}
