package agent

// localBin is searched for an agent before PATH.
const localBin = ".local/bin"

// builtins returns the agents that the program knows, each a new value.
//
// What is said here of codex 0.171, claude 2.1, gemini 0.61 and pi 1.6 was seen
// with the programs themselves: each takes the prompt on standard input, also
// one that begins with "-" or "@", when it starts and when it continues a
// session. Of grok, dsh and copilot only the arguments are known.
func builtins() []*Agent {
	return []*Agent{shAgent(), codexAgent(), claudeAgent(), piAgent(), geminiAgent(), opencodeAgent(), copilotAgent(), grokAgent(), dshAgent(), scvAgent(), acpAgent()}
}

// shAgent runs the prompt as a script. It goes in as the script's file, so it
// may hold any bytes but NUL, begin with anything, and be of any length, and
// the script's own standard input is empty.
func shAgent() *Agent {
	return &Agent{
		Name: shell, Command: "/bin/sh",
		Via: ViaFile, Prompt: []string{"{file}"}, MergeStderr: true,
		Session: SessionNone, Stateless: true,
		Permissions: PermissionsFull, Output: FormatText,
		Terminal:  []string{},
		Transport: TransportAuto, Transports: []string{TransportCLI},
	}
}

// codexAgent: codex takes at most 2^20 characters, and valid UTF-8 only. Its
// check for a git repository is off because the owner named the workspace.
func codexAgent() *Agent {
	return &Agent{
		Name: "codex", Command: "codex", Dirs: []string{localBin},
		Args: []string{"exec", "--json", "--skip-git-repo-check"},
		Via:  ViaStdin, Prompt: []string{"-"}, MaxChars: 1 << 20, UTF8: true,
		Session: SessionStream, Continue: []string{"resume", "{session}"},
		Model: []string{"-m", "{model}"}, Effort: []string{"-c", `model_reasoning_effort="{effort}"`},
		Permissions: PermissionsDefault, Full: []string{"--dangerously-bypass-approvals-and-sandbox"},
		Output:   "codex",
		Pass:     []string{"CODEX_HOME", "CODEX_CA_CERTIFICATE"},
		HomeEnv:  map[string]string{"CODEX_HOME": "{home}/.codex"},
		Terminal: []string{"resume", "--no-daemon", "{session}"}, TerminalFull: []string{"--dangerously-bypass-approvals-and-sandbox"}, Asks: true,
		Transport: TransportAuto, Transports: []string{TransportAppServer, TransportCLI, TransportACP}, Relays: []string{TransportAppServer, TransportACP},
		ACP:    &ACPServer{Command: "codex-acp", Args: []string{}, FullModes: []string{"agent-full-access", "full-access"}},
		Signin: "sign in with `codex login`",
	}
}

// claudeAgent: what would ask for an approval is denied without one who
// answers. A prompt that begins with "/" is a command of its own.
func claudeAgent() *Agent {
	return &Agent{
		Name: "claude", Command: "claude", Dirs: []string{localBin, ".claude/local"},
		Args: []string{"-p", "--output-format", "stream-json", "--verbose"},
		Via:  ViaStdin,
		// The id is in the first line, before the model is asked, so there is
		// no need to choose it.
		Session: SessionStream, Continue: []string{"--resume", "{session}"},
		Model: []string{"--model", "{model}"}, Effort: []string{"--effort", "{effort}"},
		Permissions: PermissionsDefault, Full: []string{"--permission-mode", "bypassPermissions"},
		Output:   "claude",
		Env:      map[string]string{"DISABLE_AUTOUPDATER": "1"},
		Pass:     []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"},
		HomeEnv:  map[string]string{"CLAUDE_CONFIG_DIR": "{home}/.claude"},
		Terminal: []string{"--resume", "{session}"}, TerminalFull: []string{"--permission-mode", "bypassPermissions"}, Asks: true,
		Transport: TransportAuto, Transports: []string{TransportStream, TransportCLI, TransportACP}, Relays: []string{TransportStream, TransportACP},
		ACP:    &ACPServer{Command: "claude-agent-acp", Args: []string{}, FullModes: []string{"bypassPermissions"}},
		Signin: "run `claude` and type /login",
	}
}

// piAgent: pi has no permission system, and takes the blanks at both ends of a
// prompt away.
func piAgent() *Agent {
	return &Agent{
		Name: "pi", Command: "pi", Dirs: []string{localBin},
		Args:    []string{"--mode", "json", "-p"},
		Via:     ViaStdin,
		Session: SessionStream, Continue: []string{"--session", "{session}"},
		Model: []string{"--model", "{model}"}, Effort: []string{"--thinking", "{effort}"},
		Permissions: PermissionsFull,
		Output:      "pi",
		Pass:        []string{"PI_*"},
		HomeEnv:     map[string]string{"PI_CODING_AGENT_DIR": "{home}/.pi/agent"},
		Terminal:    []string{"--session", "{session}"},
		Transport:   TransportAuto, Transports: []string{TransportCLI, TransportACP},
		ACP:    &ACPServer{Command: "pi-acp", Args: []string{}, Mute: true},
		Signin: "run `pi` and type /login",
	}
}

// geminiAgent: its launcher is switched off because it does not pass signals
// on, and its folder trust because the owner named the workspace and it would
// not start without.
func geminiAgent() *Agent {
	return &Agent{
		Name: "gemini", Command: "gemini", Dirs: []string{localBin},
		Args:    []string{"-o", "stream-json"},
		Via:     ViaStdin,
		Session: SessionStream, Continue: []string{"--resume", "{session}"},
		Model:       []string{"-m", "{model}"},
		Permissions: PermissionsDefault, Full: []string{"--approval-mode", "yolo"},
		Output:   "gemini",
		Env:      map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
		Pass:     []string{"GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
		Terminal: []string{"--resume", "{session}"}, TerminalFull: []string{"--approval-mode", "yolo"}, Asks: true,
		Transport: TransportAuto, Transports: []string{TransportACP, TransportCLI}, Relays: []string{TransportACP},
		ACP:    &ACPServer{Args: []string{"--acp"}, FullModes: []string{"yolo"}, Model: true},
		Signin: "run `gemini` and sign in there",
	}
}

// opencodeAgent: an argument with blanks would reach the model in quotes.
func opencodeAgent() *Agent {
	return &Agent{
		Name: "opencode", Command: "opencode", Dirs: []string{localBin, ".opencode/bin"},
		Args:    []string{"run", "--format", "json"},
		Via:     ViaStdin,
		Session: SessionStream, Continue: []string{"--session", "{session}"},
		Model:       []string{"--model", "{model}"},
		Permissions: PermissionsDefault, Full: []string{"--auto"},
		Output:   "opencode",
		Env:      map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"},
		Pass:     []string{"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION", "OPENCODE_DISABLE_*"},
		Terminal: []string{"--session", "{session}"}, Asks: true,
		Transport: TransportAuto, Transports: []string{TransportACP, TransportCLI}, Relays: []string{TransportACP},
		ACP:    &ACPServer{Args: []string{"acp"}},
		Signin: "sign in with `opencode auth login`",
	}
}

// copilotAgent: it is not known to read a prompt from standard input.
func copilotAgent() *Agent {
	return &Agent{
		Name: "copilot", Command: "copilot", Dirs: []string{localBin},
		Args: []string{"--output-format", "json"},
		Via:  ViaArgument, Prompt: []string{"--prompt={prompt}"},
		Session: SessionChosen, Start: []string{"--session-id", "{session}"}, Continue: []string{"--resume={session}"},
		Model:       []string{"--model", "{model}"},
		Permissions: PermissionsDefault, Full: []string{"--allow-all-tools"},
		Output:   "copilot",
		Env:      map[string]string{"COPILOT_AUTO_UPDATE": "false"},
		Pass:     []string{"COPILOT_HOME", "COPILOT_MODEL", "COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_OFFLINE"},
		Terminal: []string{"--resume={session}"}, TerminalFull: []string{"--allow-all-tools"}, Asks: true,
		Transport: TransportAuto, Transports: []string{TransportACP, TransportCLI}, Relays: []string{TransportACP},
		ACP:    &ACPServer{Args: []string{"--acp"}, Notices: true, Counts: true},
		Signin: "run `copilot` and type /login",
	}
}

func grokAgent() *Agent {
	return &Agent{
		Name: "grok", Command: "grok", Dirs: []string{".grok/bin", localBin},
		Via: ViaArgument, Prompt: []string{"-p", "{prompt}"},
		Session: SessionNone,
		Model:   []string{"-m", "{model}"}, Effort: []string{"--reasoning-effort", "{effort}"},
		Permissions: PermissionsDefault, Full: []string{"--always-approve"},
		Output:    FormatText,
		Env:       map[string]string{"GROK_DISABLE_AUTOUPDATER": "1"},
		Pass:      []string{"GROK_HOME"},
		HomeEnv:   map[string]string{"GROK_HOME": "{home}/.grok"},
		Transport: TransportAuto, Transports: []string{TransportACP, TransportCLI}, Relays: []string{TransportACP},
		ACP: &ACPServer{Args: []string{"agent", "stdio"}, FullArgs: []string{"agent", "--always-approve", "stdio"}},
	}
}

func dshAgent() *Agent {
	return &Agent{
		Name: "dsh", Command: "dsh", Dirs: []string{localBin},
		Args: []string{"--profile", "headless"},
		Via:  ViaArgument, Prompt: []string{"{prompt}"},
		Session:     SessionNone,
		Permissions: PermissionsDefault, FullEnv: map[string]string{"DSH_PERMISSION_MODE": "danger-full-access"},
		Output:    FormatText,
		Pass:      []string{"DSH_HOME"},
		HomeEnv:   map[string]string{"DSH_HOME": "{home}/.dsh"},
		Transport: TransportAuto, Transports: []string{TransportACP, TransportCLI}, Relays: []string{TransportACP},
		ACP: &ACPServer{Args: []string{"--profile", "acp"}},
	}
}

func scvAgent() *Agent {
	return &Agent{
		Name: "scv", Command: "scv", Dirs: []string{".cargo/bin", localBin},
		Args: []string{"server", "--stdio"},
		Via:  ViaStdin, Session: SessionStream, Permissions: PermissionsDefault, Output: FormatText,
		Transport: TransportAuto, Transports: []string{TransportACP}, Relays: []string{TransportACP},
	}
}

func acpAgent() *Agent {
	return &Agent{
		Name: "acp",
		Via:  ViaStdin, Session: SessionStream, Permissions: PermissionsDefault, Output: FormatText,
		Transport: TransportAuto, Transports: []string{TransportACP}, Relays: []string{TransportACP},
	}
}
