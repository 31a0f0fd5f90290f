package workbench

import (
	"context"
	"encoding/json"
	"time"

	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
)

// point is the part of a checkpoint that is the server's own.
type point struct {
	Dialogue json.RawMessage `json:"dialogue"`
	Outbox   []byte          `json:"outbox,omitempty"`
	Writing  bool            `json:"writing,omitempty"` // the outbox was being written
	Job      uint64          `json:"job,omitempty"`     // whose prompt the dialogue has
	Began    time.Time       `json:"began,omitzero"`
	Model    string          `json:"model,omitempty"`
	Effort   string          `json:"effort,omitempty"`
}

// pump writes the messages that wait, each once. A turn has begun when its
// prompt is on its way.
func (v *server) pump() {
	if len(v.outbox) > 0 && !v.send() {
		return
	}
	if t := v.fresh; t != nil {
		v.fresh = nil
		v.goOn(t)
	}
}

// send writes what waits, and tells whether it is written.
func (v *server) send() bool {
	if v.retry != nil {
		return false
	}
	if !v.checkpoint(true) {
		v.retry = time.NewTimer(retryEvery)
		return false
	}
	messages := v.outbox
	v.outbox = nil
	n, err := v.write(messages)
	switch {
	case err == nil:
		v.unsent = false
		v.checkpoint(false)
	case v.w.ctx.Err() != nil:
		v.doubtful = true // the checkpoint says so too
	default:
		// An agent that reads no more is at its end, or out of order.
		v.unsent = v.unsent && n == 0
		v.log.Record(activity.Event{Kind: agent.Note, Text: "its agent takes no more messages, and is stopped: " + err.Error()})
		v.kill()
	}
	return err == nil
}

// write writes messages to the agent. It waits as long as the agent does not
// read, but no longer than the run or the daemon.
func (v *server) write(messages []byte) (n int, err error) {
	if v.input == nil {
		if v.input, err = v.w.opt.Runs.Input(v.id); err != nil {
			return 0, err
		}
	}
	stop := context.AfterFunc(v.w.ctx, func() { _ = v.input.SetWriteDeadline(time.Now()) })
	defer stop()
	return v.input.Write(messages)
}

// checkpoint saves where the dialogue stands; writing says that what waits is
// about to be written. It is false when that could not be saved.
func (v *server) checkpoint(writing bool) bool {
	state, err := v.d.State()
	if err == nil {
		p := point{Dialogue: state, Outbox: v.outbox, Writing: writing, Began: v.began, Model: v.model, Effort: v.effort}
		if v.turn != nil {
			p.Job = v.turn.j.number
		}
		if state, err = json.Marshal(p); err == nil {
			err = v.log.Save(v.read, state)
		}
	}
	if err != nil {
		v.w.log.Warn("no checkpoint could be saved", "run", v.id, "err", err)
		return false
	}
	v.saved = v.read
	v.w.punch(v.id, v.read)
	return true
}
