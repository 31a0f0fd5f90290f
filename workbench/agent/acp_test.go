package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

func TestACPLaunchLines(t *testing.T) {
	for _, c := range []struct {
		agent   string
		entries map[string]Entry
		model   string
		argv    string // joined by |
		env     string
	}{
		{"claude", nil, "", "/bin/x", "DISABLE_AUTOUPDATER=1"},
		{"claude", full("claude"), "opus", "/bin/x", "DISABLE_AUTOUPDATER=1"},
		{"codex", full("codex"), "gpt-6", "/bin/x", ""},
		{"pi", nil, "", "/bin/x", ""},
		{"gemini", nil, "", "/bin/x|--acp", "GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true"},
		{"gemini", full("gemini"), "gemini-2.5-flash", "/bin/x|--acp|-m|gemini-2.5-flash", "GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true"},
		{"gemini", map[string]Entry{"gemini": {Model: "m"}}, "", "/bin/x|--acp|-m|m", "GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true"},
		{"opencode", full("opencode"), "", "/bin/x|acp", "OPENCODE_DISABLE_AUTOUPDATE=1"},
		{"copilot", full("copilot"), "", "/bin/x|--acp", "COPILOT_AUTO_UPDATE=false"},
		{"grok", nil, "", "/bin/x|agent|stdio", "GROK_DISABLE_AUTOUPDATER=1"},
		{"grok", full("grok"), "", "/bin/x|agent|--always-approve|stdio", "GROK_DISABLE_AUTOUPDATER=1"},
		{"dsh", full("dsh"), "", "/bin/x|--profile|acp", "DSH_PERMISSION_MODE=danger-full-access"},
		{"acp", map[string]Entry{"acp": {Command: "server", Args: []string{"--stdio", "{x}"}, Env: map[string]string{"A": "b"}}}, "any", "/bin/x|--stdio|{x}", "A=b"},
		{"mine", map[string]Entry{"mine": {Like: "acp", Command: "server"}}, "", "/bin/x", ""},
		{"codex", map[string]Entry{"codex": {Args: []string{"exec"}, ACPArgs: []string{"-c", "a=b"}}}, "", "/bin/x|-c|a=b", ""},
		{"gemini", map[string]Entry{"gemini": {ACPArgs: []string{}}}, "", "/bin/x", "GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true"},
		{"grok", map[string]Entry{"grok": {ACPArgs: []string{"serve"}, Permissions: "full"}}, "", "/bin/x|serve", "GROK_DISABLE_AUTOUPDATER=1"},
	} {
		a, err := withEntries(t, c.entries).Get(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.ACPLaunch(Request{Path: "/bin/x", Prompt: []byte("do it"), Model: c.model, Session: "id-1"})
		if err != nil {
			t.Errorf("%s: %v", c.agent, err)
			continue
		}
		if got := strings.Join(l.Argv, "|"); got != c.argv || l.Stdin != StdinFIFO || l.MergeStderr || l.Session != "id-1" || strings.Join(l.Env, " ") != c.env {
			t.Errorf("%s: %s (%s, %v), want %s", c.agent, got, l.Stdin, l.Env, c.argv)
		}
		if over, err := a.LaunchOver(TransportACP, Request{Path: "/bin/x", Model: c.model}); err != nil || !slices.Equal(over.Argv, l.Argv) {
			t.Errorf("%s: over the transport it is %v, %v", c.agent, over.Argv, err)
		}
	}
}

func TestACPLaunchRefuses(t *testing.T) {
	for _, c := range []struct {
		agent string
		q     Request
		kind  fault.Kind
	}{
		{"claude", Request{Path: "x"}, fault.Internal},
		{"claude", Request{Path: "/x", Session: "-x"}, fault.Invalid},
		{"claude", Request{Path: "/x", Model: "-x"}, fault.Invalid},
		{"claude", Request{Path: "/x", Prompt: []byte("\xff")}, fault.Invalid},
		{"copilot", Request{Path: "/x", Prompt: []byte("-begins so, and is no option"), Effort: "high"}, fault.Unsupported},
	} {
		a, _ := Builtin().Lookup(c.agent)
		if _, err := a.ACPLaunch(c.q); !fault.Is(err, c.kind) {
			t.Errorf("%s %+v: %v", c.agent, c.q, err)
		}
	}
	// As a message a prompt may be long, and begin with anything.
	a, _ := Builtin().Lookup("copilot")
	if _, err := a.ACPLaunch(Request{Path: "/x", Prompt: []byte("-" + strings.Repeat("x", MaxArgument))}); err != nil {
		t.Error(err)
	}
}

func TestServersAreFoundByTheirOwnCommands(t *testing.T) {
	look := func(command string, _ ...string) (string, string) {
		if command == "none" {
			return "", "none is not installed"
		}
		return "/bin/" + command, ""
	}
	table := withEntries(t, map[string]Entry{
		"codex": {Command: "mycodex", ACPCommand: "my-codex-acp"}, "mine": {Command: "mine", ACPCommand: "none"}, "own": {Command: "own"}, "acp": {Command: "server"},
	})
	for _, c := range []struct{ agent, transport, path, why string }{
		{"claude", TransportACP, "/bin/claude-agent-acp", ""},
		{"claude", TransportCLI, "/bin/claude", ""},
		{"codex", TransportACP, "/bin/my-codex-acp", ""},
		{"codex", TransportAppServer, "/bin/mycodex", ""},
		{"pi", TransportACP, "/bin/pi-acp", ""},
		{"gemini", TransportACP, "/bin/gemini", ""},
		{"grok", TransportACP, "/bin/grok", ""},
		{"acp", TransportACP, "/bin/server", ""},
		{"acp", TransportCLI, "", "acp does not speak the transport cli"},
		{"scv", TransportACP, "/bin/scv", ""},
		{"sh", TransportACP, "", "sh does not speak the transport acp"},
		{"own", TransportACP, "", "own does not speak the transport acp"},
		{"mine", TransportACP, "", "none is not installed"},
		{"mine", TransportCLI, "/bin/mine", ""},
	} {
		a, err := table.Get(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		if path, why := a.OfferedOver(c.transport, look); path != c.path || why != c.why {
			t.Errorf("%s over %s: %q, %q", c.agent, c.transport, path, why)
		}
	}
	if a, _ := Builtin().Lookup("acp"); a.Command != "" {
		t.Error("a table was changed")
	} else if _, why := a.OfferedOver(TransportACP, look); !strings.Contains(why, "[agents.acp]") {
		t.Error(why)
	}
	if a, _ := Builtin().Lookup("codex"); a.ACP.Command != "codex-acp" {
		t.Error("merging changed the table that it began with")
	}
}

func TestAnACPAgentTakesModelsAndEfforts(t *testing.T) {
	a, _ := Builtin().Lookup("acp")
	if err := a.Check([]byte("x"), "some-model", "high"); err != nil {
		t.Error(err)
	}
	for _, e := range []Entry{{Mode: "a\nb"}, {Mode: strings.Repeat("x", maxMode+1)}} {
		if _, err := Builtin().With(map[string]Entry{"claude": e}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "agents.claude.mode:") {
			t.Errorf("%q: %v", e.Mode, err)
		}
	}
	if _, err := Builtin().With(map[string]Entry{"claude": {ACPArgs: []string{"{prompt}"}}}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "agents.claude.acp_args:") {
		t.Error(err)
	}
	mine, _ := withEntries(t, map[string]Entry{"mine": {Like: "claude", Mode: "plan"}}).Lookup("mine")
	if mine.Mode != "plan" || !slices.Equal(mine.ACPFullModes(), []string{"bypassPermissions"}) {
		t.Errorf("%+v", mine)
	}
}

// FuzzACP feeds any lines to the parser, and restores it in between.
func FuzzACP(f *testing.F) {
	f.Add([]byte(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}`), "claude")
	f.Add([]byte(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Terminal","kind":"execute","status":"pending"}}}`+"\n"+
		`{"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","rawInput":{"command":["bash","-lc","ls"]}}}}`+"\n"+`{"method":"_scvfs/denied","params":{"toolCallId":"t"}}`+"\n"+
		`{"id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1}}}`), "codex")
	f.Add([]byte(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Error: 500 down"}}}}`+"\n"+`{"id":3,"result":{"stopReason":"end_turn"}}`), "copilot")
	f.Add([]byte(`{"id":3,"error":{"code":-32603,"message":"Internal error","data":{"error":{"message":"x"}}}}`), "pi")
	f.Fuzz(func(t *testing.T, lines []byte, name string) {
		a, ok := Builtin().Lookup(name)
		if !ok {
			return
		}
		read := func(renew bool) ([]Event, Outcome) {
			var all []Event
			emit := func(_ int64, e Event) { all = append(all, e) }
			p := a.NewParserOf(FormatACP)
			for _, b := range lines {
				p.Parse([]byte{b}, emit)
				if renew && b == '\n' {
					state, err := p.State()
					if err != nil {
						t.Fatal(err)
					}
					p = a.NewParserOf(FormatACP)
					if err := p.Restore(state); err != nil {
						t.Fatal(err)
					}
				}
			}
			p.Finish(emit)
			return all, p.Outcome(Exit{}, nil)
		}
		once, end := read(false)
		again, endAgain := read(true)
		x, errX := json.Marshal([]any{once, end})
		y, errY := json.Marshal([]any{again, endAgain})
		if errX != nil || errY != nil || string(x) != string(y) {
			t.Fatalf("restored, it read\n%s\nnot\n%s", y, x)
		}
		for _, e := range once {
			if e.Kind == Tool && (e.Text == "" || strings.Contains(e.Text, "\n")) {
				t.Fatalf("%q", e.Text)
			}
		}
	})
}
