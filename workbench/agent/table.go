package agent

import (
	"maps"
	"slices"
	"strings"

	"scvfs/ledger/fault"
)

// shell is the name of the embedded default agent.
const shell = "sh"

// PromptVia says how a prompt reaches an agent. Whichever way, it arrives byte
// for byte; what the program makes of it is its own affair (pi trims blanks at
// both ends, codex takes UTF-8 only).
type PromptVia string

// The ways. An argument holds at most MaxArgument bytes, is never read as an
// option, and is never shell text.
const (
	ViaStdin    PromptVia = "stdin"    // standard input is a file that holds it
	ViaFile     PromptVia = "file"     // an argument names a file that holds it
	ViaArgument PromptVia = "argument" // it is an argument
)

// MaxArgument is the longest prompt that goes as an argument, in bytes.
const MaxArgument = 64 << 10

// SessionFrom says where an agent's own session id comes from.
type SessionFrom string

// The sources.
const (
	SessionNone   SessionFrom = "none"   // it cannot continue a conversation
	SessionStream SessionFrom = "stream" // its output tells it
	SessionChosen SessionFrom = "chosen" // we choose a UUID, and its output confirms it
)

// Permissions say what an agent may do unasked.
const (
	PermissionsDefault = "default" // what its own configuration says
	PermissionsFull    = "full"    // everything
)

// The transports.
const (
	TransportAuto      = "auto"
	TransportCLI       = "cli"        // one process a turn
	TransportStream    = "stream"     // Claude Code's stream-json both ways
	TransportAppServer = "app-server" // Codex's own JSON-RPC
	TransportACP       = "acp"        // one server a conversation
)

// Agent is an entry of the table. Argument lists are templates: {session},
// {model}, {effort}, {prompt} and {file} stand for their values. A launch line
// is the command, Args, then those of permissions, of model and effort, Start
// or Continue, and last Prompt. An Agent is never changed once it is in a
// table.
type Agent struct {
	Name    string
	Command string   // a path, or a name to look up
	Dirs    []string // directories below the home that are searched first
	Args    []string

	Via         PromptVia
	Prompt      []string // the arguments that bring the prompt in
	MaxChars    int      // most characters of a prompt; 0: no limit of its own
	UTF8        bool     // a prompt must be UTF-8
	MergeStderr bool     // standard error goes to standard output, in order

	Session  SessionFrom
	Start    []string // begin a session with the id {session}
	Continue []string // go on with it
	// Stateless says that a turn needs nothing of the turns before it, so a
	// conversation goes on without a session.
	Stateless bool

	Model, Effort []string // nil: it takes none
	DefaultModel  string   // where a call names none; may be empty
	DefaultEffort string
	Models        []string // the only ones it may be asked for; nil: it knows itself
	Permissions   string
	Full          []string          // arguments for full permissions
	FullEnv       map[string]string // variables for full permissions
	Output        string            // name of its parser, see Formats
	Env           map[string]string // variables it gets
	Pass          []string          // variables it keeps although they are scrubbed from others; a * at the end stands for any rest
	Scrub         []string          // variables it does not get, beside the common ones
	Home          string            // its private home directory; empty: the user's
	HomeEnv       map[string]string // what a private home needs beside HOME and XDG_*, with {home}
	Terminal      []string          // arguments of its own terminal on a session; nil: it has none
	TerminalFull  []string          // the same for full permissions, after Terminal
	Asks          bool              // its terminal asks for approvals unless permissions are full
	Transport     string            // the setting
	Transports    []string          // what it speaks, those that relay approvals first
	Relays        []string          // those of its transports that relay approvals
	ACP           *ACPServer        // how it serves ACP; nil: by its command and Args
	Mode          string            // its own mode to work in, by its name; empty: its own choice
	Signin        string            // how to sign in, to go after a colon
	builtin       bool
}

// Table is the agents by name. It is never changed, so it is safe for
// concurrent use.
type Table struct {
	agents map[string]*Agent
}

// Builtin returns the table of the built-in agents.
func Builtin() *Table {
	t := &Table{agents: map[string]*Agent{}}
	for _, a := range builtins() {
		a.builtin = true
		t.agents[a.Name] = a
	}
	return t
}

// Names returns the agents' names in order.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.agents)) }

// Lookup returns the agent of that name.
func (t *Table) Lookup(name string) (*Agent, bool) {
	a, ok := t.agents[name]
	return a, ok
}

// Get is Lookup with an error of kind NotFound that names the ones there are.
func (t *Table) Get(name string) (*Agent, error) {
	if a, ok := t.agents[name]; ok {
		return a, nil
	}
	return nil, fault.New(fault.NotFound, "no agent is called %q: there are %s", OneLine(name, 64), strings.Join(t.Names(), ", "))
}

// Builtin tells whether the agent is one of the program's own, as the
// configuration may have changed it.
func (a *Agent) Builtin() bool { return a.builtin }

// Resumes tells whether a conversation with the agent can go on after its
// first turn.
func (a *Agent) Resumes() bool { return a.Stateless || a.Session != SessionNone }

// FullPermissions tells whether the agent asks nothing before it acts.
func (a *Agent) FullPermissions() bool { return a.Permissions == PermissionsFull }

// Carrier returns the transport that a turn goes over: the one that is set, or
// for auto the first there is, where one that relays approvals comes first
// unless permissions are full. An error is of kind Unsupported.
func (a *Agent) Carrier() (string, error) {
	if a.Transport != TransportAuto {
		if !slices.Contains(a.Transports, a.Transport) {
			return "", fault.New(fault.Unsupported, "%s does not speak the transport %q: set it to auto or to one of %s", a.Name, a.Transport, strings.Join(a.Transports, ", "))
		}
		return a.Transport, nil
	}
	order := slices.Clone(a.Transports)
	if a.FullPermissions() {
		slices.SortStableFunc(order, func(x, y string) int { return rank(a, x) - rank(a, y) })
	}
	if len(order) == 0 {
		return "", fault.New(fault.Unsupported, "%s speaks no transport", a.Name)
	}
	return order[0], nil
}

// rank puts the transports that relay approvals behind the others.
func rank(a *Agent, transport string) int {
	if slices.Contains(a.Relays, transport) {
		return 1
	}
	return 0
}

// Relaying tells whether its turns relay approvals to the owner.
func (a *Agent) Relaying() bool {
	t, err := a.Carrier()
	return err == nil && slices.Contains(a.Relays, t) && !a.FullPermissions()
}

// signin says how to sign in.
func (a *Agent) signin() string {
	if a.Signin == "" {
		return "sign in with its own program, or pass a key on (pass_env)"
	}
	return a.Signin + ", or pass a key on (pass_env)"
}
