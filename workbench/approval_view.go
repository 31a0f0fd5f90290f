package workbench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scvfs/ledger"
)

// ApprovalSnapshot is a waiting request in a snapshot.
type ApprovalSnapshot struct {
	Approval     uint64            `json:"approval"` // its number
	Session      string            `json:"session"`
	Job          string            `json:"job"`
	Run          string            `json:"run"`
	Conversation string            `json:"conversation,omitempty"`
	Agent        string            `json:"agent"`
	Kind         string            `json:"kind"`
	Risk         string            `json:"risk"`
	Tool         string            `json:"tool,omitempty"`
	Summary      string            `json:"summary"`
	CWD          string            `json:"cwd"`
	Questions    []ledger.Question `json:"questions,omitempty"`
	Created      time.Time         `json:"created"`
	Deadline     time.Time         `json:"deadline"`
}

func (w *Workbench) approvalSnapshots() []ApprovalSnapshot {
	snaps := []ApprovalSnapshot{}
	for _, rec := range w.Approvals("", 0) {
		snaps = append(snaps, ApprovalSnapshot{
			Approval: rec.Number, Session: rec.Session, Job: JobName(rec.Job), Run: rec.Run, Conversation: rec.Conversation,
			Agent: rec.Agent, Kind: rec.Kind, Risk: rec.Risk, Tool: rec.Tool, Summary: rec.Summary, CWD: rec.CWD,
			Questions: rec.Questions, Created: rec.Created, Deadline: rec.Deadline,
		})
	}
	return snaps
}

// metrics returns the numbers of approvals.
func (s *approvals) metrics() []Metric {
	s.mu.RLock()
	defer s.mu.RUnlock()
	metrics := []Metric{{
		Name: "scvfs_approvals_waiting", Help: "Requests of agents that wait for an answer.", Type: "gauge", Value: float64(len(s.waiting)),
	}}
	keys := make([]outcome, 0, len(s.counts))
	for o := range s.counts {
		keys = append(keys, o)
	}
	slices.SortFunc(keys, func(a, b outcome) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.by, b.by)) })
	for _, o := range keys {
		metrics = append(metrics, Metric{
			Name: "scvfs_approvals_total", Help: "Requests of agents that were decided since the daemon started.", Type: "counter",
			Labels: fmt.Sprintf("outcome=%q,by=%q", o.state, o.by), Value: float64(s.counts[o]),
		})
	}
	return metrics
}
