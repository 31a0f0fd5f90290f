package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

func TestEveryBuiltinIsAValidEntry(t *testing.T) {
	for _, a := range builtins() {
		if err := a.validate(); err != nil {
			t.Error(err)
		}
		if !validName(a.Name) {
			t.Errorf("%q is no name", a.Name)
		}
	}
}

func TestEntriesAreMergedIntoACopy(t *testing.T) {
	base := Builtin()
	yes := true
	table, err := base.With(map[string]Entry{
		"codex": {
			Command: "~/bin/codex", Args: []string{"exec", "--json"}, ModelArgs: []string{}, Permissions: "full", FullArgs: []string{"-s", "workspace-write"},
			Env: map[string]string{"A": "b"}, PassEnv: []string{"OPENAI_API_KEY"}, ScrubEnv: []string{"LANG"}, Home: "/h", Transport: "cli", MergeStderr: &yes,
		},
		"mine": {Command: "/opt/mine", Output: "claude", Session: "chosen", StartArgs: []string{"--id", "{session}"}, ContinueArgs: []string{"--on={session}"}, TerminalArgs: []string{"tui", "{session}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := table.Lookup("codex")
	if a.Command != "~/bin/codex" || len(a.Args) != 2 || a.Model != nil || !a.FullPermissions() || a.Env["A"] != "b" || a.Home != "/h" || !a.MergeStderr || !a.Builtin() {
		t.Errorf("%+v", a)
	}
	if l, err := a.Launch(Request{Path: "/x"}); err != nil || strings.Join(l.Argv, " ") != "/x exec --json -s workspace-write -" {
		t.Error(l, err)
	}
	m, _ := table.Lookup("mine")
	if m.Builtin() || !m.Resumes() || m.Via != ViaStdin {
		t.Errorf("%+v", m)
	}
	if _, ok := m.NewParser().(*reader); !ok {
		t.Error("an entry with output = claude has another parser")
	}
	if before, _ := base.Lookup("codex"); before.Command != "codex" || before.Env["A"] != "" || before.FullPermissions() {
		t.Errorf("merging changed the table that it began with: %+v", before)
	}
	if len(table.Names()) != len(base.Names())+1 {
		t.Error(table.Names())
	}
}

func TestEntriesAreRefusedByTheNameOfTheKey(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry Entry
		words string
	}{
		{"Mine", Entry{Command: "x"}, "agents.Mine:"},
		{"my-own", Entry{Command: "x"}, "agents.my-own:"},
		{"", Entry{Command: "x"}, "agents.:"},
		{"mine", Entry{}, "agents.mine.command:"},
		{"mine", Entry{Like: "nobody"}, "agents.mine.like:"},
		{"mine", Entry{Like: "sh"}, "agents.mine.like:"},
		{"codex", Entry{Like: "claude"}, "agents.codex.like:"},
		{"codex", Entry{Prompt: "mail"}, `agents.codex.prompt: "mail" is none of stdin, file, argument`},
		{"codex", Entry{Session: "magic"}, "agents.codex.session:"},
		{"codex", Entry{Permissions: "some"}, "agents.codex.permissions:"},
		{"codex", Entry{Transport: "pigeon"}, "agents.codex.transport:"},
		{"sh", Entry{Transport: "acp"}, "agents.sh.transport:"},
		{"codex", Entry{Output: "yaml"}, "agents.codex.output:"},
		{"codex", Entry{Output: "text"}, "agents.codex.session:"},
		{"codex", Entry{Args: []string{"{prompt}"}}, "agents.codex.args:"},
		{"codex", Entry{Args: []string{"a\x00"}}, "agents.codex.args:"},
		{"codex", Entry{PromptArgs: []string{"{prompt}"}}, "agents.codex.prompt_args:"},
		{"codex", Entry{ModelArgs: []string{"-m"}}, "agents.codex.model_args:"},
		{"codex", Entry{EffortArgs: []string{"{effort}{effort}"}}, "agents.codex.effort_args:"},
		{"codex", Entry{ContinueArgs: []string{"--last"}}, "agents.codex.continue_args:"},
		{"codex", Entry{Session: "chosen"}, "agents.codex.start_args:"},
		{"codex", Entry{TerminalArgs: []string{"resume"}}, "agents.codex.terminal_args:"},
		{"mine", Entry{Command: "x", Prompt: "file", PromptArgs: []string{"-"}}, "agents.mine.prompt_args:"},
		{"mine", Entry{Command: "x", Prompt: "argument", PromptArgs: []string{"-p"}}, "agents.mine.prompt_args:"},
		{"codex", Entry{Model: "-x"}, "agents.codex.model:"},
		{"codex", Entry{Effort: "-x"}, "agents.codex.effort:"},
		{"codex", Entry{Home: "here"}, "agents.codex.home:"},
		{"codex", Entry{Env: map[string]string{"A=B": "c"}}, "agents.codex.env:"},
		{"codex", Entry{PassEnv: []string{"A["}}, "agents.codex.pass_env"},
		{"codex", Entry{ScrubEnv: []string{""}}, "scrub_env"},
	} {
		_, err := Builtin().With(map[string]Entry{c.name: c.entry})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s %+v: %v, want %q", c.name, c.entry, err, c.words)
		}
	}
}

func TestOfferedSaysWhyNot(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	program := func(path string, mode os.FileMode) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inHome := program(filepath.Join(home, ".local/bin/codex"), 0o755)
	program(filepath.Join(other, "codex"), 0o755)
	inPath := program(filepath.Join(other, "claude"), 0o755)
	program(filepath.Join(other, "pi"), 0o644)
	if err := os.Mkdir(filepath.Join(other, "gemini"), 0o755); err != nil {
		t.Fatal(err)
	}
	program(filepath.Join(home, "bin/mine"), 0o755)
	look := NewLookPath(home, strings.Join([]string{".", "", other, "relative"}, ":"))
	table := withEntries(t, map[string]Entry{
		"mine": {Command: "~/bin/mine"}, "gone": {Command: "/nowhere/gone"}, "acp": {Command: "some-server"}, "opencode": {Transport: "acp"},
	})
	for _, c := range []struct{ agent, path, why string }{
		{"codex", inHome, ""},
		{"claude", inPath, ""},
		{"mine", filepath.Join(home, "bin/mine"), ""},
		{"pi", "", "pi is not executable"},
		{"gemini", "", "gemini is a directory"},
		{"grok", "", "grok is not installed"},
		{"gone", "", "/nowhere/gone does not exist"},
		{"scv", "", "scv is not installed"},
		{"acp", "", "some-server is not installed"},
		{"opencode", "", "opencode is not installed"},
	} {
		a, _ := table.Lookup(c.agent)
		path, why := a.Offered(look)
		if path != c.path || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, %q, want %q, %q", c.agent, path, why, c.path, c.why)
		}
	}
}

func TestTheWorkspaceProvidesNoAgent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "codex"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, path := range []string{".", "", "::", "./"} {
		if found, why := NewLookPath("", path)("codex", ".local/bin", "."); why == "" {
			t.Errorf("PATH=%q finds %s", path, found)
		}
	}
}

func TestCarriersFollowTheSettingAndPermissions(t *testing.T) {
	for name, want := range map[string]string{"sh": TransportCLI, "codex": TransportAppServer, "claude": TransportStream, "gemini": TransportACP, "pi": TransportCLI} {
		a, _ := withEntries(t, map[string]Entry{name: {Permissions: "default"}}).Lookup(name)
		if carrier, err := a.Carrier(); err != nil || carrier != want || a.Relaying() != (want != TransportCLI) {
			t.Errorf("%s asks over %s, relaying %v: %v", name, carrier, a.Relaying(), err)
		}
		a, _ = withEntries(t, map[string]Entry{name: {Permissions: "full"}}).Lookup(name)
		if carrier, err := a.Carrier(); err != nil || carrier != TransportCLI || a.Relaying() {
			t.Errorf("%s with full permissions goes over %s: %v", name, carrier, err)
		}
		a, _ = withEntries(t, map[string]Entry{name: {Transport: "cli"}}).Lookup(name)
		if carrier, err := a.Carrier(); err != nil || carrier != TransportCLI || a.Relaying() {
			t.Errorf("%s set to cli goes over %s: %v", name, carrier, err)
		}
	}
}
