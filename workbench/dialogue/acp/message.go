package acp

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
)

// Messages of JSON-RPC.
type (
	request struct {
		Version string `json:"jsonrpc"`
		ID      uint64 `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	notification struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	response struct {
		Version string            `json:"jsonrpc"`
		ID      json.RawMessage   `json:"id"`
		Result  any               `json:"result,omitempty"`
		Error   *sdk.RequestError `json:"error,omitempty"`
	}
	incoming struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		Result json.RawMessage
		Error  json.RawMessage
	}
)

const version = "2.0"

// request sends a request. What it is for is its method.
func (t *talk) request(method string, params any) {
	t.s.Sent++
	if t.s.Waits == nil {
		t.s.Waits = map[string]string{}
	}
	t.s.Waits[strconv.FormatUint(t.s.Sent, 10)] = method
	t.Send(request{version, t.s.Sent, method, params})
}

func (t *talk) notify(method string, params any) { t.Send(notification{version, method, params}) }

// reply answers a request of the server, whose id is JSON.
func (t *talk) reply(id string, result any) {
	t.Send(response{Version: version, ID: json.RawMessage(id), Result: result})
}

func (t *talk) deny(id string, why *sdk.RequestError) {
	t.Send(response{Version: version, ID: json.RawMessage(id), Error: why})
}

// line takes a line of the server. What is none of its protocol goes to the
// parser, which keeps the start of it to be quoted.
func (t *talk) line(text []byte) {
	var m incoming
	if text[0] != '{' || !decode(text, &m) {
		t.Parse(text)
		return
	}
	if string(m.Error) == "null" {
		m.Error = nil
	}
	id := requestID(m.ID)
	switch {
	case m.Method == sdk.ClientMethodSessionUpdate:
		t.update(text, m.Params)
	case m.Method == cancelRequest:
		t.takenBack(m.Params)
	case m.Method != "" && id != "":
		t.asked(id, &m, text)
	case m.Method != "": // a notification of another kind
	case len(m.Result) > 0 || len(m.Error) > 0:
		t.answered(id, &m, text)
	default:
		t.Parse(text)
	}
}

// answered takes the answer to a request of ours. One that nobody waits for
// says nothing.
func (t *talk) answered(id string, m *incoming, text []byte) {
	if s, err := strconv.Unquote(id); err == nil {
		id = s
	}
	method, ok := t.s.Waits[id]
	if !ok {
		return
	}
	delete(t.s.Waits, id)
	failed := len(m.Error) > 0
	switch method {
	case sdk.AgentMethodInitialize:
		t.greeted(m, text)
	case sdk.AgentMethodSessionNew, sdk.AgentMethodSessionLoad, sdk.AgentMethodSessionResume:
		t.opened(method, m, text)
	case probe:
		t.probed()
	case sdk.AgentMethodSessionSetMode, sdk.AgentMethodSessionSetModel, sdk.AgentMethodSessionSetConfigOption:
		t.wasSet(failed, m, text)
	case sdk.AgentMethodSessionPrompt:
		if t.s.Prompts == 0 {
			return
		}
		t.Parse(text)
		if t.s.Prompts--; t.s.Prompts == 0 {
			t.end()
		}
	}
}

// update takes an update of a session. What is told while no turn runs is
// history, or says nothing that is logged.
func (t *talk) update(text []byte, params json.RawMessage) {
	var p struct {
		Session string `json:"sessionId"`
		Update  struct {
			Kind    string `json:"sessionUpdate"`
			Content json.RawMessage
			Cost    *sdk.Cost
		}
	}
	decode(params, &p)
	t.s.Told = true
	if t.s.Server == "" || p.Session != t.s.Server {
		return
	}
	u := &p.Update
	if u.Cost != nil && u.Cost.Currency == "USD" {
		t.s.Spent = &u.Cost.Amount
	}
	if t.s.Prompts == 0 || t.isGreeting(u.Kind, u.Content) {
		return
	}
	if u.Kind == "tool_call" || u.Kind == "tool_call_update" {
		t.called(params)
	}
	t.Parse(text)
}

// isGreeting tells whether a message is what the server shows at its start.
// pi-acp says it again in the first turn.
func (t *talk) isGreeting(kind string, content json.RawMessage) bool {
	if t.s.Greeted == "" || kind != "agent_message_chunk" {
		return false
	}
	var block struct{ Text string }
	decode(content, &block)
	if block.Text != t.s.Greeted {
		return false
	}
	t.s.Greeted = ""
	return true
}

// decode reads JSON into v. A value that is of another kind than it was is
// left out, and the rest counts.
func decode(raw []byte, v any) bool {
	var mismatch *json.UnmarshalTypeError
	err := json.Unmarshal(raw, v)
	return err == nil || errors.As(err, &mismatch)
}

// requestID is a message's id as it goes into an answer; empty for none.
func requestID(raw json.RawMessage) string {
	if len(raw) == 0 || len(raw) > 256 || !utf8.Valid(raw) || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return ""
	}
	return string(raw)
}
