package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/workbench/dialogue"
)

var update = flag.Bool("update", false, "write what comes of the recorded transcripts to testdata")

// recorded are the servers whose transcripts there are, by their folder, and
// the agents that they serve.
var recorded = []struct{ folder, agent string }{
	{"claude-agent-acp", "claude"}, {"codex-acp", "codex"}, {"gemini", "gemini"}, {"opencode", "opencode"}, {"copilot", "copilot"}, {"pi-acp", "pi"},
}

// entry is a line of a transcript: what went to the server, came from it, or a
// remark.
type entry struct {
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
}

func transcript(t testing.TB, path string) []entry {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []entry
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<24); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// waited moves the prompt of a transcript whose client did not wait for the
// end of the history behind that, where this one sends it.
func waited(all []entry) []entry {
	at, last := -1, -1
	for i, e := range all {
		if at < 0 && e.Dir == ">" && bytes.Contains(e.Msg, []byte(`"session/prompt"`)) {
			at = i
		}
		if at >= 0 && bytes.Contains(e.Msg, []byte(`"available_commands_update"`)) {
			last = i
		}
	}
	if at < 0 || last < at {
		return all
	}
	prompt := all[at]
	moved := append(append(append([]entry{}, all[:at]...), all[at+1:last+1]...), prompt)
	return append(moved, all[last+1:]...)
}

// replay plays a transcript to a dialogue, and compares what that sends with
// what the transcript's client sent.
type replay struct {
	*bench
	ids     map[string]string // ids of requests in the transcript, and those of ours
	ignored map[string]bool   // ids of requests that we do not send
}

func (r *replay) play(all []entry) {
	for _, e := range all {
		if e.Dir == "!" {
			continue
		}
		var m message
		if err := json.Unmarshal(e.Msg, &m); err != nil {
			r.t.Fatal(err)
		}
		history := e.Dir == "<" && m.Method == "session/update"
		for !history && len(r.sent) > 0 && r.sent[0].Method == probe {
			r.failure(r.next(), `{"code":-32601,"message":"Method not found"}`)
		}
		if e.Dir == ">" {
			r.client(m)
		} else {
			r.server(m, e.Msg)
		}
	}
	r.d.Finish(r.emit)
	if len(r.sent) > 0 || len(r.waiting) > 0 {
		r.t.Errorf("more was sent or asked than in the transcript: %+v %+v", r.sent, r.waiting)
	}
}

// client does what the transcript's client did.
func (r *replay) client(m message) {
	switch m.Method {
	case "initialize":
		r.d.Open(r.emit)
		r.ids[string(m.ID)] = string(r.expect("initialize").ID)
	case "session/list":
		r.ignored[string(m.ID)] = true
	case "session/new":
		r.same(m, r.expect("session/new"))
	case "session/load":
		ours := r.next()
		if ours.Method == "session/resume" { // says the same
			var p map[string]any
			if json.Unmarshal(ours.Params, &p) != nil {
				r.t.Fatalf("%s", ours.Params)
			}
			p["mcpServers"] = []any{}
			ours.Params, _ = json.Marshal(p)
			ours.Method = m.Method
		}
		r.same(m, ours)
	case "session/prompt":
		var p struct{ Prompt []struct{ Text string } }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			r.t.Fatal(err)
		}
		r.prompt(p.Prompt[0].Text)
		r.same(m, r.expect("session/prompt"))
	case "session/cancel":
		r.d.Interrupt(r.emit)
		r.same(m, r.expect("session/cancel"))
	case "":
		r.reply(m)
	default:
		r.t.Fatalf("a transcript with %s", m.Method)
	}
}

// same compares a request with the one of the transcript.
func (r *replay) same(recorded, ours message) {
	if recorded.Method != ours.Method || !equal(recorded.Params, ours.Params) {
		r.t.Errorf("sent: %s %s\nin the transcript: %s %s", ours.Method, ours.Params, recorded.Method, recorded.Params)
	}
	r.ids[string(recorded.ID)] = string(ours.ID)
}

// reply answers as the transcript's client did. That one had files to offer,
// which we have not.
func (r *replay) reply(m message) {
	var result struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil || result.Outcome.Outcome == "" {
		if ours := r.next(); !bytes.Contains(ours.Error, []byte("-32601")) {
			r.t.Errorf("a request for a file was answered %s", ours.Result)
		}
		return
	}
	if result.Outcome.Outcome == "selected" {
		var asked struct {
			Params struct {
				Options []struct{ OptionID, Kind string }
			}
		}
		if err := json.Unmarshal(r.waiting[0].Request, &asked); err != nil {
			r.t.Fatal(err)
		}
		for _, o := range asked.Params.Options {
			if o.OptionID == result.Outcome.OptionID {
				r.answer(dialogue.Answer{Allow: strings.HasPrefix(o.Kind, "allow")})
			}
		}
	}
	if ours := r.next(); !equal(m.Result, ours.Result) || string(ours.ID) != string(m.ID) {
		r.t.Errorf("answered: %s %s\nin the transcript: %s %s", ours.ID, ours.Result, m.ID, m.Result)
	}
}

// server feeds what the server said, with the ids that our requests have.
func (r *replay) server(m message, raw json.RawMessage) {
	if m.Method == "" {
		if r.ignored[string(m.ID)] {
			return
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			r.t.Fatal(err)
		}
		all["id"] = json.RawMessage(r.ids[string(m.ID)])
		raw, _ = json.Marshal(all)
	}
	r.feed(string(raw))
}

func equal(x, y json.RawMessage) bool {
	var a, b any
	return json.Unmarshal(x, &a) == nil && json.Unmarshal(y, &b) == nil && reflect.DeepEqual(a, b)
}

// askedFor is what the transcript's client asked for.
func askedFor(t testing.TB, agentName string, all []entry) dialogue.Options {
	o := dialogue.Options{Agent: someAgent(t, agentName), Version: "1"}
	for _, e := range all {
		var m struct {
			Method string
			Params struct{ Cwd, SessionID string }
		}
		if json.Unmarshal(e.Msg, &m) != nil || e.Dir != ">" {
			continue
		}
		if m.Method == "session/new" || m.Method == "session/load" {
			o.CWD, o.Session = m.Params.Cwd, m.Params.SessionID
		}
	}
	return o
}

// recording is a transcript, and what its client asked for.
type recording struct {
	name string
	o    dialogue.Options
	all  []entry
}

func recordings(t *testing.T) []recording {
	dir := shared(t, "fixtures")
	var found []recording
	for _, c := range recorded {
		for _, kind := range []string{"session", "load"} {
			all := transcript(t, filepath.Join(dir, c.folder, "acp-"+kind+".jsonl"))
			if c.folder == "gemini" {
				all = waited(all)
			}
			found = append(found, recording{c.folder + "-" + kind, askedFor(t, c.agent, all), all})
		}
	}
	return found
}

func played(t testing.TB, o dialogue.Options, all []entry, cut func(int) int, renew func() bool) []string {
	b := newBench(t, o)
	b.cut, b.renew = cut, renew
	(&replay{bench: b, ids: map[string]string{}, ignored: map[string]bool{}}).play(all)
	return b.out
}

func TestRecordedServersAreUnderstood(t *testing.T) {
	for _, r := range recordings(t) {
		got := strings.Join(played(t, r.o, r.all, nil, nil), "\n") + "\n"
		golden := filepath.Join("testdata", r.name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got:\n%s\nwant:\n%s", r.name, got, want)
		}
	}
}

func TestOutputMayBeCutAndTheDialogueRestoredAnywhere(t *testing.T) {
	all := recordings(t)
	whole := map[string][]string{}
	for _, r := range all {
		whole[r.name] = played(t, r.o, r.all, nil, nil)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom(all).Draw(rt, "transcript")
		often := rapid.IntRange(1, 5000).Draw(rt, "cut")
		seldom := rapid.IntRange(1, 10).Draw(rt, "renew") * (1 + 2000/often)
		seed := rapid.Uint64().Draw(rt, "seed")
		next := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		got := played(t, r.o, r.all, func(n int) int { return 1 + next(min(n, often)) }, func() bool { return next(seldom) == 0 })
		if whole := whole[r.name]; !reflect.DeepEqual(got, whole) {
			rt.Fatalf("%s: got:\n%s\nwant:\n%s", r.name, strings.Join(got, "\n"), strings.Join(whole, "\n"))
		}
	})
}
