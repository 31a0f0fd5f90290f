package activity

import (
	"errors"
	"syscall"
)

// catchUpBytes is how much of log is written at once while it is behind.
const catchUpBytes = 256 << 10

// item is an event on its way to the files.
type item struct {
	line []byte // in events
	text []byte // in log
	size int    // of line, which is gone once it is written
}

func render(e Event) []byte { return append([]byte(Render(e)), '\n') }

// flush writes what waits. It returns what is to be called without the lock.
func (r *Recorder) flush() (tell func()) {
	if r.closed {
		return func() {}
	}
	events, log := r.Size()
	err := r.write()
	if err == nil && r.lost > 0 {
		r.noteLost()
		err = r.write()
	}
	failed, changed := r.opt.Failed, r.opt.Changed
	if err == nil || r.told {
		failed = nil
	}
	r.told = err != nil
	if e, l := r.Size(); e == events && l == log {
		changed = nil
	}
	return func() {
		if failed != nil {
			failed(broken(err, "the log in %s cannot be written; it goes on when it can", r.dir))
		}
		if changed != nil {
			changed()
		}
	}
}

// write brings both files up to date, events first.
func (r *Recorder) write() (err error) {
	if len(r.pending) > 0 {
		err = r.writeEvents()
	}
	if err == nil && r.logged < r.events.size.Load() {
		err = r.catchUp()
	}
	if r.failing = err != nil; err != nil {
		r.cause = err
	}
	return err
}

// writeEvents writes the pending events, and their lines of log unless log is
// behind already.
func (r *Recorder) writeEvents() error {
	inStep := r.logged == r.events.size.Load()
	batch := make([][]byte, len(r.pending))
	for i, it := range r.pending {
		batch[i] = it.line
	}
	n, err := r.events.append(batch)
	for _, it := range r.pending[:n] {
		r.waiting -= it.size
	}
	if inStep {
		err = errors.Join(err, r.writeLog(r.pending[:n]))
	}
	if r.pending = r.pending[n:]; len(r.pending) == 0 {
		r.pending = nil
	}
	return err
}

// writeLog writes the lines of log that follow those it has.
func (r *Recorder) writeLog(items []item) error {
	if len(items) == 0 {
		return nil
	}
	batch := make([][]byte, len(items))
	for i, it := range items {
		batch[i] = it.text
	}
	n, err := r.log.append(batch)
	for _, it := range items[:n] {
		r.logged += int64(it.size)
	}
	return err
}

// catchUp renders into log what events holds and log does not.
func (r *Recorder) catchUp() error {
	var batch []item
	var bytes int
	var failed error
	at := r.logged
	put := func() bool {
		failed = r.writeLog(batch)
		batch, bytes = batch[:0], 0
		return failed == nil
	}
	err := lines(r.events.f, at, r.events.size.Load(), func(line []byte, end int64) bool {
		e, ok := decode(line)
		if !ok {
			e = unreadable
		}
		it := item{text: render(e), size: int(end - at)}
		batch, bytes, at = append(batch, it), bytes+len(it.text), end
		return bytes < catchUpBytes || put()
	})
	if err == nil && failed == nil {
		put()
	}
	return errors.Join(err, failed)
}

// reason is what a failure comes down to, in words.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}
