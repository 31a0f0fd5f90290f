package workbench

import (
	"strings"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// AgentInfo is what agents/<agent>/ shows.
type AgentInfo struct {
	Name      string
	Offered   string // "yes", or "no: " and why
	Command   string
	Transport string
	Models    string
	Resume    string // "yes", or "no: " and why
	Takeover  string
	Signin    string
}

// agent returns an entry of the table.
func (w *Workbench) agent(name string) (*agent.Agent, error) {
	a, ok := w.opt.Agents.Lookup(name)
	if !ok {
		return nil, fault.New(fault.Invalid, "there is no agent %q; ls agents/ shows those there are", name)
	}
	return a, nil
}

// offered returns an entry whose program can be run.
func (w *Workbench) offered(name string) (*agent.Agent, error) {
	a, err := w.agent(name)
	if err != nil {
		return nil, err
	}
	if _, why := a.Offered(w.look); why != "" {
		return nil, fault.New(fault.Invalid, "agent %s is not offered: %s", name, why)
	}
	return a, nil
}

// Agents returns the table, by name.
func (w *Workbench) Agents() []AgentInfo {
	var all []AgentInfo
	for _, name := range w.opt.Agents.Names() {
		a, _ := w.opt.Agents.Lookup(name)
		all = append(all, w.agentInfo(a))
	}
	return all
}

func (w *Workbench) agentInfo(a *agent.Agent) AgentInfo {
	info := AgentInfo{
		Name: a.Name, Command: a.Command, Models: strings.Join(a.Models, " "), Signin: a.Signin,
		Takeover: yesOrNo(a.TerminalOffered()),
	}
	if info.Resume = "yes"; !a.Resumes() {
		info.Resume = "no: it cannot continue a conversation"
	}
	path, why := a.Offered(w.look)
	info.Offered = yesOrNo(why)
	if path != "" {
		info.Command = path
	}
	info.Transport, _ = a.Carrier()
	return info
}

// yesOrNo is "yes", or "no: " and why.
func yesOrNo(why string) string {
	if why == "" {
		return "yes"
	}
	return "no: " + why
}
