package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// bench drives a dialogue in a test. It keeps what came out, and can hand
// output over in pieces, with a restored dialogue in between.
type bench struct {
	t       testing.TB
	d       dialogue.Dialogue
	o       dialogue.Options
	cut     func(n int) int // how many of n bytes go at once; nil: all
	renew   func() bool     // whether the dialogue is restored now; nil: never
	out     []string        // outputs as text, in their order
	sent    []message       // messages that were not looked at
	ended   []agent.Outcome
	last    int64
	waiting []dialogue.Ask
	wire    func(p []byte) // gets what is sent; may be nil
}

// message is one that the dialogue sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// someAgent is a built-in agent, with permissions as they are by default.
func someAgent(t testing.TB, name string) *agent.Agent {
	t.Helper()
	a, err := agent.Builtin().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newBench(t testing.TB, o dialogue.Options) *bench {
	return &bench{t: t, d: New(o), o: o}
}

func (b *bench) emit(end int64, o dialogue.Output) {
	if end < b.last {
		b.t.Errorf("an output's end went back from %d to %d", b.last, end)
	}
	b.last = end
	switch {
	case o.Event != nil:
		b.say("%s %q", o.Event.Kind, o.Event.Text)
	case o.Send != nil:
		b.send(o.Send)
	case o.Ask != nil:
		q := *o.Ask
		if !json.Valid(q.Request) {
			b.t.Errorf("the request of an ask is no JSON: %q", q.Request)
		}
		b.waiting = append(b.waiting, q)
		b.say("ask %s: %s, %s, %q: %s %+v", q.ID, q.Kind, q.Risk, q.Tool, q.Summary, q.Questions)
	case o.Gone != "":
		b.say("gone %s", o.Gone)
		b.forget(o.Gone)
	case o.Ended != nil:
		b.ended = append(b.ended, *o.Ended)
		b.say("ended %s", told(*o.Ended))
	default:
		b.t.Error("an output that is nothing")
	}
}

func told(o agent.Outcome) string {
	s := string(o.Status)
	if o.Error != "" {
		s += fmt.Sprintf(" %q", o.Error)
	}
	s += fmt.Sprintf(", reply %q", o.Reply)
	if o.Usage != nil {
		s += fmt.Sprintf(", %+v", *o.Usage)
	}
	if len(o.Unknown) > 0 {
		s += fmt.Sprintf(", unknown %v", o.Unknown)
	}
	return s
}

func (b *bench) say(format string, args ...any) { b.out = append(b.out, fmt.Sprintf(format, args...)) }

func (b *bench) send(p []byte) {
	if bytes.Count(p, []byte("\n")) != 1 || !bytes.HasSuffix(p, []byte("\n")) {
		b.t.Errorf("a message that is not one line: %q", p)
	}
	var m message
	if err := json.Unmarshal(p, &m); err != nil {
		b.t.Errorf("a message that is no JSON: %q", p)
	}
	b.sent = append(b.sent, m)
	if b.wire != nil {
		b.wire(p)
	}
	switch {
	case m.Method != "":
		b.say("send %s %s", m.Method, m.Params)
	case m.Error != nil:
		b.say("send error %s", m.Error)
	default:
		b.say("send answer %s", m.Result)
	}
}

func (b *bench) forget(id string) {
	for i := range b.waiting {
		if b.waiting[i].ID == id {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return
		}
	}
	b.t.Errorf("the ask %s does not wait, and was answered or withdrawn", id)
}

// next takes the oldest message that was not looked at.
func (b *bench) next() message {
	b.t.Helper()
	if len(b.sent) == 0 {
		b.t.Fatalf("no message was sent; all that came:\n%s", strings.Join(b.out, "\n"))
	}
	m := b.sent[0]
	b.sent = b.sent[1:]
	return m
}

// expect takes the oldest message, which must be a request or notification of
// that method.
func (b *bench) expect(method string) message {
	b.t.Helper()
	m := b.next()
	if m.Method != method {
		b.t.Fatalf("%s was sent, not %s; all that came:\n%s", m.Method, method, strings.Join(b.out, "\n"))
	}
	return m
}

// feed hands a line of the server over.
func (b *bench) feed(line string) {
	p := []byte(line + "\n")
	for len(p) > 0 {
		n := len(p)
		if b.cut != nil {
			n = b.cut(n)
		}
		b.d.Feed(p[:n], b.emit)
		p = p[n:]
		b.restored()
	}
}

// restored puts a new dialogue with the state of the old one in its place.
func (b *bench) restored() {
	if b.renew == nil || !b.renew() {
		return
	}
	state, err := b.d.State()
	if err != nil {
		b.t.Fatal(err)
	}
	d := New(dialogue.Options{Agent: b.o.Agent, Version: b.o.Version})
	if err := d.Restore(state); err != nil {
		b.t.Fatal(err)
	}
	again, err := d.State()
	if err != nil || !bytes.Equal(state, again) {
		b.t.Fatalf("a restored dialogue has another state: %v\n%s\n%s", err, state, again)
	}
	if got, want := d.Asks(), b.d.Asks(); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		b.t.Fatalf("a restored dialogue asks %+v, not %+v", got, want)
	}
	b.d = d
}

func (b *bench) prompt(text string) {
	b.t.Helper()
	if err := b.d.Prompt([]byte(text), b.emit); err != nil {
		b.t.Fatal(err)
	}
	b.restored()
}

func (b *bench) answer(a dialogue.Answer) {
	b.t.Helper()
	if len(b.waiting) == 0 {
		b.t.Fatalf("nothing is asked; all that came:\n%s", strings.Join(b.out, "\n"))
	}
	id := b.waiting[0].ID
	b.forget(id)
	if err := b.d.Answer(id, a, b.emit); err != nil {
		b.t.Fatal(err)
	}
	b.restored()
}

// result feeds the answer to a request of the dialogue.
func (b *bench) result(to message, result string) {
	b.feed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, to.ID, result))
}

// failure feeds an error as that answer.
func (b *bench) failure(to message, failure string) {
	b.feed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, to.ID, failure))
}

// update feeds an update of the session s.
func (b *bench) update(update string) {
	b.feed(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + update + `}}`)
}

func (b *bench) chunk(text string) {
	quoted, _ := json.Marshal(text)
	b.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}`)
}

// capable is an answer to initialize.
const capable = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}},"_meta":{"claudeCode":{"promptQueueing":true}}}}`

// opened is a bench whose session s is opened, by an answer with more members.
func opened(t testing.TB, o dialogue.Options, more string) *bench {
	t.Helper()
	b := newBench(t, o)
	b.d.Open(b.emit)
	b.result(b.expect("initialize"), capable)
	b.result(b.expect("session/new"), `{"sessionId":"s"`+more+`}`)
	return b
}

// working is one that works on a prompt, and that prompt.
func working(t testing.TB, o dialogue.Options) (*bench, message) {
	t.Helper()
	b := opened(t, o, "")
	b.prompt("do it")
	return b, b.expect("session/prompt")
}

// since returns what came out after the first n outputs.
func (b *bench) since(n int) string { return strings.Join(b.out[n:], "\n") }

// outcome is the only end that there was since the last call.
func (b *bench) outcome() agent.Outcome {
	b.t.Helper()
	if len(b.ended) != 1 {
		b.t.Fatalf("%d turns have ended; all that came:\n%s", len(b.ended), strings.Join(b.out, "\n"))
	}
	o := b.ended[0]
	b.ended = nil
	return o
}

// shared is a folder that is kept beside the repository, or the end of the
// test where it is not.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	path := filepath.Join(dir, "..", "shared", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("shared/" + name + " is not there")
	}
	return path
}
