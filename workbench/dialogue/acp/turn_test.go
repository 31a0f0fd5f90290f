package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

func TestAPromptArrivesAsItIs(t *testing.T) {
	for _, text := range []string{"", " ", "-x \"quoted\" \\ <&>\u2028\r\n\ttab\x01\x7f", "/compact", "\U0001F600", strings.Repeat("long ", 1<<20)} {
		b := opened(t, claude(t), "")
		b.prompt(text)
		var p struct {
			SessionID string
			Prompt    []struct{ Type, Text string }
		}
		if err := json.Unmarshal(b.expect("session/prompt").Params, &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Prompt) != 1 || p.Prompt[0].Type != "text" || p.Prompt[0].Text != text || p.SessionID != "s" {
			t.Errorf("%.60q arrived as %.200q", text, fmt.Sprint(p))
		}
	}
}

func TestPromptsAreRefused(t *testing.T) {
	b := opened(t, claude(t), "")
	for _, text := range []string{"\xff", "a\x00b"} {
		if err := b.d.Prompt([]byte(text), b.emit); !fault.Is(err, fault.Invalid) || b.d.Busy() {
			t.Errorf("%q: %v", text, err)
		}
		if err := b.d.Steer([]byte(text), b.emit); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := b.d.Steer([]byte("x"), b.emit); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	b.prompt("one")
	if err := b.d.Prompt([]byte("two"), b.emit); !fault.Is(err, fault.Busy) {
		t.Error(err)
	}
	b.d.Finish(b.emit)
	for _, err := range []error{b.d.Prompt([]byte("x"), b.emit), b.d.Steer([]byte("x"), b.emit)} {
		if !fault.Is(err, fault.Gone) {
			t.Error(err)
		}
	}
	if b.d.Busy() || b.d.Steerable() {
		t.Error("a dialogue that is over is busy")
	}
	if len(b.ended) > 0 {
		t.Error("Finish ended the turn, which Outcome is to tell")
	}
}

func TestEndsOfTurns(t *testing.T) {
	const text = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}`
	const tool = `{"sessionUpdate":"tool_call","toolCallId":"t","title":"look","kind":"other","status":"completed"}`
	for _, c := range []struct {
		agent   string
		updates []string
		result  string // JSON with "code" is an error
		status  agent.Status
		words   string // in the error, or else in what was logged
	}{
		{"claude", []string{text}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, ""},
		{"claude", []string{tool}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, ""},
		{"claude", []string{text}, `{}`, agent.StatusCompleted, ""},
		{"claude", nil, `{"stopReason":"end_turn"}`, agent.StatusDeclined, "gave no answer"},
		{"claude", []string{text}, `{"stopReason":"refusal"}`, agent.StatusDeclined, "declined (hello)"},
		{"claude", []string{text}, `{"stopReason":"max_tokens"}`, agent.StatusCompleted, "(stopped early: the answer is as long as it may be)"},
		{"claude", []string{text}, `{"stopReason":"max_turn_requests"}`, agent.StatusCompleted, "(stopped early: it has asked its model as often as it may)"},
		{"claude", []string{text}, `{"stopReason":"tired"}`, agent.StatusCompleted, "(stopped early: tired)"},
		{"claude", []string{text}, `{"stopReason":"cancelled"}`, agent.StatusFailed, "it was interrupted"},
		{"claude", nil, `{"code":-32000,"message":"Authentication required"}`, agent.StatusFailed, "type /login, or pass a key on"},
		{"claude", nil, `{"code":-32603,"message":"Internal error: API Error: 429 slow down"}`, agent.StatusFailed, "claude reached a rate or usage limit (API Error: 429 slow down): try again later"},
		{"codex", nil, `{"code":-32603,"message":"Internal error","data":{"message":"{\"error\":{\"message\":\"the request is bad\"}}"}}`, agent.StatusFailed, "codex failed: the request is bad"},
		{"codex", nil, `{"code":-32603,"message":"Internal error","data":{"error":"disk full"}}`, agent.StatusFailed, "codex failed: disk full"},
		{"pi", nil, `{"code":-32602,"message":"Invalid params","data":"Unknown sessionId: x"}`, agent.StatusFailed, "pi failed: Unknown sessionId: x"},
		{"codex", nil, `{"code":-32050}`, agent.StatusFailed, "codex failed: it answered with error -32050"},
		{"gemini", nil, `{"code":400,"message":"{\"error\":{\"message\":\"the request is bad\"}}"}`, agent.StatusFailed, "gemini's model service refused the request (HTTP 400: the request is bad)"},
		{"pi", nil, `{"stopReason":"end_turn"}`, agent.StatusFailed, "its model declined, or its model service failed"},
		{"copilot", []string{chunked("Error: 500 it is down")}, `{"stopReason":"end_turn"}`, agent.StatusFailed, "copilot's model service failed (500 it is down)"},
		{"copilot", []string{chunked("Error: No response was returned. Try again.")}, `{"stopReason":"end_turn"}`, agent.StatusDeclined, "copilot's model declined"},
		{"copilot", []string{chunked("Error: 500 it is down"), text}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, "Error: 500 it is downhello"},
		{"copilot", []string{chunked("Error: 500 it is down"), tool, text}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, `note "500 it is down"`},
		{"copilot", []string{chunked("Info: all is well"), tool}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, `note "all is well"`},
		{"claude", []string{chunked("Error: is a word of mine")}, `{"stopReason":"end_turn"}`, agent.StatusCompleted, "Error: is a word of mine"},
		{"codex", []string{chunked("Model metadata for `x` not found. Defaulting to fallback metadata; so be it.")}, `{"stopReason":"end_turn"}`, agent.StatusDeclined, "gave no answer"},
	} {
		o := claude(t)
		o.Agent = someAgent(t, c.agent)
		b, p := working(t, o)
		n := len(b.out)
		for _, u := range c.updates {
			b.update(u)
		}
		if strings.Contains(c.result, `"code"`) {
			b.failure(p, c.result)
		} else {
			b.result(p, c.result)
		}
		end := b.outcome()
		said := end.Error
		if said == "" {
			said = b.since(n)
		}
		if end.Status != c.status || !strings.Contains(said, c.words) || (end.Error == "") != (c.status == agent.StatusCompleted) {
			t.Errorf("%s %v %s: %s, %s, want %s %q", c.agent, c.updates, c.result, end.Status, said, c.status, c.words)
		}
		if b.d.Busy() || end.Session != "s" {
			t.Errorf("%+v", end)
		}
	}
}

func TestAFailureThatIsAMessageTooIsNoAnswer(t *testing.T) {
	const failed = `{"code":-32603,"message":"Internal error: API Error: 400 odd"}`
	for text, reply := range map[string]string{"API Error: 400 odd": "", "I looked at it.": "I looked at it."} {
		b, p := working(t, claude(t))
		b.update(chunked(text))
		b.failure(p, failed)
		if end := b.outcome(); string(end.Reply) != reply || end.Status != agent.StatusFailed {
			t.Errorf("after %q: %s, reply %q", text, end.Status, end.Reply)
		}
	}
}

func chunked(text string) string {
	return `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}`
}

func TestACommandOfTheServersMayHaveNoAnswer(t *testing.T) {
	b := opened(t, claude(t), "")
	b.prompt("/clear")
	b.result(b.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	if o := b.outcome(); o.Status != agent.StatusCompleted {
		t.Error(told(o))
	}
}

func TestWhatIsSaidIsLoggedByMessagesAndLines(t *testing.T) {
	b, p := working(t, claude(t))
	n := len(b.out)
	b.chunk("one ")
	b.chunk("line\nand a ")
	b.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"secretly"}}`)
	b.chunk("half")
	b.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Terminal","kind":"execute","status":"pending","rawInput":{},"_meta":{"claudeCode":{"toolName":"Bash"}}}`)
	b.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"make","rawInput":{"command":"make test"},"kind":"execute"}`)
	b.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed","rawOutput":"Exit code 2\nsecret output","content":[]}`)
	b.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"first"}}`)
	b.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"second"}}`)
	b.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"image","data":"xx"}}`)
	b.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"text","text":"of a sub-agent"},"_meta":{"claudeCode":{"parentToolUseId":"x"}}}`)
	b.update(`{"sessionUpdate":"plan","entries":[{"content":"a","status":"completed","priority":"high"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}`)
	b.update(`{"sessionUpdate":"dance","content":{"type":"text","text":"x"}}`)
	b.feed(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":` + chunked("of another session") + `}}`)
	b.feed(`{"jsonrpc":"2.0","method":"_something/else","params":{}}`)
	b.result(p, `{"stopReason":"end_turn"}`)
	want := []string{
		`text "one line"`, `text "and a half"`, `tool "$ make test"`, `tool_failed "exit 2: make test"`, `text "first"`, `text "second"`, `plan "2/3 b"`,
		`ended completed, reply "second", unknown map[update: dance:1]`,
	}
	if !reflect.DeepEqual(b.out[n:], want) {
		t.Errorf("got\n%s\nwant\n%s", b.since(n), strings.Join(want, "\n"))
	}
}

func TestCallsAreLoggedOnceTheySayWhatTheyDo(t *testing.T) {
	const begun = `{"sessionUpdate":"tool_call","toolCallId":"t",`
	const more = `{"sessionUpdate":"tool_call_update","toolCallId":"t",`
	for _, c := range []struct {
		updates []string
		want    string
	}{
		{[]string{begun + `"title":"ls -l","kind":"execute","status":"in_progress"}`}, `tool "$ ls -l"`},
		{[]string{begun + `"title":"run it","kind":"execute","status":"pending","rawInput":{"command":["/bin/bash","-lc","ls -l"]}}`}, `tool "$ ls -l"`},
		{[]string{begun + `"title":"Terminal","kind":"execute","status":"pending"}`}, ""},
		{[]string{begun + `"title":"Terminal","kind":"execute","status":"pending"}`, chunked(`on\n`)}, "tool \"$ Terminal\"\ntext \"on\""},
		{[]string{begun + `"title":"Read","kind":"read"}`, more + `"locations":[{"path":"/w/src/a.go"}]}`, more + `"status":"completed"}`}, `tool "read src/a.go"`},
		{[]string{begun + `"title":"write","kind":"edit","rawInput":{"path":"/w/b"}}`}, `tool "write w/b"`},
		{[]string{begun + `"title":"Edit","kind":"edit","locations":[{"path":"/w/b"}]}`}, `tool "edit w/b"`},
		{[]string{begun + `"title":"gone","kind":"delete","locations":[{"path":"/w/b"}]}`}, `tool "delete w/b"`},
		{[]string{begun + `"title":"moved","kind":"move","rawInput":{"path":"/w/b"}}`}, `tool "move w/b"`},
		{[]string{begun + `"title":"grep","kind":"search","rawInput":{"pattern":"func main"}}`}, `tool "search: func main"`},
		{[]string{begun + `"title":"get","kind":"fetch","rawInput":{"url":"https://u:p@example.org/a?key=1"}}`}, `tool "fetch https://example.org/a"`},
		{[]string{begun + `"title":"pondering","kind":"think","status":"in_progress"}`}, `tool "pondering"`},
		{[]string{begun + `"title":null,"kind":7,"status":"in_progress"}`}, `tool "a tool"`},
		{[]string{begun + `"title":"look","status":"failed"}`, more + `"status":"failed"}`}, "tool \"look\"\ntool_failed \"failed: look\""},
		{[]string{begun + `"title":"x","kind":"execute","status":"in_progress"}`, more + `"status":"failed","rawOutput":{"exit_code":3}}`}, "tool \"$ x\"\ntool_failed \"exit 3: x\""},
		{[]string{begun + `"title":"x","kind":"execute","status":"in_progress"}`, more + `"status":"completed","rawOutput":{"metadata":{"exit":4}}}`}, "tool \"$ x\"\ntool_failed \"exit 4: x\""},
		{[]string{begun + `"title":"x","kind":"execute","status":"in_progress"}`, more + `"status":"completed","rawOutput":{"contents":[{"exitCode":5}]}}`}, "tool \"$ x\"\ntool_failed \"exit 5: x\""},
		{[]string{begun + `"title":"x","kind":"execute","status":"in_progress"}`, more + `"status":"failed","_meta":{"terminal_exit":{"exit_code":6}}}`}, "tool \"$ x\"\ntool_failed \"exit 6: x\""},
		{[]string{more + `"status":"completed","title":"of nothing"}`}, ""},
		{[]string{begun + `"title":"Update the todos","kind":"think","rawInput":{"todos":[{"content":"a"}]},"_meta":{"claudeCode":{"toolName":"TodoWrite"}}}`}, ""},
		{[]string{begun + `"title":"AWS_SECRET_KEY=abcdefgh1234 make","kind":"execute","status":"in_progress"}`}, `tool "$ AWS_SECRET_KEY=*** make"`},
	} {
		b, p := working(t, claude(t))
		n := len(b.out)
		for _, u := range c.updates {
			b.update(u)
		}
		got := b.since(n)
		b.result(p, `{"stopReason":"end_turn"}`)
		if got != c.want {
			t.Errorf("%v: got %s, want %s", c.updates, got, c.want)
		}
	}
}

func TestUsageIsTold(t *testing.T) {
	spend := func(amount float64, currency string) string {
		return fmt.Sprintf(`{"sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":%g,"currency":%q}}`, amount, currency)
	}
	b, p := working(t, claude(t))
	b.update(spend(0.5, "USD"))
	b.update(spend(0.75, "USD"))
	b.update(spend(9, "EUR"))
	b.result(p, `{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":2,"cachedReadTokens":3,"cachedWriteTokens":4,"totalTokens":19}}`)
	if o := b.outcome(); o.Usage == nil || *o.Usage != (agent.Usage{InputTokens: 17, OutputTokens: 2, CostUSD: 0.75}) {
		t.Errorf("%+v", o.Usage)
	}
	b.prompt("more")
	b.update(spend(1, "USD"))
	b.result(b.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	if o := b.outcome(); o.Usage == nil || *o.Usage != (agent.Usage{CostUSD: 0.25}) {
		t.Errorf("%+v", o.Usage)
	}
	b.prompt("nothing told")
	b.result(b.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	if o := b.outcome(); o.Usage != nil {
		t.Errorf("%+v", o.Usage)
	}
}

func TestATextGoesIntoTheTurnWhereTheServerSaysSo(t *testing.T) {
	b, first := working(t, claude(t))
	if !b.d.Steerable() {
		t.Fatal("not steerable")
	}
	n := len(b.out)
	if err := b.d.Steer([]byte("also that"), b.emit); err != nil {
		t.Fatal(err)
	}
	second := b.expect("session/prompt")
	if !strings.Contains(b.since(n), `steered "also that"`) || !strings.Contains(string(second.Params), "also that") {
		t.Error(b.since(n))
	}
	b.result(first, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2}}`) // hands over
	if len(b.ended) > 0 {
		t.Fatal("the turn ended with a prompt that was not answered")
	}
	b.chunk("done")
	b.result(second, `{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4}}`)
	if o := b.outcome(); o.Status != agent.StatusCompleted || string(o.Reply) != "done" || *o.Usage != (agent.Usage{InputTokens: 4, OutputTokens: 6}) {
		t.Error(told(o))
	}
}

func TestASteeredTurnIsInterruptedAsAWhole(t *testing.T) {
	b, first := working(t, claude(t))
	if err := b.d.Steer([]byte("also that"), b.emit); err != nil {
		t.Fatal(err)
	}
	second := b.expect("session/prompt")
	b.d.Interrupt(b.emit)
	b.expect("session/cancel")
	if b.d.Steerable() {
		t.Error("steerable while it is interrupted")
	}
	if err := b.d.Steer([]byte("x"), b.emit); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	b.result(second, `{"stopReason":"cancelled"}`)
	b.result(first, `{"stopReason":"cancelled"}`)
	if o := b.outcome(); o.Status != agent.StatusFailed || o.Error != "claude failed: it was interrupted" {
		t.Error(told(o))
	}
}

func TestSteeringIsBoundedAndOnlyWhereItIsOffered(t *testing.T) {
	b, _ := working(t, claude(t))
	for range maxPrompts - 1 {
		if err := b.d.Steer([]byte("x"), b.emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.d.Steer([]byte("x"), b.emit); !fault.Is(err, fault.Limit) {
		t.Error(err)
	}
	o := claude(t)
	b = newBench(t, o)
	b.d.Open(b.emit)
	b.prompt("do it")
	if err := b.d.Steer([]byte("x"), b.emit); !fault.Is(err, fault.Unsupported) || b.d.Steerable() {
		t.Error(err)
	}
	b.result(b.next(), `{"protocolVersion":1}`)
	b.result(b.next(), `{"sessionId":"s"}`)
	if err := b.d.Steer([]byte("x"), b.emit); !fault.Is(err, fault.Unsupported) || b.d.Steerable() {
		t.Error(err)
	}
}

func TestInterruptBeforeThePromptWasSent(t *testing.T) {
	b := newBench(t, claude(t))
	b.d.Interrupt(b.emit) // nothing runs
	b.d.Open(b.emit)
	b.prompt("never")
	b.d.Interrupt(b.emit)
	b.d.Interrupt(b.emit)
	if o := b.outcome(); o.Status != agent.StatusFailed || !strings.Contains(o.Error, "interrupted before its prompt was sent") || b.d.Busy() {
		t.Error(told(o))
	}
	b.result(b.expect("initialize"), capable)
	b.result(b.expect("session/new"), `{"sessionId":"s"}`)
	if len(b.sent) > 0 {
		t.Errorf("%+v", b.sent)
	}
	b.prompt("this one")
	if m := b.expect("session/prompt"); !strings.Contains(string(m.Params), "this one") {
		t.Errorf("%s", m.Params)
	}
}

func TestATurnThatEndedInTimeIsNoInterruptedOne(t *testing.T) {
	b, p := working(t, claude(t))
	b.chunk("done")
	b.d.Interrupt(b.emit)
	b.d.Interrupt(b.emit)
	b.expect("session/cancel")
	b.result(p, `{"stopReason":"end_turn"}`)
	if o := b.outcome(); o.Status != agent.StatusCompleted || len(b.sent) > 0 {
		t.Error(told(o), b.sent)
	}
	b.result(p, `{"stopReason":"cancelled"}`) // again, of nothing
	if len(b.ended) > 0 {
		t.Error("a turn ended that did not run")
	}
}

func TestAServerThatDies(t *testing.T) {
	b, _ := working(t, claude(t))
	b.chunk("half a ")
	b.feed(permissionFor("rm x", "execute"))
	n := len(b.out)
	b.d.Feed([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`+chunked("sentence")+`}}`), b.emit) // no newline
	b.d.Finish(b.emit)
	if got := b.since(n); got != "text \"sentence\"\ngone 1" && got != "gone 1\ntext \"sentence\"" {
		t.Error(got)
	}
	o := b.d.Outcome(agent.Exit{Code: -1, Signal: "KILL"}, []byte("some words\n"))
	if o.Status != agent.StatusFailed || o.Session != "s" || !strings.Contains(o.Error, "claude was killed by signal KILL") {
		t.Error(told(o))
	}
	if len(b.ended) > 0 || len(b.d.Asks()) > 0 {
		t.Errorf("%+v %+v", b.ended, b.d.Asks())
	}
}

func TestAProgramThatIsNoServer(t *testing.T) {
	for _, c := range []struct {
		out, err string
		words    string
	}{
		{"usage: claude [options]\n", "", `unrecognised output: "usage: claude [options]`},
		{"", "Error: Cannot find module 'x'\n", "Cannot find module 'x'"},
		{"", "", "claude exited with 1 before its turn was over"},
	} {
		b := newBench(t, claude(t))
		b.d.Open(b.emit)
		b.prompt("do it")
		b.d.Feed([]byte(c.out), b.emit)
		b.d.Finish(b.emit)
		if o := b.d.Outcome(agent.Exit{Code: 1}, []byte(c.err)); o.Status != agent.StatusFailed || !strings.Contains(o.Error, c.words) {
			t.Errorf("%q %q: %s", c.out, c.err, told(o))
		}
	}
}

func TestALongLineIsSkipped(t *testing.T) {
	b, p := working(t, claude(t))
	n := len(b.out)
	b.d.Feed(bytes.Repeat([]byte("x"), agent.MaxLine+1), b.emit)
	b.feed("")
	b.chunk("on")
	b.result(p, `{"stopReason":"end_turn"}`)
	if got := b.since(n); !strings.Contains(got, "was skipped") || !strings.Contains(got, "ended completed") {
		t.Error(got)
	}
}

func TestStrangeLinesChangeNothing(t *testing.T) {
	b, p := working(t, claude(t))
	n := len(b.out)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{}}`, `{"jsonrpc":"2.0","id":null,"method":"session/request_permission","params":{}}`,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"method":"session/update"}`, `{"method":"session/update","params":[]}`, `{"method":"$/cancel_request","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 300) + `,"method":"x"}`, "   ",
	} {
		b.feed(line)
	}
	if got := b.since(n); got != "" {
		t.Error(got)
	}
	// An answer whose id is a text, with no error by its own word.
	b.chunk("done")
	b.feed(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"stopReason":"end_turn"},"error":null}`, p.ID))
	if o := b.outcome(); o.Status != agent.StatusCompleted {
		t.Error(told(o))
	}
}

func TestTheGreetingOfPiIsNoMessage(t *testing.T) {
	o := claude(t)
	o.Agent = someAgent(t, "pi")
	b := opened(t, o, `,"_meta":{"piAcp":{"startupInfo":"pi v1\n---\n"}}`)
	b.prompt("do it")
	p := b.expect("session/prompt")
	b.chunk("pi v1\n---\n")
	b.chunk("pi v1\n---\n") // as the model may say it
	b.result(p, `{"stopReason":"end_turn"}`)
	if o := b.outcome(); string(o.Reply) != "pi v1\n---\n" {
		t.Error(told(o))
	}
}
