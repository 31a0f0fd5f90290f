package workbench

import (
	"scvfs/workbench/dialogue"
)

// The policies of the unattended gate (DESIGN 9).
const (
	policyOnRisk = "on-risk" // allows what only reads
	policyAlways = "always"  // allows nothing unasked
	policyNever  = "never"   // on-risk, and asks nobody
)

// ruling is what the gate says of a request.
type ruling struct {
	allow bool
	waits bool   // it may wait for an owner who watches
	why   string // what decides, in a few words
}

// rule is the gate: what it allows is allowed whoever watches, and what it
// denies may wait, unless it is to ask nobody. A question has no answer but the
// owner's.
func rule(policy string, full bool, kind dialogue.Kind, risk dialogue.Risk) ruling {
	r := ruling{why: "policy " + policy, waits: policy != policyNever}
	switch {
	case kind == dialogue.Question:
	case full:
		r.allow, r.why = true, "permissions full"
	case risk == dialogue.ReadOnly:
		r.allow = policy != policyAlways
	}
	return r
}

// ruleOn is the gate for a request of an agent.
func (w *Workbench) ruleOn(agent string, q dialogue.Ask) ruling {
	a, err := w.agent(agent)
	return rule(w.opt.Config.Policy, err == nil && a.FullPermissions(), q.Kind, q.Risk)
}

// denial is what the agent is told of a request that the gate denied.
func (r ruling) denial(kind dialogue.Kind, because string) string {
	if kind == dialogue.Question {
		return "nobody answers: " + because + "; go on by your own judgement, or stop and say what you need to know"
	}
	return "not allowed (" + r.why + "): " + because + "; do without it, or stop and say what you need"
}
