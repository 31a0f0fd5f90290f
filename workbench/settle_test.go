package workbench

import (
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

func TestVerdict(t *testing.T) {
	asked := &ledger.Cancel{By: "the owner", At: time.Unix(1, 0)}
	for _, c := range []struct {
		name   string
		cancel *ledger.Cancel
		exit   run.Exit
		known  bool
		out    agent.Outcome
		state  ledger.AgentState
		words  string // of the exit file
		detail string
	}{
		{"exit 0", nil, run.Exit{}, true, agent.Outcome{}, ledger.Completed, "exit 0", ""},
		{"exit 3", nil, run.Exit{Code: 3}, true, agent.Outcome{}, ledger.Failed, "exit 3", "exit 3"},
		{"signal", nil, run.Exit{Code: -1, Signal: "SEGV"}, true, agent.Outcome{}, ledger.Failed, "signal SEGV", "signal SEGV"},
		{"limit", nil, run.Exit{Code: -1, Signal: "TERM", TimedOut: time.Hour}, true, agent.Outcome{}, ledger.TimedOut, "timeout 1h0m0s", "stopped at its time limit of 1h0m0s"},
		{"not started", nil, run.Exit{Code: -1, StartError: "no such program"}, true, agent.Outcome{}, ledger.Failed, "not started", "no such program"},
		{"shim gone", nil, run.Exit{}, false, agent.Outcome{}, ledger.Interrupted, "shim killed", "its shim was killed; its processes were stopped"},
		{"stopped by a stranger", nil, run.Exit{Code: -1, Signal: "TERM", Stopped: true}, true, agent.Outcome{}, ledger.Interrupted, "signal TERM", "its shim was told to stop by something other than scvfs"},
		{"cancelled", asked, run.Exit{Code: -1, Signal: "TERM", Stopped: true}, true, agent.Outcome{}, ledger.Cancelled, "signal TERM", "by the owner"},
		{"cancelled, but it ended by itself", asked, run.Exit{}, true, agent.Outcome{}, ledger.Cancelled, "exit 0", "by the owner"},
		{"cancelled, and its shim killed", asked, run.Exit{}, false, agent.Outcome{}, ledger.Cancelled, "shim killed", "by the owner"},
		{"the stream is believed over exit 0", nil, run.Exit{}, true, agent.Outcome{Status: agent.StatusFailed, Error: "rate limited"}, ledger.Failed, "exit 0", "rate limited"},
		{"the stream is believed over exit 144", nil, run.Exit{Code: 144}, true, agent.Outcome{Status: agent.StatusCompleted}, ledger.Completed, "exit 144", ""},
		{"refused", nil, run.Exit{}, true, agent.Outcome{Status: agent.StatusDeclined, Error: "it will not"}, ledger.Declined, "exit 0", "it will not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			end := verdict(c.cancel, c.exit, c.known, c.out)
			if end.state != c.state || end.exit != c.words || end.detail != c.detail {
				t.Errorf("%s, %q, %q; want %s, %q, %q", end.state, end.exit, end.detail, c.state, c.words, c.detail)
			}
		})
	}
}

// Terminal is terminal, and every state that DESIGN 6 draws an arrow to is
// reached by just those arrows.
func TestStatesFollowOneAnother(t *testing.T) {
	states := []ledger.AgentState{ledger.Queued, ledger.Starting, ledger.Working, ledger.AwaitingInput}
	allowed := map[[2]ledger.AgentState]bool{
		{ledger.Queued, ledger.Starting}: true, {ledger.Starting, ledger.Starting}: true, {ledger.Starting, ledger.Working}: true,
		{ledger.Working, ledger.AwaitingInput}: true, {ledger.AwaitingInput, ledger.Working}: true,
		{ledger.AwaitingInput, ledger.AwaitingInput}: true, // for another request
	}
	for _, from := range states {
		for _, to := range states {
			if follows(from, to) != allowed[[2]ledger.AgentState{from, to}] {
				t.Errorf("%s to %s: %v", from, to, follows(from, to))
			}
		}
		for _, end := range terminal {
			if !follows(from, end) {
				t.Errorf("%s cannot end as %s", from, end)
			}
		}
	}
	for _, end := range terminal {
		for _, to := range append(states, terminal...) {
			if follows(end, to) {
				t.Errorf("%s goes on as %s", end, to)
			}
		}
	}
}

func TestOwnUsage(t *testing.T) {
	before := &ledger.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: 1}
	if u := ownUsage(&agent.Usage{InputTokens: 150, OutputTokens: 12, CostUSD: 1.5, Total: true}, before); *u != (ledger.Usage{InputTokens: 50, OutputTokens: 2, CostUSD: 0.5}) {
		t.Errorf("of a total: %+v", u)
	}
	if u := ownUsage(&agent.Usage{InputTokens: 50}, before); u.InputTokens != 50 {
		t.Errorf("of a turn: %+v", u)
	}
	if u := ownUsage(nil, before); u != nil {
		t.Errorf("of nothing: %+v", u)
	}
}
