package agent

import (
	"maps"
	"slices"
	"strings"

	"scvfs/ledger/fault"
)

// maxMode is how many characters the name of a mode has.
const maxMode = 128

// ACPServer says how an agent serves the Agent Client Protocol: one process a
// conversation.
type ACPServer struct {
	Command   string   // a program of its own, to look up as an agent's command; empty: that of the agent
	Args      []string // nil without a Command: the agent's own
	FullArgs  []string // in place of Args for full permissions; nil: the same
	FullModes []string // what its mode of full permissions may be called; nil: it needs none
	Model     bool     // the model is an argument, as that of a turn is
	Notices   bool     // it says what went wrong in texts that begin with "Error: ", and remarks with "Info: "
	Counts    bool     // the tokens that it tells are those of the whole session
	Mute      bool     // it says nothing when its model service failed
}

// acp is how the agent serves ACP; one that says nothing of that does so by its
// own command.
func (a *Agent) acp() *ACPServer {
	if a.ACP == nil {
		return &ACPServer{}
	}
	return a.ACP
}

// ACPFullModes are the names that the mode of full permissions of the agent's
// ACP server may have, one of which must be offered; nil: it needs none.
func (a *Agent) ACPFullModes() []string { return a.acp().FullModes }

// OfferedOver is Offered for one transport, whichever is set: path is that of
// the program that is run for it, which for ACP may be another than the
// agent's.
func (a *Agent) OfferedOver(transport string, look LookPath) (path, why string) {
	if !slices.Contains(a.Transports, transport) {
		return "", a.Name + " does not speak the transport " + transport
	}
	command := a.Command
	if transport == TransportACP && a.acp().Command != "" {
		command = a.ACP.Command
	}
	if command == "" {
		return "", "no command is set: put one into [agents." + a.Name + "] of the configuration"
	}
	return look(command, a.Dirs...)
}

// ACPArgv is the launch line of the agent's ACP server, whose executable is
// path; model is what it is to begin with, where that is an argument.
func (a *Agent) ACPArgv(path, model string) []string {
	s := a.acp()
	args := s.Args
	if args == nil && s.Command == "" {
		args = a.Args
	}
	if a.FullPermissions() && s.FullArgs != nil {
		args = s.FullArgs
	}
	argv := slices.Concat([]string{path}, args)
	if model = first(model, a.DefaultModel); model != "" && s.Model {
		for _, template := range a.Model {
			argv = append(argv, strings.ReplaceAll(template, "{model}", model))
		}
	}
	return argv
}

// ACPLaunch makes the launch line of the agent's ACP server. Session, effort,
// mode, and mostly the model, are no part of it: the dialogue tells them. Its
// errors are those of Launch.
func (a *Agent) ACPLaunch(q Request) (Launch, error) {
	like := *a
	like.Via, like.UTF8 = ViaStdin, true // the prompt is a message of JSON
	if err := like.Check(q.Prompt, q.Model, q.Effort); err != nil {
		return Launch{}, err
	}
	switch {
	case !strings.HasPrefix(q.Path, "/"):
		return Launch{}, fault.New(fault.Internal, "%s is to be started without the path of its executable", a.Name)
	case q.Session != "" && !validSession(q.Session):
		return Launch{}, fault.New(fault.Invalid, "%q is no session id of %s", OneLine(q.Session, 64), a.Name)
	}
	env := a.Env
	if a.FullPermissions() {
		env = merged(env, a.FullEnv)
	}
	l := Launch{Argv: a.ACPArgv(q.Path, q.Model), Stdin: StdinFIFO, Session: q.Session}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		l.Env = append(l.Env, name+"="+env[name])
	}
	return l, nil
}

// applyACP puts what an entry sets of the ACP server into a.
func (e *Entry) applyACP(a *Agent) {
	if e.ACPCommand == "" && e.ACPArgs == nil {
		return
	}
	server := *a.acp()
	if e.ACPCommand != "" {
		server.Command = e.ACPCommand
	}
	if e.ACPArgs != nil {
		server.Args, server.FullArgs = e.ACPArgs, nil
	}
	a.ACP = &server
	if !slices.Contains(a.Transports, TransportACP) {
		a.Transports = append([]string{TransportACP}, a.Transports...)
		a.Relays = append([]string{TransportACP}, a.Relays...)
	}
}
