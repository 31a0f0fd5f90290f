package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

func claude(t testing.TB) dialogue.Options {
	return dialogue.Options{Agent: someAgent(t, "claude"), CWD: "/w", Version: "1.2"}
}

func TestTheGreetingOffersNeitherFilesNorTerminals(t *testing.T) {
	b := newBench(t, claude(t))
	b.d.Open(b.emit)
	hello := b.expect("initialize")
	var p struct {
		ProtocolVersion    int
		ClientInfo         struct{ Name, Version string }
		ClientCapabilities struct {
			FS          map[string]bool
			Terminal    bool
			Elicitation struct{ Form, URL *struct{} }
		}
	}
	if err := json.Unmarshal(hello.Params, &p); err != nil {
		t.Fatal(err)
	}
	c := p.ClientCapabilities
	if p.ProtocolVersion != 1 || p.ClientInfo.Name != "scvfs" || p.ClientInfo.Version != "1.2" || c.FS["readTextFile"] || c.FS["writeTextFile"] || c.Terminal {
		t.Errorf("%s", hello.Params)
	}
	if c.Elicitation.Form == nil || c.Elicitation.URL != nil {
		t.Errorf("questions are offered so: %s", hello.Params)
	}
}

// refusals of a greeting or session, each before the prompt or after it came.
func TestATurnFailsThatCannotBegin(t *testing.T) {
	with := func(f func(*dialogue.Options)) dialogue.Options { o := claude(t); f(&o); return o }
	on := with(func(o *dialogue.Options) { o.Session = "id-1" })
	for _, c := range []struct {
		name    string
		o       dialogue.Options
		greeted string // the answer to initialize; JSON with "code" is an error
		session string
		words   string
	}{
		{"another version", claude(t), `{"protocolVersion":2}`, "", "claude speaks version 2 of ACP, and scvfs version 1"},
		{"no version", claude(t), `{}`, "", "version 0"},
		{"no greeting", claude(t), `{"code":-32603,"message":"Internal error: broken"}`, "", "claude failed: broken"},
		{"not signed in", claude(t), capable, `{"code":-32000,"message":"Authentication required"}`, "claude is not signed in, or its key was refused (Authentication required): run `claude` and type /login"},
		{"no session id", claude(t), capable, `{}`, "opened a session without an id"},
		{"no loading", on, `{"protocolVersion":1}`, "", "neither session/load nor session/resume"},
		{"unknown session", on, capable, `{"code":-32002,"message":"Resource not found: id-1"}`, "does not know the session that was to be continued (session not found: Resource not found: id-1): start a new conversation"},
		{"a server that does not say why", on, capable, `{"code":-32603,"message":"Internal error","data":{"service":"session"}}`, "does not know the session"},
		{"not signed in for the session", on, capable, `{"code":-32000,"message":"Authentication required"}`, "is not signed in"},
		{"no such directory", with(func(o *dialogue.Options) { o.CWD = "/\xff" }), capable, "", "not UTF-8"},
	} {
		for _, late := range []bool{false, true} {
			b := newBench(t, c.o)
			b.d.Open(b.emit)
			if !late {
				b.prompt("do it")
			}
			answer := func(m message, a string) {
				if strings.Contains(a, `"code"`) {
					b.failure(m, a)
				} else {
					b.result(m, a)
				}
			}
			answer(b.next(), c.greeted)
			if c.session != "" {
				answer(b.next(), c.session)
			}
			if late {
				b.prompt("do it")
			}
			if late && c.session != "" { // it is tried again
				answer(b.next(), c.session)
			}
			if o := b.outcome(); o.Status != agent.StatusFailed || !strings.Contains(o.Error, c.words) {
				t.Errorf("%s: %s %q, want %q", c.name, o.Status, o.Error, c.words)
			}
			if b.d.Busy() || len(b.sent) > 0 {
				t.Errorf("%s: it goes on: %v", c.name, b.sent)
			}
		}
	}
}

func TestASessionThatCouldNotBeOpenedIsTriedAgain(t *testing.T) {
	b := newBench(t, claude(t))
	b.d.Open(b.emit)
	b.prompt("first")
	b.result(b.next(), capable)
	b.failure(b.expect("session/new"), `{"code":-32000,"message":"Authentication required"}`)
	b.outcome()
	b.prompt("second")
	b.result(b.expect("session/new"), `{"sessionId":"s"}`)
	if m := b.expect("session/prompt"); !strings.Contains(string(m.Params), "second") {
		t.Errorf("%s", m.Params)
	}
	if b.d.Session() != "s" {
		t.Error(b.d.Session())
	}
}

func TestASessionIsContinuedWithoutItsHistory(t *testing.T) {
	o := claude(t)
	o.Session = "s"
	const loads = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
	b := newBench(t, o)
	b.d.Open(b.emit)
	b.prompt("go on")
	b.result(b.next(), loads)
	load := b.expect("session/load")
	n := len(b.out)
	b.chunk("old before the answer")
	b.result(load, `null`)
	for range 3 {
		b.update(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"old"}}`)
		b.chunk("old behind the answer")
		b.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"old","status":"completed","kind":"other"}`)
		b.failure(b.expect(probe), `{"code":-32601,"message":"Method not found"}`)
	}
	b.result(b.expect(probe), `{}`) // quiet
	p := b.expect("session/prompt")
	b.chunk("new")
	b.result(p, `{"stopReason":"end_turn"}`)
	if came := b.since(n); strings.Contains(came, "old") || !strings.Contains(came, "new") {
		t.Error(came)
	}
	if o := b.outcome(); string(o.Reply) != "new" || o.Session != "s" {
		t.Error(told(o))
	}
}

func TestAServerThatIsNeverQuietIsNotWaitedForForever(t *testing.T) {
	o := claude(t)
	o.Session = "s"
	b := newBench(t, o)
	b.d.Open(b.emit)
	b.prompt("go on")
	b.result(b.next(), `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)
	b.result(b.expect("session/load"), `{}`)
	for range maxProbes {
		m := b.expect(probe)
		b.chunk("more")
		b.result(m, `{}`)
	}
	b.expect("session/prompt")
}

const offer = `,"modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"plan"},{"id":"bypassPermissions"}]},` +
	`"configOptions":[{"id":"model","category":"model","type":"select","currentValue":"m1","options":[{"group":"g","name":"G","options":[{"value":"m1"},{"value":"m2"}]}]},` +
	`{"id":"thinking","category":"thought_level","type":"select","currentValue":"low","options":[{"value":"low"},{"value":"high"}]},{"id":"sound","type":"boolean","currentValue":true}]`

func TestASessionIsSetBeforeItsFirstPrompt(t *testing.T) {
	o := claude(t)
	o.Mode, o.Model, o.Effort = "plan", "m2", "max"
	b := opened(t, o, offer)
	b.prompt("do it")
	m := b.expect("session/set_mode")
	if !equal(m.Params, json.RawMessage(`{"sessionId":"s","modeId":"plan"}`)) {
		t.Errorf("%s", m.Params)
	}
	b.result(m, `null`)
	m = b.expect("session/set_config_option")
	if !equal(m.Params, json.RawMessage(`{"sessionId":"s","configId":"model","value":"m2"}`)) {
		t.Errorf("%s", m.Params)
	}
	// The efforts follow from the model.
	b.result(m, `{"configOptions":[{"id":"thinking","category":"thought_level","type":"select","currentValue":"low","options":[{"value":"low"},{"value":"max"}]}]}`)
	m = b.expect("session/set_config_option")
	if !equal(m.Params, json.RawMessage(`{"sessionId":"s","configId":"thinking","value":"max"}`)) {
		t.Errorf("%s", m.Params)
	}
	if len(b.sent) > 0 {
		t.Error("the prompt did not wait")
	}
	b.result(m, `{}`)
	b.expect("session/prompt")
}

func TestSettings(t *testing.T) {
	const (
		models   = `,"models":{"currentModelId":"m1","availableModels":[{"modelId":"m1"},{"modelId":"m2"}]}`
		anything = `,"configOptions":[{"id":"model","category":"model","type":"select","currentValue":"m1","options":[]}]`
		copilot  = `,"modes":{"currentModeId":"agent","availableModes":[{"id":"agent"}]},"configOptions":[{"id":"allow_all","category":"permissions","type":"select","currentValue":"off","options":[{"value":"on"},{"value":"off"}]}]`
		codex    = `,"modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"full-access"}]}`
		byOption = `,"configOptions":[{"id":"mode","category":"mode","type":"select","currentValue":"build","options":[{"value":"build"},{"value":"plan"}]}]`
	)
	for _, c := range []struct {
		agent  string
		o      dialogue.Options
		offers string
		method string // of the one request; empty for none
		value  string // that is in it, or of which the refusal speaks
	}{
		{"claude", dialogue.Options{}, offer, "", ""},
		{"claude", dialogue.Options{Mode: "default", Model: "m1", Effort: "low"}, offer, "", ""}, // as it is
		{"claude", dialogue.Options{Full: true}, offer, "session/set_mode", `"bypassPermissions"`},
		{"claude", dialogue.Options{Full: true}, codex, "session/set_mode", `"full-access"`},
		{"claude", dialogue.Options{Full: true}, copilot, "", "claude offers no mode of full permissions (bypassPermissions), but agent"},
		{"claude", dialogue.Options{Full: true}, "", "", "but none"},
		{"codex", dialogue.Options{Full: true}, codex, "session/set_mode", `"full-access"`},
		{"copilot", dialogue.Options{Full: true}, copilot, "session/set_config_option", `"allow_all"`},
		{"opencode", dialogue.Options{Full: true}, byOption, "", ""},
		{"opencode", dialogue.Options{Mode: "plan"}, byOption, "session/set_config_option", `"plan"`},
		{"opencode", dialogue.Options{Mode: "Plan"}, byOption, "", `does not offer the mode "Plan": it offers build, plan`},
		{"claude", dialogue.Options{Mode: "nonsense"}, offer, "", "it offers default, plan, bypassPermissions"},
		{"claude", dialogue.Options{Mode: "nonsense", Full: true}, offer, "", "it offers default, plan, bypassPermissions"},
		{"claude", dialogue.Options{Model: "m3"}, offer, "", `does not offer the model "m3": it offers m1, m2`},
		{"claude", dialogue.Options{Effort: "x"}, offer, "", `the effort "x": it offers low, high`},
		{"gemini", dialogue.Options{Model: "m2"}, models, "session/set_model", `"m2"`},
		{"gemini", dialogue.Options{Model: "m3"}, models, "", "it offers m1, m2"},
		{"gemini", dialogue.Options{Model: "m1"}, models, "", ""},
		{"gemini", dialogue.Options{Effort: "high"}, models, "", `has no effort to set: leave "high" away`},
		{"acp", dialogue.Options{Model: "any"}, anything, "session/set_config_option", `"any"`},
		{"acp", dialogue.Options{Model: "any"}, "", "", "acp's ACP server has no model to set"},
		{"acp", dialogue.Options{Full: true}, "", "", ""},
		{"acp", dialogue.Options{Full: true}, offer, "session/set_mode", `"bypassPermissions"`},
	} {
		c.o.Agent, c.o.CWD = someAgent(t, c.agent), "/w"
		b := opened(t, c.o, c.offers)
		b.prompt("do it")
		name := c.agent + " " + c.offers + " " + c.value
		if c.method == "" && c.value != "" {
			if o := b.outcome(); o.Status != agent.StatusFailed || !strings.Contains(o.Error, c.value) || len(b.sent) > 0 {
				t.Errorf("%s: %s", name, told(o))
			}
			// It is no other the next time, when the session is there.
			b.prompt("again")
			if o := b.outcome(); !strings.Contains(o.Error, c.value) {
				t.Errorf("%s: %s", name, told(o))
			}
			continue
		}
		if c.method != "" {
			m := b.expect(c.method)
			if !strings.Contains(string(m.Params), c.value) {
				t.Errorf("%s: %s", name, m.Params)
			}
			b.result(m, `{}`)
		}
		b.expect("session/prompt")
	}
}

func TestASettingThatIsRefusedFailsTheTurn(t *testing.T) {
	o := claude(t)
	o.Mode = "plan"
	b := opened(t, o, offer)
	b.prompt("do it")
	b.failure(b.expect("session/set_mode"), `{"code":-32603,"message":"Internal error","data":{"details":"Invalid Mode"}}`)
	if o := b.outcome(); o.Error != "claude failed: Invalid Mode" || o.Session != "s" {
		t.Error(told(o))
	}
	b.prompt("again")
	b.result(b.expect("session/set_mode"), `{}`)
	b.expect("session/prompt")
}

func TestALongListIsCutInAnError(t *testing.T) {
	var all []string
	for range 50 {
		all = append(all, `{"id":"m"}`)
	}
	o := claude(t)
	o.Mode = "x"
	b := opened(t, o, `,"modes":{"currentModeId":"m","availableModes":[`+strings.Join(all, ",")+`]}`)
	b.prompt("do it")
	if o := b.outcome(); !strings.HasSuffix(o.Error, "and 20 more") {
		t.Error(o.Error)
	}
}

func TestAStrangeSessionIsUsedButNotTold(t *testing.T) {
	b := newBench(t, claude(t))
	b.d.Open(b.emit)
	b.prompt("do it")
	b.result(b.next(), capable)
	b.result(b.next(), `{"sessionId":"--resume /etc"}`)
	if m := b.expect("session/prompt"); !strings.Contains(string(m.Params), "--resume /etc") {
		t.Errorf("%s", m.Params)
	}
	if b.d.Session() != "" {
		t.Error(b.d.Session())
	}
}

func TestAStateOfSomethingElseIsRefused(t *testing.T) {
	b, _ := working(t, claude(t))
	before, err := b.d.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "{", "{}", `{"format":"codex"}`, `[]`, `{"format":"acp","lines":{"offset":-1}}`, strings.Replace(string(before), `"busy":true`, `"busy":7`, 1)} {
		if err := b.d.Restore(json.RawMessage(s)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	if after, err := b.d.State(); err != nil || string(after) != string(before) {
		t.Errorf("a state that was refused changed the dialogue: %v %s", err, after)
	}
}
