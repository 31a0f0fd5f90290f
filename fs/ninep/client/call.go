package client

import (
	"context"
	"time"

	"scvfs/fs/ninep/wire"
)

// call is one request under way.
type call struct {
	msg   wire.Message
	tag   uint16
	done  chan struct{}
	reply wire.Message // after done
	err   error        // after done
	after func()       // runs before done is closed, in the reader; may be nil
	old   *call        // of a Tflush: what it gives up
}

func newCall(m wire.Message) *call { return &call{msg: m, done: make(chan struct{})} }

// end settles a call. Nobody else may.
func (k *call) end(reply wire.Message, err error) {
	k.reply, k.err = reply, err
	close(k.done)
}

// await waits for calls, which were sent in this order. When ctx ends it gives
// them up after so long, and then waits for what the server makes of that: an
// answer that came all the same counts.
func (s *session) await(ctx context.Context, after time.Duration, calls ...*call) error {
	for _, k := range calls {
		if after == 0 {
			select {
			case <-k.done:
				continue
			case <-ctx.Done():
			}
		} else if patiently(ctx, k.done, after) {
			continue
		}
		return s.giveUp(calls)
	}
	return nil
}

func (s *session) giveUp(calls []*call) error {
	var flushes []*call
	for _, k := range calls {
		select {
		case <-k.done:
		default:
			f := newCall(&wire.Tflush{OldTag: k.tag})
			f.old = k
			flushes = append(flushes, f)
		}
	}
	if err := s.send(flushes...); err != nil {
		return nil // the calls have failed by that
	}
	timer := time.NewTimer(flushed)
	defer timer.Stop()
	for _, k := range calls {
		select {
		case <-k.done:
		case <-timer.C:
			return gaveUp()
		}
	}
	return nil
}
