package agent

import (
	"strings"
	"testing"
)

// What the programs print when they have no key, with the sentences that come
// of it.
func TestMissingKeyIsNamedAsSuch(t *testing.T) {
	for _, c := range []struct {
		agent, stdout, stderr string
		parts                 []string
	}{
		{
			"codex", `{"type":"thread.started","thread_id":"01"}` + "\n" + `{"type":"turn.failed","error":{"message":"Missing environment variable: ` + "`OPENAI_API_KEY`" + `."}}` + "\n", "",
			[]string{"codex is not signed in", "OPENAI_API_KEY", "codex login", "pass_env"},
		},
		{
			"gemini", "", "YOLO mode is enabled. All tool calls will be automatically approved.\n" +
				"When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\n" +
				"Update your environment and try again (no reload needed if using .env)!\n",
			[]string{"gemini is not signed in", "must specify the GEMINI_API_KEY", "pass_env"},
		},
		{
			"pi", "", "Warning: No models available. Use /login to log into a provider via OAuth or API key. See:\n  /opt/pi/docs/providers.md\n  /opt/pi/docs/models.md\n" +
				"No API key found for the selected model.\n\nUse /login to log into a provider via OAuth or API key. See:\n  /opt/pi/docs/providers.md\n  /opt/pi/docs/models.md\n",
			[]string{"pi is not signed in", "No API key found for the selected model", "/login"},
		},
	} {
		a, ok := Builtin().Lookup(c.agent)
		if !ok {
			t.Fatal(c.agent)
		}
		p := a.NewParser()
		p.Parse([]byte(c.stdout), func(int64, Event) {})
		p.Finish(func(int64, Event) {})
		o := p.Outcome(Exit{Code: 1}, []byte(c.stderr))
		if o.Status != StatusFailed {
			t.Errorf("%s: %s", c.agent, o.Status)
		}
		for _, part := range c.parts {
			if !strings.Contains(o.Error, part) {
				t.Errorf("%s: %q has no %q", c.agent, o.Error, part)
			}
		}
	}
}

func TestComplaintIsTheLineThatSaysMost(t *testing.T) {
	for _, c := range []struct{ stderr, want string }{
		{"starting\nError: it broke\ncould not resolve host\n", "Error: it broke"},
		{"starting\ncould not resolve host\nsee /docs\n", "could not resolve host"},
		{"starting\nsee /docs\n", "see /docs"},
		{"warning: sign in\n", ""},
	} {
		if got := complaint([]byte(c.stderr)); got != c.want {
			t.Errorf("%q: %q, want %q", c.stderr, got, c.want)
		}
	}
}
