package agent

import (
	"maps"
	"path"
	"slices"
	"strings"

	"scvfs/ledger/fault"
)

// Entry is a section [agents.NAME] of the configuration: a change of the
// built-in agent of that name, or an agent of the user's own. What is absent
// stays as it is; an empty list takes a built-in's arguments away. The argument
// lists are templates as those of Agent are.
type Entry struct {
	// Like names the built-in agent that one of the user's own begins as.
	Like    string   `toml:"like"`
	Command string   `toml:"command"` // a path, ~/…, or a name that is looked up
	Args    []string `toml:"args"`    // come first in each launch line

	Prompt     string   `toml:"prompt"`      // stdin (the default), file, argument
	PromptArgs []string `toml:"prompt_args"` // come last; with {file} or {prompt}

	Session      string   `toml:"session"`       // none (the default), stream, chosen
	StartArgs    []string `toml:"start_args"`    // begin a session {session}
	ContinueArgs []string `toml:"continue_args"` // continue it

	ModelArgs  []string `toml:"model_args"`  // with {model}
	EffortArgs []string `toml:"effort_args"` // with {effort}
	Model      string   `toml:"model"`       // where a call names none
	Effort     string   `toml:"effort"`
	Models     []string `toml:"models"` // the only ones that may be asked for

	Permissions string   `toml:"permissions"` // default, full
	FullArgs    []string `toml:"full_args"`
	Transport   string   `toml:"transport"`   // auto, cli, stream, app-server, acp
	ACPCommand  string   `toml:"acp_command"` // of its ACP server, where that is a program of its own
	ACPArgs     []string `toml:"acp_args"`    // of that server
	Mode        string   `toml:"mode"`        // its own mode to work in, over a transport that can set one
	Output      string   `toml:"output"`      // a name of Formats; text is the default

	Env          map[string]string `toml:"env"`       // variables to set
	PassEnv      []string          `toml:"pass_env"`  // variables to pass on although they are scrubbed, such as a key; * stands for any characters
	ScrubEnv     []string          `toml:"scrub_env"` // variables to remove
	MergeStderr  *bool             `toml:"merge_stderr"`
	TerminalArgs []string          `toml:"terminal_args"` // of its own terminal on {session}
	Home         string            `toml:"home"`          // a private home directory
}

// With returns a table with the user's entries merged in. An error is of kind
// Invalid and names the key.
func (t *Table) With(entries map[string]Entry) (*Table, error) {
	all := maps.Clone(t.agents)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		a, err := t.base(name, &e)
		if err != nil {
			return nil, err
		}
		e.apply(a)
		if err := a.validate(); err != nil {
			return nil, err
		}
		all[name] = a
	}
	return &Table{agents: all}, nil
}

// base returns the agent that an entry changes, as a copy.
func (t *Table) base(name string, e *Entry) (*Agent, error) {
	if !validName(name) {
		return nil, fault.New(fault.Invalid, "agents.%s: an agent's name is 1 to 32 lower-case letters and digits and begins with a letter", OneLine(name, 64))
	}
	if a, ok := t.agents[name]; ok {
		if e.Like != "" {
			return nil, fault.New(fault.Invalid, "agents.%s.like: %s is known already: like is for an agent of your own", name, name)
		}
		c := *a
		return &c, nil
	}
	if e.Like != "" {
		a, ok := t.agents[e.Like]
		if !ok {
			return nil, fault.New(fault.Invalid, "agents.%s.like: no agent is called %q: there are %s", name, OneLine(e.Like, 64), strings.Join(t.Names(), ", "))
		}
		if a.Stateless {
			return nil, fault.New(fault.Invalid, "agents.%s.like: %s cannot be copied: set command, prompt and output instead", name, e.Like)
		}
		c := *a
		c.Name, c.builtin = name, false
		return &c, nil
	}
	if e.Command == "" {
		return nil, fault.New(fault.Invalid, "agents.%s.command: an agent of your own needs a command, or like", name)
	}
	return &Agent{
		Name: name, Dirs: []string{localBin}, Via: ViaStdin, Session: SessionNone, Permissions: PermissionsDefault, Output: FormatText,
		Asks: true, Transport: TransportAuto, Transports: []string{TransportCLI},
	}, nil
}

// apply puts what an entry sets into a.
func (e *Entry) apply(a *Agent) {
	for _, s := range []struct {
		to   *string
		from string
	}{
		{&a.Command, e.Command},
		{(*string)(&a.Via), e.Prompt},
		{(*string)(&a.Session), e.Session},
		{&a.DefaultModel, e.Model},
		{&a.DefaultEffort, e.Effort},
		{&a.Permissions, e.Permissions},
		{&a.Transport, e.Transport},
		{&a.Output, e.Output},
		{&a.Home, e.Home},
		{&a.Mode, e.Mode},
	} {
		if s.from != "" {
			*s.to = s.from
		}
	}
	if e.Prompt != "" && e.PromptArgs == nil {
		a.Prompt = map[PromptVia][]string{ViaFile: {"{file}"}, ViaArgument: {"{prompt}"}}[a.Via]
	}
	for _, s := range []struct {
		to   *[]string
		from []string
	}{
		{&a.Args, e.Args},
		{&a.Prompt, e.PromptArgs},
		{&a.Start, e.StartArgs},
		{&a.Continue, e.ContinueArgs},
		{&a.Model, e.ModelArgs},
		{&a.Effort, e.EffortArgs},
		{&a.Models, e.Models},
		{&a.Full, e.FullArgs},
		{&a.Terminal, e.TerminalArgs},
	} {
		if s.from != nil {
			*s.to = s.from
		}
	}
	for _, s := range []*[]string{&a.Model, &a.Effort, &a.Models, &a.Terminal} {
		if len(*s) == 0 && !a.Stateless {
			*s = nil // an empty list means that there is none
		}
	}
	a.Env = merged(a.Env, e.Env)
	a.Pass = slices.Concat(a.Pass, e.PassEnv)
	a.Scrub = slices.Concat(a.Scrub, e.ScrubEnv)
	if e.MergeStderr != nil {
		a.MergeStderr = *e.MergeStderr
	}
	e.applyACP(a)
}

// validate returns an error that names the key of what does not fit.
func (a *Agent) validate() error {
	for _, c := range []struct {
		key, value string
		words      []string
	}{
		{"prompt", string(a.Via), []string{string(ViaStdin), string(ViaFile), string(ViaArgument)}},
		{"session", string(a.Session), []string{string(SessionNone), string(SessionStream), string(SessionChosen)}},
		{"permissions", a.Permissions, []string{PermissionsDefault, PermissionsFull}},
		{"transport", a.Transport, append([]string{TransportAuto}, a.Transports...)},
		{"output", a.Output, Formats()},
	} {
		if !slices.Contains(c.words, c.value) {
			return a.wrong(c.key, "%q is none of %s", OneLine(c.value, 64), strings.Join(c.words, ", "))
		}
	}
	if err := a.validateTemplates(); err != nil {
		return err
	}
	switch {
	case a.DefaultModel != "" && !ValidModel(a.DefaultModel):
		return a.wrong("model", "%q is no name of a model", OneLine(a.DefaultModel, 64))
	case a.DefaultEffort != "" && !ValidEffort(a.DefaultEffort):
		return a.wrong("effort", "%q is no name of an effort", OneLine(a.DefaultEffort, 64))
	case a.Home != "" && !strings.HasPrefix(a.Home, "/"):
		return a.wrong("home", "%q is no absolute path", OneLine(a.Home, 64))
	case len(a.Mode) > maxMode || a.Mode != OneLine(a.Mode, maxMode):
		return a.wrong("mode", "%q is no name of a mode", OneLine(a.Mode, 64))
	case a.Output == FormatText && a.Session == SessionStream && !a.acpOnly():
		return a.wrong("session", "output = \"text\" tells no session: use chosen or none")
	}
	for name := range a.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(a.Env[name], "\x00") {
			return a.wrong("env", "%q cannot be a variable", OneLine(name, 64))
		}
	}
	for _, pattern := range slices.Concat(a.Pass, a.Scrub) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return a.wrong("pass_env or scrub_env", "%q is no name of a variable", OneLine(pattern, 64))
		}
	}
	return nil
}

// validateTemplates looks that each list has the value that it is for, and
// none that it cannot have.
func (a *Agent) validateTemplates() error {
	continues := a.Session != SessionNone && !a.acpOnly()
	for _, c := range []struct {
		key  string
		list []string
		must string // the value that has to be in it once
		may  string
	}{
		{"args", a.Args, "", ""},
		{"full_args", a.Full, "", ""},
		{"acp_args", a.acp().Args, "", ""},
		{"prompt_args", a.Prompt, map[PromptVia]string{ViaFile: "{file}", ViaArgument: "{prompt}"}[a.Via], ""},
		{"start_args", a.Start, when(a.Session == SessionChosen, "{session}"), "{session}"},
		{"continue_args", a.Continue, when(continues, "{session}"), "{session}"},
		{"model_args", a.Model, when(a.Model != nil, "{model}"), ""},
		{"effort_args", a.Effort, when(a.Effort != nil, "{effort}"), ""},
		{"terminal_args", a.Terminal, when(a.Terminal != nil && !a.Stateless, "{session}"), ""},
	} {
		text := strings.Join(c.list, "\n")
		if c.must != "" && strings.Count(text, c.must) != 1 {
			return a.wrong(c.key, "%s must be in it once", c.must)
		}
		for _, p := range []string{"{prompt}", "{file}", "{session}", "{model}", "{effort}", "\x00"} {
			if p != c.must && p != c.may && strings.Contains(text, p) {
				return a.wrong(c.key, "%q cannot be in it", p)
			}
		}
	}
	return nil
}

func when(is bool, s string) string {
	if is {
		return s
	}
	return ""
}

// acpOnly tells whether the agent has no turns of its own that a launch line
// could start.
func (a *Agent) acpOnly() bool { return slices.Equal(a.Transports, []string{TransportACP}) }

func (a *Agent) wrong(key, format string, args ...any) error {
	return fault.New(fault.Invalid, "agents."+a.Name+"."+key+": "+format, args...)
}

// validName tells whether s can be the name of an agent; handles end in a
// hyphen and more, so a name has none.
func validName(s string) bool {
	if s == "" || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
