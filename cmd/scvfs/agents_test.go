package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// agentsDir names an installation of the real agents, as scripts/test-agents
// makes it: their programs are in its bin.
const agentsDir = "SCVFS_AGENTS_DIR"

// TestAgents runs each installed agent through a mount of its own against one
// scripted model server. Each case is a session of its own in that world.
func TestAgents(t *testing.T) {
	dir := os.Getenv(agentsDir)
	if dir == "" {
		t.Skip(agentsDir + " names no installation of the agents: run scripts/test-agents")
	}
	model := newModel(t)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	for name, value := range environment(model.url) {
		t.Setenv(name, value)
	}
	for _, c := range slices.Concat(clients(), servedClients()) {
		t.Run(c.label, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(dir, "bin", c.name)); err != nil {
				t.Skip(c.name + " is not installed in " + dir)
			}
			w := emptyWorld(t, "")
			files := c.files(model.url, w.dir)
			files[filepath.Base(w.config)] = fill(c.config, model.url, w.dir)
			for name, text := range files {
				path := filepath.Join(w.dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.start()
			if offered := w.sh(`cat "$M/agents/` + c.name + `/offered"`); !strings.HasPrefix(offered, "yes") {
				t.Fatalf("%s is not offered: %s", c.name, offered)
			}
			for _, one := range agentCases {
				if !one.wanted(&c) {
					continue
				}
				t.Run(one.name, func(t *testing.T) { runCase(t, &agentCase{world: w, client: c, model: model, name: one.name}, one.run) })
			}
		})
	}
}

// agentCase is one case of one agent: a session, and the agent's world.
type agentCase struct {
	*world
	client client
	model  *model
	name   string
	dir    string // the session's workspace
}

// runCase runs a case in its session. Afterwards nothing may run but the
// daemon.
func runCase(t *testing.T, a *agentCase, run func(*agentCase)) {
	if why := a.client.skips[a.name]; why != "" {
		t.Skip(why)
	}
	before := a.t
	a.t = t
	defer func() { a.t = before }()
	a.dir = filepath.Join(a.place, a.name)
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.sh(fmt.Sprintf(`echo "%s \"%s\"" > "$M/sessions/new"`, a.name, a.dir))
	defer func() {
		if t.Failed() {
			out, _ := a.try(`cd "$M/sessions/` + a.name + `/jobs" && for j in *; do echo "== $j"; tail -n 40 "$j"/state "$j"/result "$j"/exit "$j"/log "$j"/run/stderr; done 2>&1`)
			t.Logf("what the tree says:\n%s", out)
			a.cancelAll()
		}
		if a.client.served != nil {
			a.release()
		}
		a.onlyDaemon()
	}()
	run(a)
}

// cancelAll ends what a failed case left, so that the next one can run.
func (a *agentCase) cancelAll() {
	_, _ = a.try(`for j in "$M"/active/*; do [ ! -e "$j" ] || { echo cancel > "$j/ctl"; cat "$j/wait"; }; done`)
}

// onlyDaemon fails when a process of the world other than its daemon lives.
func (a *agentCase) onlyDaemon() {
	a.t.Helper()
	own := strconv.Itoa(a.pid()) + " "
	for _, line := range a.processes() {
		if !strings.HasPrefix(line, own) {
			a.t.Errorf("still runs: %s", line)
		}
	}
}

// mark is a word that only this case's prompts hold.
func (a *agentCase) mark() string { return "mark-" + a.client.label + "-" + a.name }

// script is a prompt for the model server: the case's mark, and steps.
func (a *agentCase) script(steps ...string) string {
	return "Task " + a.mark() + ".\n" + strings.Join(steps, "\n")
}

// start starts a job by a plain prompt after a #!scv line, and returns its
// directory in the tree.
func (a *agentCase) start(prompt string) string {
	a.t.Helper()
	return a.send("start", "#!scv agent="+a.client.name+"\n"+prompt)
}

// call starts a job by a JSON call with these keys besides agent and prompt.
func (a *agentCase) call(prompt string, keys map[string]any) string {
	a.t.Helper()
	call := map[string]any{"agent": a.client.name, "prompt": prompt}
	for key, value := range keys {
		call[key] = value
	}
	doc, err := json.Marshal(call)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.send("start", string(doc))
}

// send writes a document to a file below the session, and returns the
// directory of the job that it became.
func (a *agentCase) send(file, doc string) string {
	a.t.Helper()
	from := filepath.Join(a.world.dir, "document")
	if err := os.WriteFile(from, []byte(doc), 0o600); err != nil {
		a.t.Fatal(err)
	}
	out := a.sh(fmt.Sprintf(`f="$M/sessions/%s/%s"; cat %q > "$f" || { tail -n 1 "$f"; exit 1; }; cat "$f"`, a.name, file, from))
	session, job, ok := strings.Cut(strings.TrimSpace(out), "/")
	if !ok || session != a.name {
		a.t.Fatalf("%s says %q, not the job", file, out)
	}
	return filepath.Join(a.mount, "sessions", session, "jobs", job)
}

// read returns a file of a job.
func (a *agentCase) read(job, file string) string {
	a.t.Helper()
	return a.sh(fmt.Sprintf("cat %q", filepath.Join(job, file)))
}

// ended waits for a job's end, which must be this one, and returns its result.
func (a *agentCase) ended(job, status string) string {
	a.t.Helper()
	if got := strings.TrimSpace(a.read(job, "wait")); got != status {
		a.t.Fatalf("it %s, not %s: %s", got, status, a.read(job, "result"))
	}
	return strings.TrimSuffix(a.read(job, "result"), "\n")
}

// says fails unless a text has all the parts.
func (a *agentCase) says(text string, parts ...string) {
	a.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			a.t.Errorf("it says %q, not %q", text, part)
		}
	}
}

// until waits for files of the workspace to have something in them.
func (a *agentCase) until(files ...string) {
	a.t.Helper()
	for _, file := range files {
		a.sh(fmt.Sprintf(`cd %q; until [ -s %q ]; do sleep 0.05; done`, a.dir, file))
	}
}

// model is the scripted model server.
type model struct{ url string }

// modelRequest is what the server says of a request that it got.
type modelRequest struct {
	N       int             `json:"n"`
	Users   []string        `json:"users"`
	Results []string        `json:"results"`
	Body    json.RawMessage `json:"body"`
}

// newModel builds and starts the model server, which lies beside the
// repository.
func newModel(t *testing.T) *model {
	t.Helper()
	source := besideRepository("shared/mockmodel")
	if source == "" {
		t.Skip("the scripted model server is not beside the repository (../shared/mockmodel)")
	}
	program := filepath.Join(t.TempDir(), "mockmodel")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the model server: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-q")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the model server says no address: %v", err)
	}
	return &model{strings.TrimSpace(url)}
}

// besideRepository looks for a path in the directories above this one.
func besideRepository(path string) string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if found := filepath.Join(dir, path); exists(found) {
			return found
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// requests returns those in which the user said what, with their bodies when
// asked.
func (m *model) requests(t testing.TB, what string, bodies bool) []modelRequest {
	t.Helper()
	address := m.url + "/_mock/requests"
	if bodies {
		address += "?body=1"
	}
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var all []modelRequest
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(q modelRequest) bool {
		return !slices.ContainsFunc(q.Users, func(u string) bool { return strings.Contains(u, what) })
	})
}

// texts returns all strings in a request's body.
func (q *modelRequest) texts() []string {
	var body any
	_ = json.Unmarshal(q.Body, &body)
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(body)
	return all
}
