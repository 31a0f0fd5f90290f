package activity

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

const (
	// defaultPage and largestPage bound the events of a page.
	defaultPage = 500
	largestPage = 10_000
	// pageBytes is about how much of events a page covers at most.
	pageBytes = 4 << 20
)

// RunLogPage is a part of a run's log.
type RunLogPage struct {
	Handle string  `json:"handle"` // the run
	Events []Event `json:"events"` // oldest first; never null
	Next   int64   `json:"next"`   // where the next page begins
	Ended  bool    `json:"ended"`  // the run is over: nothing follows what the file holds
	More   bool    `json:"more"`   // events wait beyond this page
}

// Page returns the events of the run in dir that begin at byte after of its
// log: at most limit of them (500 when limit is 0 or less, and no more than
// 10 000), fewer when they are long. after is 0 or the Next of another page. An
// event that is not wholly written yet is neither returned nor passed over, so
// a reader asks again with Next until Ended and not More. A whole line that is
// no event is returned with the kind unknown.
//
// The error is NotFound when there is no such run, and Invalid when no event
// begins at after.
func Page(dir string, after int64, limit int) (RunLogPage, error) {
	p := RunLogPage{Handle: filepath.Base(dir), Events: []Event{}, Next: after}
	f, err := os.OpenFile(filepath.Join(dir, EventsFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) && after == 0 && isDir(dir) {
		return p, nil
	}
	if err != nil {
		return p, broken(err, "the log of %s cannot be read", p.Handle)
	}
	defer f.Close()
	info, err := f.Stat()
	var last []byte
	var size int64
	if err == nil {
		last, size, err = lastLine(f, info.Size())
	}
	if err != nil {
		return p, broken(err, "the log of %s cannot be read", p.Handle)
	}
	if err := p.read(f, size, limit); err != nil {
		return p, err
	}
	e, _ := decode(last)
	p.Ended, p.More = e.Kind == agent.RunEnded, p.Next < size
	return p, nil
}

// read fills the page from the first size bytes of f, which are whole lines.
func (p *RunLogPage) read(f *os.File, size int64, limit int) error {
	if err := p.check(f, size); err != nil {
		return err
	}
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, largestPage)
	after := p.Next
	err := lines(f, after, size, func(line []byte, end int64) bool {
		e, ok := decode(line)
		if !ok {
			e = unreadable
		}
		e.Kind = known(e.Kind)
		p.Events, p.Next = append(p.Events, e), end
		return len(p.Events) < limit && end-after < pageBytes
	})
	if err != nil {
		return broken(err, "the log of %s cannot be read", p.Handle)
	}
	return nil
}

// check refuses a position at which no event begins or will begin.
func (p *RunLogPage) check(f *os.File, size int64) error {
	if p.Next < 0 || p.Next > size {
		return fault.New(fault.Invalid, "the log of %s has no position %d, only 0 to %d: begin at 0", p.Handle, p.Next, size)
	}
	if p.Next == 0 {
		return nil
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], p.Next-1); err != nil {
		return broken(err, "the log of %s cannot be read", p.Handle)
	}
	if b[0] != '\n' {
		return fault.New(fault.Invalid, "no event of %s begins at position %d: use the next of a page", p.Handle, p.Next)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// known maps a kind that this program does not know to UnknownEvent.
func known(kind agent.EventKind) agent.EventKind {
	switch kind {
	case agent.RunStarted, agent.TurnStarted, agent.Text, agent.Tool, agent.ToolFailed, agent.Plan,
		agent.ApprovalRequested, agent.ApprovalResolved, agent.Steered, agent.TurnEnded, agent.RunEnded,
		agent.Note, agent.Truncated:
		return kind
	}
	return agent.UnknownEvent
}
