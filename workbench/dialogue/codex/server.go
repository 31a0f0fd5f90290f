package codex

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"scvfs/workbench/dialogue"
)

// Bounds of the changes that are kept for who is asked about them.
const (
	maxItems     = 64
	maxItemBytes = 16 << 20
	maxRefusal   = 64 << 10
)

// incoming is a message of the server: a request has a method and an id, a
// notification a method, an answer an id.
type incoming struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// subject is what a notification is about.
type subject struct {
	Thread  string `json:"threadId"`
	TurnID  string `json:"turnId"`
	Turn    struct{ ID string }
	Item    json.RawMessage
	Request json.RawMessage `json:"requestId"`
}

// opened is the answer to thread/start and thread/resume.
type opened struct {
	Thread  struct{ ID string }
	Model   string
	Sandbox json.RawMessage
}

func (t *talk) Feed(p []byte, emit dialogue.Emit) { t.Talk.Feed(p, emit, t.line) }

// line reads one message.
func (t *talk) line(text []byte) {
	var m incoming
	switch {
	case text[0] != '{' || !decode(text, &m):
		t.Parse(text)
	case m.Method != "" && known(m.ID):
		t.asked(&m)
	case m.Method != "":
		t.told(&m, text)
	case known(m.ID):
		t.answered(&m, text)
	default:
		t.Parse(text)
	}
}

// decode tells whether text is an object; a field of another form than is
// known is left out.
func decode(text []byte, e any) bool {
	var mismatch *json.UnmarshalTypeError
	err := json.Unmarshal(text, e)
	return err == nil || errors.As(err, &mismatch)
}

// known tells whether a value is there and not null.
func known(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// answered takes an answer to a request of ours.
func (t *talk) answered(m *incoming, text []byte) {
	id := string(m.ID)
	what, ok := t.s.Waits[id]
	if !ok {
		return
	}
	delete(t.s.Waits, id)
	failed := known(m.Error)
	switch what {
	case "turn/start":
		var r subject
		switch decode(m.Result, &r); {
		case failed && t.s.Busy:
			t.fail(text)
		case failed:
		case t.s.Busy && t.s.Turn == "":
			t.s.Turn = r.Turn.ID
		}
	case "turn/steer":
		if failed {
			var e struct{ Message string }
			decode(m.Error, &e)
			t.Note("what was said last was not taken into the turn: " + e.Message)
		}
	case "initialize", "thread/start", "thread/resume":
		if failed {
			t.refuse(text)
			return
		}
		t.greet(m.Result)
	}
}

// refuse ends the greeting: there will be no turn.
func (t *talk) refuse(text []byte) {
	t.s.Step, t.s.Refusal = refused, slices.Clone(text[:min(len(text), maxRefusal)])
	if len(text) > maxRefusal {
		t.s.Refusal = []byte(`{"error":{"message":"it refused at great length"}}`)
	}
	if t.s.Busy {
		t.fail(t.s.Refusal)
	}
}

// greet takes the next step of the greeting.
func (t *talk) greet(result json.RawMessage) {
	var r opened
	decode(result, &r)
	switch t.s.Step {
	case greeting:
		t.Send(notification{"initialized"})
		t.s.Step = opening
		t.open()
		return
	case opening:
		t.s.Thread, t.s.Model = r.Thread.ID, r.Model
		t.Learn(r.Thread.ID)
		if t.o.Session != "" && !t.o.Full && unbound(r.Sandbox) {
			t.s.Step = probing
			t.request("thread/start", threadStart{CWD: t.o.CWD, Policy: "on-request", Ephemeral: true})
			return
		}
	case probing:
		t.s.Sandbox = slices.Clone(r.Sandbox)
		t.request("thread/unsubscribe", threadRef{r.Thread.ID})
	default:
		return
	}
	t.s.Step = ready
	if t.s.Busy {
		text := t.s.Prompt
		t.s.Prompt = nil
		t.prompt(text)
	}
}

// open starts the thread, or continues it. Without full permissions it asks,
// whatever it was told before, and the sandbox is as configured.
func (t *talk) open() {
	p := threadStart{CWD: t.o.CWD, Model: t.o.Model, Policy: "on-request"}
	if t.o.Full {
		p.Policy, p.Sandbox = "never", "danger-full-access"
	}
	method := "thread/start"
	if t.o.Session != "" {
		method, p.Thread, p.NoTurns = "thread/resume", t.o.Session, true
	}
	t.request(method, p)
}

// unbound tells whether a sandbox is none.
func unbound(sandbox json.RawMessage) bool {
	var s struct{ Type string }
	return decode(sandbox, &s) && s.Type == "dangerFullAccess"
}

// told takes a notification. What is of another thread or turn is not said of
// this one.
func (t *talk) told(m *incoming, text []byte) {
	var s subject
	decode(m.Params, &s)
	if s.Thread != "" && s.Thread != t.s.Thread {
		if m.Method == "serverRequest/resolved" { // of an agent of its own
			t.Withdraw(wireID(s.Request))
		}
		return
	}
	switch m.Method {
	case "serverRequest/resolved":
		t.Withdraw(wireID(s.Request))
		return
	case "turn/started":
		t.started(s.Turn.ID)
		return
	case "turn/completed":
		if t.s.Busy && t.s.Turn != "" && s.Turn.ID == t.s.Turn {
			t.Parse(text)
			t.end()
		}
		return
	case "item/started", "item/completed":
		if s.TurnID == t.s.Turn {
			t.keep(m.Method == "item/completed", s.Item)
		}
	}
	if s.TurnID == "" || s.TurnID == t.s.Turn {
		t.Parse(text)
	}
}

// started takes the beginning of a turn.
func (t *talk) started(id string) {
	if !t.s.Busy || t.s.Step != ready || t.s.Started {
		return
	}
	if t.s.Turn == "" {
		t.s.Turn = id
	}
	if id != t.s.Turn {
		return
	}
	t.s.Started = true
	if t.s.Stopping {
		t.interrupt()
	}
}

// keep keeps what a change of files is about while it is not over.
func (t *talk) keep(over bool, raw json.RawMessage) {
	var i struct{ ID, Type string }
	if !decode(raw, &i) || i.Type != "fileChange" {
		return
	}
	t.s.Items = slices.DeleteFunc(t.s.Items, func(old item) bool { return old.ID == i.ID })
	if over || len(raw) > maxItemBytes {
		return
	}
	size := len(raw)
	for _, old := range t.s.Items {
		size += len(old.Raw)
	}
	for len(t.s.Items) > 0 && (len(t.s.Items) >= maxItems || size > maxItemBytes) {
		size -= len(t.s.Items[0].Raw)
		t.s.Items = slices.Delete(t.s.Items, 0, 1)
	}
	t.s.Items = append(t.s.Items, item{i.ID, slices.Clone(raw)})
}
