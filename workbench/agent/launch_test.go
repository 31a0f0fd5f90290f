package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

const someUUID = "9f73dff4-9de8-408e-b7cd-db46ba5822e0"

// withEntries returns the built-in table with entries, or ends the test.
func withEntries(t testing.TB, entries map[string]Entry) *Table {
	t.Helper()
	table, err := Builtin().With(entries)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func full(name string) map[string]Entry { return map[string]Entry{name: {Permissions: "full"}} }

func TestLaunchLines(t *testing.T) {
	begin := Request{Path: "/bin/x", Prompt: []byte("do it"), PromptFile: "/run/prompt", NewSession: someUUID}
	on := Request{Path: "/bin/x", Prompt: []byte("do it"), PromptFile: "/run/prompt", Session: "id-1"}
	with := func(q Request, model, effort string) Request { q.Model, q.Effort = model, effort; return q }
	for _, c := range []struct {
		agent   string
		entries map[string]Entry
		request Request
		argv    string // joined by |
		stdin   Stdin
		env     string
	}{
		{"sh", nil, begin, "/bin/x|/run/prompt", StdinNull, ""},
		{"sh", nil, on, "/bin/x|/run/prompt", StdinNull, ""},
		{"codex", nil, begin, "/bin/x|exec|--json|--skip-git-repo-check|-", StdinFile, ""},
		{
			"codex", full("codex"), with(on, "gpt-6", "high"),
			`/bin/x|exec|--json|--skip-git-repo-check|--dangerously-bypass-approvals-and-sandbox|-m|gpt-6|-c|model_reasoning_effort="high"|resume|id-1|-`, StdinFile, "",
		},
		{"claude", nil, begin, "/bin/x|-p|--output-format|stream-json|--verbose", StdinFile, "DISABLE_AUTOUPDATER=1"},
		{
			"claude", full("claude"), with(on, "opus[1m]", "max"),
			"/bin/x|-p|--output-format|stream-json|--verbose|--permission-mode|bypassPermissions|--model|opus[1m]|--effort|max|--resume|id-1", StdinFile, "DISABLE_AUTOUPDATER=1",
		},
		{"pi", nil, with(on, "mock/m", "low"), "/bin/x|--mode|json|-p|--model|mock/m|--thinking|low|--session|id-1", StdinFile, ""},
		{
			"gemini", full("gemini"), with(on, "gemini-2.5-flash", ""), "/bin/x|-o|stream-json|--approval-mode|yolo|-m|gemini-2.5-flash|--resume|id-1",
			StdinFile, "GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true",
		},
		{"opencode", full("opencode"), on, "/bin/x|run|--format|json|--auto|--session|id-1", StdinFile, "OPENCODE_DISABLE_AUTOUPDATE=1"},
		{"copilot", nil, begin, "/bin/x|--output-format|json|--session-id|" + someUUID + "|--prompt=do it", StdinNull, "COPILOT_AUTO_UPDATE=false"},
		{"copilot", nil, on, "/bin/x|--output-format|json|--resume=id-1|--prompt=do it", StdinNull, "COPILOT_AUTO_UPDATE=false"},
		{"grok", full("grok"), with(begin, "g", "low"), "/bin/x|--always-approve|-m|g|--reasoning-effort|low|-p|do it", StdinNull, "GROK_DISABLE_AUTOUPDATER=1"},
		{"dsh", full("dsh"), begin, "/bin/x|--profile|headless|do it", StdinNull, "DSH_PERMISSION_MODE=danger-full-access"},
		{
			"mine",
			map[string]Entry{"mine": {Command: "mine", Args: []string{"{x}"}, Prompt: "argument", PromptArgs: []string{"--", "{prompt}"}}},
			begin,
			"/bin/x|{x}|--|do it", StdinNull, "",
		},
		{
			"other",
			map[string]Entry{"other": {Like: "codex", Model: "m1", Models: []string{"m1", "m2"}}},
			begin,
			"/bin/x|exec|--json|--skip-git-repo-check|-m|m1|-", StdinFile, "",
		},
	} {
		a, err := withEntries(t, c.entries).Get(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Launch(c.request)
		if err != nil {
			t.Errorf("%s: %v", c.agent, err)
			continue
		}
		if got := strings.Join(l.Argv, "|"); got != c.argv || l.Stdin != c.stdin || strings.Join(l.Env, " ") != c.env || l.MergeStderr != (c.agent == "sh") {
			t.Errorf("%s: %s (%s, %v), want %s", c.agent, got, l.Stdin, l.Env, c.argv)
		}
	}
}

func TestLaunchTellsTheSessionThatIsKnownBeforehand(t *testing.T) {
	for _, c := range []struct{ agent, begin, on string }{{"copilot", someUUID, "id-1"}, {"codex", "", "id-1"}, {"sh", "", ""}} {
		a, _ := Builtin().Lookup(c.agent)
		q := Request{Path: "/x", PromptFile: "/p", NewSession: someUUID}
		l, err := a.Launch(q)
		if err != nil || l.Session != c.begin {
			t.Errorf("%s begins %q, %v", c.agent, l.Session, err)
		}
		q.Session, q.NewSession = "id-1", ""
		if l, err = a.Launch(q); err != nil || l.Session != c.on {
			t.Errorf("%s continues %q, %v", c.agent, l.Session, err)
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	ok := Request{Path: "/x", Prompt: []byte("do it"), PromptFile: "/p"}
	change := func(f func(*Request)) Request { q := ok; f(&q); return q }
	long := bytes.Repeat([]byte("x"), MaxArgument+1)
	for _, c := range []struct {
		agent string
		q     Request
		kind  fault.Kind
		words string
	}{
		{"sh", change(func(q *Request) { q.Model = "m" }), fault.Unsupported, "sh takes no model"},
		{"sh", change(func(q *Request) { q.Effort = "high" }), fault.Unsupported, "sh takes no effort"},
		{"sh", change(func(q *Request) { q.Prompt = []byte("a\x00b") }), fault.Invalid, "NUL byte at 1"},
		{"sh", change(func(q *Request) { q.PromptFile = "" }), fault.Internal, "path of its prompt"},
		{"sh", change(func(q *Request) { q.Path = "sh" }), fault.Internal, "path of its executable"},
		{"gemini", change(func(q *Request) { q.Effort = "high" }), fault.Unsupported, "gemini takes no effort"},
		{"codex", change(func(q *Request) { q.Model = "-m" }), fault.Invalid, `model "-m"`},
		{"codex", change(func(q *Request) { q.Model = "a b" }), fault.Invalid, `model "a b"`},
		{"codex", change(func(q *Request) { q.Effort = `x"` }), fault.Invalid, "effort"},
		{"codex", change(func(q *Request) { q.Effort = "-x" }), fault.Invalid, "effort"},
		{"codex", change(func(q *Request) { q.Session = "--last" }), fault.Invalid, "no session id"},
		{"codex", change(func(q *Request) { q.Prompt = []byte("\xff") }), fault.Invalid, "not UTF-8"},
		{"codex", change(func(q *Request) { q.Prompt = bytes.Repeat([]byte("é"), 1<<20+1) }), fault.TooLarge, "codex takes at most 1048576"},
		{"copilot", change(func(q *Request) { q.Prompt = long; q.NewSession = someUUID }), fault.TooLarge, "copilot takes it as an argument of at most 65536"},
		{"copilot", ok, fault.Internal, "without an id"},
		{"copilot", change(func(q *Request) { q.NewSession = "x" }), fault.Internal, "no UUID"},
		{"copilot", change(func(q *Request) { q.NewSession, q.Session = someUUID, "x" }), fault.Internal, "continue a session and to begin one"},
		{"grok", change(func(q *Request) { q.Prompt = []byte("-x") }), fault.Invalid, "begins with -"},
		{"grok", change(func(q *Request) { q.Session = "x" }), fault.Unsupported, "cannot continue"},
	} {
		a, _ := Builtin().Lookup(c.agent)
		_, err := a.Launch(c.q)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %v with %q", c.agent, err, c.kind, c.words)
		}
	}
}

func TestCheckRefusesWhatLaunchWould(t *testing.T) {
	a, _ := Builtin().Lookup("copilot")
	if err := a.Check([]byte("fine"), "", ""); err != nil {
		t.Error(err)
	}
	if err := a.Check(bytes.Repeat([]byte("x"), MaxArgument+1), "", ""); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
	if err := a.Check([]byte("fine"), "", "high"); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	b, _ := withEntries(t, map[string]Entry{"other": {Like: "codex", Models: []string{"m1"}}}).Lookup("other")
	if err := b.Check(nil, "m2", ""); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "m1") {
		t.Error(err)
	}
}

// A script of the shell agent may hold any bytes but NUL.
func TestScriptsArriveByteForByte(t *testing.T) {
	a, _ := Builtin().Lookup("sh")
	path, why := a.Offered(NewLookPath("", ""))
	if why != "" {
		t.Skip(why)
	}
	var all []byte
	for c := byte(255); c > 0; c-- {
		all = append(all, c)
	}
	large := bytes.Repeat([]byte("0123456789abcdef 'quoted' \"$HOME\" \\ `x`\n"), 4<<20/42)
	for name, c := range map[string]struct{ script, want string }{
		"any bytes":           {"cat <<'END'\n" + string(all) + "\nEND\n", string(all) + "\n"},
		"four megabytes":      {"cat <<'END'\n" + string(large) + "END\n", string(large)},
		"a leading dash":      {"-x 2>/dev/null || echo ran", "ran\n"},
		"a leading #!":        {"#!/bin/false\necho ran", "ran\n"},
		"no newline":          {"printf %s ran", "ran"},
		"carriage returns":    {"printf 'a\rb'", "a\rb"},
		"nothing":             {"", ""},
		"standard input":      {"cat; echo over", "over\n"},
		"both outputs merged": {"echo 1; echo 2 >&2; echo 3", "1\n2\n3\n"},
	} {
		file := filepath.Join(t.TempDir(), "prompt")
		if err := os.WriteFile(file, []byte(c.script), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := a.Launch(Request{Path: path, Prompt: []byte(c.script), PromptFile: file})
		if err != nil {
			t.Fatal(err)
		}
		if l.Stdin != StdinNull || !l.MergeStderr {
			t.Fatalf("%+v", l)
		}
		var out bytes.Buffer
		cmd := exec.Command(l.Argv[0], l.Argv[1:]...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil || out.String() != c.want {
			t.Errorf("%s: %v, %d bytes of output, want %d", name, err, out.Len(), len(c.want))
		}
	}
}

func TestTerminals(t *testing.T) {
	for _, c := range []struct {
		agent   string
		entries map[string]Entry
		argv    string
		why     string
	}{
		{"sh", nil, "/bin/zsh", ""},
		{"pi", nil, "/x|--session|id-1", ""},
		{"codex", nil, "", "set permissions to full"},
		{"codex", full("codex"), "/x|resume|--no-daemon|id-1|--dangerously-bypass-approvals-and-sandbox", ""},
		{"claude", full("claude"), "/x|--resume|id-1|--permission-mode|bypassPermissions", ""},
		{"gemini", map[string]Entry{"gemini": {Permissions: PermissionsFull, Model: "fast-1"}}, "/x|--resume|id-1|-m|fast-1|--approval-mode|yolo", ""},
		{"pi", map[string]Entry{"pi": {Model: "a/b", Effort: "high"}}, "/x|--session|id-1|--model|a/b|--thinking|high", ""},
		{"sh", map[string]Entry{"sh": {}}, "/bin/zsh", ""},
		{"grok", full("grok"), "", "no terminal"},
	} {
		a, _ := withEntries(t, c.entries).Lookup(c.agent)
		argv, err := a.TerminalArgv("/x", "id-1", "/bin/zsh")
		switch {
		case c.why == "" && (err != nil || strings.Join(argv, "|") != c.argv):
			t.Errorf("%s: %v, %v", c.agent, argv, err)
		case c.why != "" && (!fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v", c.agent, err)
		}
	}
	a, _ := Builtin().Lookup("pi")
	if _, err := a.TerminalArgv("/x", "", ""); !fault.Is(err, fault.Invalid) {
		t.Error("a terminal without a session:", err)
	}
}

func TestNamesOfModelsAndEfforts(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a": true, "-a": false, "@a": false, "a@b/c:d[1m].e_f-g": true, "a b": false, "a\n": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "é": false,
	} {
		if ValidModel(s) != want {
			t.Errorf("model %q: %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"": false, "high": true, "x-high_2": true, "-a": false, "_a": false, "a b": false, strings.Repeat("a", 33): false} {
		if ValidEffort(s) != want {
			t.Errorf("effort %q: %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"": false, "ses_1-A": true, "-a": false, "a/b": false, "a.b": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if validSession(s) != want {
			t.Errorf("session %q: %v", s, !want)
		}
	}
}

func TestTheTableHoldsTheAgentsOfTheDesign(t *testing.T) {
	names := Builtin().Names()
	for _, name := range []string{"acp", "claude", "codex", "copilot", "dsh", "gemini", "grok", "opencode", "pi", "scv", "sh"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s", name)
		}
	}
	if _, err := Builtin().Get("nobody"); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "codex, copilot") {
		t.Error(err)
	}
}
