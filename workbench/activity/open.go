package activity

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
)

// Open opens the log in a run's directory, making its files when they are
// missing, and repairs what a killed daemon or a power cut left: a torn end is
// cut, and log is made to say what events says. Only one Recorder may have a
// log open.
func Open(dir string, opt Options) (*Recorder, error) {
	r := &Recorder{dir: dir, opt: opt.withDefaults(), room: maxPending}
	var err error
	if r.events, err = openFile(dir, EventsFile); err != nil {
		return nil, err
	}
	if r.log, err = openFile(dir, LogFile); err == nil {
		err = r.recover()
	}
	if err != nil {
		r.events.f.Close()
		if r.log != nil {
			r.log.f.Close()
		}
		return nil, err
	}
	r.flush()() // log may be behind
	return r, nil
}

// recover finds out where the log stands.
func (r *Recorder) recover() error {
	if err := r.takeCheckpoint(); err != nil {
		return err
	}
	shown, logEnd, err := countLines(r.log, r.mark.Log, math.MaxUint64)
	if err != nil {
		return err
	}
	shown += r.mark.Seq
	base := r.mark
	if r.logged, err = r.readEvents(shown); err != nil {
		return err
	}
	if shown > r.mark.Seq {
		if _, logEnd, err = countLines(r.log, base.Log, r.mark.Seq-base.Seq); err != nil {
			return err
		}
	}
	return r.cutTo(r.log, logEnd)
}

// takeCheckpoint begins at the checkpoint when both files hold what it counted
// on, and else removes it, so that it is not believed later, when the files
// have grown past it again.
func (r *Recorder) takeCheckpoint() error {
	cp, ok, err := LoadCheckpoint(r.dir)
	if ok && r.bears(cp.Mark) {
		r.resume, r.mark = cp, cp.Mark
		return nil
	}
	if ok || err != nil {
		path := filepath.Join(r.dir, CheckpointFile)
		if err := errors.Join(os.Remove(path), syncDir(r.dir)); err != nil {
			return broken(err, "%s is of no use and cannot be removed", path)
		}
	}
	return nil
}

// bears tells whether both files hold the lines that a mark counted.
func (r *Recorder) bears(m Mark) bool {
	events, log := r.Size()
	if m.Events < 0 || m.Log < 0 || m.Events > events || m.Log > log {
		return false
	}
	if m.Seq == 0 {
		return m == Mark{}
	}
	line, end, err := lastLine(r.events.f, m.Events)
	if err != nil || end != m.Events {
		return false
	}
	if e, ok := decode(line); !ok || e.Seq != m.Seq {
		return false
	}
	_, end, err = lastLine(r.log.f, m.Log)
	return err == nil && end == m.Log
}

// readEvents counts the lines of events from the mark on and cuts what follows
// the last that can be read. It returns the offset after line number shown, or
// after the last line when there are fewer.
func (r *Recorder) readEvents(shown uint64) (logged int64, err error) {
	m := r.mark
	good := m
	if m.Seq <= shown {
		logged = m.Events
	}
	ends := logged
	err = lines(r.events.f, m.Events, r.events.size.Load(), func(line []byte, end int64) bool {
		e, ok := decode(line)
		if !ok {
			e = unreadable
		}
		m.count(e, int(end-m.Events))
		if m.Seq <= shown {
			ends = end
		}
		if ok {
			good, logged = m, ends
		}
		return true
	})
	if err != nil {
		return 0, broken(err, "%s cannot be read", r.events.f.Name())
	}
	r.mark = good
	return logged, r.cutTo(r.events, good.Events)
}

func (r *Recorder) cutTo(a *file, size int64) error {
	if size == a.size.Load() {
		return nil
	}
	if err := a.cut(size); err != nil {
		return broken(err, "the torn end of %s cannot be cut", a.f.Name())
	}
	return nil
}

// countLines counts the whole lines of a from an offset on, at most limit of
// them, and returns the offset after them. A block that a power cut left zero
// ends them.
func countLines(a *file, from int64, limit uint64) (n uint64, end int64, err error) {
	end = from
	err = lines(a.f, from, a.size.Load(), func(line []byte, at int64) bool {
		if n == limit || bytes.IndexByte(line, 0) >= 0 {
			return false
		}
		n, end = n+1, at
		return true
	})
	if err != nil {
		return 0, 0, broken(err, "%s cannot be read", a.f.Name())
	}
	return n, end, nil
}
