package main

import "strings"

// client is what one agent needs to work against the model server.
type client struct {
	name   string
	label  string  // of its world
	served *served // over a transport that relays; nil for one process a turn
	config string  // of the daemon
	// files are its settings, by their path below the home.
	files func(model, home string) map[string]string
	// signin is what its failures say of signing in.
	signin string
	// otherModel is the name of one that it does not know.
	otherModel string
	// patching are keys of a call with which it edits files by a tool of its
	// own, and not by its shell.
	patching map[string]any
	// brokenSaid is what is told of a service that answers 500 "the server is
	// down".
	brokenSaid string
	// limitTold is how its model service says when a limit ends, and
	// limitSaid what is to be told of it.
	limitTold, limitSaid string
	// limit is a time limit, in seconds, in which a tool is sure to start.
	limit int
	// skips are the cases that cannot be run with it, and why.
	skips map[string]string
}

// environment is what the daemon has in its environment for all of them. What
// is scrubbed reaches only the agent whose section passes it on.
func environment(model string) map[string]string {
	return map[string]string{
		"OPENAI_API_KEY":    "fake-openai-key",
		"ANTHROPIC_API_KEY": "fake-anthropic-key", "ANTHROPIC_BASE_URL": model,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1",
		"PI_OFFLINE": "1", "PI_TELEMETRY": "0",
		"GEMINI_API_KEY": "fake-gemini-key", "GOOGLE_GEMINI_BASE_URL": model,
		"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
		"XAI_API_KEY": "fake-xai-key",
	}
}

// filled returns files whose text has MODEL for the server's address and HOME
// for the home.
func filled(files map[string]string) func(model, home string) map[string]string {
	return func(model, home string) map[string]string {
		all := map[string]string{}
		for name, text := range files {
			all[name] = fill(text, model, home)
		}
		return all
	}
}

func fill(text, model, home string) string {
	return strings.NewReplacer("MODEL", model, "HOME", home).Replace(text)
}

const soon = "Rate limit reached. Please try again in 20 seconds."

func clients() []client {
	return []client{
		{
			name: "codex", label: "codex", limit: 15, signin: "codex login", otherModel: "no-such-model", patching: map[string]any{"model": "gpt-6.2-sol"},
			// It tells nothing that the service said of either.
			brokenSaid: "high demand", limitTold: soon, limitSaid: "try again later",
			config: `[agents.codex]
permissions = "full"
pass_env = ["OPENAI_API_KEY"]
[agents.codexout]
like = "codex"
permissions = "full"
`,
			files: filled(map[string]string{".codex/config.toml": `model = "mock-model"
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
`}),
		},
		{
			name: "claude", label: "claude", limit: 15, signin: "/login", otherModel: "no-such-model",
			brokenSaid: "the server is down", limitTold: "Claude AI usage limit reached|1999999999", limitSaid: "the limit ends at 2033-05-18T03:33:19Z",
			config: `[agents.claude]
permissions = "full"
pass_env = ["ANTHROPIC_API_KEY"]
env = { IS_SANDBOX = "1" }
[agents.claudeout]
like = "claude"
permissions = "full"
env = { IS_SANDBOX = "1" }
`,
			// Else its terminal asks first whether these permissions are wanted.
			files: filled(map[string]string{".claude/settings.json": `{"skipDangerousModePermissionPrompt":true}`}),
		},
		{
			name: "pi", label: "pi", limit: 15, signin: "/login", otherModel: "mock/no-such-model",
			brokenSaid: "the server is down", limitTold: soon, limitSaid: "try again in 20 seconds",
			config: `[agents.piout]
like = "pi"
home = "HOME/none"
`,
			files: filled(map[string]string{
				".pi/agent/models.json": `{"providers":{"mock":{"baseUrl":"MODEL/v1","api":"openai-completions","apiKey":"fake","models":[{"id":"mock-model",
"name":"Mock","reasoning":false,"input":["text"],"contextWindow":1000000,"maxTokens":16000,
"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}]}}}`,
				".pi/agent/settings.json": `{"defaultProvider":"mock","defaultModel":"mock-model","retry":{"maxRetries":1,"baseDelayMs":200}}`,
			}),
		},
		{
			name: "gemini", label: "gemini", limit: 15, signin: "sign in", otherModel: "gemini-no-such-model",
			brokenSaid: "the server is down", limitTold: soon, limitSaid: "try again in 20 seconds",
			config: `[agents.gemini]
permissions = "full"
model = "gemini-2.5-flash"
pass_env = ["GEMINI_API_KEY"]
[agents.geminiout]
like = "gemini"
permissions = "full"
`,
			files: filled(map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},
"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false,"maxAttempts":2},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`}),
		},
		{
			name: "opencode", label: "opencode", limit: 40, signin: "opencode auth login", otherModel: "mock/no-such-model",
			skips: map[string]string{
				"broken":    "opencode tries again for more than a minute, and has no setting for that",
				"limit":     "opencode tries again for more than a minute, and has no setting for that",
				"signedout": "opencode tells no reason: Unexpected server error",
				"model":     "opencode tells no reason: Unexpected server error",
			},
			brokenSaid: "the server is down", limitTold: soon, limitSaid: "try again in 20 seconds",
			config: `[agents.opencode]
permissions = "full"
[agents.opencodeout]
like = "opencode"
model = "openai/gpt-5"
`,
			files: filled(map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled","model":"mock/mock-model",
"small_model":"mock/mock-model","enabled_providers":["mock"],"provider":{"mock":{"npm":"@ai-sdk/openai-compatible",
"name":"Mock","options":{"baseURL":"MODEL/v1","apiKey":"fake"},"models":{"mock-model":{"name":"Mock Model",
"tool_call":true,"limit":{"context":1000000,"output":16000}}}}}}`}),
		},
	}
}
