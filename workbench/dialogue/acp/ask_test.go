package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

const someOptions = `[{"optionId":"always","kind":"allow_always"},{"optionId":"once","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]`

func permission_(id, call, options string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"session/request_permission","params":{"sessionId":"s","toolCall":` + call + `,"options":` + options + `}}`
}

// permissionFor asks for a call with a command or path of that kind.
func permissionFor(what, kind string) string {
	return permission_("7", fmt.Sprintf(`{"toolCallId":"t","title":%q,"kind":%q,"rawInput":{"command":%q}}`, what, kind, what), someOptions)
}

func TestRisksAndSummaries(t *testing.T) {
	for _, c := range []struct {
		call    string
		risk    dialogue.Risk
		tool    string
		summary string
	}{
		{`{"kind":"execute","title":"x","rawInput":{"command":"rm -rf build"}}`, dialogue.Process, "execute", "run `rm -rf build`"},
		{`{"kind":"execute","title":"rm -rf build"}`, dialogue.Process, "execute", "run `rm -rf build`"},
		{`{"kind":"execute","rawInput":{"command":["bash","-lc","ls\n-l"]},"_meta":{"claudeCode":{"toolName":"Bash"}}}`, dialogue.Process, "Bash", "run `ls -l`"},
		{`{"kind":"edit","title":"Edit","locations":[{"path":"/w/src/a.go"}]}`, dialogue.Filesystem, "edit", "edit src/a.go"},
		{`{"kind":"edit","title":"Edit","locations":[{"path":"/w/src/a.go"},{"path":"/w/b"},{"path":"/w/c"}]}`, dialogue.Filesystem, "edit", "edit src/a.go and 2 more"},
		{`{"kind":"edit","title":"Write a","rawInput":{"file_path":"/w/a","content":"x"},"_meta":{"claudeCode":{"toolName":"Write"}}}`, dialogue.Filesystem, "Write", "write w/a"},
		{`{"kind":"delete","title":"rm","locations":[{"path":"/w/a"}]}`, dialogue.Filesystem, "delete", "delete w/a"},
		{`{"kind":"move","title":"mv","rawInput":{"path":"/w/a"}}`, dialogue.Filesystem, "move", "move w/a"},
		{`{"kind":"read","locations":[{"path":"/w/a.go"}]}`, dialogue.ReadOnly, "read", "read w/a.go"},
		{`{"kind":"read","locations":[{"path":"/w/a.go"},{"path":"/w/.env"}]}`, dialogue.Filesystem, "read", "read w/a.go and 1 more"},
		{`{"kind":"read","title":"Read .env.local"}`, dialogue.Filesystem, "read", "read Read .env.local"},
		{`{"kind":"read","rawInput":{"deep":[{"paths":["/home/u/.ssh/config"]}]},"title":"keys"}`, dialogue.Filesystem, "read", "read keys"},
		{`{"kind":"search","rawInput":{"pattern":"main"}}`, dialogue.ReadOnly, "search", "search: main"},
		{`{"kind":"search","rawInput":{"pattern":"credentials.json"}}`, dialogue.Filesystem, "search", "search: credentials.json"},
		{`{"kind":"think","title":"think hard"}`, dialogue.ReadOnly, "think", "think hard"},
		{`{"kind":"fetch","rawInput":{"url":"https://example.org/a?q=1"}}`, dialogue.Network, "fetch", "fetch https://example.org/a"},
		{`{"kind":"switch_mode","title":"Ready to code?"}`, dialogue.Delegate, "switch_mode", "Ready to code?"},
		{`{"kind":"other","title":"mcp thing"}`, dialogue.Delegate, "other", "mcp thing"},
		{`{"kind":"new kind","title":"x"}`, dialogue.Delegate, "new kind", "x"},
		{`{}`, dialogue.Delegate, "", "a tool"},
		{`[]`, dialogue.Delegate, "", "a tool"},
	} {
		b, _ := working(t, claude(t))
		b.feed(permission_(`"x-1"`, c.call, someOptions))
		if len(b.waiting) != 1 {
			t.Fatalf("%s: %v", c.call, b.out)
		}
		q := b.waiting[0]
		if q.Kind != dialogue.Permission || q.Risk != c.risk || q.Tool != c.tool || q.Summary != c.summary {
			t.Errorf("%s: %s %s %q, want %s %s %q", c.call, q.Risk, q.Tool, q.Summary, c.risk, c.tool, c.summary)
		}
		var whole struct {
			Params struct{ ToolCall json.RawMessage }
		}
		if json.Unmarshal(q.Request, &whole) != nil || !equal(whole.Params.ToolCall, json.RawMessage(c.call)) {
			t.Errorf("%s: the request is %s", c.call, q.Request)
		}
	}
}

func TestARequestMeansWhatWasToldOfItsCall(t *testing.T) {
	b, _ := working(t, claude(t))
	b.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"go","kind":"execute","status":"pending","rawInput":{"command":"make"}}`)
	b.update(`{"sessionUpdate":"tool_call","toolCallId":"u","title":"other","kind":"read","status":"pending"}`)
	n := len(b.out)
	b.feed(permission_("1", `{"toolCallId":"t"}`, someOptions))
	if q := b.waiting[0]; q.Risk != dialogue.Process || q.Summary != "run `make`" || strings.Contains(b.since(n), "tool \"") {
		t.Errorf("%+v\n%s", q, b.since(n))
	}
}

func TestAnswersChooseForOnce(t *testing.T) {
	for _, c := range []struct {
		options string
		yes, no string
	}{
		{someOptions, "once", "no"},
		{`[{"optionId":"a","kind":"allow_always"},{"optionId":"r","kind":"reject_always"}]`, "a", "r"},
		{`[{"optionId":"a","kind":"allow_once"}]`, "a", ""},
		{`[{"optionId":"r","kind":"reject_once"}]`, "", "r"},
		{`[{"optionId":"","kind":"allow_once"},{"optionId":"x","kind":"strange"}]`, "", ""},
		{`[]`, "", ""},
		{`7`, "", ""},
	} {
		for _, allow := range []bool{true, false} {
			b, _ := working(t, claude(t))
			b.feed(permission_("7", `{"toolCallId":"t","title":"make","kind":"execute"}`, c.options))
			n := len(b.out)
			b.answer(dialogue.Answer{Allow: allow})
			m := b.next()
			id := map[bool]string{true: c.yes, false: c.no}[allow]
			want := `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}`
			if id == "" {
				want = `{"outcome":{"outcome":"cancelled"}}`
			}
			if string(m.ID) != "7" || !equal(m.Result, json.RawMessage(want)) {
				t.Errorf("%s %v: %s %s", c.options, allow, m.ID, m.Result)
			}
			if denied := strings.Contains(b.since(n), `tool_failed "not allowed: make"`); denied == allow {
				t.Errorf("%s %v: %s", c.options, allow, b.since(n))
			}
			if err := b.d.Answer("1", dialogue.Answer{Allow: true}, b.emit); !fault.Is(err, fault.Done) {
				t.Error(err)
			}
		}
	}
}

func TestWithFullPermissionsNoneIsAskedFor(t *testing.T) {
	o := claude(t)
	o.Full = true
	b := opened(t, o, offer)
	b.result(b.expect("session/set_mode"), `{}`)
	b.prompt("do it")
	b.expect("session/prompt")
	n := len(b.out)
	b.feed(permissionFor("make", "execute"))
	if m := b.next(); !strings.Contains(string(m.Result), `"once"`) {
		t.Errorf("%s", m.Result)
	}
	if got := b.since(n); !strings.HasPrefix(got, `tool "$ make"`) || len(b.waiting) > 0 {
		t.Error(got)
	}
	b.feed(permission_("8", `{"title":"make"}`, `[]`)) // which cannot be allowed
	if len(b.waiting) != 1 {
		t.Error(b.out)
	}
	b.feed(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}}`)
	if len(b.waiting) != 2 || b.waiting[1].Kind != dialogue.Question {
		t.Error("a question is no permission, and was not asked")
	}
}

func TestInterruptTakesBackWhatIsAsked(t *testing.T) {
	b, p := working(t, claude(t))
	b.feed(permissionFor("make", "execute"))
	b.feed(permission_(`"b"`, `{"toolCallId":"u","title":"x","kind":"read"}`, someOptions))
	b.feed(`{"jsonrpc":"2.0","id":"c","method":"elicitation/create","params":{"message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}}`)
	if len(b.d.Asks()) != 3 {
		t.Fatalf("%+v", b.d.Asks())
	}
	b.d.Interrupt(b.emit)
	b.expect("session/cancel")
	for _, want := range []string{`7 {"outcome":{"outcome":"cancelled"}}`, `"b" {"outcome":{"outcome":"cancelled"}}`, `"c" {"action":"cancel"}`} {
		if m := b.next(); string(m.ID)+" "+string(m.Result) != want {
			t.Errorf("%s %s, want %s", m.ID, m.Result, want)
		}
	}
	b.feed(permission_("12", `{"toolCallId":"t2","title":"late","kind":"execute"}`, someOptions))
	if m := b.next(); string(m.ID) != "12" || !strings.Contains(string(m.Result), "cancelled") {
		t.Errorf("%s", m.Result)
	}
	if len(b.waiting)+len(b.d.Asks()) > 0 {
		t.Error(b.waiting)
	}
	b.result(p, `{"stopReason":"cancelled"}`)
	b.outcome()
}

func TestAnAskDoesNotOutliveItsTurn(t *testing.T) {
	b, p := working(t, claude(t))
	b.feed(permissionFor("make", "execute"))
	b.result(p, `{"stopReason":"end_turn"}`)
	if got := strings.Join(b.out, "\n"); !strings.Contains(got, "gone 1\nsend answer") || len(b.d.Asks()) > 0 {
		t.Error(got)
	}
	b.outcome()
	b.sent = nil
	b.feed(permission_("13", `{"toolCallId":"t","title":"late","kind":"execute"}`, someOptions))
	b.feed(`{"jsonrpc":"2.0","id":14,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}}`)
	if m := b.next(); !strings.Contains(string(m.Result), "cancelled") {
		t.Errorf("%s", m.Result)
	}
	if m := b.next(); !strings.Contains(string(m.Result), "cancel") {
		t.Errorf("%s", m.Result)
	}
	if len(b.d.Asks()) > 0 {
		t.Error("something is asked while no turn runs")
	}
}

func TestAServerTakesARequestBack(t *testing.T) {
	b, _ := working(t, claude(t))
	b.feed(permissionFor("make", "execute"))
	b.feed(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`)
	if m := b.next(); string(m.ID) != "7" || !strings.Contains(string(m.Error), "-32800") || len(b.waiting) > 0 {
		t.Errorf("%s %s", m.ID, m.Error)
	}
}

func TestTooMuchThatIsAskedIsDenied(t *testing.T) {
	b, _ := working(t, claude(t))
	for i := range dialogue.MaxAsks {
		b.feed(permission_(fmt.Sprint(i), fmt.Sprintf(`{"toolCallId":"t%d","title":"x%d","kind":"execute"}`, i, i), someOptions))
	}
	if len(b.sent) > 0 || len(b.d.Asks()) != dialogue.MaxAsks {
		t.Fatal(len(b.sent), len(b.d.Asks()))
	}
	b.feed(permission_("99", `{"toolCallId":"t99","title":"x99","kind":"execute"}`, someOptions))
	if m := b.next(); string(m.ID) != "99" || !strings.Contains(string(m.Result), `"no"`) || len(b.d.Asks()) != dialogue.MaxAsks {
		t.Errorf("%s", m.Result)
	}
}

func TestADenialThatEndsTheTurnFailsIt(t *testing.T) {
	for _, c := range []struct {
		after  []string
		stop   string
		status agent.Status
	}{
		{nil, "end_turn", agent.StatusFailed},
		{nil, "cancelled", agent.StatusFailed},
		{[]string{`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}`}, "end_turn", agent.StatusFailed},
		{[]string{chunked("I go on without")}, "end_turn", agent.StatusCompleted},
		{[]string{`{"sessionUpdate":"tool_call","toolCallId":"t2","title":"another way","status":"completed"}`}, "end_turn", agent.StatusCompleted},
	} {
		b, p := working(t, claude(t))
		b.chunk("I try.")
		b.feed(permissionFor("make", "execute"))
		b.answer(dialogue.Answer{Reason: "no"})
		for _, u := range c.after {
			b.update(u)
		}
		b.result(p, `{"stopReason":"`+c.stop+`"}`)
		o := b.outcome()
		if o.Status != c.status || (c.status == agent.StatusFailed) != strings.Contains(o.Error, "it stopped at what was denied (make)") {
			t.Errorf("%+v: %s", c, told(o))
		}
		if n := strings.Count(strings.Join(b.out, "\n"), "tool_failed"); n != 1 {
			t.Errorf("%+v: %d failures were logged", c, n)
		}
	}
}

func TestOtherRequestsAreUnknown(t *testing.T) {
	b, _ := working(t, claude(t))
	for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "mcp/connect", "_x/y", "initialize"} {
		b.feed(`{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":{"sessionId":"s"}}`)
		var e struct {
			Code int
			Data struct{ Method string }
		}
		m := b.next()
		if err := json.Unmarshal(m.Error, &e); err != nil || e.Code != -32601 || e.Data.Method != method || string(m.ID) != `"q"` {
			t.Errorf("%s: %s %s", method, m.ID, m.Error)
		}
	}
}

const claudesForm = `{"mode":"form","sessionId":"s","toolCallId":"t","message":"Which color?","requestedSchema":{"type":"object","properties":{` +
	`"question_0":{"type":"string","title":"Color","oneOf":[{"const":"Red","title":"Red — like blood"},{"const":"Blue","title":"Blue — like the sea"}]},` +
	`"question_0_custom":{"type":"string","title":"Other"}}}}`

const mixedForm = `{"message":"Fill in","requestedSchema":{"type":"object","required":["z"],"properties":{` +
	`"z":{"type":"array","description":"Which?","items":{"anyOf":[{"const":"a"},{"const":"b"}]}},"y":{"type":"boolean","title":"Sure?"},` +
	`"x":{"type":"integer","title":"How many?"},"w":{"type":"string","enum":["p","q"],"enumNames":["Pear","Quince"]},"v":{"type":"string"},"u":{"type":"number"}}}}`

func TestFormsAreQuestions(t *testing.T) {
	for _, c := range []struct {
		form, questions, words, content string
	}{
		{claudesForm, `[{Text:Which color? Options:[Red Blue] Multi:false}]`, "Blue", `{"question_0":"Blue"}`},
		{claudesForm, ``, "blue", `{"question_0":"Blue"}`},
		{claudesForm, ``, "Blue — like the sea", `{"question_0":"Blue"}`},
		{claudesForm, ``, "greenish", `{"question_0_custom":"greenish"}`},
		{claudesForm, ``, "", `{}`},
		{
			mixedForm, `[{Text:Which? Options:[a b] Multi:true} {Text:Sure? Options:[yes no] Multi:false} {Text:How many? Options:[] Multi:false} ` +
				`{Text:Fill in Options:[Pear Quince] Multi:false} {Text:Fill in Options:[] Multi:false} {Text:Fill in Options:[] Multi:false}]`,
			"a, b|yes|3|Quince|free words|2.5", `{"z":["a","b"],"y":true,"x":3,"w":"q","v":"free words","u":2.5}`,
		},
		{mixedForm, ``, "b\na|no|3.5|plum||x", `{"z":["b","a"],"y":false}`},
		{mixedForm, ``, "c|perhaps|NaN", `{"z":[]}`},
		{mixedForm, ``, "a|true|1|p|v|1e3|more", `{"z":["a"],"y":true,"x":1,"w":"p","v":"v","u":1e3}`},
	} {
		b, _ := working(t, claude(t))
		b.feed(`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":` + c.form + `}`)
		q := b.waiting[0]
		if got := fmt.Sprintf("%+v", q.Questions); q.Kind != dialogue.Question || c.questions != "" && got != c.questions {
			t.Errorf("%s, want %s", got, c.questions)
		}
		if !strings.HasPrefix(q.Summary, "asks: ") {
			t.Error(q.Summary)
		}
		b.answer(dialogue.Answer{Allow: true, Words: strings.Split(c.words, "|")})
		var got struct {
			Action  string
			Content json.RawMessage
		}
		m := b.next()
		if err := json.Unmarshal(m.Result, &got); err != nil || got.Action != "accept" {
			t.Errorf("%s", m.Result)
		}
		if got.Content == nil {
			got.Content = json.RawMessage("{}")
		}
		if !equal(got.Content, json.RawMessage(c.content)) {
			t.Errorf("%q: %s, want %s", c.words, got.Content, c.content)
		}
	}
}

func TestFormsAreDeclined(t *testing.T) {
	b, _ := working(t, claude(t))
	for _, form := range []string{
		`{"mode":"url","url":"https://example.org","message":"open it","elicitationId":"e"}`, `{"message":"nothing to fill in","requestedSchema":{"properties":{}}}`, `{}`, `7`, `{"mode":"new","requestedSchema":{"properties":{"a":{}}}}`,
	} {
		b.feed(`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":` + form + `}`)
		if m := b.next(); string(m.Result) != `{"action":"decline"}` {
			t.Errorf("%s: %s", form, m.Result)
		}
	}
	b.feed(`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":` + claudesForm + `}`)
	b.answer(dialogue.Answer{Reason: "nobody is there"})
	if m := b.next(); string(m.Result) != `{"action":"decline"}` {
		t.Errorf("%s", m.Result)
	}
}
