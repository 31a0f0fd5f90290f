// Package codex is the dialogue with `codex app-server`, which speaks JSON-RPC
// without its version field, one message a line. Seen with 0.171.0:
//
//   - A thread keeps the permissions that it was last given, also when it is
//     continued by another process: one that ran with full permissions, or in
//     codex exec, would never ask. So each start says what the policy is, and
//     the sandbox is set back to what the configuration says.
//   - An interrupt before the turn/started notification is refused.
//   - It ends at once when its input does, in the middle of a turn too.
//
// There are no locks: a dialogue belongs to one goroutine.
package codex

import (
	"cmp"
	"encoding/json"
	"strconv"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// maxSteers is how many texts wait at once to be taken into a turn.
const maxSteers = 64

type talk struct {
	*wire.Talk
	o dialogue.Options
	s state
}

var _ dialogue.Dialogue = (*talk)(nil)

// state is what is known of the server, its thread and turn.
type state struct {
	Step    step              `json:"step,omitempty"`
	Waits   map[string]string `json:"waits,omitempty"` // what our requests are for, by their ids
	Sent    uint64            `json:"sent,omitempty"`  // requests of ours
	Refusal []byte            `json:"refusal,omitempty"`
	Thread  string            `json:"thread,omitempty"`
	Model   string            `json:"model,omitempty"`   // of the thread
	Sandbox []byte            `json:"sandbox,omitempty"` // to set it back to, with the next turn

	Prompt   []byte `json:"prompt,omitempty"` // waits until there is a thread
	Busy     bool   `json:"busy,omitempty"`
	Turn     string `json:"turn,omitempty"`
	Started  bool   `json:"started,omitempty"`
	Stopping bool   `json:"stopping,omitempty"`
	Items    []item `json:"items,omitempty"` // changes of files that have started
}

// step is how far the greeting is.
type step string

const (
	greeting step = ""        // initialize was sent
	opening  step = "opening" // the thread is being started or continued
	probing  step = "probing" // what the configuration says is being asked for
	ready    step = "ready"
	refused  step = "refused"
)

// item is a change of files that the server told of, as it came.
type item struct {
	ID  string `json:"id"`
	Raw []byte `json:"raw"`
}

// New returns the dialogue with one process of codex app-server.
func New(o dialogue.Options) dialogue.Dialogue {
	return &talk{Talk: wire.New(o.Agent, agent.FormatAppServer), o: o}
}

// unwanted are notifications that say nothing that is not said otherwise. They
// would be most of the output.
var unwanted = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded", "item/reasoning/textDelta",
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "turn/diff/updated", "account/rateLimits/updated", "remoteControl/status/changed",
}

func (t *talk) Open(emit dialogue.Emit) {
	version := cmp.Or(t.o.Version, "0")
	t.Do(emit, func() {
		t.request("initialize", initialize{
			clientInfo{"scvfs", "scvfs", version},
			capabilities{t.o.Mode != "", unwanted}, // a mode is part of the experimental API
		})
	})
}

// request sends a request. What it is for is its method.
func (t *talk) request(method string, params any) {
	t.s.Sent++
	if t.s.Waits == nil {
		t.s.Waits = map[string]string{}
	}
	t.s.Waits[strconv.FormatUint(t.s.Sent, 10)] = method
	t.Send(request{t.s.Sent, method, params})
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
		switch t.s.Step {
		case ready:
			t.prompt(text)
		case refused:
			t.fail(t.s.Refusal)
		default:
			t.s.Prompt = append([]byte{}, text...)
		}
	})
	return nil
}

// prompt begins a turn.
func (t *talk) prompt(text []byte) {
	p := turnStart{Thread: t.s.Thread, Input: input(text), Effort: t.o.Effort, Sandbox: t.s.Sandbox}
	if t.o.Mode != "" {
		p.Mode = &mode{t.o.Mode, modeSettings{Model: cmp.Or(t.s.Model, t.o.Model)}}
		if t.o.Effort != "" {
			p.Mode.Settings.Effort = &t.o.Effort
		}
	}
	t.s.Sandbox = nil
	t.request("turn/start", p)
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
	case len(t.s.Waits) >= maxSteers:
		return fault.New(fault.Limit, "%s has %d messages that it has not answered yet: wait for it", t.o.Agent.Name, maxSteers)
	}
	t.Do(emit, func() {
		t.request("turn/steer", turnSteer{t.s.Thread, t.s.Turn, input(text)})
		t.Event(agent.Steered, string(text))
	})
	return nil
}

func (t *talk) Steerable() bool { return t.s.Busy && t.s.Turn != "" && !t.s.Stopping && !t.Over }

func (t *talk) Busy() bool { return t.s.Busy && !t.Over }

func (t *talk) Interrupt(emit dialogue.Emit) {
	if !t.s.Busy || t.s.Stopping || t.Over {
		return
	}
	t.Do(emit, func() {
		t.s.Stopping = true
		t.WithdrawAll() // the server withdraws them too
		switch {
		case t.s.Step != ready:
			t.clear()
			t.EndUnsent()
		case t.s.Started:
			t.interrupt()
		}
	})
}

func (t *talk) interrupt() {
	t.request("turn/interrupt", turnInterrupt{t.s.Thread, t.s.Turn})
}

func (t *talk) Finish(emit dialogue.Emit) { t.Talk.Finish(emit, t.line) }

// end ends the turn as the server judged it.
func (t *talk) end() {
	wires, asked := t.WithdrawAll()
	for i, id := range wires { // of agents that go on without it
		t.answer(id, asked[i], dialogue.Answer{})
	}
	t.clear()
	t.End()
}

// fail ends the turn by an answer that is an error.
func (t *talk) fail(answer []byte) {
	t.Parse(answer)
	t.end()
}

// clear forgets the turn.
func (t *talk) clear() {
	t.s.Busy, t.s.Turn, t.s.Started, t.s.Stopping, t.s.Prompt, t.s.Items = false, "", false, false, nil, nil
}

func (t *talk) State() (json.RawMessage, error) { return t.Talk.State(&t.s) }

func (t *talk) Restore(from json.RawMessage) error {
	var s state
	if err := t.Talk.Restore(from, &s); err != nil {
		return err
	}
	if len(s.Sandbox) > 0 && !json.Valid(s.Sandbox) {
		return fault.New(fault.Invalid, "the saved state of the dialogue with %s holds no sandbox: stop the run and begin its turn again", t.o.Agent.Name)
	}
	t.s = s
	return nil
}
