package codex

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// The requests that become asks.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askChange      = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askInput       = "item/tool/requestUserInput"
	askServer      = "mcpServer/elicitation/request" // of a tool's server
)

// wanted is what is read of a request's params.
type wanted struct {
	ItemID  string `json:"itemId"`
	Kind    string
	Command string
	CWD     string
	Reason  string
	Network *struct{ Host string } `json:"networkApprovalContext"`

	Permissions granted

	Questions []struct {
		ID       string
		Question string
		Options  []struct{ Label string }
	}

	Server  string `json:"serverName"`
	Mode    string
	Message string
	Schema  struct {
		Properties map[string]json.RawMessage
	} `json:"requestedSchema"`
}

// granted are permissions that are asked for, and given as they were.
type granted struct {
	Network    json.RawMessage `json:"network,omitempty"`
	FileSystem json.RawMessage `json:"fileSystem,omitempty"`
}

// changed is an item that changes files.
type changed struct {
	Changes []struct {
		Path string
		Kind struct{ Type string }
	}
}

// asked takes a request of the server.
func (t *talk) asked(m *incoming) {
	id := wireID(m.ID)
	if id == "" {
		return // no answer could reach it
	}
	q, ok := t.ask(m)
	switch {
	case !ok:
		t.SendRaw([]byte(`{"id":` + id + `,"error":{"code":-32601,"message":` + string(wire.JSON("scvfs does not answer requests of the kind "+agent.OneLine(m.Method, 64))) + `}}`))
	case !t.s.Busy || t.s.Stopping || !t.Ask(id, q):
		t.answer(id, q.Request, dialogue.Answer{Reason: "nobody can answer now"})
	}
}

// wireID is a request's id as it goes into the answer; empty for none.
func wireID(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || len(raw) > 256 || !utf8.Valid(raw) || raw[0] == '{' || raw[0] == '[' || !json.Valid(raw):
		return ""
	}
	return string(raw)
}

// ask says what is asked; ok is false for what cannot be.
func (t *talk) ask(m *incoming) (q dialogue.Ask, ok bool) {
	var p wanted
	decode(m.Params, &p)
	item := t.item(p.ItemID)
	q = dialogue.Ask{Kind: dialogue.Permission, CWD: p.CWD, Request: whole(m, item)}
	switch m.Method {
	case askCommand:
		q.Risk, q.Tool, q.Summary = dialogue.Process, "command", agent.CommandSummary(p.Command)
		switch {
		case p.Network != nil:
			q.Risk, q.Summary = dialogue.Network, "reach "+line(p.Network.Host)
		case p.Kind == "writeStdin":
			q.Summary = "type into a running command: " + line(p.Command)
		case q.Summary == "":
			q.Summary = "run a command"
		}
	case askChange:
		q.Risk, q.Tool, q.Summary = dialogue.Filesystem, "patch", changes(item)
	case askPermissions:
		q.Risk, q.Tool, q.Summary = dialogue.Delegate, "permissions", p.Permissions.summary()
	case askServer:
		if len(p.Schema.Properties) > 0 || p.Mode == "url" {
			return q, false // a form, or a page to open
		}
		q.Risk, q.Tool, q.Summary = dialogue.Delegate, p.Server, line(p.Server+": "+p.Message)
	case askInput:
		p.choices(&q)
	default:
		return q, false
	}
	if p.Reason != "" && m.Method != askInput {
		q.Summary += " (" + line(p.Reason) + ")"
	}
	return q, true
}

// line makes a text of the agent's a part of a summary.
func line(s string) string { return agent.OneLine(agent.Redact(wire.Clip(s, 8<<10)), 200) }

// whole is a request as it came, with the item that it is about.
func whole(m *incoming, item []byte) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"method":`)
	b.Write(wire.JSON(m.Method))
	b.WriteString(`,"params":`)
	if len(m.Params) == 0 {
		b.WriteString("null")
	}
	b.Write(m.Params)
	if item != nil {
		b.WriteString(`,"item":`)
		b.Write(item)
	}
	b.WriteString("}")
	return b.Bytes()
}

func (t *talk) item(id string) []byte {
	for _, i := range t.s.Items {
		if i.ID == id {
			return i.Raw
		}
	}
	return nil
}

func changes(item []byte) string {
	var c changed
	decode(item, &c)
	if len(c.Changes) == 0 {
		return "edit files"
	}
	return agent.ChangesSummary(len(c.Changes), func(i int) (string, string) { return c.Changes[i].Kind.Type, c.Changes[i].Path })
}

func (g *granted) summary() string {
	var what []string
	if known(g.Network) {
		what = append(what, "the network")
	}
	if known(g.FileSystem) {
		what = append(what, "files "+line(string(g.FileSystem)))
	}
	return "have more permissions in this turn: " + strings.Join(what, " and ")
}

func (p *wanted) choices(q *dialogue.Ask) {
	q.Kind, q.Risk, q.Tool = dialogue.Question, dialogue.Delegate, "question"
	for _, one := range p.Questions {
		c := dialogue.Choice{Text: one.Question}
		for _, o := range one.Options {
			c.Options = append(c.Options, o.Label)
		}
		q.Questions = append(q.Questions, c)
	}
	q.Summary = wire.Questions(q.Questions)
}

func (t *talk) Answer(ask string, a dialogue.Answer, emit dialogue.Emit) error {
	id, q, err := t.Take(ask)
	if err != nil {
		return err
	}
	t.Do(emit, func() { t.answer(id, q.Request, a) })
	return nil
}

// answer answers a request that became an ask.
func (t *talk) answer(id string, request []byte, a dialogue.Answer) {
	var m incoming
	var p wanted
	decode(request, &m)
	decode(m.Params, &p)
	var result any
	switch m.Method {
	case askPermissions:
		result = p.grant(a.Allow)
	case askServer:
		result = map[string]any{"action": decision(a.Allow), "content": nil}
		if a.Allow {
			result = map[string]any{"action": decision(a.Allow), "content": struct{}{}}
		}
	case askInput:
		result = map[string]any{"answers": p.answers(a)}
	default:
		result = map[string]any{"decision": decision(a.Allow)}
	}
	t.SendRaw([]byte(`{"id":` + id + `,"result":` + string(wire.JSON(result)) + `}`))
}

func decision(allow bool) string {
	if allow {
		return "accept"
	}
	return "decline"
}

// grant gives what was asked for, for the turn, or nothing.
func (p *wanted) grant(allow bool) any {
	given := granted{}
	if allow {
		given = p.Permissions
	}
	if !known(given.Network) {
		given.Network = nil
	}
	if !known(given.FileSystem) {
		given.FileSystem = nil
	}
	return map[string]any{"permissions": given, "scope": "turn"}
}

// answers are the owner's words by the ids of the questions, or why there are
// none.
func (p *wanted) answers(a dialogue.Answer) map[string]any {
	all := map[string]any{}
	for i, q := range p.Questions {
		switch {
		case a.Allow && i < len(a.Words):
			all[q.ID] = map[string]any{"answers": []string{a.Words[i]}}
		case !a.Allow && a.Reason != "":
			all[q.ID] = map[string]any{"answers": []string{"not answered: " + a.Reason}}
		}
	}
	return all
}
