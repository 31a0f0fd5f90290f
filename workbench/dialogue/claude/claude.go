// Package claude is the dialogue with Claude Code over its stream-json both
// ways: `claude -p --input-format stream-json --output-format stream-json
// --verbose --permission-prompt-tool stdio`, as agent.StreamLaunch starts it.
//
// What the program prints is what it prints for one turn, which package agent
// reads, and beside it requests and answers of its control protocol, which are
// read here. Seen with 2.1.332:
//
//   - An interrupt that comes before the turn's init line is lost.
//   - A message that comes during a turn goes into it behind the tool that
//     runs, or begins an answer of its own behind the turn's result. So the
//     result is not the end; that is when the program says that it is idle,
//     which StreamLaunch has it do. Of one that does not, it is the result.
//   - A message that has an id is acknowledged, and can be taken back while it
//     waits.
//   - It ends by itself when its input does, after what it still has to do.
//
// There are no locks: a dialogue belongs to one goroutine.
package claude

import (
	"encoding/json"
	"strconv"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// maxSteers is how many messages wait at once to go into a turn.
const maxSteers = 64

type talk struct {
	*wire.Talk
	name string
	mode string
	s    state
}

var _ dialogue.Dialogue = (*talk)(nil)

// state is what is known of the program and its turn.
type state struct {
	Mode   greeting `json:"mode,omitempty"`
	Why    string   `json:"why,omitempty"`    // the mode was refused
	Prompt []byte   `json:"prompt,omitempty"` // waits until the mode is set

	Sent     uint64 `json:"sent,omitempty"`     // what was sent that has an id
	Turns    uint64 `json:"turns,omitempty"`    // prompts that were sent
	Activity string `json:"activity,omitempty"` // what the program said last that it does; empty for one that says nothing
	Nonce    string `json:"nonce,omitempty"`    // a mark of this process

	Busy     bool    `json:"busy,omitempty"`
	Begun    bool    `json:"begun,omitempty"`    // the turn's first line came
	Result   bool    `json:"result,omitempty"`   // and its last one
	Stopping bool    `json:"stopping,omitempty"` // it is to be interrupted
	Steers   []steer `json:"steers,omitempty"`   // messages that are not known to be in it
	Check    string  `json:"check,omitempty"`    // the request whose answer tells whether it is over
	Woken    bool    `json:"woken,omitempty"`    // meanwhile a message began to be read
}

// greeting is how far the setting of a mode is.
type greeting string

const (
	modeAsked   greeting = "asked"
	modeRefused greeting = "refused"
)

// steer is a message that was sent into a turn.
type steer struct {
	ID     string `json:"id"`
	Queued bool   `json:"queued,omitempty"` // the program has it
}

// New returns the dialogue with one process of Claude Code.
func New(o dialogue.Options) dialogue.Dialogue {
	return &talk{Talk: wire.New(o.Agent, "claude"), name: o.Agent.Name, mode: o.Mode}
}

func (t *talk) Open(emit dialogue.Emit) {
	if t.mode == "" {
		return
	}
	t.s.Mode = modeAsked
	t.Do(emit, func() { t.request(map[string]string{"subtype": "set_permission_mode", "mode": t.mode}) })
}

// request sends a control request and returns its id.
func (t *talk) request(request any) string {
	id := t.nextID()
	t.Send(controlRequest{"control_request", id, request})
	return id
}

func (t *talk) nextID() string {
	t.s.Sent++
	return "scvfs-" + strconv.FormatUint(t.s.Sent, 10)
}

func (t *talk) Prompt(text []byte, emit dialogue.Emit) error {
	if err := t.Check(text); err != nil {
		return err
	}
	if t.s.Busy {
		return t.ErrBusy()
	}
	t.s.Busy = true
	t.Do(emit, func() {
		switch t.s.Mode {
		case modeAsked:
			t.s.Prompt = append([]byte{}, text...)
		case modeRefused:
			t.refused()
		default:
			t.prompt(text)
		}
	})
	return nil
}

func (t *talk) prompt(text []byte) {
	t.s.Turns++
	t.Send(userMessage{Type: "user", Message: message{"user", string(text)}})
}

// refused ends a turn whose mode the program does not have.
func (t *talk) refused() {
	t.s.Prompt = nil
	t.over(agent.Outcome{
		Status: agent.StatusFailed, Session: t.Session(),
		Error: t.name + " does not take the mode " + strconv.Quote(agent.OneLine(t.mode, 64)) + " (" + t.s.Why + "): choose another one, or none for its default",
	})
}

func (t *talk) Steer(text []byte, emit dialogue.Emit) error {
	if err := t.Check(text); err != nil {
		return err
	}
	switch {
	case !t.s.Busy:
		return t.ErrIdle()
	case !t.Steerable():
		return t.ErrDeaf()
	case len(t.s.Steers) >= maxSteers:
		return fault.New(fault.Limit, "%s has %d messages that it has not read yet: wait for it", t.name, maxSteers)
	}
	t.Do(emit, func() {
		m := userMessage{Type: "user", Message: message{"user", string(text)}}
		if t.s.Nonce != "" {
			t.s.Sent++
			m.UUID = messageID(t.s.Nonce, t.s.Sent)
			t.s.Steers = append(t.s.Steers, steer{ID: m.UUID})
		}
		t.Send(m)
		t.Event(agent.Steered, string(text))
	})
	return nil
}

func (t *talk) Steerable() bool {
	return t.s.Busy && t.s.Begun && !t.s.Result && !t.s.Stopping && !t.Over
}

func (t *talk) Busy() bool { return t.s.Busy && !t.Over }

func (t *talk) Interrupt(emit dialogue.Emit) {
	if !t.s.Busy || t.s.Stopping || t.Over {
		return
	}
	t.Do(emit, func() {
		t.s.Stopping = true
		t.WithdrawAll() // the program withdraws them too
		switch {
		case t.s.Mode == modeAsked:
			t.s.Prompt = nil
			t.clear()
			t.EndUnsent()
		case t.s.Begun:
			t.interrupt()
		}
	})
}

// interrupt ends the turn, and first takes back the messages that it has not
// read, which would be answered after it.
func (t *talk) interrupt() {
	for _, m := range t.s.Steers {
		t.cancel(m)
	}
	t.request(map[string]string{"subtype": "interrupt"})
}

func (t *talk) cancel(m steer) string {
	return t.request(map[string]string{"subtype": "cancel_async_message", "message_uuid": m.ID})
}

func (t *talk) Finish(emit dialogue.Emit) {
	t.Talk.Finish(emit, t.line)
}

func (t *talk) State() (json.RawMessage, error) { return t.Talk.State(&t.s) }

func (t *talk) Restore(from json.RawMessage) error {
	var s state
	if err := t.Talk.Restore(from, &s); err != nil {
		return err
	}
	t.s = s
	return nil
}

// Messages to the program.
type (
	userMessage struct {
		Type    string  `json:"type"`
		Session string  `json:"session_id"`
		Parent  *string `json:"parent_tool_use_id"`
		Message message `json:"message"`
		UUID    string  `json:"uuid,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	controlRequest struct {
		Type    string `json:"type"`
		ID      string `json:"request_id"`
		Request any    `json:"request"`
	}
	controlResponse struct {
		Type     string         `json:"type"`
		Response controlOutcome `json:"response"`
	}
	controlOutcome struct {
		Subtype  string `json:"subtype"`
		ID       string `json:"request_id"`
		Response any    `json:"response,omitempty"`
		Error    string `json:"error,omitempty"`
	}
)
