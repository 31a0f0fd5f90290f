package claude

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// envelope is what tells what a line is.
type envelope struct {
	Type    string
	Subtype string
	UUID    string
	State   string // session_state_changed
	Command string `json:"command_uuid"` // command_lifecycle

	RequestID string          `json:"request_id"`
	Request   json.RawMessage // control_request
	Response  json.RawMessage // control_response
}

func (t *talk) Feed(p []byte, emit dialogue.Emit) { t.Talk.Feed(p, emit, t.line) }

// line reads one line.
func (t *talk) line(text []byte) {
	var e envelope
	if text[0] != '{' || !decode(text, &e) {
		t.Parse(text)
		return
	}
	switch e.Type {
	case "control_request":
		t.asked(&e)
		return
	case "control_response":
		t.answered(e.Response)
		return
	case "control_cancel_request":
		t.Withdraw(e.RequestID)
		return
	}
	if t.s.Nonce == "" {
		t.s.Nonce = agent.OneLine(e.UUID, 64)
	}
	t.Parse(text)
	switch e.Type {
	case "command_lifecycle":
		t.lifecycle(e.Command, e.State)
	case "system":
		t.system(&e)
	case "result":
		t.result()
	}
}

// decode tells whether text is an object; a field of another form than is
// known is left out.
func decode(text []byte, e any) bool {
	var mismatch *json.UnmarshalTypeError
	err := json.Unmarshal(text, e)
	return err == nil || errors.As(err, &mismatch)
}

func (t *talk) system(e *envelope) {
	switch e.Subtype {
	case "init":
		if t.s.Busy && t.s.Turns > 0 {
			t.begun()
		}
	case "session_state_changed":
		t.s.Activity = agent.OneLine(e.State, 32)
		if t.s.Activity == "idle" && t.s.Busy && t.s.Result {
			t.settle()
		}
	}
}

// begun takes the first line of the turn, or of what it does after a result.
func (t *talk) begun() {
	first := !t.s.Begun
	t.s.Begun, t.s.Result = true, false
	if first && t.s.Stopping {
		t.interrupt()
	}
}

// result takes the last line of the turn, unless the program says more. A
// result without a beginning can only be of the first turn; later on it is of
// something that the program did by itself before it read the prompt.
func (t *talk) result() {
	if !t.s.Busy || !t.s.Begun && t.s.Turns != 1 {
		return
	}
	t.s.Result = true
	if t.s.Activity == "" {
		t.settle()
	}
}

// settle ends a turn, unless a message is on its way to it. The program reads
// that before a request that comes behind it, and says so before it answers
// the request, which asks for nothing.
func (t *talk) settle() {
	if t.s.Check != "" {
		return
	}
	t.s.Woken = false
	for _, m := range t.s.Steers {
		if !m.Queued {
			t.s.Check = t.cancel(steer{ID: messageID(t.s.Nonce, 0)})
			return
		}
	}
	t.end()
}

// lifecycle takes what became of a message that has an id.
func (t *talk) lifecycle(id, state string) {
	i := slices.IndexFunc(t.s.Steers, func(m steer) bool { return m.ID == id })
	if i < 0 {
		return
	}
	switch state {
	case "queued":
		t.s.Steers[i].Queued, t.s.Woken = true, true
	case "started", "completed":
		t.s.Woken = true
		t.s.Steers = slices.Delete(t.s.Steers, i, i+1)
	default: // cancelled, or what else keeps it from being read
		t.s.Steers = slices.Delete(t.s.Steers, i, i+1)
		if !t.s.Stopping {
			t.Note("what was said last was not read: " + state)
		}
	}
}

// answered takes an answer to a request of ours. An answer of our own that is
// echoed has another id.
func (t *talk) answered(response json.RawMessage) {
	var r struct {
		Subtype string
		ID      string `json:"request_id"`
		Error   string
	}
	if !decode(response, &r) || r.ID == "" {
		return
	}
	switch {
	case t.s.Mode == modeAsked && r.ID == "scvfs-1":
		t.modeAnswered(r.Subtype, r.Error)
	case r.ID == t.s.Check:
		t.s.Check = ""
		idle := t.s.Activity == "idle" || t.s.Activity == ""
		if t.s.Busy && t.s.Result && idle && !t.s.Woken {
			t.end()
		}
	}
}

// modeAnswered ends the greeting.
func (t *talk) modeAnswered(subtype, why string) {
	t.s.Mode = ""
	if subtype == "error" {
		t.s.Mode, t.s.Why = modeRefused, agent.OneLine(agent.Redact(why), 200)
	}
	if !t.s.Busy {
		return
	}
	if t.s.Mode == modeRefused {
		t.refused()
		return
	}
	text := t.s.Prompt
	t.s.Prompt = nil
	t.prompt(text)
}

// end ends the turn as the program judged it.
func (t *talk) end() {
	t.leave()
	t.clear()
	t.End()
}

// over ends the turn otherwise.
func (t *talk) over(o agent.Outcome) {
	t.leave()
	t.clear()
	t.EndAs(o)
}

// leave denies what was asked by whom goes on after the turn.
func (t *talk) leave() {
	wires, _ := t.WithdrawAll()
	for _, id := range wires {
		t.deny(id, "the turn that this belongs to has ended")
	}
}

// clear forgets the turn.
func (t *talk) clear() {
	t.s.Busy, t.s.Begun, t.s.Result, t.s.Stopping, t.s.Woken = false, false, false, false, false
	t.s.Steers, t.s.Check = nil, ""
}

// messageID makes the id of the n-th message to a process. It has the form of
// a UUID, and no other process has it: nonce is one of the process's own.
func messageID(nonce string, n uint64) string {
	h := sha256.Sum256([]byte(nonce + " " + strconv.FormatUint(n, 10)))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
