package claude

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
	a, _ := agent.Builtin().Lookup("claude")
	return dialogue.Options{Agent: a, CWD: "/home/alice/work", Version: "1"}
}

func fresh() dialogue.Dialogue { return New(options()) }

func inMode(mode string) func() dialogue.Dialogue {
	return func() dialogue.Dialogue {
		o := options()
		o.Mode = mode
		return New(o)
	}
}

// recorded is the script of the recorded conversation: what the client sent
// becomes the calls that send it.
func recorded(t testing.TB) (script []Step, sent []any) {
	t.Helper()
	script = append(script, Opens())
	running, asks, nonce := false, 0, ""
	for _, r := range Recording(t, "claude/relay-approvals.jsonl") {
		var m struct {
			Type     string
			UUID     string
			Request  struct{ Subtype string }
			Message  struct{ Content any }
			Response struct {
				Response struct {
					Behavior, Message string
					Updated           struct{ Answers map[string]string } `json:"updatedInput"`
				}
			}
		}
		if err := json.Unmarshal(r.Msg, &m); err != nil {
			t.Fatal(err)
		}
		if !r.Sent {
			script = append(script, Says(string(r.Msg)))
			if nonce == "" && !strings.HasPrefix(m.Type, "control") {
				nonce = m.UUID
			}
			running = running && m.Type != "result"
			if m.Type == "control_request" {
				asks++
			}
			continue
		}
		switch {
		case m.Request.Subtype == "initialize":
			continue // which is not needed
		case m.Type == "user":
			text := contentOf(m.Message.Content)
			if !running {
				script = append(script, Prompts(text))
			} else {
				// The recording's client gave it no id, and so was told nothing of it.
				id := messageID(nonce, 3)
				lifecycle := `{"type":"command_lifecycle","command_uuid":"` + id + `","state":"`
				script = append(script, Steers(text), Says(lifecycle+`queued"}`), Says(lifecycle+`started"}`))
			}
			running = true
		case m.Type == "control_response":
			a := dialogue.Answer{Allow: m.Response.Response.Behavior == "allow", Reason: m.Response.Response.Message}
			for _, word := range m.Response.Response.Updated.Answers {
				a.Words = append(a.Words, word)
			}
			script = append(script, Answers(fmt.Sprint(asks), a))
		default:
			script = append(script, Interrupts())
		}
		sent = append(sent, normal(t, r.Msg))
	}
	return append(script, Finishes()), sent
}

func contentOf(content any) string {
	if blocks, ok := content.([]any); ok {
		return blocks[0].(map[string]any)["text"].(string)
	}
	return content.(string)
}

// normal is a message without what may differ: ids that the client makes, and
// a text that is a list of one text.
func normal(t testing.TB, msg []byte) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(msg, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "uuid")
	switch m["type"] {
	case "user":
		m["message"].(map[string]any)["content"] = contentOf(m["message"].(map[string]any)["content"])
	case "control_request":
		delete(m, "request_id")
	}
	return m
}

func TestTheRecordingComesToItsTranscript(t *testing.T) {
	script, _ := recorded(t)
	Golden(t, "testdata/recorded.golden", Play(t, fresh, script))
}

func TestTheRecordingIsTheSameHoweverItIsCut(t *testing.T) {
	script, _ := recorded(t)
	CutAnywhere(t, fresh, script)
}

func TestMessagesAreThoseThatWereRecorded(t *testing.T) {
	script, want := recorded(t)
	got := Play(t, fresh, script).Sends()
	if len(got) != len(want) {
		t.Fatalf("%d messages, and %d were recorded", len(got), len(want))
	}
	for i := range got {
		have := normal(t, []byte(got[i]))
		if strings.Contains(fmt.Sprint(want[i]), "changed by the user") {
			continue // the recording's client changed a command, which we do not
		}
		if !reflect.DeepEqual(have, want[i]) {
			t.Errorf("message %d is\n%v\nnot\n%v", i, have, want[i])
		}
	}
}

// Lines of the program, as short as they may be.
const (
	initLine   = `{"type":"system","subtype":"init","session_id":"s-1","uuid":"u-1"}`
	running    = `{"type":"system","subtype":"session_state_changed","state":"running","session_id":"s-1"}`
	idle       = `{"type":"system","subtype":"session_state_changed","state":"idle","session_id":"s-1"}`
	said       = `{"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":"Hello."}]}}`
	result     = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Hello.","session_id":"s-1"}`
	stopped    = `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,"terminal_reason":"aborted_streaming","session_id":"s-1"}`
	askBash    = `{"type":"control_request","request_id":"r-1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -rf  build <x>","n":1.0}}}`
	cancelBash = `{"type":"control_cancel_request","request_id":"r-1"}`
	twoAsked   = `{"type":"control_request","request_id":"r-2","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[` +
		`{"question":"Which?","options":[{"label":"A"},{"label":"B"}],"multiSelect":true},{"question":"Why <?>"}]}}}`
)

func lifecycle(n uint64, state string) Step {
	return Says(`{"type":"command_lifecycle","command_uuid":"` + messageID("u-1", n) + `","state":"` + state + `"}`)
}

func answerTo(id, body string) Step {
	return Says(`{"type":"control_response","response":{"request_id":"` + id + `",` + body + `}}`)
}

// begun is a script up to where a turn works.
func begun(more ...Step) []Step {
	return append([]Step{Opens(), Prompts("go"), Says(running), Says(initLine)}, more...)
}

var cases = []Case{
	{Name: "a turn ends when the program is idle", Script: begun(Says(said), Says(result), Says(idle)), Want: []string{`send "{\"type\":\"user\"`, `text "Hello."`, "ended completed session s-1"}},
	{Name: "a result is not the end of one that tells its state", Script: begun(Says(said), Says(result)), Not: "ended", Busy: true},
	{Name: "a result is the end of one that does not", Script: []Step{Opens(), Prompts("go"), Says(initLine), Says(said), Says(result)}, Want: []string{"ended completed"}},
	{
		Name: "agents of its own are waited for", Script: begun(Says(result), Says(askBash), Answers("1", dialogue.Answer{Allow: true}), Says(initLine), Says(result), Says(idle)),
		Want: []string{"ask 1 permission process Bash: run `rm -rf build <x>`", `"behavior\":\"allow\"`, "ended completed"},
	},
	{
		Name: "an input goes back byte for byte", Script: begun(Says(askBash), Answers("1", dialogue.Answer{Allow: true})),
		Want: []string{"ask 1", Short(`{"type":"control_response","response":{"subtype":"success","request_id":"r-1","response":{"behavior":"allow","updatedInput":{"command":"rm -rf  build <x>","n":1.0}}}}`)}, Busy: true,
	},
	{
		Name: "a denial has its reason", Script: begun(Says(askBash), Answers("1", dialogue.Answer{Reason: "not <now>"})),
		Want: []string{"ask 1", `\"behavior\":\"deny\",\"message\":\"not <now>\"`}, Busy: true,
	},
	{
		Name: "a second answer is refused", Script: begun(Says(askBash), Answers("1", dialogue.Answer{}), Answers("1", dialogue.Answer{Allow: true})),
		Want: []string{"ask 1", "deny", "is answered already"}, Not: `\"allow\"`, Busy: true,
	},
	{
		Name: "questions are answered by their texts", Script: begun(Says(twoAsked), Answers("1", dialogue.Answer{Allow: true, Words: []string{"A, B", "say \"so\""}})),
		Want: []string{`ask 1 question delegate AskUserQuestion: asks: Which? and 1 more; "Which?" ["A" "B"] multi true; "Why <?>" [] multi false`, `request_id\":\"r-2\"`}, Busy: true,
	},
	{Name: "a request is withdrawn by the program", Script: begun(Says(askBash), Says(cancelBash), Says(cancelBash)), Want: []string{"ask 1", "gone 1"}, Busy: true},
	{
		Name: "an interrupt withdraws what waits", Script: begun(Says(askBash), Interrupts(), Interrupts(), Says(cancelBash), Says(stopped), Says(idle)),
		Want: []string{"ask 1", "gone 1", `\"subtype\":\"interrupt\"`, "ended failed session s-1", "it was interrupted"},
	},
	{
		Name:   "an interrupt waits for the beginning, before which it would be lost",
		Script: []Step{Opens(), Prompts("go"), Interrupts(), Says(running), Says(initLine), Says(stopped), Says(idle)},
		Want:   []string{"go", "interrupt", "interrupted"},
	},
	{Name: "what is asked of a turn that is being stopped is denied", Script: begun(Interrupts(), Says(askBash)), Want: []string{"interrupt", "deny"}, Not: "ask 1", Busy: true},
	{
		Name: "an interrupt takes back what was not read", Script: begun(Steers("more"), lifecycle(1, "queued"), Interrupts(), lifecycle(1, "cancelled"), Says(stopped), Says(idle)),
		Want: []string{"more", `steered "more"`, "cancel_async_message", "interrupt", "ended failed"}, Not: "note",
	},
	{
		Name:   "a text that is read after the result goes on with the turn",
		Script: begun(Steers("more"), lifecycle(1, "queued"), Says(result), lifecycle(1, "started"), Says(initLine), Says(said), Says(result), Says(idle)),
		Want:   []string{"more", "steered", "ended completed"},
	},
	{
		Name:   "a text that comes when the program is idle already goes on with the turn",
		Script: begun(Steers("more"), Says(result), Says(idle), lifecycle(1, "queued"), Says(running), lifecycle(1, "started"), answerTo("scvfs-2", `"subtype":"success"`), Says(initLine), Says(result), Says(idle)),
		Want:   []string{"more", "cancel_async_message", "ended completed"},
	},
	{
		Name:   "a text that is not read is told of",
		Script: begun(Steers("more"), lifecycle(1, "discarded"), Says(result), Says(idle)),
		Want:   []string{"more", "was not read: discarded", "ended completed"},
	},
	{
		Name:   "a program that tells nothing of texts ends its turn",
		Script: []Step{Opens(), Prompts("go"), Says(initLine), Steers("more"), Says(result), answerTo("scvfs-2", `"subtype":"error","error":"unsupported"`)},
		Want:   []string{"more", "cancel_async_message", "ended completed"},
	},
	{Name: "a text needs a turn", Script: []Step{Opens(), Steers("more")}, Want: []string{"no turn of claude runs"}},
	{Name: "a text needs a turn that has begun", Script: []Step{Opens(), Prompts("go"), Steers("more")}, Want: []string{"go", "takes no text now"}, Busy: true},
	{Name: "one turn at a time", Script: begun(Prompts("again")), Want: []string{"works on a turn"}, Not: `\"again\"`, Busy: true},
	{
		Name:   "a second turn of the process",
		Script: begun(Says(result), Says(idle), Prompts("again"), Says(running), Says(initLine), Says(said), Says(result), Says(idle)),
		Want:   []string{"ended completed", "again", `text "Hello."`, "ended completed"},
	},
	{
		Name:   "what the program does by itself before a turn is not that turn",
		Script: begun(Says(result), Says(idle), Says(running), Says(initLine), Says(askBash), Prompts("again"), Says(result), Says(idle)),
		Want:   []string{"ended completed", "there is no turn", "again"}, Not: "ask 1", Busy: true,
	},
	{
		Name:   "a session that is not known is told by a result alone",
		Script: []Step{Opens(), Prompts("go"), Says(`{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"s-9","errors":["No conversation found with session ID: s-9"]}`)},
		Want:   []string{"ended failed session  ", "does not know the session"},
	},
	{
		Name: "what is asked by whom goes on is denied at the end", Script: begun(Says(askBash), Says(result), Says(idle)),
		Want: []string{"ask 1", "gone 1", "deny", "ended completed"},
	},
	{Name: "the end of the output withdraws what waits", Script: begun(Says(askBash), Finishes(), Prompts("x")), Want: []string{"ask 1", "gone 1", "needs a new process"}},
	{
		Name:   "requests of other kinds get an error",
		Script: begun(Says(`{"type":"control_request","request_id":"r-3","request":{"subtype":"hook_callback"}}`)),
		Want:   []string{`\"subtype\":\"error\",\"request_id\":\"r-3\"`}, Busy: true,
	},
	{
		Name:   "echoes are no answers",
		Script: begun(Says(`{"type":"user","isReplay":true,"message":{"content":"go"}}`), answerTo("r-1", `"subtype":"success"`), Says(result)), Not: "ended", Busy: true,
	},
	{
		Name: "a prompt waits for the mode", Make: inMode("plan"), Script: []Step{Opens(), Prompts("go"), answerTo("scvfs-1", `"subtype":"success"`)},
		Want: []string{"set_permission_mode", `\"go\"`}, Busy: true,
	},
	{
		Name: "no turn runs in another mode than was asked for", Make: inMode("odd"), Script: []Step{Opens(), Prompts("go"), answerTo("scvfs-1", `"subtype":"error","error":"must be plan"`), Prompts("go")},
		Want: []string{"set_permission_mode", `does not take the mode "odd" (must be plan)`, `does not take the mode "odd"`}, Not: `\"go\"`,
	},
	{Name: "an interrupt before the mode is set keeps the prompt", Make: inMode("plan"), Script: []Step{Opens(), Prompts("go"), Interrupts(), answerTo("scvfs-1", `"subtype":"success"`)}, Want: []string{"set_permission_mode", "before its prompt was sent"}, Not: `\"go\"`},
	{Name: "a request that comes again is one", Script: begun(Says(askBash), Says(askBash), Answers("2", dialogue.Answer{})), Want: []string{"ask 1", "gone 1", "ask 2", "deny"}, Busy: true},
	{Name: "a NUL byte is refused", Script: []Step{Opens(), Prompts("a\x00")}, Want: []string{"NUL byte"}},
	{Name: "what is not UTF-8 is refused", Script: []Step{Opens(), Prompts("a\xff")}, Want: []string{"not UTF-8"}},
}

func TestTurns(t *testing.T) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, fresh) })
	}
}

func TestRisksAreByTheTool(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        dialogue.Risk
	}{
		{"Read", `{"file_path":"/home/alice/work/main.go"}`, dialogue.ReadOnly},
		{"Read", `{"file_path":"/home/alice/.ssh/id_ed25519"}`, dialogue.Filesystem},
		{"Read", `{"file_path":"/home/alice/work/.env.local"}`, dialogue.Filesystem},
		{"Grep", `{"pattern":"x","path":"/home/alice/.aws"}`, dialogue.Filesystem},
		{"Glob", `{"pattern":"**/*.pem"}`, dialogue.Filesystem},
		{"Grep", `not an object`, dialogue.Filesystem},
		{"LS", `{"path":"/tmp"}`, dialogue.ReadOnly},
		{"TodoWrite", `{"todos":[]}`, dialogue.ReadOnly},
		{"Edit", `{}`, dialogue.Filesystem},
		{"NotebookEdit", `{}`, dialogue.Filesystem},
		{"Bash", `{"command":"ls"}`, dialogue.Process},
		{"WebFetch", `{}`, dialogue.Network},
		{"Task", `{}`, dialogue.Delegate},
		{"mcp__a__b", `{}`, dialogue.Delegate},
		{"", `{}`, dialogue.Delegate},
	} {
		r := toolRequest{Tool: c.tool, Input: json.RawMessage(c.input)}
		if got := r.risk(); got != c.want {
			t.Errorf("%s %s: %s, not %s", c.tool, c.input, got, c.want)
		}
	}
}

func TestTooManyRequestsAreDenied(t *testing.T) {
	script := begun()
	for i := range dialogue.MaxAsks + 3 {
		script = append(script, Says(strings.Replace(askBash, "r-1", fmt.Sprintf("n-%d", i), 1)))
	}
	p := Play(t, fresh, script)
	if n, denied := len(p.D.Asks()), strings.Count(strings.Join(p.Sends(), "\n"), "too much waits"); n != dialogue.MaxAsks || denied != 3 {
		t.Fatalf("%d wait, %d are denied", n, denied)
	}
}

func TestErrorsHaveTheirKinds(t *testing.T) {
	none := func(int64, dialogue.Output) {}
	d := fresh()
	if err := d.Steer([]byte("x"), none); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := d.Answer("1", dialogue.Answer{}, none); !fault.Is(err, fault.Done) {
		t.Error(err)
	}
	if err := d.Prompt([]byte("\xff"), none); !fault.Is(err, fault.Invalid) {
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
	if o := d.Outcome(agent.Exit{Code: -1, Signal: "KILL"}, nil); o.Status != agent.StatusFailed || !strings.Contains(o.Error, "signal KILL") {
		t.Errorf("%+v", o)
	}
}

func TestAStateOfSomethingElseIsRefused(t *testing.T) {
	for _, bad := range []string{``, `{`, `[]`, `{}`, `{"format":"app-server"}`, `{"format":"claude","parser":{}}`, `{"format":"claude","parser":{"format":"claude","lines":{"offset":0}}}`} {
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
		f.Add(strings.Join(all, ""), 10, 100, uint8(3))
	}
	f.Fuzz(func(t *testing.T, output string, first, second int, calls uint8) {
		a, b := min(max(first, 0), len(output)), min(max(second, 0), len(output))
		if a > b {
			a, b = b, a
		}
		script := []Step{Opens(), Prompts("go"), {Output: []byte(output[:a])}}
		for i, s := range []Step{Steers("more"), Answers("1", dialogue.Answer{Allow: true, Words: []string{"x"}}), Interrupts(), Answers("2", dialogue.Answer{}), Prompts("again")} {
			if calls>>i&1 == 1 {
				script = append(script, s)
			}
		}
		script = append(script, Step{Output: []byte(output[a:b])}, Prompts("last"), Step{Output: []byte(output[b:])}, Finishes())
		want := Play(t, fresh, script)
		for _, m := range want.Sends() {
			if !json.Valid([]byte(m)) || strings.Contains(m, "\n") {
				t.Fatalf("it sends %q", m)
			}
		}
		Same(t, Play(t, fresh, script, a/2, a, (a+b)/2), want)
		Same(t, Play(t, fresh, script, Everywhere), want)
	})
}
