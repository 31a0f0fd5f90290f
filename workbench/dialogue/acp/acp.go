// Package acp is the dialogue with a server of the Agent Client Protocol:
// JSON-RPC 2.0, one message a line, version 1. The types and names of what is
// sent, and the words of what comes, are those of github.com/coder/acp-go-sdk;
// its connection is not used, because it lives in memory, and a dialogue must
// outlive the daemon. What comes is not read through its types either: they
// refuse a whole message for one value that they do not know, and take an
// unknown update for another one.
//
// Seen with claude-agent-acp 0.49.0, codex-acp 0.16.0, gemini 0.61.0, opencode
// 1.18.33, copilot 1.0.102 and pi-acp 0.0.34:
//
//   - session/load tells the history again, gemini's still after its answer. So
//     session/resume is preferred, and behind a load a request goes that no
//     server knows, again until nothing came before its refusal.
//   - A prompt sent during a turn goes into that turn (claude and opencode), or
//     cancels it (gemini and copilot). Only claude's server says which
//     (promptQueueing), so only that one is steerable. It answers the earlier
//     prompt early, so the turn is over when all prompts are answered.
//   - claude's server asks questions only of a client that can show forms.
//   - gemini asks for a permission without telling of the call before.
//   - copilot and opencode end the turn after a denial, codex cancels it.
//   - gemini empties a session that is continued within the minute in which it
//     began, and was seen to lose a cancel in the first moments of a tool.
//   - codex's server goes on when its input ends; the others exit with 0.
//
// There are no locks: a dialogue belongs to one goroutine.
package acp

import (
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// maxPrompts is how many prompts wait at once for their answers.
const maxPrompts = 64

type talk struct {
	*wire.Talk
	o dialogue.Options
	s state
}

var _ dialogue.Dialogue = (*talk)(nil)

// state is what is known of the server, its session and turn.
type state struct {
	Wants   wants             `json:"wants"`
	Step    step              `json:"step,omitempty"`
	Waits   map[string]string `json:"waits,omitempty"` // what our requests are for, by their ids
	Sent    uint64            `json:"sent,omitempty"`  // requests of ours
	Refusal refusal           `json:"refusal,omitzero"`

	Server  string   `json:"server,omitempty"` // the session, as the server calls it
	Loads   bool     `json:"loads,omitempty"`
	Resumes bool     `json:"resumes,omitempty"`
	Queues  bool     `json:"queues,omitempty"`  // it takes a prompt during a turn
	Greeted string   `json:"greeted,omitempty"` // what it shows at the start, and says again as a message
	Told    bool     `json:"told,omitempty"`    // it told of the session since the last probe
	Probes  int      `json:"probes,omitempty"`
	Setting setting  `json:"setting,omitempty"`
	Offers  offers   `json:"offers,omitzero"`
	Cost    *float64 `json:"cost,omitempty"`  // of the session until the turn; nil: not known
	Spent   *float64 `json:"spent,omitempty"` // and until now

	Prompt   []byte          `json:"prompt,omitempty"` // waits until the session is set
	Busy     bool            `json:"busy,omitempty"`
	Prompts  int             `json:"prompts,omitempty"` // that are not answered
	Stopping bool            `json:"stopping,omitempty"`
	Calls    []agent.ACPTool `json:"calls,omitempty"` // the last ones that were told of
}

// wants are the Options that a restored dialogue goes on with.
type wants struct {
	CWD     []byte `json:"cwd"` // which may hold any bytes
	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Full    bool   `json:"full,omitempty"`
}

// step is how far the dialogue is.
type step string

const (
	greeting  step = ""          // initialize was sent
	opening   step = "opening"   // the session is being started or continued
	listening step = "listening" // its history is being told again
	setting_  step = "setting"   // it is being set
	ready     step = "ready"
	shut      step = "shut"    // the session could not be opened or set; the next prompt tries again
	refused   step = "refused" // the server cannot be spoken with
)

// refusal is why there is no turn: an answer of the server, or a sentence.
type refusal struct {
	Answer []byte `json:"answer,omitempty"`
	Why    string `json:"why,omitempty"`
}

// New returns the dialogue with one process of an ACP server.
func New(o dialogue.Options) dialogue.Dialogue {
	t := &talk{Talk: wire.New(o.Agent, agent.FormatACP), o: o}
	t.s.Wants = wants{[]byte(o.CWD), o.Session, o.Model, o.Effort, o.Mode, o.Full}
	return t
}

func (t *talk) Open(emit dialogue.Emit) { t.Do(emit, t.greet) }

func (t *talk) Prompt(text []byte, emit dialogue.Emit) error {
	if err := t.Check(text); err != nil {
		return err
	}
	if t.s.Busy {
		return t.ErrBusy()
	}
	t.s.Busy = true
	t.Do(emit, func() {
		if t.s.Step == ready {
			t.prompt(text)
			return
		}
		t.s.Prompt = append([]byte{}, text...)
		switch t.s.Step {
		case refused:
			t.refuse(t.s.Refusal)
		case shut:
			t.open()
		}
	})
	return nil
}

// prompt begins the turn.
func (t *talk) prompt(text []byte) {
	t.s.Prompt = nil
	t.sendPrompt(text)
	if len(text) > 0 && text[0] == '/' {
		t.Parse(agent.ACPCommand())
	}
}

func (t *talk) sendPrompt(text []byte) {
	t.s.Prompts++
	t.request(sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: sdk.SessionId(t.s.Server), Prompt: []sdk.ContentBlock{sdk.TextBlock(string(text))},
	})
}

func (t *talk) Steer(text []byte, emit dialogue.Emit) error {
	if err := t.Check(text); err != nil {
		return err
	}
	switch {
	case !t.s.Busy:
		return t.ErrIdle()
	case !t.s.Queues && t.s.Step == ready:
		return fault.New(fault.Unsupported, "%s takes no text during a turn: wait for its end", t.o.Agent.Name)
	case !t.Steerable():
		return t.ErrDeaf()
	case t.s.Prompts >= maxPrompts:
		return fault.New(fault.Limit, "%s has %d prompts that it has not answered yet: wait for it", t.o.Agent.Name, maxPrompts)
	}
	t.Do(emit, func() {
		t.sendPrompt(text)
		t.Event(agent.Steered, string(text))
	})
	return nil
}

func (t *talk) Steerable() bool {
	return t.s.Busy && t.s.Queues && t.s.Prompts > 0 && !t.s.Stopping && !t.Over
}

func (t *talk) Busy() bool { return t.s.Busy && !t.Over }

func (t *talk) Interrupt(emit dialogue.Emit) {
	if !t.s.Busy || t.s.Stopping || t.Over {
		return
	}
	t.Do(emit, func() {
		if t.s.Prompts == 0 {
			t.clear()
			t.EndUnsent()
			return
		}
		t.s.Stopping = true
		t.notify(sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(t.s.Server)})
		t.withdraw()
	})
}

// withdraw takes back all that is asked, and tells the server so.
func (t *talk) withdraw() {
	ids, asked := t.WithdrawAll()
	for i, id := range ids {
		t.answerNobody(id, asked[i])
	}
}

// end ends the turn as the answers to its prompts say.
func (t *talk) end() {
	t.withdraw()
	t.clear()
	o := t.Outcome(agent.Exit{}, nil)
	if t.s.Spent != nil {
		t.s.Cost = t.s.Spent
	}
	t.EndAs(o)
}

// clear forgets the turn.
func (t *talk) clear() {
	t.s.Prompt, t.s.Busy, t.s.Prompts, t.s.Stopping, t.s.Calls = nil, false, 0, false, nil
}

func (t *talk) Feed(p []byte, emit dialogue.Emit) { t.Talk.Feed(p, emit, t.line) }

func (t *talk) Finish(emit dialogue.Emit) { t.Talk.Finish(emit, t.line) }

func (t *talk) Outcome(exit agent.Exit, stderr []byte) agent.Outcome {
	o := t.Talk.Outcome(exit, stderr)
	// Servers tell what the session cost until now.
	if before, now := t.s.Cost, t.s.Spent; before != nil && now != nil && *now > *before {
		if o.Usage == nil {
			o.Usage = &agent.Usage{}
		}
		o.Usage.CostUSD = *now - *before
	}
	return o
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
