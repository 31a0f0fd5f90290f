package fs

import (
	"sync"
	"time"
)

// kept is a text that is drawn from the whole workbench and used again, by
// stat and by readers alike: a stat costs no drawing, and its size is that of
// the text that a read then gives.
//
// Its lock is held while the text is drawn, so that many readers at once make
// it be drawn once.
type kept struct {
	mu    sync.Mutex
	drawn bool
	text  []byte
	seq   uint64    // of the last change when it was drawn
	at    time.Time // when it was drawn, if it has a limit
}

// get returns the text as it is after change number seq. One that also changes
// without a change being told of has a limit, which is how old it may be, by
// clock; 0 means none.
func (k *kept) get(seq uint64, limit time.Duration, clock func() time.Time, draw func() ([]byte, error)) ([]byte, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Time{}
	if limit > 0 {
		now = clock()
	}
	if age := now.Sub(k.at); k.drawn && k.seq == seq && age >= 0 && (limit == 0 || age < limit) {
		return k.text, k.at, nil
	}
	text, err := draw()
	if err != nil {
		return nil, time.Time{}, err
	}
	k.drawn, k.text, k.seq, k.at = true, text, seq, now
	return text, now, nil
}
