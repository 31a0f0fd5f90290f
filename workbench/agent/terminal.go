package agent

import (
	"maps"
	"slices"
	"strings"

	"scvfs/ledger/fault"
)

// TerminalOffered tells whether the agent's own terminal may be opened: it has
// one, and it asks for no approvals. why is empty when it may.
func (a *Agent) TerminalOffered() (why string) {
	switch {
	case a.Terminal == nil:
		return a.Name + " has no terminal that continues a session"
	case a.Asks && !a.FullPermissions():
		return a.Name + " would ask for approvals in its terminal: set permissions to full in [agents." + a.Name + "]"
	}
	return ""
}

// TerminalArgv is the command line of the agent's own terminal on its session.
// It begins with the model and effort of the agent's entry, as a turn does.
// path is the executable; shell is the user's, which is the terminal of the
// shell agent, where session is not used.
func (a *Agent) TerminalArgv(path, session, shell string) ([]string, error) {
	if why := a.TerminalOffered(); why != "" {
		return nil, fault.New(fault.Unsupported, "%s", why)
	}
	if a.Stateless {
		return []string{first(shell, path)}, nil
	}
	if !validSession(session) {
		return nil, fault.New(fault.Invalid, "%s has no session to open yet: let a turn end first", a.Name)
	}
	groups := [][]string{a.Terminal}
	if a.DefaultModel != "" {
		groups = append(groups, a.Model)
	}
	if a.DefaultEffort != "" {
		groups = append(groups, a.Effort)
	}
	fill := strings.NewReplacer("{session}", session, "{model}", a.DefaultModel, "{effort}", a.DefaultEffort)
	argv := []string{path}
	for _, arg := range slices.Concat(groups...) {
		argv = append(argv, fill.Replace(arg))
	}
	if a.FullPermissions() {
		argv = append(argv, a.TerminalFull...)
	}
	return argv, nil
}

// TerminalEnv is what the terminal's environment has beside that of Environ.
func (a *Agent) TerminalEnv() []string {
	env := a.Env
	if a.FullPermissions() {
		env = merged(env, a.FullEnv)
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}
