package agent

import "slices"

// StreamLaunch makes the launch line of claude's stream-json both ways. Its
// prompts, and the answers to what it asks, go to a FIFO, which it reads until
// that ends. Its errors are those of Launch.
//
// The variable has it tell when it works and when it is idle, which is how its
// turn ends: a message may come too late for one answer and begin the next, and
// agents of its own may still be at work when it has answered.
func (a *Agent) StreamLaunch(q Request) (Launch, error) {
	like := *a
	like.Args = slices.Concat(a.Args, []string{"--input-format", "stream-json", "--permission-prompt-tool", "stdio"})
	like.Env = merged(a.Env, map[string]string{"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"})
	return like.serverLaunch(q)
}

// AppServerLaunch makes the launch line of codex's app-server. Session, model,
// effort and permissions are no part of it: the dialogue tells them. Arguments
// of the entry are those of codex exec, and are left out. Its errors are those
// of Launch.
func (a *Agent) AppServerLaunch(q Request) (Launch, error) {
	if err := a.Check(q.Prompt, q.Model, q.Effort); err != nil {
		return Launch{}, err
	}
	like := *a
	like.Args, like.Full, like.Continue = []string{"app-server"}, nil, nil
	like.Model, like.Effort, like.DefaultModel, like.DefaultEffort = nil, nil, "", ""
	q.Model, q.Effort = "", ""
	return like.serverLaunch(q)
}

// serverLaunch is Launch for an agent that reads messages, which are JSON and
// so hold UTF-8 only.
func (a *Agent) serverLaunch(q Request) (Launch, error) {
	a.Via, a.Prompt, a.UTF8, a.MergeStderr = ViaStdin, nil, true, false
	l, err := a.Launch(q)
	l.Stdin = StdinFIFO
	return l, err
}

// converses tells whether the agent's turns go over messages.
func (a *Agent) converses() bool {
	t, err := a.Carrier()
	return err == nil && t != TransportCLI
}

// ValidSession tells whether id is of the form that is taken for an agent's
// own session id.
func ValidSession(id string) bool { return validSession(id) }
