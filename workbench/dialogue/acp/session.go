package acp

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue/internal/wire"
)

const (
	// probe is a request that no server knows. Its refusal tells that all that
	// was sent before is read.
	probe = "_scvfs/probe"
	// maxProbes is how often a server is asked so whether it is quiet.
	maxProbes = 100
)

// greet begins the connection. Questions are taken as forms; files and
// terminals are the server's own.
func (t *talk) greet() {
	hello := sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "scvfs", Version: cmp.Or(t.o.Version, "0")},
	}
	hello.ClientCapabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.ElicitationFormCapabilities{}}
	t.request(sdk.AgentMethodInitialize, hello)
}

// greeted takes what the server can do, and opens the session.
func (t *talk) greeted(m *incoming, text []byte) {
	if len(m.Error) > 0 {
		t.s.Step = refused
		t.refuse(refusal{Answer: text})
		return
	}
	var told struct {
		Version int `json:"protocolVersion"`
		Can     struct {
			Load    bool                       `json:"loadSession"`
			Session struct{ Resume *struct{} } `json:"sessionCapabilities"`
			Meta    struct {
				Claude struct{ PromptQueueing bool } `json:"claudeCode"`
			} `json:"_meta"`
		} `json:"agentCapabilities"`
	}
	decode(m.Result, &told)
	if told.Version != sdk.ProtocolVersionNumber {
		t.s.Step = refused
		t.refuse(refusal{Why: fmt.Sprintf("%s speaks version %d of ACP, and scvfs version %d: install a version of it that speaks that",
			t.o.Agent.Name, told.Version, sdk.ProtocolVersionNumber)})
		return
	}
	t.s.Loads, t.s.Resumes, t.s.Queues = told.Can.Load, told.Can.Session.Resume != nil, told.Can.Meta.Claude.PromptQueueing
	t.open()
}

// open starts the session, or continues the one that is to be continued. One
// that was opened before is only set.
func (t *talk) open() {
	t.s.Step, t.s.Refusal = opening, refusal{}
	session := sdk.SessionId(t.s.Wants.Session)
	switch {
	case !utf8.Valid(t.s.Wants.CWD):
		t.s.Step = shut
		t.refuse(refusal{Why: fmt.Sprintf("%q is no directory that ACP can name, as its name is not UTF-8: use another one", t.s.Wants.CWD)})
	case t.s.Server != "":
		t.set(0)
	case session == "":
		t.request(sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: string(t.s.Wants.CWD), McpServers: []sdk.McpServer{}})
	case t.s.Resumes:
		t.request(sdk.AgentMethodSessionResume, sdk.ResumeSessionRequest{SessionId: session, Cwd: string(t.s.Wants.CWD), McpServers: []sdk.McpServer{}})
	case t.s.Loads:
		t.request(sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{SessionId: session, Cwd: string(t.s.Wants.CWD), McpServers: []sdk.McpServer{}})
	default:
		t.s.Step = shut
		t.refuse(refusal{Why: t.o.Agent.Name + " cannot continue a conversation: its ACP server offers neither session/load nor session/resume; start a new one"})
	}
}

// opened takes the answer to that.
func (t *talk) opened(method string, m *incoming, text []byte) {
	if len(m.Error) > 0 {
		t.s.Step = shut
		t.refuse(refusal{Answer: t.sessionError(method, m, text)})
		return
	}
	var told struct {
		Session string `json:"sessionId"`
		Meta    struct {
			Pi struct{ StartupInfo string } `json:"piAcp"`
		} `json:"_meta"`
	}
	decode(m.Result, &told)
	t.s.Server = told.Session
	if method != sdk.AgentMethodSessionNew {
		t.s.Server = t.s.Wants.Session
	} else {
		var none float64
		t.s.Cost = &none
	}
	if t.s.Server == "" {
		t.s.Step = shut
		t.refuse(refusal{Why: t.o.Agent.Name + " opened a session without an id: check that its command is an ACP server"})
		return
	}
	t.Learn(t.s.Server)
	t.s.Greeted = wire.Clip(told.Meta.Pi.StartupInfo, 8<<10)
	t.s.Offers = offered(m.Result)
	if method == sdk.AgentMethodSessionLoad {
		t.s.Step, t.s.Probes = listening, 0
		t.probe()
		return
	}
	t.set(0)
}

// authRequired is the code of an error that asks for signing in.
const authRequired = -32000

// sessionError is an error's line, from which the parser sees that it is the
// session that could not be continued. Most servers do not say so.
func (t *talk) sessionError(method string, m *incoming, text []byte) []byte {
	var e map[string]any
	if !decode(m.Error, &e) || method == sdk.AgentMethodSessionNew || e["code"] == float64(authRequired) {
		return text
	}
	e = maps.Clone(e)
	message, _ := e["message"].(string)
	e["message"] = strings.TrimSuffix("session not found: "+message, ": ")
	return wire.JSON(map[string]any{"error": e})
}

// probe asks whether the server has said all.
func (t *talk) probe() {
	t.s.Told = false
	t.s.Probes++
	t.request(probe, struct{}{})
}

// probed is that all that was told before the probe is read. What was told
// since, more may follow.
func (t *talk) probed() {
	switch {
	case t.s.Step != listening:
	case t.s.Told && t.s.Probes < maxProbes:
		t.probe()
	default:
		t.set(0)
	}
}

// refuse ends the turn that waits, if one does, for a reason that is kept for
// the next one.
func (t *talk) refuse(why refusal) {
	t.s.Refusal = refusal{Answer: append([]byte(nil), why.Answer...), Why: why.Why}
	if !t.s.Busy {
		return
	}
	t.clear()
	if why.Why == "" {
		t.Parse(why.Answer)
		t.End()
		return
	}
	t.EndAs(agent.Outcome{Status: agent.StatusFailed, Error: why.Why, Session: t.Session()})
}
