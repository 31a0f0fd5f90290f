package workbench

import (
	"cmp"
	"os"
	"slices"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/activity"
)

// Snapshot is everything the workbench shows at one moment, as one document
// (DESIGN 11).
type Snapshot struct {
	Generated  time.Time          `json:"generated"`
	Sessions   []SessionSnapshot  `json:"sessions"`
	Jobs       []JobSnapshot      `json:"jobs"`      // newest first
	Runs       []RunSnapshot      `json:"runs"`      // newest first
	Approvals  []ApprovalSnapshot `json:"approvals"` // those that wait, oldest first
	Restorable []Restorable       `json:"restorable"`
}

// SessionSnapshot is a session in a snapshot.
type SessionSnapshot struct {
	ID        string    `json:"id"`
	Label     string    `json:"label"`
	Workspace string    `json:"workspace"`
	State     string    `json:"state"` // live or closed
	Agent     string    `json:"agent"`
	Jobs      int       `json:"jobs"`
	Running   int       `json:"running"`
	Queued    int       `json:"queued"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

// JobSnapshot is a job in a snapshot.
type JobSnapshot struct {
	Session      string            `json:"session"`
	Job          string            `json:"job"`
	Agent        string            `json:"agent"`
	Task         string            `json:"task"`
	Workspace    string            `json:"workspace"`
	CWD          string            `json:"cwd"`
	State        ledger.AgentState `json:"state"`
	Detail       string            `json:"detail,omitempty"`
	StartedBy    ledger.Origin     `json:"started_by"`
	Conversation string            `json:"conversation,omitempty"`
	Run          string            `json:"run,omitempty"`
	Worktree     string            `json:"worktree,omitempty"`
	Reviewed     bool              `json:"reviewed"`
	Resumable    bool              `json:"resumable"`
	ResumedAs    string            `json:"resumed_as,omitempty"`
	Created      time.Time         `json:"created"`
	Updated      time.Time         `json:"updated"`
}

// RunSnapshot is a run in a snapshot.
type RunSnapshot struct {
	Handle       string            `json:"handle"`
	Agent        string            `json:"agent"`
	Session      string            `json:"session"`
	Transport    string            `json:"transport"`
	Conversation string            `json:"conversation,omitempty"`
	Turn         int               `json:"turn,omitempty"`
	Job          string            `json:"job,omitempty"` // the one it serves now, or served last
	Jobs         []string          `json:"jobs"`
	CWD          string            `json:"cwd"`
	State        ledger.AgentState `json:"state"`
	Detail       string            `json:"detail,omitempty"`
	Started      time.Time         `json:"started"`
	LastActivity time.Time         `json:"last_activity"`
	Live         bool              `json:"live"`
	Steerable    bool              `json:"steerable"`
	Attach       Attach            `json:"attach"` // of its conversation
}

// Restorable is a prompt of a closed session, or of one cut off, that never
// ran.
type Restorable struct {
	Session string    `json:"session"`
	Job     string    `json:"job"`
	Task    string    `json:"task"`
	Saved   time.Time `json:"saved"`
}

// Snapshot returns everything the workbench shows now.
func (w *Workbench) Snapshot() Snapshot {
	snap := Snapshot{
		Generated: time.Now(), Sessions: []SessionSnapshot{}, Jobs: []JobSnapshot{}, Runs: []RunSnapshot{},
		Approvals: w.approvalSnapshots(), Restorable: []Restorable{},
	}
	var jobs []*ledger.Job
	for _, rec := range w.Sessions() {
		mine := w.Jobs(rec.ID)
		jobs = append(jobs, mine...)
		snap.Sessions = append(snap.Sessions, w.sessionSnapshot(rec, mine))
	}
	slices.SortFunc(jobs, func(a, b *ledger.Job) int { return cmp.Compare(b.Serial, a.Serial) })
	for _, rec := range jobs {
		snap.Jobs = append(snap.Jobs, jobSnapshot(rec))
		if w.restorable(rec) {
			snap.Restorable = append(snap.Restorable, Restorable{Session: rec.Session, Job: JobName(rec.Number), Task: rec.Task, Saved: rec.Updated})
		}
	}
	attach := map[string]Attach{}
	for _, rec := range w.Runs() {
		run, conv := w.runSnapshot(rec), rec.Session+"/"+rec.Conversation
		if _, known := attach[conv]; !known {
			attach[conv] = w.AttachState(rec.Session, rec.Conversation)
		}
		run.Attach = attach[conv]
		snap.Runs = append(snap.Runs, run)
	}
	return snap
}

// restorable tells whether a job's prompt never ran, and neither it nor its
// session was given up on purpose before its turn came.
func (w *Workbench) restorable(rec *ledger.Job) bool {
	if rec.Run != "" || rec.ResumedAs != "" {
		return false
	}
	if rec.State != ledger.Cancelled {
		return rec.State == ledger.Interrupted
	}
	sess, ok := w.Session(rec.Session)
	return ok && sess.Closed && rec.Cancel != nil && rec.Cancel.By == byClosing
}

func (w *Workbench) sessionSnapshot(rec *ledger.Session, jobs []*ledger.Job) SessionSnapshot {
	snap := SessionSnapshot{
		ID: rec.ID, Label: rec.Label, Workspace: rec.Workspace, State: SessionState(rec), Agent: w.DefaultAgent(rec),
		Jobs: len(jobs), Created: rec.Created, Updated: rec.Updated,
	}
	for _, j := range jobs {
		switch {
		case j.State == ledger.Queued:
			snap.Queued++
		case !j.State.Terminal():
			snap.Running++
		}
	}
	return snap
}

// SessionState is the word that tells whether a session takes jobs.
func SessionState(rec *ledger.Session) string {
	if rec.Closed {
		return "closed"
	}
	return "live"
}

func jobSnapshot(rec *ledger.Job) JobSnapshot {
	return JobSnapshot{
		Session: rec.Session, Job: JobName(rec.Number), Agent: rec.Agent, Task: rec.Task, Workspace: rec.Workspace,
		CWD: rec.CWD, State: rec.State, Detail: rec.Detail, StartedBy: rec.StartedBy, Conversation: rec.Conversation,
		Run: rec.Run, Worktree: rec.Worktree, Reviewed: rec.Reviewed, ResumedAs: rec.ResumedAs,
		Resumable: resumable("", rec, false) == nil,
		Created:   rec.Created, Updated: rec.Updated,
	}
}

func (w *Workbench) runSnapshot(rec *ledger.Run) RunSnapshot {
	snap := RunSnapshot{
		Handle: rec.ID, Agent: rec.Agent, Session: rec.Session, Transport: rec.Transport, Conversation: rec.Conversation,
		Turn: rec.Turn, CWD: rec.CWD, State: rec.State, Detail: rec.Detail, Started: rec.Created,
		LastActivity: rec.Updated, Live: w.isLive(rec.ID), Jobs: []string{},
	}
	snap.Steerable = w.steerable(rec.ID)
	if info, err := os.Stat(w.RunFile(rec.ID, activity.LogFile)); err == nil && info.ModTime().After(rec.Updated) {
		snap.LastActivity = info.ModTime()
	}
	for _, n := range rec.Jobs {
		snap.Job = address(rec.Session, n)
		snap.Jobs = append(snap.Jobs, snap.Job)
	}
	return snap
}
