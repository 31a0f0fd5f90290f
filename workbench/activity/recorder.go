package activity

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// Recorder writes the log of one run. It is safe for concurrent use; the
// events of a parser come from one goroutine at a time.
type Recorder struct {
	dir string
	opt Options

	saving sync.Mutex // serialises Save

	mu      sync.Mutex
	closed  bool
	events  *file
	log     *file
	logged  int64 // bytes of events whose lines are in log
	mark    Mark  // with the pending lines; Log is not kept up to date
	fed     Position
	resume  Checkpoint
	pending []item // not in events yet
	waiting int    // their bytes
	room    int    // how many bytes may wait
	failing bool
	told    bool
	lost    int      // events that found no room since the last note about it
	lostAt  Position // the last of them
	cause   error    // why they were lost
}

// Parsed records an event of the agent that its parser found end bytes into
// the output, unless it is recorded already. It is written by the next Flush.
func (r *Recorder) Parsed(end int64, e agent.Event) {
	r.ParsedAs(end, Event{Kind: e.Kind, Text: e.Text})
}

// ParsedAs is Parsed for an event that says more than its kind and text. Seq,
// TsMs, Src and N are the recorder's to set, and Turn when it is 0.
func (r *Recorder) ParsedAs(end int64, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Turn == 0 && r.mark.Turn > r.mark.TurnEnded {
		e.Turn = r.mark.Turn
	}
	for _, text := range texts(e.Kind, e.Text, r.opt.MaxText) {
		r.fed = r.fed.next(end)
		if !r.fed.after(r.mark.Parsed) {
			continue
		}
		e.Text = text
		r.add(e, r.fed)
	}
}

// Record records events of the daemon itself and writes them, with all that
// waits, before it returns. What a restart repeats is left out: the start and
// the end of the run, and those of a turn with a number that has started or
// ended. After the end of the run nothing is recorded. It returns how many
// lines it added.
func (r *Recorder) Record(events ...Event) int {
	r.mu.Lock()
	before := r.mark.Seq
	for _, e := range events {
		for _, text := range texts(e.Kind, e.Text, r.opt.MaxText) {
			e.Text = text
			r.add(e, Position{})
		}
	}
	added := int(r.mark.Seq - before)
	tell := r.flush()
	r.mu.Unlock()
	tell()
	return added
}

// Flush writes what waits: one write to each file. A write that fails is
// reported to Options.Failed, and the next Flush tries again.
func (r *Recorder) Flush() {
	r.mu.Lock()
	tell := r.flush()
	r.mu.Unlock()
	tell()
}

// Size returns the sizes of both files in bytes, in whole lines. It never
// waits for a disk.
func (r *Recorder) Size() (events, log int64) {
	return r.events.size.Load(), r.log.size.Load()
}

// Close writes what waits and closes the files. What the disk has no room for
// is lost, and reported as an error.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	tell := r.flush()
	var err error
	if n := len(r.pending) + r.lost; n > 0 {
		err = broken(r.cause, "the last %d events of the log in %s are lost", n, r.dir)
	}
	r.closed = true
	r.events.f.Close()
	r.log.f.Close()
	r.mu.Unlock()
	tell()
	return err
}

// Resume returns the checkpoint to go on from: the parser's state and where in
// the output to begin. It is the zero Checkpoint when there is none, or none
// that the files bear out; then a new parser begins at 0. Call it, or Restart,
// before the output is fed.
func (r *Recorder) Resume() Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fed = r.resume.Fed
	return r.resume
}

// Restart says that the output will be fed from its beginning.
func (r *Recorder) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fed = Position{}
}

// Save writes a checkpoint: a parser in this state has been fed offset bytes
// of the output, and gave all its events to Parsed. Both files are made durable
// first, so what the checkpoint covers of the output is not needed any more.
// It waits for the disk several times: once every few seconds is often enough.
// It fails, and keeps the old checkpoint, while events wait for room.
func (r *Recorder) Save(offset int64, parser json.RawMessage) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	cp := Checkpoint{Offset: offset, Parser: slices.Clone(parser), Fed: r.fed}
	tell := r.flush()
	cp.Mark = r.mark
	cp.Mark.Log = r.log.size.Load()
	behind := r.closed || len(r.pending) > 0 || r.lost > 0 || r.logged != cp.Mark.Events
	r.mu.Unlock()
	tell()
	if behind {
		return fault.New(fault.NoSpace, "no checkpoint in %s: events of its log wait to be written", r.dir)
	}
	for _, f := range []*file{r.events, r.log} {
		if err := f.f.Sync(); err != nil {
			return broken(err, "%s cannot be made durable", f.f.Name())
		}
	}
	return SaveCheckpoint(r.dir, cp)
}

// add takes an event in, unless it repeats one, or the log is full, or there is
// no room for it. at is its place in the output; zero for the daemon's own.
func (r *Recorder) add(e Event, at Position) {
	if r.closed || r.mark.Ended || r.repeats(e) {
		return
	}
	e = words(e)
	if at.Count > 0 {
		e.Src, e.N = &at.Src, at.Count-1
	}
	if !r.fits(e) {
		return
	}
	if r.waiting > r.room && !r.failing {
		r.write()
	}
	if at.Count > 0 && r.waiting > r.room {
		r.lost++
		r.lostAt = at
		r.mark.Parsed = at
		return
	}
	r.noteLost()
	r.push(e)
}

// repeats tells whether the daemon recorded e before it was restarted.
func (r *Recorder) repeats(e Event) bool {
	switch e.Kind {
	case agent.RunStarted:
		return r.mark.Started
	case agent.TurnStarted:
		return e.Turn > 0 && e.Turn <= r.mark.Turn
	case agent.TurnEnded:
		return e.Turn > 0 && e.Turn <= r.mark.TurnEnded
	}
	return false
}

// fits tells whether the log still takes e, and truncates it when e is the
// first that it does not. What an agent can write without end has an end even
// among the kinds that are always kept.
func (r *Recorder) fits(e Event) bool {
	if r.mark.Events < r.opt.MaxBytes {
		return true
	}
	if !r.mark.Truncated {
		r.push(Event{Kind: agent.Truncated, Text: fmt.Sprintf(
			"the log has reached %d bytes; from here on it holds only turns, approvals, notes and the end", r.opt.MaxBytes)})
	}
	return alwaysKept(e.Kind) && (e.Src == nil || r.mark.Events < r.opt.MaxBytes+r.opt.MaxBytes/8)
}

// noteLost says how many events were lost before what is recorded next. The
// note takes the place of the last of them, so that no replay brings back a
// part.
func (r *Recorder) noteLost() {
	if r.lost == 0 {
		return
	}
	at := r.lostAt
	text := fmt.Sprintf("%d events are lost here: the log could not be written: %s", r.lost, reason(r.cause))
	r.lost = 0
	r.push(Event{Kind: agent.Note, Text: text, Src: &at.Src, N: at.Count - 1})
}

// push puts an event behind those that wait to be written.
func (r *Recorder) push(e Event) {
	e.Seq, e.TsMs = r.mark.Seq+1, r.opt.Clock().UnixMilli()
	it := item{line: encode(e), text: render(e)}
	it.size = len(it.line)
	r.pending = append(r.pending, it)
	r.waiting += it.size
	r.mark.count(e, it.size)
}

// count adds one line to a mark.
func (m *Mark) count(e Event, size int) {
	m.Seq++
	m.Events += int64(size)
	if e.Src != nil {
		if at := (Position{*e.Src, e.N + 1}); at.after(m.Parsed) {
			m.Parsed = at
		}
	}
	switch e.Kind {
	case agent.RunStarted:
		m.Started = true
	case agent.RunEnded:
		m.Ended = true
	case agent.Truncated:
		m.Truncated = true
	case agent.TurnStarted:
		m.Turn = max(m.Turn, e.Turn)
	case agent.TurnEnded:
		m.TurnEnded = max(m.TurnEnded, e.Turn)
	}
}
