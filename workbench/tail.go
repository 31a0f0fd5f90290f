package workbench

import (
	"context"
	"errors"
	"io"
	"os"

	"scvfs/workbench/run"
)

// chunk is how much of a run's output is read at once.
const chunk = 128 << 10

// tail reads a run's output as it grows. It belongs to one goroutine.
type tail struct {
	out    *os.File
	growth *run.Follow
	buf    []byte
	read   int64 // offset up to which the output has been read
}

// openTail opens the output of a run, to be read from an offset on. It is nil,
// without an error, for a run that ended before it had any.
func (w *Workbench) openTail(id string, from int64, proc run.Process) (*tail, error) {
	out, err := OpenRegular(w.opt.Runs.Path(id, "stdout"))
	if errors.Is(err, os.ErrNotExist) {
		select { // the shim never came to opening it
		case <-proc.Done():
			return nil, nil
		case <-w.ctx.Done():
			return nil, errLeft
		}
	}
	if err != nil {
		return nil, err
	}
	growth, err := w.opt.Runs.Follow(id, "stdout")
	if err != nil {
		out.Close()
		return nil, err
	}
	return &tail{out: out, growth: growth, buf: make([]byte, chunk), read: from}, nil
}

// drain hands over what the output holds beyond what was read. It ends early,
// with errLeft, when ctx does.
func (x *tail) drain(ctx context.Context, take func(p []byte)) error {
	for ctx.Err() == nil {
		n, err := x.out.ReadAt(x.buf, x.read)
		if n > 0 {
			x.read += int64(n)
			take(x.buf[:n])
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errLeft
}

func (x *tail) close() {
	x.growth.Close()
	x.out.Close()
}
