package workbench

import (
	"context"
	"io"
	"time"

	"scvfs/ledger"
)

// JobName returns the name of job number n: job-<n>.
func JobName(n uint64) string { panic("stub") }

// ParseJobName returns the number in a job's name; ok is false for anything
// but the exact form that JobName makes.
func ParseJobName(name string) (n uint64, ok bool) { panic("stub") }

// Sessions returns all sessions, open and closed, by name.
func (w *Workbench) Sessions() []*ledger.Session { panic("stub") }

// Session returns one session's record; it is shared and not to be changed.
func (w *Workbench) Session(id string) (*ledger.Session, bool) { panic("stub") }

// Jobs returns the records of a session's jobs, oldest first.
func (w *Workbench) Jobs(session string) []*ledger.Job { panic("stub") }

// Job returns one job's record; it is shared and not to be changed.
func (w *Workbench) Job(session string, n uint64) (*ledger.Job, bool) { panic("stub") }

// Active returns the jobs that have not ended, of all sessions, oldest first.
func (w *Workbench) Active() []*ledger.Job { panic("stub") }

// Runs returns the records of all runs, newest first. Run returns one.
func (w *Workbench) Runs() []*ledger.Run { panic("stub") }

// Run returns one run's record.
func (w *Workbench) Run(id string) (*ledger.Run, bool) { panic("stub") }

// RunProcess returns the pid of a live run's agent, 0 when it has ended.
func (w *Workbench) RunProcess(id string) int { panic("stub") }

// RunFile returns the path of a file of a run's directory: log, events, stderr.
func (w *Workbench) RunFile(run, name string) string { panic("stub") }

// JobFile returns the path of a job's prompt or result.
func (w *Workbench) JobFile(j *ledger.Job, name string) string { panic("stub") }

// RegisterSession makes a live session, or opens a closed one again.
func (w *Workbench) RegisterSession(id, workspace, label string) (*ledger.Session, error) { panic("stub") }

// CloseSession cancels a session's jobs and makes it read-only; one without
// jobs is forgotten.
func (w *Workbench) CloseSession(id string) error { panic("stub") }

// SetLabel, SetWorkspace and SetAgent change a live session.
func (w *Workbench) SetLabel(id, label string) error { panic("stub") }

// SetWorkspace changes the directory that new jobs run in.
func (w *Workbench) SetWorkspace(id, dir string) error { panic("stub") }

// SetAgent changes the agent that plain prompts go to.
func (w *Workbench) SetAgent(id, agent string) error { panic("stub") }

// Draft is a parsed document that was written to start.
type Draft struct {
	Call   ledger.Call
	Prompt []byte
}

// ParseDraft reads a document: a JSON agent call, a prompt with a #!scv line,
// or a plain prompt.
func ParseDraft(doc []byte) (Draft, error) { panic("stub") }

// PrecheckDraft looks at the part of a document that has come so far and
// refuses what no continuation can mend: a session that is closed, more than
// limits.prompt_bytes, a NUL, a complete first line or JSON object that would
// be refused.
func (w *Workbench) PrecheckDraft(session string, doc []byte) error { panic("stub") }

// CheckDraft makes every check that Start would make, and starts nothing.
func (w *Workbench) CheckDraft(session string, d Draft) error { panic("stub") }

// Start starts the owner's job in a live session and returns its address.
func (w *Workbench) Start(ctx context.Context, session string, d Draft) (string, error) { panic("stub") }

// Cancel stops a job. It returns once that is recorded; the job says cancelled
// when its whole process tree is empty.
func (w *Workbench) Cancel(session string, n uint64) error { panic("stub") }

// Dismiss forgets a job that has ended.
func (w *Workbench) Dismiss(session string, n uint64) error { panic("stub") }

// Wait returns a job's status once it has ended.
func (w *Workbench) Wait(ctx context.Context, session string, n uint64) (ledger.JobStatus, error) { panic("stub") }

// Diff writes git's diff of the job's worktree or directory against where it
// started; nothing outside a repository.
func (w *Workbench) Diff(ctx context.Context, j *ledger.Job, to io.Writer) error { panic("stub") }

// Subscribe reads all changes from now on.
func (w *Workbench) Subscribe() *Subscription { panic("stub") }

// LastChange returns when anything last changed, and a number that grows with
// each change, for caches of what is drawn from the whole.
func (w *Workbench) LastChange() (time.Time, uint64) { panic("stub") }

// Snapshot returns everything the workbench shows now (DESIGN 11).
func (w *Workbench) Snapshot() Snapshot { panic("stub") }

// Snapshot is the document of DESIGN 11; it marshals to JSON.
type Snapshot struct{}

// JobChange is the seed's scv_protocol::JobChange.
type JobChange struct {
	Job    string           `json:"job"`
	Tool   string           `json:"tool"`
	Status ledger.JobStatus `json:"status"`
	Task   string           `json:"task,omitempty"`
}

// AgentInfo is what agents/<agent>/ shows.
type AgentInfo struct {
	Name      string
	Offered   string // "yes", or "no: " and why
	Command   string
	Transport string
	Models    string
	Resume    string // "yes" or "no: " and why
	Takeover  string
	Signin    string
}

// Agents returns the table, by name.
func (w *Workbench) Agents() []AgentInfo { panic("stub") }

// Metric is one number of /metrics.
type Metric struct {
	Name, Help, Type string // Type: gauge or counter
	Labels           string // `state="running"`, without braces; may be empty
	Value            float64
}

// Metrics returns the numbers of /metrics, those of one name together.
func (w *Workbench) Metrics() []Metric { panic("stub") }

// Maintain settles what stopped processes left unfinished and removes what is
// older than limits.keep. It runs at start and every minute, and on request.
func (w *Workbench) Maintain() error { panic("stub") }

// Version is the line of /version.
func (w *Workbench) Version() string { panic("stub") }

// Started is when this daemon started.
func (w *Workbench) Started() time.Time { panic("stub") }

// PromptBytes is limits.prompt_bytes.
func (w *Workbench) PromptBytes() int64 { panic("stub") }

// ConfigText is /config: the configuration in force with where each value
// came from.
func (w *Workbench) ConfigText() []byte { panic("stub") }
