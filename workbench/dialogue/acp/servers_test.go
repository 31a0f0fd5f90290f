package acp

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// agentsDir names an installation of the real agents and their ACP servers, as
// scripts/test-agents makes it: their programs are in its bin.
const agentsDir = "SCVFS_AGENTS_DIR"

// real is an agent with its settings for a scripted model server. In their
// texts MODEL stands for the address of that.
type real struct {
	name    string
	program string // of its ACP server
	env     map[string]string
	files   map[string]string // by their path below the home
	run     string            // the word by which the model runs a command that has to be allowed; empty: nothing is asked
	sets    dialogue.Options  // what it can be set to
	stays   bool              // the server goes on when its input ends
	goesOn  bool              // the turn goes on after a denial
	steers  bool
	asks    bool // it asks questions
	silent  bool // a refusal looks like a failure
}

func servers() []real {
	return []real{
		{
			name: "claude", program: "claude-agent-acp", sets: dialogue.Options{Mode: "acceptEdits", Model: "sonnet", Effort: "high"}, run: "RUN", goesOn: true, steers: true, asks: true,
			env: map[string]string{
				"ANTHROPIC_API_KEY": "fake", "ANTHROPIC_BASE_URL": "MODEL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1", "IS_SANDBOX": "1",
			},
		},
		{
			name: "codex", program: "codex-acp", sets: dialogue.Options{Mode: "read-only", Model: "gpt-5.4", Effort: "high"}, run: "ESCALATE", stays: true, env: map[string]string{"OPENAI_API_KEY": "fake"},
			files: map[string]string{".codex/config.toml": `model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "MODEL/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`},
		},
		{
			name: "gemini", program: "gemini", sets: dialogue.Options{Mode: "autoEdit", Model: "gemini-2.5-flash"}, run: "RUN", goesOn: true, env: map[string]string{"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": "MODEL"},
			files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},
"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false,"maxAttempts":2},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`},
		},
		{
			name: "pi", program: "pi-acp", sets: dialogue.Options{Model: "mock/mock-model", Effort: "off"}, goesOn: true, silent: true, env: map[string]string{"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
			files: map[string]string{
				".pi/agent/models.json": `{"providers":{"mock":{"baseUrl":"MODEL/v1","api":"openai-completions","apiKey":"fake","models":[{"id":"mock-model",
"name":"Mock","reasoning":false,"input":["text"],"contextWindow":1000000,"maxTokens":16000,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}]}}}`,
				".pi/agent/settings.json": `{"defaultProvider":"mock","defaultModel":"mock-model","retry":{"maxRetries":1,"baseDelayMs":200}}`,
			},
		},
		{
			name: "opencode", program: "opencode", sets: dialogue.Options{Mode: "plan", Model: "mock/mock-model"}, run: "RUN", env: map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
			files: map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled","model":"mock/mock-model","permission":{"bash":"ask","edit":"ask"},
"small_model":"mock/mock-model","enabled_providers":["mock"],"provider":{"mock":{"npm":"@ai-sdk/openai-compatible",
"name":"Mock","options":{"baseURL":"MODEL/v1","apiKey":"fake"},"models":{"mock-model":{"name":"Mock Model",
"tool_call":true,"limit":{"context":1000000,"output":16000}}}}}}`},
		},
		{
			name: "copilot", program: "copilot", sets: dialogue.Options{Mode: "https://agentclientprotocol.com/protocol/session-modes#plan"}, run: "RUN",
			env: map[string]string{"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": "MODEL/v1", "COPILOT_PROVIDER_API_KEY": "fake", "COPILOT_MODEL": "mock-model"},
		},
	}
}

// world is a home with a workspace for one agent.
type world struct {
	real  real
	agent *agent.Agent
	path  string // of the server's program
	home  string
	work  string
	env   []string
}

func TestServers(t *testing.T) {
	dir := os.Getenv(agentsDir)
	if dir == "" {
		t.Skip(agentsDir + " names no installation of the agents: run scripts/test-agents")
	}
	model := modelServer(t)
	for _, r := range servers() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dir, model, r)
			session := t.Run("turns", w.turns)
			if session {
				t.Run("continued", w.continued)
				t.Run("unknown", w.unknown)
				t.Run("full", w.full)
				t.Run("settings", w.settings)
			}
		})
	}
}

// modelServer starts the scripted model server, and returns its address.
func modelServer(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "mockmodel")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = shared(t, "mockmodel")
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
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it has nothing to save
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

func newWorld(t *testing.T, dir, model string, r real) *world {
	home := t.TempDir()
	w := &world{real: r, home: home, work: filepath.Join(home, "work")}
	for name, text := range r.files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "MODEL", model)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{w.work, filepath.Join(home, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	path := bin + ":" + filepath.Join(dir, "bwrap") + ":" + os.Getenv("PATH")
	var pass []string
	w.env = []string{"HOME=" + home, "PATH=" + path, "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(home, "tmp")}
	for name, value := range r.env {
		pass = append(pass, name)
		w.env = append(w.env, name+"="+strings.ReplaceAll(value, "MODEL", model))
	}
	table, err := agent.Builtin().With(map[string]agent.Entry{r.name: {PassEnv: pass}})
	if err != nil {
		t.Fatal(err)
	}
	w.agent, _ = table.Lookup(r.name)
	found, why := w.agent.OfferedOver(agent.TransportACP, agent.NewLookPath("", bin))
	if why != "" {
		t.Skip(why)
	}
	if filepath.Base(found) != r.program {
		t.Errorf("%s is served by %s, not %s", r.name, found, r.program)
	}
	w.path = found
	return w
}

// process is a server that runs, and the dialogue with it.
type process struct {
	*driver
	w      *world
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *bytes.Buffer
	gone   chan error
}

// start starts the server.
func (w *world) start(t *testing.T, o dialogue.Options) *process {
	t.Helper()
	a := *w.agent
	if o.Full {
		a.Permissions = agent.PermissionsFull
	}
	o.Agent, o.CWD, o.Version = &a, w.work, "test"
	l, err := a.ACPLaunch(agent.Request{Path: w.path, Session: o.Session, Model: o.Model})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{w: w, cmd: exec.Command(l.Argv[0], l.Argv[1:]...), stderr: &bytes.Buffer{}, gone: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = w.work, agent.Environ(w.env, &a, l.Env...), p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Minute
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = outEnd
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	outEnd.Close()
	go func() { p.gone <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the group that this test started, if any of it is left
		out.Close()
		if t.Failed() {
			t.Logf("%s on standard error: %s", w.real.name, p.stderr.Bytes())
		}
	})
	p.driver = newDriver(t, o, p.in, out)
	return p
}

// stop ends the server's input, and checks what it makes of that.
func (p *process) stop() {
	p.t.Helper()
	began := time.Now()
	p.in.Close()
	wait, ended := 2*time.Second, false
	if !p.w.real.stays {
		wait = patience
	}
	select {
	case err := <-p.gone:
		ended = true
		p.t.Logf("%s ended %v after its input: %v", p.w.real.name, time.Since(began).Round(time.Millisecond), err)
		if err != nil {
			p.t.Errorf("it ended with %v", err)
		}
	case <-time.After(wait):
	}
	if ended == p.w.real.stays {
		p.t.Errorf("%s ended with its input: %v", p.w.real.name, ended)
	}
	if !ended {
		if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM); err != nil {
			p.t.Error(err)
		}
		select {
		case err := <-p.gone:
			p.t.Logf("%s ended on SIGTERM: %v", p.w.real.name, err)
		case <-time.After(patience):
			p.t.Error("it does not end on SIGTERM")
		}
	}
	p.d.Finish(p.emit)
}
