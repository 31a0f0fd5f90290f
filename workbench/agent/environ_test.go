package agent

import (
	"slices"
	"strings"
	"testing"
)

var daemonEnv = []string{
	"PATH=/bin", "HOME=/home/alice", "LANG=C", "SSH_AUTH_SOCK=/s", "OPENAI_API_KEY=1", "ANTHROPIC_API_KEY=2", "GEMINI_API_KEY=3", "SOME_OTHER_API_KEY=4",
	"ANTHROPIC_BASE_URL=5", "CLAUDE_CONFIG_DIR=6", "CLAUDECODE=7", "CLAUDE_CODE_ENTRYPOINT=cli", "CODEX_HOME=8", "OPENAI_BASE_URL=9", "XAI_API_KEY=10", "GROK_HOME=11",
	"DSH_HOME=12", "DEEPSEEK_BASE_URL=13", "PI_CODING_AGENT_DIR=14", "SCV_RUN=old", "SCV_DEPTH=7", "SCV_PROVIDER=15", "AZURE_OPENAI_ENDPOINT=16",
	"TMPDIR=/old", "EMPTY=", "MULTI=a=b", "broken", "=odd", "LANG=C.UTF-8", "TERM=xterm",
}

func TestAgentsGetNoKeysAndNoVariablesOfOthers(t *testing.T) {
	table := withEntries(t, map[string]Entry{
		"gemini": {PassEnv: []string{"GEMINI_API_KEY", "SCV_RUN"}, ScrubEnv: []string{"TERM"}, Env: map[string]string{"LANG": "de"}},
		"codex":  {Home: "/private"},
	})
	common := "EMPTY= HOME=/home/alice LANG=C.UTF-8 MULTI=a=b PATH=/bin SCV_RUN=r-1 SSH_AUTH_SOCK=/s TERM=xterm TMPDIR=/t"
	for agent, want := range map[string]string{
		"sh":     common,
		"claude": "ANTHROPIC_BASE_URL=5 CLAUDE_CONFIG_DIR=6 DISABLE_AUTOUPDATER=1 " + common,
		"gemini": "EMPTY= GEMINI_API_KEY=3 GEMINI_CLI_NO_RELAUNCH=true GEMINI_CLI_TRUST_WORKSPACE=true HOME=/home/alice LANG=de MULTI=a=b PATH=/bin SCV_RUN=r-1 SSH_AUTH_SOCK=/s TMPDIR=/t",
		"pi":     "EMPTY= HOME=/home/alice LANG=C.UTF-8 MULTI=a=b PATH=/bin PI_CODING_AGENT_DIR=14 SCV_RUN=r-1 SSH_AUTH_SOCK=/s TERM=xterm TMPDIR=/t",
		"codex": "CODEX_HOME=/private/.codex EMPTY= HOME=/private LANG=C.UTF-8 MULTI=a=b PATH=/bin SCV_RUN=r-1 SSH_AUTH_SOCK=/s TERM=xterm TMPDIR=/t " +
			"XDG_CACHE_HOME=/private/.cache XDG_CONFIG_HOME=/private/.config XDG_DATA_HOME=/private/.local/share XDG_STATE_HOME=/private/.local/state",
	} {
		a, _ := table.Lookup(agent)
		got := Environ(daemonEnv, a, "SCV_RUN=r-1", "TMPDIR=/wrong", "TMPDIR=/t")
		slices.Sort(got)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s gets\n%s\nwant\n%s", agent, s, want)
		}
	}
	if got := Environ([]string{"A_API_KEY=1", "B=2"}, nil); len(got) != 1 || got[0] != "B=2" {
		t.Error(got)
	}
}
