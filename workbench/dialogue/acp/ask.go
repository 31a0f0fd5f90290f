package acp

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// cancelRequest is the notification by which a server takes a request back.
const cancelRequest = "$/cancel_request"

// maxCalls is how many calls of tools are remembered, for requests that say
// less of them than was said before.
const maxCalls = 64

// permission is what is read of a request for a permission.
type permission struct {
	Call    json.RawMessage `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind sdk.PermissionOptionKind
	}
}

// asked takes a request of the server.
func (t *talk) asked(id string, m *incoming, text []byte) {
	switch m.Method {
	case sdk.ClientMethodSessionRequestPermission:
		t.askedPermission(id, m, text)
	case sdk.ClientMethodElicitationCreate:
		t.askedForm(id, m)
	default:
		t.deny(id, sdk.NewMethodNotFound(agent.OneLine(m.Method, 128)))
	}
}

func (t *talk) askedPermission(id string, m *incoming, text []byte) {
	asked := whole(m)
	if !t.listens() {
		t.answerNobody(id, asked)
		return
	}
	t.Parse(text)
	var p permission
	decode(m.Params, &p)
	call := t.known(p.Call)
	if t.s.Wants.Full && p.option(true) != "" {
		t.answerPermission(id, &p, true)
		return
	}
	q := dialogue.Ask{Kind: dialogue.Permission, Risk: risk(&call), Tool: toolName(&call), Summary: call.Summary(), Request: asked}
	if !t.Ask(id, q) {
		t.refusePermission(id, &p)
	}
}

// listens tells whether a turn runs to which a request can belong.
func (t *talk) listens() bool { return t.s.Prompts > 0 && !t.s.Stopping }

// whole is a request as it came, without its id.
func whole(m *incoming) json.RawMessage {
	if len(m.Params) == 0 {
		m.Params = json.RawMessage("null")
	}
	return slices.Concat([]byte(`{"method":`), wire.JSON(m.Method), []byte(`,"params":`), m.Params, []byte("}"))
}

// called remembers a call that is told of.
func (t *talk) called(params json.RawMessage) {
	var p struct{ Update json.RawMessage }
	decode(params, &p)
	call := t.known(p.Update)
	if len(call.Input) > 8<<10 {
		call.Input = nil
	}
	t.s.Calls = slices.DeleteFunc(t.s.Calls, func(c agent.ACPTool) bool { return c.ID == call.ID })
	if len(t.s.Calls) >= maxCalls {
		t.s.Calls = slices.Delete(t.s.Calls, 0, 1)
	}
	t.s.Calls = append(t.s.Calls, call)
}

// known is a call with what was told of it before.
func (t *talk) known(raw json.RawMessage) agent.ACPTool {
	told := agent.DecodeACPTool(raw)
	for _, c := range t.s.Calls {
		if c.ID == told.ID {
			c.Add(&told)
			return c
		}
	}
	return told
}

func toolName(c *agent.ACPTool) string {
	if c.Name != "" {
		return agent.OneLine(c.Name, 128)
	}
	return agent.OneLine(c.Does, 128)
}

// risk is what a call can harm, by its kind. One that reads is harmless unless
// what it reads may be secret.
func risk(c *agent.ACPTool) dialogue.Risk {
	switch sdk.ToolKind(c.Does) {
	case sdk.ToolKindRead, sdk.ToolKindSearch, sdk.ToolKindThink:
		if c.Secret() {
			return dialogue.Filesystem
		}
		return dialogue.ReadOnly
	case sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove:
		return dialogue.Filesystem
	case sdk.ToolKindExecute:
		return dialogue.Process
	case sdk.ToolKindFetch:
		return dialogue.Network
	}
	return dialogue.Delegate
}

// takenBack withdraws what the server needs no answer to any more.
func (t *talk) takenBack(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	decode(params, &p)
	id := requestID(p.ID)
	for i := range t.Waiting {
		if t.Waiting[i].Wire == id {
			t.Withdraw(id)
			t.deny(id, sdk.NewRequestCancelled(nil))
			return
		}
	}
}

func (t *talk) Answer(ask string, a dialogue.Answer, emit dialogue.Emit) error {
	id, q, err := t.Take(ask)
	if err != nil {
		return err
	}
	t.Do(emit, func() {
		var m incoming
		decode(q.Request, &m)
		if m.Method == sdk.ClientMethodElicitationCreate {
			t.answerForm(id, &m, a)
			return
		}
		var p permission
		decode(m.Params, &p)
		if !a.Allow {
			t.refusePermission(id, &p)
			return
		}
		t.answerPermission(id, &p, true)
	})
	return nil
}

// answerNobody answers what nobody can be asked.
func (t *talk) answerNobody(id string, asked []byte) {
	var m incoming
	decode(asked, &m)
	if m.Method == sdk.ClientMethodElicitationCreate {
		t.reply(id, formAnswer{Action: "cancel"})
		return
	}
	t.reply(id, cancelled())
}

func cancelled() sdk.RequestPermissionResponse {
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
}

func (t *talk) refusePermission(id string, p *permission) {
	t.answerPermission(id, p, false)
	t.Parse(agent.ACPDenied(agent.DecodeACPTool(p.Call).ID))
}

// answerPermission answers for this once, or for good where there is nothing
// else to choose.
func (t *talk) answerPermission(id string, p *permission, allow bool) {
	option := p.option(allow)
	if option == "" {
		t.reply(id, cancelled())
		return
	}
	t.reply(id, sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(option))})
}

func (p *permission) option(allow bool) string {
	kinds := []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways}
	if allow {
		kinds = []sdk.PermissionOptionKind{sdk.PermissionOptionKindAllowOnce, sdk.PermissionOptionKindAllowAlways}
	}
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind && strings.TrimSpace(o.ID) != "" {
				return o.ID
			}
		}
	}
	return ""
}
