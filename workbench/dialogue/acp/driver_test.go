package acp

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"scvfs/workbench/dialogue"
)

// driver speaks with a server over pipes. It restores the dialogue after each
// piece of output.
type driver struct {
	*bench
	pieces chan []byte // closed when the output is over
	over   bool
}

// patience is how long a server may be silent when something is due.
const patience = 60 * time.Second

func newDriver(t testing.TB, o dialogue.Options, in io.Writer, out io.Reader) *driver {
	d := &driver{bench: newBench(t, o), pieces: make(chan []byte, 1<<16)}
	d.renew = func() bool { return true }
	d.wire = func(p []byte) {
		if _, err := in.Write(p); err != nil {
			t.Errorf("a message cannot be written: %v", err)
		}
	}
	go func() {
		defer close(d.pieces)
		for {
			p := make([]byte, 64<<10)
			n, err := out.Read(p)
			if n > 0 {
				d.pieces <- p[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	d.d.Open(d.emit)
	return d
}

// until feeds output until something holds.
func (d *driver) until(what string, holds func() bool) {
	d.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !holds() {
		select {
		case p, ok := <-d.pieces:
			if !ok {
				d.over = true
				d.t.Fatalf("the server ended before %s; all that came:\n%s", what, strings.Join(d.out, "\n"))
			}
			d.d.Feed(p, d.emit)
			d.restored()
		case <-late.C:
			d.t.Fatalf("%s did not come; all that came:\n%s", what, strings.Join(d.out, "\n"))
		}
	}
}

// asked waits until something is asked.
func (d *driver) asked() dialogue.Ask {
	d.t.Helper()
	d.until("a question", func() bool { return len(d.waiting) > 0 })
	return d.waiting[0]
}

// end waits for the end of the turn, and returns what was put out since mark.
func (d *driver) end(mark int) (status, said string) {
	d.t.Helper()
	d.until("the end of the turn", func() bool { return len(d.ended) > 0 })
	o := d.outcome()
	return string(o.Status), d.since(mark)
}

// logged waits until an output begins so.
func (d *driver) logged(mark int, begins string) {
	d.t.Helper()
	d.until(begins, func() bool {
		return slices.ContainsFunc(d.out[mark:], func(s string) bool { return strings.HasPrefix(s, begins) })
	})
}
