package takeover

import (
	"context"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
)

// Hold is the right to type into a terminal and to change its size. It lasts
// until somebody else takes it, it is released, or the terminal ends.
type Hold struct {
	t    *Terminal
	who  string
	lost context.Context
	lose context.CancelFunc

	released bool // guarded by t.mu
}

// Hold gives the terminal to who, which is a name for people. Whoever had it
// has lost it when Hold returns; a write of theirs that waits fails. The Hold
// of a terminal that has ended is lost from the beginning.
func (t *Terminal) Hold(who string) *Hold {
	h := &Hold{t: t, who: who}
	h.lost, h.lose = context.WithCancel(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.ended:
		h.lose()
		return h
	default:
	}
	if t.hold != nil {
		t.hold.lose()
	}
	t.hold = h
	return h
}

// Holder returns who has the terminal; "" when nobody has.
func (t *Terminal) Holder() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hold == nil {
		return ""
	}
	return t.hold.who
}

// Lost returns a channel that is closed when the hold is in force no more.
func (h *Hold) Lost() <-chan struct{} { return h.lost.Done() }

// Release lets go of the terminal; the program goes on. It does nothing for a
// hold that is lost.
func (h *Hold) Release() {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.lost.Err() == nil {
		h.released = true
		h.t.hold = nil
		h.lose()
	}
}

// Write gives bytes to the program as they are, and returns how many went. It
// waits while the program does not read, no longer than the terminal's
// patience, and then fails with fault.Limit; with fault.Timeout or
// fault.Interrupted when ctx ends first. fault.Gone when the hold is lost, and
// when the program is gone.
func (h *Hold) Write(ctx context.Context, p []byte) (n int, err error) {
	return h.t.send(ctx, h, func() (message, error) { return message{bytes: p}, nil })
}

// Key presses keys, one after the other, in the form that the program asked
// for: "up", "ctrl-c", "alt-x", "shift-tab", "f5", "enter", "a", … Either all
// of them go or none; the errors are those of Write, and fault.Invalid for a
// name that is no key, or one that has no form, with what there is.
func (h *Hold) Key(ctx context.Context, names ...string) error {
	keys, err := parseKeys(names)
	if err != nil {
		return err
	}
	n, err := h.t.send(ctx, h, func() (message, error) {
		b, err := encodeKeys(keys, h.t.screen.Modes(), pty.Linewise(h.t.master))
		return message{bytes: b, rest: func(n int) []byte { return b[n:] }}, err
	})
	if n > 0 && !fault.Is(err, fault.Gone) {
		return nil // the rest goes before anything else does
	}
	return err
}

// Paste gives text to the program as one piece: between the brackets that it
// asked for, or as if typed. Line ends become those of the Enter key; other
// control characters but tabs are left out, so that the text presses no key
// and ends no bracket. The errors are those of Write, and fault.TooLarge above
// MaxPaste bytes; when only a part went, the sentence says so.
func (h *Hold) Paste(ctx context.Context, text string) error {
	if len(text) > MaxPaste {
		return fault.New(fault.TooLarge, "a paste of %d bytes is more than the %d that a terminal takes at once: paste it in parts", len(text), MaxPaste)
	}
	clean := pasteable(text)
	if clean == "" {
		return h.check()
	}
	n, err := h.t.send(ctx, h, func() (message, error) {
		return paste(clean, h.t.screen.Modes().BracketedPaste), nil
	})
	if err != nil && n > 0 {
		return fault.New(fault.KindOf(err), "about %d of the %d bytes of the paste went, the rest did not: %w", n, len(clean), err)
	}
	return err
}

// Resize changes the terminal's size, which the program is told of.
// fault.Invalid when it is out of bounds, fault.Gone when the hold is lost.
func (h *Hold) Resize(s Size) error { return h.t.resize(h, s) }

// check refuses a hold that is in force no more.
func (h *Hold) check() error {
	if h.lost.Err() == nil {
		return nil
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	select {
	case <-h.t.ended:
		return h.t.overError()
	default:
	}
	switch {
	case h.released:
		return fault.New(fault.Gone, "this hold of the terminal was let go: attach again to have it back")
	case h.t.hold != nil:
		return fault.New(fault.Gone, "the terminal was taken, and %s has it now: attach again to have it back", h.t.hold.who)
	}
	return fault.New(fault.Gone, "the terminal was taken, and let go since: attach again to have it back")
}
