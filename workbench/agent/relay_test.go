package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"scvfs/ledger/fault"
)

func TestServersOfAgentsHaveTheirLaunchLines(t *testing.T) {
	table, err := Builtin().With(map[string]Entry{
		"boss":  {Like: "claude", Permissions: PermissionsFull, Model: "opus"},
		"chief": {Like: "codex", Permissions: PermissionsFull, Model: "gpt-6", Effort: "high"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const stream = "/x -p --output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio"
	for _, c := range []struct {
		agent, transport string
		q                Request
		want             string
		env              []string
	}{
		{"claude", TransportStream, Request{}, stream, []string{"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", "DISABLE_AUTOUPDATER=1"}},
		{"claude", TransportStream, Request{Session: "s-1", Model: "m", Effort: "low"}, stream + " --model m --effort low --resume s-1", nil},
		{"boss", TransportStream, Request{}, stream + " --permission-mode bypassPermissions --model opus", nil},
		{"codex", TransportAppServer, Request{}, "/x app-server", nil},
		{"chief", TransportAppServer, Request{Session: "s-1", Model: "m", Effort: "low"}, "/x app-server", nil},
	} {
		a, _ := table.Lookup(c.agent)
		c.q.Path, c.q.Prompt = "/x", []byte("-p")
		l, err := a.LaunchOver(c.transport, c.q)
		if got := strings.Join(l.Argv, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, not %q", c.agent, got, err, c.want)
		}
		if l.Stdin != StdinFIFO || l.MergeStderr || c.env != nil && !slices.Equal(l.Env, c.env) {
			t.Errorf("%s: %+v", c.agent, l)
		}
	}
}

func TestServersOfAgentsRefuseWhatTheyCannotTake(t *testing.T) {
	claude, _ := Builtin().Lookup("claude")
	codex, _ := Builtin().Lookup("codex")
	for _, c := range []struct {
		what string
		err  func() error
		kind fault.Kind
	}{
		{"bytes", func() error { _, err := claude.StreamLaunch(Request{Path: "/x", Prompt: []byte("\xff")}); return err }, fault.Invalid},
		{"a model", func() error { _, err := codex.AppServerLaunch(Request{Path: "/x", Model: "-m"}); return err }, fault.Invalid},
		{"a session", func() error { _, err := codex.AppServerLaunch(Request{Path: "/x", Session: "-s"}); return err }, fault.Invalid},
		{"a length", func() error {
			_, err := codex.AppServerLaunch(Request{Path: "/x", Prompt: []byte(strings.Repeat("x", 1<<20+1))})
			return err
		}, fault.TooLarge},
	} {
		if err := c.err(); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestSummariesSayWhatWouldBeDone(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"rm -rf build"}`, "run `rm -rf build`"},
		{"Bash", `{"command":"curl -H 'X-Api-Key: abc' x"}`, "run `curl -H 'X-Api-Key: ***' x`"},
		{"Edit", `{"file_path":"/home/alice/src/a.go"}`, "edit src/a.go"},
		{"WebFetch", `{"url":"https://example.org/a?b"}`, "fetch https://example.org/a"},
		{"mcp__db__drop", `{}`, "db.drop"},
		{"Bash", `null`, "Bash"},
	} {
		if got := Summary(c.tool, json.RawMessage(c.input)); got != c.want {
			t.Errorf("%s %s: %q, not %q", c.tool, c.input, got, c.want)
		}
	}
	if got := CommandSummary("/bin/bash -lc 'make test'"); got != "run `make test`" {
		t.Error(got)
	}
	if got := ChangesSummary(2, func(i int) (string, string) { return "add", []string{"/a/b/c", "/d"}[i] }); got != "write b/c and 1 more" {
		t.Error(got)
	}
}

func TestSecretsAreKnownByTheirPaths(t *testing.T) {
	for _, secret := range []string{
		"/home/alice/.ssh/config", ".env", "/w/.env.production", "~/.aws/config", "/home/alice/.netrc", "key.pem", "/w/server.KEY", "**/id_rsa*", "/home/alice/.config/gcloud/x",
		"/etc/shadow", "/proc/1/environ", "credentials.json", "/run/secrets/db", "/home/alice/.kube/config/", "/home/alice/.codex/auth.json",
	} {
		if !SecretPath(secret) {
			t.Errorf("%s looks like any other", secret)
		}
	}
	for _, plain := range []string{"", ".", "/", "main.go", "/home/alice/work/environment.md", "docs/keys.md", "/w/src/key", "README.md"} {
		if SecretPath(plain) {
			t.Errorf("%s looks secret", plain)
		}
	}
}
