package workbench

import "scvfs/ledger"

// JobStatus, OriginKind and TurnOrigin are the seed's types of those names.
type (
	JobStatus  = ledger.JobStatus
	OriginKind = ledger.OriginKind
	TurnOrigin = ledger.TurnOrigin
)

// JobChange tells a session's clients of a job: once as running, when it
// starts, and once how it ended, when it ends. It is the seed's JobChange.
type JobChange struct {
	Job    string    `json:"job"`
	Tool   string    `json:"tool"` // agent_<agent>
	Status JobStatus `json:"status"`
	Task   string    `json:"task,omitempty"` // first line of the prompt, shortened; empty when unknown
}

// Started tells whether the change is the job's start, rather than its end.
func (c JobChange) Started() bool { return c.Status == ledger.StatusRunning }

// JobChange returns what a change says of a job to the clients of its session;
// false for a change that is neither the start of one nor its end.
func (c Change) JobChange() (JobChange, bool) {
	j := JobChange{Job: c.Job, Tool: "agent_" + c.Agent, Status: c.Status, Task: c.Task}
	switch c.Kind {
	case JobStarted:
		j.Status = ledger.StatusRunning
		return j, true
	case JobChanged:
		return j, ledger.AgentState(c.Status).Terminal()
	}
	return JobChange{}, false
}

// OwnTurn tells a session's clients of a turn that the workbench started by
// itself.
type OwnTurn struct {
	Origin       TurnOrigin `json:"origin"`
	Job          string     `json:"job"` // the turn itself
	Conversation string     `json:"conversation"`
}

// OwnTurn returns what a change says of such a turn; false for any other one.
func (c Change) OwnTurn() (OwnTurn, bool) {
	if c.Kind != TurnStarted || c.Origin == nil {
		return OwnTurn{}, false
	}
	return OwnTurn{Origin: *c.Origin, Job: c.Job, Conversation: c.Conversation}, true
}
