package fs

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"scvfs/ledger"
	"scvfs/takeover"
	"scvfs/workbench"
	"scvfs/workbench/worktree"
)

// Bench is what the tree uses of a workbench. Records that it returns are
// shared and never changed; errors are *fault.Error.
type Bench interface {
	Sessions() []*ledger.Session
	Session(id string) (*ledger.Session, bool)
	Jobs(session string) []*ledger.Job
	Job(session string, n uint64) (*ledger.Job, bool)
	Active() []*ledger.Job
	Runs() []*ledger.Run
	Run(id string) (*ledger.Run, bool)
	RunProcess(id string) int
	RunFile(run, name string) string
	JobFile(j *ledger.Job, name string) string

	RegisterSession(id, workspace, label string) (*ledger.Session, error)
	CloseSession(id string) error
	SetLabel(id, label string) error
	SetWorkspace(id, dir string) error
	SetAgent(id, agent string) error
	DefaultAgent(s *ledger.Session) string

	Caller(pid int) workbench.Caller
	MayStart(by workbench.Caller, session string) error
	MayDirect(by workbench.Caller, j *ledger.Job) error

	PrecheckDraft(by workbench.Caller, session string, doc []byte) error
	CheckDraft(session string, d workbench.Draft) error
	Start(ctx context.Context, session string, d workbench.Draft) (string, error)
	PromptBytes() int64

	Conversations(session string) []*ledger.Conversation
	Conversation(session, id string) (*ledger.Conversation, bool)
	ConversationJobs(session, id string) []*ledger.Job
	ConversationState(session, id string) (ledger.AgentState, string)
	PrecheckSend(session, conversation string, part []byte, mode workbench.SendMode) error
	CheckSend(session, conversation string, prompt []byte, mode workbench.SendMode) error
	Send(ctx context.Context, session, conversation string, prompt []byte, mode workbench.SendMode) (string, error)
	Release(session, conversation string) error
	AttachState(session, conversation string) workbench.Attach
	AttachTerminal(ctx context.Context, session, conversation string, size takeover.Size) error
	InterruptAndAttach(ctx context.Context, session, conversation, job string, size takeover.Size) (note string, err error)
	Takeover(session, conversation string) (*workbench.Takeover, bool)
	EndTakeover(ctx context.Context, session, conversation string) (note, screen string, err error)
	PrecheckReply(by workbench.Caller, session string, n uint64, part []byte) error
	CheckReply(by workbench.Caller, session string, n uint64, prompt []byte) error
	Reply(ctx context.Context, by workbench.Caller, session string, n uint64, prompt []byte) (string, error)
	PrecheckResume(host, session string, n uint64, part []byte) error
	CheckResume(host, session string, n uint64, prompt []byte) error
	Resume(ctx context.Context, host, session string, n uint64) (string, error)
	ResumeWith(ctx context.Context, host, session string, n uint64, prompt []byte) (string, error)

	Worktrees() []worktree.Worktree
	Worktree(name string) (worktree.Worktree, bool)
	WorktreeUsers(name string) []string
	WorktreeDirty(name string) string
	RemoveWorktree(ctx context.Context, name string) error

	Approvals(session string, job uint64) []*ledger.Approval
	Approval(n uint64) (*ledger.Approval, bool)
	Answer(n uint64, text string, by workbench.Answerer) error
	Approve(session string, job uint64, line string, by workbench.Answerer) error
	Watch() (stop func())
	Looked()

	Cancel(by workbench.Caller, session string, n uint64) error
	Dismiss(by workbench.Caller, session string, n uint64) error
	Wait(ctx context.Context, session string, n uint64) (ledger.JobStatus, error)
	Seen(session string, n uint64, pid int)
	Diff(ctx context.Context, j *ledger.Job, to io.Writer) error

	Subscribe() *workbench.Subscription
	LastChange() (time.Time, uint64)
	Snapshot() workbench.Snapshot
	Agents() []workbench.AgentInfo
	Metrics() []workbench.Metric
	Maintain() error
	Version() string
	Started() time.Time
	ConfigText() []byte
}

var _ Bench = (*workbench.Workbench)(nil)

// Options are what the tree must be told beside its workbench.
type Options struct {
	// Shutdown asks the daemon to stop. It is called inside a write to /ctl,
	// so it must return without waiting for the tree to be idle.
	Shutdown func()
	// Maintain is the verb of /ctl; nil means the workbench's own.
	Maintain func() error
	// Clock says what time it is; nil means time.Now.
	Clock func() time.Time
	// WorkDir is where the daemon started: the workspace of a session that
	// mkdir makes.
	WorkDir string
	// MountPoint is where README says that the tree is; empty when nothing is
	// mounted. It is never looked at.
	MountPoint string
	// Log takes a line for each refused write; nil means none.
	Log *slog.Logger
}

// Tree is the file tree of one workbench. It is safe for concurrent use, and
// any number of transports may serve it at once.
type Tree struct {
	bench     Bench
	opt       Options
	subscribe func() feed
	closings  closings
	outcomes  outcomes
	refusals  refusals
	snapshot  kept
	metrics   kept
	config    kept
	home      string // of the owner, for people; may be empty
}

// feed is the part of a subscription that streams use.
type feed interface {
	// Next waits for changes. With a context that has ended already it
	// returns those that are there, or else fault.Interrupted.
	Next(ctx context.Context) ([]workbench.Change, error)
}

// New returns the tree of b. It starts nothing and needs no closing.
func New(b Bench, opt Options) *Tree {
	if opt.Shutdown == nil {
		opt.Shutdown = func() {}
	}
	if opt.Maintain == nil {
		opt.Maintain = b.Maintain
	}
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	home, _ := os.UserHomeDir()
	return &Tree{bench: b, opt: opt, subscribe: func() feed { return b.Subscribe() }, home: home}
}

// Root returns the top directory.
func (t *Tree) Root() Dir {
	at := site{t: t, path: "/", ino: rootIno, lasting: true, readers: listers}
	return tableDir[none]{site: at, table: &rootTable, get: nothing}
}

// lastChange is when anything that the ledger knows changed last.
func (t *Tree) lastChange() time.Time {
	at, _ := t.bench.LastChange()
	return latest(at, t.bench.Started())
}

// latest returns the newest of some times.
func latest(first time.Time, more ...time.Time) time.Time {
	for _, m := range more {
		if m.After(first) {
			first = m
		}
	}
	return first
}
