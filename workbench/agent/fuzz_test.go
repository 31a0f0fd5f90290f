package agent

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzParser feeds an agent's parser anything, whole and cut with its state
// saved in between.
func fuzzParser(f *testing.F, agent string) {
	for _, s := range committed(f) {
		if s.agent == agent || agent == shell {
			f.Add(s.output, len(s.output)/2)
		}
	}
	f.Fuzz(func(t *testing.T, output []byte, cut int) {
		s := stream{name: "fuzz", agent: agent, output: output, exit: Exit{Code: cut % 3}}
		want, outcome := s.run(t)
		if outcome.Status == "" || (outcome.Status == StatusCompleted) != (outcome.Error == "") || !utf8.ValidString(outcome.Error) || strings.ContainsAny(outcome.Error, "\n\x1b") {
			t.Fatalf("%+v", outcome)
		}
		if outcome.Session != "" && !validSession(outcome.Session) {
			t.Fatalf("session %q", outcome.Session)
		}
		for _, e := range want {
			if len(e.Text) > maxText || e.end > int64(len(output)) || agent != shell && e.Kind != Text && strings.ContainsAny(e.Text, "\n\x1b") {
				t.Fatalf("%+v", e)
			}
		}
		cut = min(max(cut, 0), len(output))
		events, o := resumed(t, s, cut)
		same(t, "cut", events, o, want, outcome)
	})
}

func FuzzText(f *testing.F)     { fuzzParser(f, "sh") }
func FuzzCodex(f *testing.F)    { fuzzParser(f, "codex") }
func FuzzClaude(f *testing.F)   { fuzzParser(f, "claude") }
func FuzzPi(f *testing.F)       { fuzzParser(f, "pi") }
func FuzzGemini(f *testing.F)   { fuzzParser(f, "gemini") }
func FuzzOpencode(f *testing.F) { fuzzParser(f, "opencode") }
func FuzzCopilot(f *testing.F)  { fuzzParser(f, "copilot") }

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"API_KEY=abc", "Authorization: Bearer x", "\x1b]0;x\a", "https://a:b@c/", `{\"token\":\"x\"}`, "sk-123456789", "password: 'a b'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkSafe(t, s) })
}

func FuzzLaunch(f *testing.F) {
	f.Add([]byte("-rf /"), "gpt-6", "high", "id-1", "copilot")
	f.Add([]byte("--prompt={session}{model}"), "", "", "", "grok")
	f.Add([]byte("$(x) `y` ;\n"), "a/b", "low", "", "dsh")
	f.Add([]byte("\xff{file}"), "", "", "x", "sh")
	table, err := Builtin().With(map[string]Entry{
		"one": {Command: "x", Prompt: "argument", ModelArgs: []string{"-m", "{model}"}, EffortArgs: []string{"-e={effort}"}},
		"two": {Command: "x", Prompt: "argument", PromptArgs: []string{"-a", "--", "{prompt}"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, prompt []byte, model, effort, session, name string) {
		a, ok := table.Lookup(name)
		if !ok {
			a, _ = table.Lookup(table.Names()[len(prompt)%len(table.Names())])
		}
		q := Request{Path: "/x", Prompt: slices.Clone(prompt), PromptFile: "/p", Model: model, Effort: effort, Session: session}
		if session == "" {
			q.NewSession = someUUID
		}
		l, err := a.Launch(q)
		if err != nil {
			return
		}
		if !bytes.Equal(q.Prompt, prompt) {
			t.Fatal("the prompt was changed")
		}
		checkLaunch(t, a, q, l)
	})
}

// checkLaunch looks that what came from outside is nowhere an option, and that
// the rest of the line does not depend on it.
func checkLaunch(t *testing.T, a *Agent, q Request, l Launch) {
	t.Helper()
	plain := q
	plain.Prompt = []byte("plain")
	reference, err := a.Launch(plain)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Argv) != len(reference.Argv) || !reflect.DeepEqual(l.Env, reference.Env) || l.Stdin != reference.Stdin {
		t.Fatalf("%q, and %q for a plain prompt", l.Argv, reference.Argv)
	}
	for i, arg := range l.Argv {
		if strings.Contains(arg, "\x00") {
			t.Fatalf("a NUL byte in %q", arg)
		}
		if arg == reference.Argv[i] {
			continue
		}
		if a.Via != ViaArgument || !strings.HasSuffix(arg, string(q.Prompt)) || len(arg) > MaxArgument+64 {
			t.Fatalf("%q instead of %q", arg, reference.Argv[i])
		}
		own := strings.TrimSuffix(reference.Argv[i], "plain")
		if own == "" && strings.HasPrefix(arg, "-") && !slices.Contains(l.Argv[:i], "--") {
			t.Fatalf("%s would take %q for an option", a.Name, arg)
		}
	}
}
