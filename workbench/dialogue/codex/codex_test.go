package codex

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	. "scvfs/workbench/dialogue/internal/dialoguetest"
)

func options() dialogue.Options {
	a, _ := agent.Builtin().Lookup("codex")
	return dialogue.Options{Agent: a, CWD: "/home/alice/work", Version: "1"}
}

func with(change func(*dialogue.Options)) func() dialogue.Dialogue {
	return func() dialogue.Dialogue {
		o := options()
		change(&o)
		return New(o)
	}
}

var fresh = with(func(*dialogue.Options) {})

// message is what the tests look at of a recorded message.
type message struct {
	ID     *int64
	Method string
	Params struct {
		Input []struct{ Text string }
	}
	Result struct{ Decision string }
}

// recorded is the script of a recorded conversation, whose requests have
// numbers from first on: what the client sent becomes the calls that send it.
func recorded(t testing.TB, name string, first int64) (script []Step, sent []map[string]any) {
	t.Helper()
	script = append(script, Opens())
	asks := 0
	for _, r := range Recording(t, name) {
		var m message
		if err := json.Unmarshal(r.Msg, &m); err != nil {
			t.Fatal(err)
		}
		if !r.Sent {
			line := string(r.Msg)
			if m.Method == "" { // the answer to a request of the client's
				line = strings.Replace(line, fmt.Sprintf(`"id": %d`, *m.ID), fmt.Sprintf(`"id": %d`, *m.ID-first+1), 1)
			} else if m.ID != nil {
				asks++
			}
			script = append(script, Says(line))
			continue
		}
		text := ""
		if len(m.Params.Input) > 0 {
			text = m.Params.Input[0].Text
		}
		switch {
		case m.Method == "turn/start":
			script = append(script, Prompts(text))
		case m.Method == "turn/steer":
			script = append(script, Steers(text))
		case m.Method == "turn/interrupt":
			script = append(script, Interrupts())
		case m.Method == "" && m.ID != nil:
			script = append(script, Answers(fmt.Sprint(asks), dialogue.Answer{Allow: m.Result.Decision == "accept"}))
		case m.Method == "thread/list" || m.Method == "thread/read":
			continue // of which the dialogue has no use
		}
		sent = append(sent, normal(t, r.Msg, first))
	}
	return append(script, Finishes()), sent
}

// normal is a message without what may differ: where numbers begin, who the
// client is and what it wants to hear, and what the recording set otherwise.
func normal(t testing.TB, msg []byte, first int64) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(msg, &m); err != nil {
		t.Fatal(err)
	}
	if id, ok := m["id"].(float64); ok && m["method"] != nil {
		m["id"] = int64(id) - first + 1
	}
	params, _ := m["params"].(map[string]any)
	for _, key := range []string{"clientInfo", "capabilities", "sandbox", "model", "cwd", "approvalPolicy", "excludeTurns"} {
		delete(params, key)
	}
	if result, ok := m["result"].(map[string]any); ok && result["decision"] == "cancel" {
		result["decision"] = "decline"
	}
	return m
}

var recordings = []struct {
	file   string
	golden string
	first  int64
	make   func() dialogue.Dialogue
}{
	{"codex/app-server.jsonl", "testdata/recorded.golden", 1, fresh},
	{"codex/app-server-resume.jsonl", "testdata/resumed.golden", 21, with(func(o *dialogue.Options) { o.Session = "01a227ab-26b0-7492-8294-a7de574ddaa7" })},
}

func TestRecordingsComeToTheirTranscripts(t *testing.T) {
	for _, r := range recordings {
		script, _ := recorded(t, r.file, r.first)
		Golden(t, r.golden, Play(t, r.make, script))
	}
}

func TestRecordingsAreTheSameHoweverTheyAreCut(t *testing.T) {
	for _, r := range recordings {
		script, _ := recorded(t, r.file, r.first)
		CutAnywhere(t, r.make, script)
	}
}

func TestMessagesAreThoseThatWereRecorded(t *testing.T) {
	for _, r := range recordings {
		script, want := recorded(t, r.file, r.first)
		got := Play(t, r.make, script).Sends()
		if len(got) != len(want) {
			t.Fatalf("%s: %d messages, and %d were recorded", r.file, len(got), len(want))
		}
		for i := range got {
			if have := normal(t, []byte(got[i]), 1); !reflect.DeepEqual(have, want[i]) && len(have) != 1 {
				t.Errorf("%s: message %d is\n%v\nnot\n%v", r.file, i, have, want[i])
			}
		}
	}
}

// Lines of the server, as short as they may be.
const (
	hello     = `{"id":1,"result":{"userAgent":"x"}}`
	thread    = `{"id":2,"result":{"thread":{"id":"t-1"},"model":"m","sandbox":{"type":"readOnly"}}}`
	unlimited = `{"id":2,"result":{"thread":{"id":"t-1"},"model":"m","sandbox":{"type":"dangerFullAccess"}}}`
	turn      = `{"id":3,"result":{"turn":{"id":"u-1"}}}`
	started   = `{"method":"turn/started","params":{"threadId":"t-1","turn":{"id":"u-1"}}}`
	said      = `{"method":"item/completed","params":{"threadId":"t-1","turnId":"u-1","item":{"type":"agentMessage","id":"i-1","text":"Hello."}}}`
	completed = `{"method":"turn/completed","params":{"threadId":"t-1","turn":{"id":"u-1","status":"completed"}}}`
	cutOff    = `{"method":"turn/completed","params":{"threadId":"t-1","turn":{"id":"u-1","status":"interrupted"}}}`
	command   = `{"method":"item/started","params":{"threadId":"t-1","turnId":"u-1","item":{"type":"commandExecution","id":"c-1","command":"/bin/bash -lc 'make test'"}}}`
	askRun    = `{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"t-1","turnId":"u-1","itemId":"c-1","reason":"It needs the network.","command":"/bin/bash -lc 'make  test'","cwd":"/w"}}`
	declined  = `{"method":"item/completed","params":{"threadId":"t-1","turnId":"u-1","item":{"type":"commandExecution","id":"c-1","command":"/bin/bash -lc 'make test'","status":"declined"}}}`
	resolved  = `{"method":"serverRequest/resolved","params":{"threadId":"t-1","requestId":0}}`
	patch     = `{"method":"item/started","params":{"threadId":"t-1","turnId":"u-1","item":{"type":"fileChange","id":"p-1","changes":[{"path":"/w/src/a.go","kind":{"type":"update"},"diff":"@@ x"},{"path":"/w/b","kind":{"type":"add"}}]}}}`
	askPatch  = `{"method":"item/fileChange/requestApproval","id":"q","params":{"threadId":"t-1","turnId":"u-1","itemId":"p-1","reason":null}}`
	askGrant  = `{"method":"item/permissions/requestApproval","id":7,"params":{"threadId":"t-1","turnId":"u-1","cwd":"/w","reason":"to fetch","permissions":{"network":{"enabled":true},"fileSystem":null}}}`
	askWords  = `{"method":"item/tool/requestUserInput","id":8,"params":{"threadId":"t-1","turnId":"u-1","questions":[{"id":"q1","question":"Which?","options":[{"label":"A"},{"label":"B"}]},{"id":"q2","question":"Why?","options":null}]}}`
	askTool   = `{"method":"mcpServer/elicitation/request","id":9,"params":{"threadId":"t-1","serverName":"db","mode":"form","message":"Drop it?","requestedSchema":{"type":"object","properties":{}}}}`
	askForm   = `{"method":"mcpServer/elicitation/request","id":10,"params":{"threadId":"t-1","serverName":"db","mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	otherAsk  = `{"method":"item/commandExecution/requestApproval","id":11,"params":{"threadId":"t-2","turnId":"u-9","itemId":"c-9","command":"ls"}}`
)

// greeted is a script up to where the thread is open, and begun one up to
// where a turn works.
func greeted(more ...Step) []Step {
	return append([]Step{Opens(), Prompts("go"), Says(hello), Says(thread)}, more...)
}

func begun(more ...Step) []Step { return append(greeted(Says(turn), Says(started)), more...) }

func usage(turn string, total, last int) Step {
	return Says(fmt.Sprintf(`{"method":"thread/tokenUsage/updated","params":{"threadId":"t-1","turnId":%q,"tokenUsage":{"total":{"inputTokens":%d,"outputTokens":%d},"last":{"inputTokens":%d,"outputTokens":%d}}}}`,
		turn, total, total/10, last, last/10))
}

var yes, no = dialogue.Answer{Allow: true}, dialogue.Answer{Reason: "not now"}

var cases = []Case{
	{
		Name: "a turn", Script: begun(Says(said), Says(completed)),
		Want: []string{
			`\"method\":\"initialize\"`, `\"version\":\"1\"`, `\"experimentalApi\":false`, `"{\"method\":\"initialized\"}"`,
			`\"thread/start\",\"params\":{\"cwd\":\"/home/alice/work\",\"approvalPolicy\":\"on-request\"}`,
			`\"turn/start\",\"params\":{\"threadId\":\"t-1\",\"input\":[{\"type\":\"text\",\"text\":\"go\"}]}`, `text "Hello."`, `ended completed session t-1 reply "Hello."`,
		},
	},
	{
		Name: "model and effort go to the thread and the turn", Make: with(func(o *dialogue.Options) { o.Model, o.Effort = "gpt-6", "high" }), Script: greeted(),
		Want: []string{"thread/start", `\"model\":\"gpt-6\"`, "turn/start", `\"effort\":\"high\"`}, Busy: true,
	},
	{
		Name: "full permissions", Make: with(func(o *dialogue.Options) { o.Full = true }), Script: greeted(),
		Want: []string{`\"approvalPolicy\":\"never\",\"sandbox\":\"danger-full-access\"`, "turn/start"}, Busy: true,
	},
	{
		Name: "a continued thread is told to ask", Make: with(func(o *dialogue.Options) { o.Session = "t-1" }), Script: greeted(),
		Want: []string{`\"thread/resume\",\"params\":{\"threadId\":\"t-1\"`, "on-request", `\"excludeTurns\":true`, "turn/start"}, Not: "sandbox", Busy: true,
	},
	{
		Name: "a thread that had full permissions gets the sandbox of the configuration", Make: with(func(o *dialogue.Options) { o.Session = "t-1" }),
		Script: []Step{Opens(), Prompts("go"), Says(hello), Says(unlimited), Says(`{"id":3,"result":{"thread":{"id":"t-2"},"sandbox":{"type":"workspaceWrite","writableRoots":["/w"]}}}`)},
		Want:   []string{"thread/resume", "thread/start", `\"ephemeral\":true`, "thread/unsubscribe", "t-2", `\"threadId\":\"t-1\"`, `\"sandboxPolicy\":{\"type\":\"workspaceWrite\",\"writableRoots\":[\"/w\"]}`}, Busy: true,
	},
	{
		Name: "no turn runs when the sandbox of the configuration is not told", Make: with(func(o *dialogue.Options) { o.Session = "t-1" }),
		Script: []Step{Opens(), Prompts("go"), Says(hello), Says(unlimited), Says(`{"id":3,"error":{"code":1,"message":"no such thing"}}`)},
		Want:   []string{"thread/resume", "ephemeral", "ended failed session t-1", "no such thing"}, Not: "turn/start",
	},
	{
		Name: "a session that is not known", Make: with(func(o *dialogue.Options) { o.Session = "t-1" }),
		Script: []Step{Opens(), Prompts("go"), Says(hello), Says(`{"id":2,"error":{"code":-32600,"message":"no rollout found for thread id t-1"}}`), Prompts("again")},
		Want:   []string{"thread/resume", "ended failed", "does not know the session", "ended failed", "does not know the session"}, Not: "turn/start",
	},
	{Name: "a greeting that is refused before there is a turn", Script: []Step{Opens(), Says(`{"id":1,"error":{"message":"no"}}`), Prompts("go")}, Want: []string{"initialize", "ended failed", "codex failed: no"}},
	{Name: "a turn that is refused", Script: greeted(Says(`{"id":3,"error":{"message":"Input exceeds the maximum length of 1048576 characters."}}`)), Want: []string{"turn/start", "ended failed session t-1", "cannot take this much text"}},
	{
		Name: "a command", Script: begun(Says(command), Says(askRun), Answers("1", yes), Says(resolved)),
		Want: []string{`tool "$ make test"`, "ask 1 permission process command: run `make test` (It needs the network.) in /w", `send "{\"id\":0,\"result\":{\"decision\":\"accept\"}}"`}, Not: "gone", Busy: true,
	},
	{
		Name: "a command that is declined", Script: begun(Says(command), Says(askRun), Answers("1", no), Says(resolved), Says(declined)),
		Want: []string{"ask 1", "decline", `tool_failed "not allowed: make test"`}, Busy: true,
	},
	{
		Name: "a patch", Script: begun(Says(patch), Says(askPatch), Answers("1", yes)),
		Want: []string{`tool "edit src/a.go and 1 more"`, "ask 1 permission filesystem patch: edit src/a.go and 1 more", `{\"id\":\"q\",\"result\":{\"decision\":\"accept\"}}`}, Busy: true,
	},
	{
		Name: "more permissions", Script: begun(Says(askGrant), Answers("1", yes), Says(askGrant), Answers("2", no)),
		Want: []string{
			"ask 1 permission delegate permissions: have more permissions in this turn: the network (to fetch) in /w", `{\"permissions\":{\"network\":{\"enabled\":true}},\"scope\":\"turn\"}`,
			"ask 2", `{\"permissions\":{},\"scope\":\"turn\"}`,
		}, Busy: true,
	},
	{
		Name: "questions", Script: begun(Says(askWords), Answers("1", dialogue.Answer{Allow: true, Words: []string{"B", "so"}}), Says(askWords), Answers("2", no)),
		Want: []string{
			`ask 1 question delegate question: asks: Which? and 1 more; "Which?" ["A" "B"] multi false; "Why?" [] multi false`,
			`{\"answers\":{\"q1\":{\"answers\":[\"B\"]},\"q2\":{\"answers\":[\"so\"]}}}`, "ask 2", "not answered: not now",
		}, Busy: true,
	},
	{
		Name: "a tool's server asks", Script: begun(Says(askTool), Answers("1", yes), Says(askTool), Answers("2", no), Says(askForm)),
		Want: []string{"ask 1 permission delegate db: db: Drop it?", `{\"action\":\"accept\",\"content\":{}}`, `{\"action\":\"decline\",\"content\":null}`, `{\"id\":10,\"error\":{\"code\":-32601`}, Busy: true,
	},
	{Name: "an agent of its own asks", Script: begun(Says(otherAsk), Says(completed)), Want: []string{"ask 1", "gone 1", `{\"id\":11,\"result\":{\"decision\":\"decline\"}}`, "ended"}},
	{Name: "what is asked between turns is declined", Script: begun(Says(said), Says(completed), Says(otherAsk)), Want: []string{"ended completed", "decline"}, Not: "ask 1"},
	{Name: "a request is withdrawn by the server", Script: begun(Says(askRun), Says(resolved), Says(resolved)), Want: []string{"ask 1", "gone 1"}, Busy: true},
	{
		Name: "an interrupt withdraws what waits", Script: begun(Says(askRun), Interrupts(), Interrupts(), Says(resolved), Says(`{"id":4,"result":{}}`), Says(cutOff)),
		Want: []string{"ask 1", "gone 1", `\"turn/interrupt\",\"params\":{\"threadId\":\"t-1\",\"turnId\":\"u-1\"}`, "ended failed session t-1", "it was interrupted"},
	},
	{Name: "an interrupt waits for the beginning, before which it would be refused", Script: greeted(Interrupts(), Says(turn), Says(started), Says(cutOff)), Want: []string{"turn/start", "turn/interrupt", "u-1", "it was interrupted"}},
	{Name: "what is asked of a turn that is being stopped is declined", Script: begun(Interrupts(), Says(askRun)), Want: []string{"turn/interrupt", "decline"}, Not: "ask 1", Busy: true},
	{Name: "an interrupt before there is a thread keeps the prompt", Script: []Step{Opens(), Prompts("go"), Interrupts(), Says(hello), Says(thread)}, Want: []string{"ended failed", "before its prompt was sent"}, Not: "turn/start"},
	{Name: "a text", Script: begun(Steers("more"), Says(`{"id":4,"result":{"turnId":"u-1"}}`)), Want: []string{`\"turn/steer\"`, `\"expectedTurnId\":\"u-1\"`, `steered "more"`}, Not: "note", Busy: true},
	{Name: "a text that is not taken", Script: begun(Steers("more"), Says(`{"id":4,"error":{"message":"no active turn to steer"}}`)), Want: []string{"steered", "note", "was not taken into the turn: no active turn"}, Busy: true},
	{Name: "a text needs a turn", Script: []Step{Opens(), Steers("more")}, Want: []string{"no turn of codex runs"}},
	{Name: "a text needs a turn that has an id", Script: greeted(Steers("more")), Want: []string{"takes no text now"}, Busy: true},
	{Name: "one turn at a time", Script: begun(Prompts("again")), Want: []string{"works on a turn"}, Not: `\"again\"`, Busy: true},
	{Name: "a model that refuses", Script: begun(Says(completed)), Want: []string{"ended declined", "gave no answer"}},
	{
		Name: "a policy that refuses", Script: begun(Says(`{"method":"turn/completed","params":{"threadId":"t-1","turn":{"id":"u-1","status":"failed","error":{"message":"No.","codexErrorInfo":"cyberPolicy"}}}}`)),
		Want: []string{"ended declined"},
	},
	{
		Name: "a failure, after a try that was not the last",
		Script: begun(Says(`{"method":"error","params":{"threadId":"t-1","turnId":"u-1","willRetry":true,"error":{"message":"Reconnecting... 1/1","additionalDetails":"unexpected status 401"}}}`),
			Says(`{"method":"turn/completed","params":{"threadId":"t-1","turn":{"id":"u-1","status":"failed","error":{"message":"bad key","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}}}`)),
		Want: []string{`note "Reconnecting... 1/1 (unexpected status 401)"`, "ended failed", "codex is not signed in, or its key was refused (HTTP 401: bad key)"},
	},
	{
		Name: "a plan", Script: begun(Says(`{"method":"turn/plan/updated","params":{"threadId":"t-1","turnId":"u-1","plan":[{"step":"one","status":"completed"},{"step":"two","status":"inProgress"}]}}`)),
		Want: []string{`plan "2/2 two"`}, Busy: true,
	},
	{
		Name: "usage is the turn's own", Script: begun(usage("u-0", 1000, 100), usage("u-1", 1500, 500), usage("u-1", 1500, 500), usage("u-1", 1800, 300), Says(said), Says(completed)),
		Want: []string{"ended completed session t-1 tokens 800/80 cost 0.0000 total false"},
	},
	{Name: "other threads are not this one", Script: begun(Says(strings.Replace(said, "t-1", "t-2", 1)), Says(strings.Replace(completed, "t-1", "t-2", 1)), Says(strings.Replace(completed, "u-1", "u-2", 1))), Not: "Hello", Busy: true},
	{Name: "the turn's id may come with its beginning first", Script: greeted(Says(started), Steers("more"), Says(turn), Says(said), Says(completed)), Want: []string{"turn/steer", "u-1", "ended completed"}},
	{Name: "a second turn", Script: begun(Says(said), Says(completed), Prompts("again"), Says(`{"id":4,"result":{"turn":{"id":"u-2"}}}`), Steers("x")), Want: []string{"ended completed", "again", `\"expectedTurnId\":\"u-2\"`}, Busy: true},
	{Name: "requests of other kinds get an error", Script: begun(Says(`{"method":"item/tool/call","id":5,"params":{}}`)), Want: []string{`{\"id\":5,\"error\":{\"code\":-32601,\"message\":\"scvfs does not answer requests of the kind item/tool/call\"}}`}, Busy: true},
	{Name: "what no one knows is counted", Script: begun(Says(`{"method":"odd/thing","params":{"threadId":"t-1"}}`), Says(`nonsense`), Says(said), Says(completed)), Want: []string{"unknown map[(no event):1 odd/thing:1]"}},
	{
		Name: "a mode", Make: with(func(o *dialogue.Options) { o.Mode = "plan" }), Script: greeted(),
		Want: []string{`\"experimentalApi\":true`, `\"collaborationMode\":{\"mode\":\"plan\",\"settings\":{\"model\":\"m\",\"reasoning_effort\":null`}, Busy: true,
	},
	{Name: "a NUL byte is refused", Script: []Step{Opens(), Prompts("a\x00")}, Want: []string{"NUL byte"}},
}

func TestTurns(t *testing.T) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, fresh) })
	}
}

// What is asked about a patch holds its diff.
func TestAPatchComesWithItsDiff(t *testing.T) {
	p := Play(t, fresh, begun(Says(patch), Says(askPatch)), Everywhere)
	var request struct {
		Method string
		Params struct{ ItemID string }
		Item   struct{ Changes []struct{ Diff string } }
	}
	if err := json.Unmarshal(p.D.Asks()[0].Request, &request); err != nil || len(request.Item.Changes) != 2 || request.Item.Changes[0].Diff != "@@ x" || request.Params.ItemID != "p-1" {
		t.Fatalf("%v %+v", err, request)
	}
}

func TestWhatIsKeptOfPatchesIsBounded(t *testing.T) {
	script := begun()
	big := strings.Repeat("x", 3<<20)
	for i := range 9 {
		script = append(script, Says(strings.Replace(strings.Replace(patch, "p-1", fmt.Sprintf("p-%d", i), 1), "@@ x", big, 1)))
	}
	size := 0
	for _, i := range Play(t, fresh, script).D.(*talk).s.Items {
		size += len(i.Raw)
	}
	if size > maxItemBytes || size < maxItemBytes/2 {
		t.Fatalf("%d bytes", size)
	}
}

func TestErrorsHaveTheirKinds(t *testing.T) {
	none := func(int64, dialogue.Output) {}
	d := fresh()
	d.Open(none)
	if err := d.Steer([]byte("x"), none); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := d.Answer("1", dialogue.Answer{}, none); !fault.Is(err, fault.Done) {
		t.Error(err)
	}
	if err := d.Prompt([]byte(strings.Repeat("x", 1<<20+1)), none); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
	_ = d.Prompt([]byte("x"), none)
	if err := d.Prompt([]byte("x"), none); !fault.Is(err, fault.Busy) {
		t.Error(err)
	}
	if err := d.Steer([]byte("x"), none); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	d.Finish(none)
	if err := d.Prompt([]byte("x"), none); !fault.Is(err, fault.Gone) {
		t.Error(err)
	}
	if o := d.Outcome(agent.Exit{Code: 1}, []byte("Error: approval_policy is no longer supported\n")); o.Status != agent.StatusFailed || !strings.Contains(o.Error, "no longer supported") {
		t.Errorf("%+v", o)
	}
}

func TestAStateOfSomethingElseIsRefused(t *testing.T) {
	for _, bad := range []string{``, `[]`, `{}`, `{"format":"claude"}`, `{"format":"app-server","parser":{"format":"app-server","lines":{"offset":0}},"own":{"sandbox":"e30x"}}`} {
		if err := fresh().Restore(json.RawMessage(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzFeed feeds anything, whole and cut, in all states that calls lead to.
func FuzzFeed(f *testing.F) {
	for _, c := range cases {
		var all []string
		for _, s := range c.Script {
			all = append(all, string(s.Output))
		}
		f.Add(strings.Join(all, ""), 10, 100, uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, output string, first, second int, calls uint8, resumed bool) {
		a, b := min(max(first, 0), len(output)), min(max(second, 0), len(output))
		if a > b {
			a, b = b, a
		}
		make := fresh
		if resumed {
			make = recordings[1].make
		}
		script := []Step{Opens(), Prompts("go"), {Output: []byte(output[:a])}}
		for i, s := range []Step{Steers("more"), Answers("1", dialogue.Answer{Allow: true, Words: []string{"x"}}), Interrupts(), Answers("2", no), Prompts("again")} {
			if calls>>i&1 == 1 {
				script = append(script, s)
			}
		}
		script = append(script, Step{Output: []byte(output[a:b])}, Prompts("last"), Step{Output: []byte(output[b:])}, Finishes())
		want := Play(t, make, script)
		for _, m := range want.Sends() {
			if !json.Valid([]byte(m)) || strings.Contains(m, "\n") {
				t.Fatalf("it sends %q", m)
			}
		}
		Same(t, Play(t, make, script, a/2, a, (a+b)/2), want)
		Same(t, Play(t, make, script, Everywhere), want)
	})
}
