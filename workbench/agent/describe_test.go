package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToolCallsReadLikeWork(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"make test"}`, "$ make test"},
		{"bash", `{"command":"bash -lc 'make test'"}`, "$ make test"},
		{"shell", `{"command":["bash","-lc","make && ls"]}`, "$ make && ls"},
		{"shell", `{"command":["git","status"]}`, "$ git status"},
		{"exec_command", `{"cmd":"ls"}`, "$ ls"},
		{"run_shell_command", `{"command":"a\nb\n  c"}`, "$ a b c"},
		{"bash", `{}`, "bash"},
		{"bash", `not json`, "bash"},
		{"bash", `{"command":7}`, "bash"},
		{"Bash", `{"command":"curl -H 'X-Api-Key: abc' x"}`, "$ curl -H 'X-Api-Key: ***' x"},
		{"Bash", `{"command":"` + strings.Repeat("x", 1000) + `"}`, "$ " + strings.Repeat("x", 199) + "…"},
		{"Edit", `{"file_path":"/home/alice/work/src/main.go"}`, "edit src/main.go"},
		{"edit", `{"filePath":"main.go"}`, "edit main.go"},
		{"replace", `{"file_path":"/main.go"}`, "edit main.go"},
		{"Write", `{"file_path":"a/b/c.txt","content":"secret"}`, "write b/c.txt"},
		{"create", `{"path":"/x/y/"}`, "write x/y"},
		{"Read", `{"file_path":"./a"}`, "read a"},
		{"read_file", `{"absolute_path":"/p/q/r"}`, "read q/r"},
		{"list_directory", `{"dir_path":"/p/q"}`, "list p/q"},
		{"Grep", `{"pattern":"func main","path":"/x"}`, "search: func main"},
		{"google_web_search", `{"query":"go"}`, "search: go"},
		{"Glob", `{"pattern":"**/*.go"}`, "search: **/*.go"},
		{"WebFetch", `{"url":"https://alice:pw@example.org/a?token=x#y"}`, "fetch https://example.org/a"},
		{"web_fetch", `{"prompt":"read https://example.org/?a=b"}`, "fetch read https://example.org/"},
		{"Task", `{"description":"Look around"}`, "agent: Look around"},
		{"mcp__tracker__list_issues", `{}`, "tracker.list_issues"},
		{"AskUserQuestion", `{"question":"?"}`, "AskUserQuestion"},
		{"odd\x1b[2Jtool\n", `{"path":"/a/b"}`, "oddtool a/b"},
		{strings.Repeat("n", 5000), `{}`, strings.Repeat("n", 199) + "…"},
	} {
		var in input
		_ = json.Unmarshal([]byte(c.input), &in)
		if got := toolLine(c.tool, &in); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.input, got, c.want)
		}
	}
}

func TestShellWrappersAreTakenOff(t *testing.T) {
	for in, want := range map[string]string{
		`/bin/bash -lc 'make test'`:                     `make test`,
		`bash -lc "echo \"a\" \$HOME"`:                  `echo "a" $HOME`,
		`/usr/bin/zsh -c ls`:                            `ls`,
		`sh -c 'it'\''s'`:                               `it's`,
		`bash -c 'it'"'"'s'`:                            `it's`,
		`bash -lc 'cut off in the mid`:                  `cut off in the mid`,
		`bash -lc 'a' 'b'`:                              `bash -lc 'a' 'b'`,
		`bash -lc`:                                      `bash -lc`,
		`bash script.sh`:                                `bash script.sh`,
		`bash -x -c ls`:                                 `bash -x -c ls`,
		`python -c 'x'`:                                 `python -c 'x'`,
		`bash -lc ls | wc`:                              `bash -lc ls | wc`,
		`fish -c 'echo (date)'`:                         `echo (date)`,
		"/bin/bash -lc \"printf '%s' 'a\nb' > /tmp/x\"": "printf '%s' 'a\nb' > /tmp/x",
	} {
		if got := unwrap(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestProblemsAskForTheirWayOut(t *testing.T) {
	a, _ := Builtin().Lookup("codex")
	for _, c := range []struct {
		p     problem
		words string
	}{
		{problem{reason: "x", http: 401}, "is not signed in"},
		{problem{reason: "Please run /login"}, "sign in with `codex login`"},
		{problem{reason: "API key not valid. Please pass a valid API key."}, "is not signed in"},
		{problem{reason: "slow down", http: 429}, "limit (HTTP 429: slow down): try again later"},
		{problem{reason: "usage limit reached, resets at 3pm"}, "resets at 3pm)"},
		{problem{reason: "quota", reset: "in 30 s"}, "the limit ends in 30 s"},
		{problem{reason: "The model `x` does not exist", http: 404}, "does not know the model"},
		{problem{reason: "no such page", http: 404}, "refused the request"},
		{problem{reason: "prompt is too long", http: 400}, "shorten the prompt"},
		{problem{reason: "bad gateway", http: 502}, "try again later"},
		{problem{reason: "529 overloaded_error"}, "model service failed"},
		{problem{reason: "connect ECONNREFUSED 127.0.0.1:1"}, "cannot reach"},
		{problem{reason: "no rollout found for thread id 7"}, "start a new conversation"},
		{problem{reason: `{"error":{"message":"odd","code":400}}`}, "HTTP 400: odd"},
		{problem{reason: "something else"}, "codex failed: something else"},
		{problem{}, "codex failed: it gave no reason"},
		{problem{reason: "key=abc\n\x1b[1mx"}, "codex failed: key=*** x"},
	} {
		if got := c.p.sentence(a); !strings.Contains(got, c.words) || strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("%+v: %q does not say %q", c.p, got, c.words)
		}
	}
}

func TestComplaints(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"Warning: colours\nError: no key\n": "Error: no key",
		"file:///x.js:3\n    throw new Error(\n          ^\n\nTypeError: x is not a function\n    at f (file:///x.js:3:1)\n\nNode.js v20.20.2\n": "TypeError: x is not a function",
		"\x1b[91mError: \x1b[0mSession not found\n": "Error: Session not found",
		"Reading additional input from stdin...\n":  "",
		"one\ntwo\n": "two",
		"[STARTUP] Phase 'x' was started but never ended": "",
	} {
		if got := complaint([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
