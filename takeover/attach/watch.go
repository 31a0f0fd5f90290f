package attach

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

// page is a line of changes. What it holds beyond that is not for us.
type page struct {
	screen.Page
	Ended bool   `json:"ended"`
	Exit  string `json:"exit"`
	Note  string `json:"note"`
}

// maxPage is the longest line of changes that is taken: several times that of
// the greatest screen in which no two cells look the same.
const maxPage = 64 << 20

// watching reads pages until the takeover ends.
func (c *client) watching() {
	lines := bufio.NewScanner(c.changes)
	lines.Buffer(make([]byte, 64<<10), maxPage)
	m := newMeasure()
	for lines.Scan() && !c.left() {
		var p page
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			c.finish(outcome{err: fault.New(fault.Invalid, "a line of changes cannot be read: %w", err)})
			return
		}
		if p.Ended {
			c.finish(outcome{said: ending(p), forget: true})
			return
		}
		if p.Cols == 0 && p.Rows == 0 {
			continue // a line of another kind
		}
		c.mu.Lock()
		err := c.picture.apply(&p.Page, m)
		c.mu.Unlock()
		if err != nil {
			c.finish(outcome{err: err})
			return
		}
		kick(c.redraw)
		kick(c.recheck)
	}
	switch err := lines.Err(); {
	case err == nil, gone(err):
		c.finish(outcome{said: ending(page{}), forget: true})
	default:
		c.finish(outcome{err: fmt.Errorf("the screen can be followed no longer: %w", err)})
	}
}

// ending is what is said of a takeover that ended.
func ending(p page) string {
	said := "the terminal has ended"
	for _, more := range []string{p.Exit, p.Note} {
		if more != "" {
			said += ": " + oneLine(more)
		}
	}
	return said
}

// gone tells whether err says that the takeover is there no more.
func gone(err error) bool {
	return errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist)
}

// guarding looks who holds the terminal whenever something has changed on it: a
// new holder who types or resizes is noticed by that, also by somebody who does
// not type.
func (c *client) guarding() {
	if c.holder == "" {
		return
	}
	for c.await(c.recheck) {
		if who, err := read(c.o.Files, "holder"); err == nil && who != c.holder {
			c.lostTo(who)
			return
		}
	}
}

// endPatience is how long a hold that is lost to nobody may still turn out to
// be that of a terminal that has ended, of which changes tells.
const endPatience = 2 * time.Second

// lostHold is called when the tree says that the hold is lost.
func (c *client) lostHold() {
	who, err := read(c.o.Files, "holder")
	if err != nil {
		who = ""
	}
	c.lostTo(who)
}

// lostTo is called when the hold is lost to who; nobody when that is empty.
func (c *client) lostTo(who string) {
	if who != "" {
		c.finish(outcome{forget: true, err: fault.New(fault.Busy, "the terminal was taken by %s; attach again to take it back", oneLine(who))})
		return
	}
	select {
	case <-time.After(endPatience):
		c.finish(outcome{forget: true, err: fault.New(fault.Busy, "the terminal was let go by somebody else; attach again to have it back")})
	case <-c.done:
	}
}

// open opens the files; input, which takes the terminal, last.
func (c *client) open() (err error) {
	if c.changes, err = c.o.Files.Reader("changes"); err != nil {
		return fmt.Errorf("there is no terminal to attach to: %w", err)
	}
	if c.o.ReadOnly {
		return nil
	}
	if c.input, err = c.o.Files.Writer("input"); err != nil {
		c.changes.Close()
		return fmt.Errorf("the terminal cannot be taken: %w", err)
	}
	c.holder, _ = read(c.o.Files, "holder") // unknown is fine: a write will tell
	return nil
}

// parting is how long closing input, which lets go of the terminal, may take
// before the process ends, which does it too.
const parting = time.Second

// close closes the files. It does not wait for a read or a write that waits in
// the kernel and holds its file open; that is over when the process ends.
func (c *client) close() {
	go c.changes.Close()
	if c.input == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.input.Close()
	}()
	select {
	case <-closed:
	case <-time.After(parting):
	}
}
