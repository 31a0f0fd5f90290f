package takeover

import (
	"time"

	"scvfs/ledger/fault"
)

// Ending is how a terminal ended, in words for people.
type Ending struct {
	Exit string // how the program ended: "exit 0", "signal KILL"; empty when nobody knows
	Note string // a sentence of its owner
}

// Gone returns a channel that is closed when no process has the terminal open
// any more: nothing comes from the program from then on, and its owner ends
// what is left of it.
func (t *Terminal) Gone() <-chan struct{} { return t.gone }

// Ended returns a channel that is closed when the terminal has ended, by End or
// Close. The screen stays as it is from then on.
func (t *Terminal) Ended() <-chan struct{} { return t.ended }

// Ending returns how the terminal ended; ok is false while it has not.
func (t *Terminal) Ending() (e Ending, ok bool) {
	select {
	case <-t.ended:
		return t.ending, true
	default:
		return Ending{}, false
	}
}

// End is called once the process behind the terminal has ended. It takes the
// rest of what was written, for seconds at most, closes the master, and gives
// every reader a last page with how it ended. It returns when that is done;
// what a second call says is not heard.
func (t *Terminal) End(e Ending) { t.end(e, drainPatience) }

// Close ends the terminal at once and without words. The kernel hangs up on a
// process that still has it.
func (t *Terminal) Close() { t.end(Ending{}, 0) }

func (t *Terminal) end(e Ending, patience time.Duration) {
	t.closing.Do(func() {
		if patience > 0 {
			rest := time.NewTimer(patience)
			defer rest.Stop()
			select {
			case <-t.gone:
			case <-rest.C:
			}
		}
		t.master.Close()
		<-t.gone
		t.writes.Wait()
		t.screen.Expire(t.screen.Held()) // nothing ends an update any more
		t.finish(e)
		t.changed.tell()
	})
	<-t.ended
}

func (t *Terminal) finish(e Ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending, t.updated = e, time.Now()
	close(t.ended)
	if t.hold != nil {
		t.hold.lose()
		t.hold = nil
	}
}

// overError says that there is no program any more. The caller holds t.mu.
func (t *Terminal) overError() error {
	if t.ending.Exit != "" {
		return fault.New(fault.Gone, "the terminal has ended: %s", t.ending.Exit)
	}
	return fault.New(fault.Gone, "the terminal has ended: no program has it any more")
}
