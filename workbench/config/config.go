// Package config is the configuration in force, and where the program's files
// lie.
//
// A value comes from a flag, else from the file, else it is the default; each
// remembers which. An unknown key, a wrong type and a value out of range are
// errors that name the key, its line and what it takes: a daemon that starts
// has understood every line.
//
// A Config is not changed once Load has returned it.
package config

import (
	"fmt"
	"slices"
	"strings"

	"scvfs/workbench/agent"
)

// Config is the configuration in force.
type Config struct {
	Mount        string // mount point; ~ stands for the home directory
	DefaultAgent string // agent of sessions that have set none
	Policy       string // of the unattended gate: on-risk, always, never
	Limits       Limits
	Agents       map[string]agent.Entry // changes to the table of agents

	sources map[string]string // by key: "default", "config.toml:12", "--mount"
}

// Limits are the limits of DESIGN 13. Zero means none only where a comment
// says so.
type Limits struct {
	Jobs             int      // running jobs of a session
	Backlog          int      // jobs of a session that wait for one of those to end
	Queue            int      // prompts that wait in a conversation's lane
	Conversations    int      // of a session
	ConversationIdle Duration // after which an idle conversation is forgotten
	Takeovers        int      // terminals at once
	Scrollback       int      // lines
	PromptBytes      Size     // of one prompt
	ResultBytes      Size     // of one result; the end is kept
	LogBytes         Size     // of one run's log
	RawBytes         Size     // of one run's output before what is parsed is given back to the disk
	Timeout          Duration // of a job that asks for none
	TimeoutMax       Duration // that a job may ask for
	Grace            Duration // between TERM and KILL
	WatchTTL         Duration // how long a look at approvals counts as watching
	AttendedWait     Duration // how long a request waits for a watching owner
	Keep             Duration // after a job ended
	DelegationDepth  int      // jobs of jobs of jobs; 0: agents start none
	DiskFloor        Size     // free space below which no job starts; 0: none
	Terminal         Terminal // size of a new terminal
}

// Defaults returns the configuration of a machine without a file.
func Defaults() *Config {
	c := &Config{
		Mount: "~/scv", DefaultAgent: "sh", Policy: "on-risk",
		Limits: Limits{
			Jobs: 4, Backlog: 1000, Queue: 4, Conversations: 8, ConversationIdle: 24 * hour, Takeovers: 4, Scrollback: 5000,
			PromptBytes: 4 << 20, ResultBytes: 1 << 20, LogBytes: 64 << 20, RawBytes: 256 << 20,
			Timeout: hour, TimeoutMax: 24 * hour, Grace: 2 * second, WatchTTL: 30 * second, AttendedWait: 10 * minute,
			Keep: 720 * hour, DelegationDepth: 2, DiskFloor: 256 << 20, Terminal: Terminal{Cols: 120, Rows: 40},
		},
		sources: map[string]string{},
	}
	for _, k := range c.keys() {
		c.sources[k.name] = "default"
	}
	return c
}

// key is one key of the file: what it may be, and where its value goes.
type key struct {
	name  string
	value value
}

// value is a setting that reads itself from what TOML decoded and writes
// itself as TOML.
type value interface {
	set(from any) error // the error says what the key takes
	render() string
}

// keys lists every key but those of agents, in the order of the file.
func (c *Config) keys() []key {
	l := &c.Limits
	return []key{
		{"mount", &text{p: &c.Mount, path: true}},
		{"default_agent", &text{p: &c.DefaultAgent}},
		{"policy", &text{p: &c.Policy, words: []string{"on-risk", "always", "never"}}},
		{"limits.jobs", &count{&l.Jobs, 1, 64}},
		{"limits.backlog", &count{&l.Backlog, 0, 100_000}},
		{"limits.queue", &count{&l.Queue, 0, 32}},
		{"limits.conversations", &count{&l.Conversations, 1, 1000}},
		{"limits.conversation_idle", &span{&l.ConversationIdle, second, 10_000 * hour}},
		{"limits.takeovers", &count{&l.Takeovers, 0, 64}},
		{"limits.scrollback", &count{&l.Scrollback, 0, 1_000_000}},
		{"limits.prompt_bytes", &volume{&l.PromptBytes, 1 << 10, 64 << 20}},
		{"limits.result_bytes", &volume{&l.ResultBytes, 1 << 10, 64 << 20}},
		{"limits.log_bytes", &volume{&l.LogBytes, 64 << 10, 1 << 40}},
		{"limits.raw_bytes", &volume{&l.RawBytes, 1 << 20, 1 << 40}},
		{"limits.timeout", &span{&l.Timeout, second, 10_000 * hour}},
		{"limits.timeout_max", &span{&l.TimeoutMax, second, 10_000 * hour}},
		{"limits.grace", &span{&l.Grace, 0, 10 * minute}},
		{"limits.watch_ttl", &span{&l.WatchTTL, second, hour}},
		{"limits.attended_wait", &span{&l.AttendedWait, second, 24 * hour}},
		{"limits.keep", &span{&l.Keep, minute, 100_000 * hour}},
		{"limits.delegation_depth", &count{&l.DelegationDepth, 0, 16}},
		{"limits.disk_floor", &volume{&l.DiskFloor, 0, 1 << 50}},
		{"limits.terminal", &l.Terminal},
	}
}

// Table returns the table of agents with the configuration's changes.
func (c *Config) Table() (*agent.Table, error) { return agent.Builtin().With(c.Agents) }

// Render returns the configuration in force as TOML, each value with where it
// came from. Reading it back gives the same configuration.
func (c *Config) Render() []byte {
	var b strings.Builder
	section := ""
	for _, k := range c.keys() {
		in, name := "", k.name
		if s, n, nested := strings.Cut(k.name, "."); nested {
			in, name = s, n
		}
		if in != section {
			section = in
			fmt.Fprintf(&b, "\n[%s]\n", in)
		}
		line := name + " = " + k.value.render()
		fmt.Fprintf(&b, "%-36s # %s\n", line, c.sources[k.name])
	}
	names := make([]string, 0, len(c.Agents))
	for name := range c.Agents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n[agents.%s] # %s\n%s", name, c.sources["agents."+name], renderEntry(c.Agents[name]))
	}
	return []byte(b.String())
}

// SetMount sets the mount point; from says who did, such as "--mount".
func (c *Config) SetMount(dir, from string) {
	c.Mount, c.sources["mount"] = dir, from
}
