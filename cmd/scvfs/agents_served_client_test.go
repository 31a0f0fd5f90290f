package main

import (
	"fmt"
	"maps"
	"strings"
)

// served is what is known of an agent that is spoken with while it works.
type served struct {
	transport string
	config    string // of its agents, after the client's own
	kept      bool   // one process serves a conversation
	run       string // the word by which the model runs a command that has to be allowed
	goesOn    bool   // its turn goes on after a denial
	steers    bool
	questions bool // it asks some
	skips     map[string]string
}

// asking is the name of the agent that asks before it acts, beside one of full
// permissions.
const asking = "asks"

// servedClients are the agents over the transports that relay approvals, each
// in a world of its own: by its name with full permissions, and again as one
// that asks.
func servedClients() []client {
	base := map[string]client{}
	for _, c := range clients() {
		base[c.name] = c
	}
	var all []client
	for _, one := range []struct {
		name, label string
		served
	}{
		{"codex", "codex-appserver", served{
			transport: "app-server", run: "ESCALATE", goesOn: true, steers: true,
			config: `pass_env = ["OPENAI_API_KEY"]`,
		}},
		{"claude", "claude-stream", served{
			transport: "stream", run: "RUN", goesOn: true, steers: true, questions: true,
			config: `pass_env = ["ANTHROPIC_API_KEY"]`,
		}},
		{"claude", "claude-acp", served{
			transport: "acp", kept: true, run: "RUN", goesOn: true, steers: true, questions: true,
			config: `pass_env = ["ANTHROPIC_API_KEY"]`,
		}},
		{"gemini", "gemini-acp", served{
			transport: "acp", kept: true, run: "RUN", goesOn: true,
			skips: map[string]string{"killed": "gemini empties a session that it loads within the minute in which it made its file"},
			config: `model = "gemini-2.5-flash"
pass_env = ["GEMINI_API_KEY"]`,
		}},
		{"opencode", "opencode-acp", served{
			transport: "acp", kept: true, run: "RUN",
			skips: map[string]string{
				"badrequest": "opencode's server tells no status of its model service's",
				"keyrefused": "opencode's server tells no status of its model service's",
			},
			config: `env = { OPENCODE_PERMISSION = '{"bash":"ask","edit":"ask"}' }`,
		}},
	} {
		c := base[one.name]
		s := one.served
		c.label, c.served = one.label, &s
		c.skips = maps.Clone(c.skips)
		if c.skips == nil {
			c.skips = map[string]string{}
		}
		maps.Copy(c.skips, s.skips)
		sections := strings.Split(c.config, "\n[")
		for i, section := range sections {
			sections[i] = strings.TrimRight(section, "\n") + fmt.Sprintf("\ntransport = %q", s.transport)
		}
		c.config = "[limits]\nwatch_ttl = \"1s\"\n" + strings.Join(sections, "\n[") +
			fmt.Sprintf("\n[agents.%s%s]\nlike = %q\ntransport = %q\n%s\n", one.name, asking, one.name, s.transport, s.config)
		all = append(all, c)
	}
	return all
}

// kept tells whether one process serves a conversation.
func (c *client) kept() bool { return c.served != nil && c.served.kept }
