package agent

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"scvfs/ledger/fault"
)

// Stdin says what an agent reads; the words are those of package run.
type Stdin string

// The kinds of standard input.
const (
	StdinNull Stdin = "null" // nothing
	StdinFile Stdin = "file" // a file that holds the prompt
	StdinFIFO Stdin = "fifo" // a FIFO, of an agent that is a server
)

// Request asks for a launch line of one turn.
type Request struct {
	Path string // the executable, as Offered found it
	// Prompt is the text, which may hold any bytes but NUL. PromptFile is an
	// absolute path of a file that holds the same.
	Prompt     []byte
	PromptFile string
	Model      string // empty: the entry's default, or the agent's own
	Effort     string
	// Session is the agent's own id of the session to continue. NewSession is
	// a UUID for a new one, which is used when the agent lets us choose. At
	// most one of them may be set.
	Session    string
	NewSession string
}

// Launch is how to start an agent for one turn.
type Launch struct {
	Argv        []string
	Env         []string // NAME=value, to go to Environ
	Stdin       Stdin
	MergeStderr bool
	Session     string // the id that the turn begins or continues, when it is known beforehand
}

// Launch makes the launch line of a turn. Its errors name what is wrong with
// the request: Unsupported for what the agent does not take, TooLarge for a
// prompt beyond its limit, else Invalid.
func (a *Agent) Launch(q Request) (Launch, error) {
	for _, err := range []error{a.checkPaths(q), a.Check(q.Prompt, q.Model, q.Effort), a.checkSession(q)} {
		if err != nil {
			return Launch{}, err
		}
	}
	model, effort := first(q.Model, a.DefaultModel), first(q.Effort, a.DefaultEffort)
	l := Launch{Stdin: StdinNull, MergeStderr: a.MergeStderr}
	if a.Via == ViaStdin {
		l.Stdin = StdinFile
	}
	env := maps.Clone(a.Env)
	groups := [][]string{a.Args}
	if a.FullPermissions() {
		groups = append(groups, a.Full)
		env = merged(env, a.FullEnv)
	}
	if model != "" {
		groups = append(groups, a.Model)
	}
	if effort != "" {
		groups = append(groups, a.Effort)
	}
	switch {
	case a.Stateless:
	case q.Session != "":
		groups, l.Session = append(groups, a.Continue), q.Session
	case q.NewSession != "" && a.Session == SessionChosen:
		groups, l.Session = append(groups, a.Start), q.NewSession
	}
	fill := strings.NewReplacer("{session}", l.Session, "{model}", model, "{effort}", effort, "{file}", q.PromptFile, "{prompt}", string(q.Prompt))
	l.Argv = []string{q.Path}
	for _, template := range slices.Concat(append(groups, a.Prompt)...) {
		l.Argv = append(l.Argv, fill.Replace(template))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		l.Env = append(l.Env, name+"="+env[name])
	}
	return l, nil
}

// Check tells whether a call's prompt, model and effort can be launched, by
// the errors of Launch, before there is an executable, a file or a session.
func (a *Agent) Check(prompt []byte, model, effort string) error {
	if err := a.checkModel(first(model, a.DefaultModel), first(effort, a.DefaultEffort)); err != nil {
		return err
	}
	return a.checkPrompt(prompt)
}

// checkPaths looks at what the workbench must give.
func (a *Agent) checkPaths(q Request) error {
	switch {
	case !strings.HasPrefix(q.Path, "/"):
		return fault.New(fault.Internal, "%s is to be started without the path of its executable", a.Name)
	case a.Via == ViaFile && !strings.HasPrefix(q.PromptFile, "/"):
		return fault.New(fault.Internal, "%s is to be started without the path of its prompt", a.Name)
	}
	return nil
}

func (a *Agent) checkModel(model, effort string) error {
	switch {
	case model == "":
	case a.Model == nil && !a.acpOnly():
		return fault.New(fault.Unsupported, "%s takes no model: leave %q away", a.Name, OneLine(model, 64))
	case !ValidModel(model):
		return fault.New(fault.Invalid, "model %q is none: 1 to 128 letters, digits and ._:/@[]-, not beginning with - or @", OneLine(model, 64))
	case a.Models != nil && !slices.Contains(a.Models, model):
		return fault.New(fault.Invalid, "%s is not to use the model %q: its models are %s", a.Name, model, strings.Join(a.Models, ", "))
	}
	switch {
	case effort == "":
	case a.Effort == nil && !a.acpOnly():
		return fault.New(fault.Unsupported, "%s takes no effort: leave %q away", a.Name, OneLine(effort, 64))
	case !ValidEffort(effort):
		return fault.New(fault.Invalid, "effort %q is none: 1 to 32 letters, digits, - and _, beginning with a letter or digit", OneLine(effort, 64))
	}
	return nil
}

func (a *Agent) checkSession(q Request) error {
	switch {
	case q.Session != "" && q.NewSession != "":
		return fault.New(fault.Internal, "%s is to continue a session and to begin one", a.Name)
	case q.Session != "" && !a.Resumes():
		return fault.New(fault.Unsupported, "%s cannot continue a conversation: start a new one", a.Name)
	case q.Session != "" && !validSession(q.Session):
		return fault.New(fault.Invalid, "%q is no session id of %s", OneLine(q.Session, 64), a.Name)
	case q.NewSession != "" && !validUUID(q.NewSession):
		return fault.New(fault.Internal, "%q is no UUID for a new session of %s", OneLine(q.NewSession, 64), a.Name)
	case q.Session == "" && q.NewSession == "" && a.Session == SessionChosen:
		return fault.New(fault.Internal, "%s is to begin a session without an id for it", a.Name)
	}
	return nil
}

func (a *Agent) checkPrompt(p []byte) error {
	if i := slices.Index(p, 0); i >= 0 {
		return fault.New(fault.Invalid, "the prompt has a NUL byte at %d: no program takes one", i)
	}
	if (a.UTF8 || a.converses()) && !utf8.Valid(p) {
		return fault.New(fault.Invalid, "the prompt is not UTF-8, and %s takes nothing else: convert it (iconv -t UTF-8)", a.Name)
	}
	if n := utf8.RuneCount(p); a.MaxChars > 0 && n > a.MaxChars {
		return fault.New(fault.TooLarge, "the prompt has %d characters, and %s takes at most %d: put it into a file of the workspace and name that", n, a.Name, a.MaxChars)
	}
	switch {
	case a.Via != ViaArgument:
	case len(p) > MaxArgument:
		return fault.New(fault.TooLarge, "the prompt has %d bytes, and %s takes it as an argument of at most %d: put it into a file of the workspace and name that", len(p), a.Name, MaxArgument)
	case len(p) > 0 && p[0] == '-' && !a.dashSafe():
		return fault.New(fault.Invalid, "%s would read a prompt that begins with - as an option: begin with another character", a.Name)
	}
	return nil
}

// dashSafe tells whether the prompt's argument cannot be taken for an option:
// it stands behind something in its argument, or after "--".
func (a *Agent) dashSafe() bool {
	for i, arg := range a.Prompt {
		if strings.HasPrefix(arg, "{prompt}") {
			return slices.Contains(a.Prompt[:i], "--")
		}
	}
	return true
}

// ValidModel tells whether s has the form of a model's name.
func ValidModel(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '-' || s[0] == '@' {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && strings.IndexByte("._:/@[]-", s[i]) < 0 {
			return false
		}
	}
	return true
}

// ValidEffort tells whether s has the form of an effort's name.
func ValidEffort(s string) bool {
	if s == "" || len(s) > 32 || !alphanumeric(s[0]) {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return true
}

func validUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
