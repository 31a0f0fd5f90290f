package agent

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// scrubbed are the variables that no agent gets unless its entry passes them
// on: keys, where agents find their accounts and services, and the marks that
// they leave on their children. A * stands for any characters.
var scrubbed = []string{
	"*_API_KEY", "*_API_KEYS", "*_AUTH_TOKEN",
	"SCV_*",
	"ANTHROPIC_*", "CLAUDE_*", "CLAUDECODE",
	"OPENAI_*", "AZURE_OPENAI_*", "CODEX_*",
	"GEMINI_*", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*", "GOOGLE_API_KEY",
	"GROK_*", "XAI_*",
	"DSH_*", "DEEPSEEK_*",
	"PI_*", "OPENCODE_*", "COPILOT_*", "QWEN_*",
}

// Environ returns the environment of an agent's process: base without what is
// scrubbed, what the agent's entry sets, and last extra (those of a Launch,
// SCV_RUN, SCV_DEPTH, TMPDIR), each name once and the last value winning. A
// nil agent is one that sets and passes nothing.
func Environ(base []string, a *Agent, extra ...string) []string {
	if a == nil {
		a = &Agent{}
	}
	var names []string
	values := map[string]string{}
	set := func(name, value string) {
		if _, known := values[name]; !known {
			names = append(names, name)
		}
		values[name] = value
	}
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && !a.scrubs(name) {
			set(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		set(name, a.Env[name])
	}
	home := a.home()
	for _, name := range slices.Sorted(maps.Keys(home)) {
		set(name, home[name])
	}
	for _, entry := range extra {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			set(name, value)
		}
	}
	for i, name := range names {
		names[i] = name + "=" + values[name]
	}
	return names
}

// scrubs tells whether the agent does not get a variable of the daemon.
func (a *Agent) scrubs(name string) bool {
	if matches(a.Scrub, name) {
		return true
	}
	if name == "SCV_RUN" || name == "SCV_DEPTH" {
		return true
	}
	return matches(scrubbed, name) && !matches(a.Pass, name)
}

// matches tells whether a name fits one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// home is what a private home sets.
func (a *Agent) home() map[string]string {
	if a.Home == "" {
		return nil
	}
	vars := map[string]string{
		"HOME": a.Home, "XDG_CONFIG_HOME": a.Home + "/.config", "XDG_DATA_HOME": a.Home + "/.local/share",
		"XDG_STATE_HOME": a.Home + "/.local/state", "XDG_CACHE_HOME": a.Home + "/.cache",
	}
	for name, value := range a.HomeEnv {
		vars[name] = strings.ReplaceAll(value, "{home}", a.Home)
	}
	return vars
}

// merged returns a map with what both hold, b's values winning.
func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}
