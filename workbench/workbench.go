// Package workbench holds the rules: sessions, their jobs, who may run when,
// and how each job ends.
//
// The ledger is the truth on disk; what this package publishes in memory is
// what the ledger has made durable, never more. A record, once published, is
// never changed: a new state is a new record. So readers (the tree) take no
// lock for longer than a map look-up, and never wait for a disk.
//
// # The way of a job
//
// Start checks everything, writes the prompt, commits the job and, when a slot
// is free, its run, and hands it to a turn: one goroutine that launches the
// run, feeds its output through the agent's parser into the activity log, and
// settles it. A daemon that dies leaves the run's shim going; the next one
// adopts the run and replays its output from the last checkpoint.
//
// # Lock order
//
// session.tr is held over a state change of that session or any job of it,
// including the commit; take it first, and never two. job.after comes next,
// over what changes of a job that has ended; who holds that of one job of
// another session takes no second one. Workbench.mu and
// session.mu guard the published maps, are leaves, and are never held over
// anything that can block. The change stream and the approvals have leaf locks
// of their own. An asker is told of a decision with no lock held.
//
// # Invariants
//
//   - A state change is durable before anyone can see it, and changes that
//     come together are one commit.
//   - Terminal is terminal: no record follows a terminal one (follows).
//   - At most limits.jobs turns of a session run; the others wait first in,
//     first out.
//   - A slot is free before the result of the job that held it can be seen.
//   - A request of an agent is decided at most once, and what is decided is
//     durable before the agent hears of it. A job awaits input exactly as long
//     as a request of it waits.
//   - A run is started at most once (package run's claim), so no prompt is
//     sent twice, whoever dies when.
package workbench

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/agent"
	"scvfs/workbench/config"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/run"
	"scvfs/workbench/worktree"
)

// Options is what a workbench stands on.
type Options struct {
	State  string // directory of the state; jobs/ below it is the workbench's
	Mount  string // resolved mount point, which no job may work in; may be empty
	Ledger *ledger.Ledger
	Runs   Runs
	// Worktrees keeps the worktrees of jobs that ask for one.
	Worktrees *worktree.Manager
	Agents    *agent.Table
	Config    *config.Config
	Log       *slog.Logger
	// Dialogues makes the dialogue of a transport; nil: those of the packages
	// below package dialogue.
	Dialogues func(transport string, o dialogue.Options) (dialogue.Dialogue, error)
	Umask     *int   // of agents; nil: the daemon's
	Shell     string // the owner's, which is the terminal of the shell agent; empty: that agent's own
	Version   string
}

// Runs is what the workbench needs of package run.
type Runs interface {
	Create(spec run.Spec, stdin io.Reader) error
	Start(id string) (run.Process, error)
	Adopt(id string) (run.Process, run.Standing, error)
	Follow(id, file string) (*run.Follow, error)
	Punch(id string, upTo int64) error
	Path(id, file string) string
	List() ([]string, error)
	AgentAlive(id string) bool
	Standing(id string) (run.Standing, error)
	Remove(id string) error
	RemoveTmp(id string) error
	Input(id string) (*os.File, error)
	EndInput(id string) error
	StartTerminal(id string) (run.TerminalProcess, *os.File, error)
	Origin(pid int) run.Origin
	Tidy()
}

var _ Runs = (*run.Manager)(nil)

// Workbench is the daemon's workbench. New makes one, Close ends it.
type Workbench struct {
	opt     Options
	log     *slog.Logger
	limits  config.Limits
	look    agent.LookPath
	changes *changes
	started time.Time

	// ctx ends when the daemon stops; turns leave their runs alone then.
	ctx    context.Context
	cancel context.CancelFunc
	turns  sync.WaitGroup

	mu       sync.RWMutex
	sessions map[string]*session
	making   map[string]*session // names whose first record is being committed
	runs     map[string]*ledger.Run
	live     map[string]run.Process // runs that have a process now
	serial   uint64                 // the last serial given to a session or job
	closing  bool                   // no turn starts any more
	taken    map[*Takeover]bool     // takeovers that run or start
	servers  map[string]*server     // by their run

	noTakeovers bool // none starts any more
	bad         int  // ledger records that could not be read
	ended       map[ledger.AgentState]uint64
	lastTime    time.Time                    // of the last change
	trees       map[string]worktree.Worktree // that are there
	removing    map[string]bool              // worktrees
	dirty       map[string]dirtyWord

	approvals approvals
}

// session is a session with its jobs.
type session struct {
	// tr is held over every state change of the session and of its jobs.
	tr      sync.Mutex
	queue   []*job // waiting for a slot, first in first out
	running int    // turns that hold a slot
	// due are jobs that ended and that the agents which started them are to be
	// told of, in the order of their ends; reporting says that a goroutine
	// prepares a turn for some. tr guards both.
	due       []*job
	reporting bool

	mu    sync.RWMutex
	rec   *ledger.Session
	jobs  map[uint64]*job
	order []*job          // by number
	open  map[uint64]*job // those that have not ended
	convs map[string]*conversation
	lanes map[string][]*job // by conversation, also of one that is forgotten
}

func newSession(rec *ledger.Session) *session {
	return &session{
		rec: rec, jobs: map[uint64]*job{}, open: map[uint64]*job{}, convs: map[string]*conversation{}, lanes: map[string][]*job{},
	}
}

// New opens the workbench over what the ledger holds, adopts or settles every
// run that has not ended, and starts what waits.
func New(opt Options) (*Workbench, error) {
	home, _ := os.UserHomeDir() // without one, only PATH is searched
	ctx, cancel := context.WithCancel(context.Background())
	w := &Workbench{
		look: agent.NewLookPath(home, os.Getenv("PATH")),
		opt:  opt, log: opt.Log, limits: opt.Config.Limits, changes: newChanges(), started: time.Now(), lastTime: time.Now(),
		ctx: ctx, cancel: cancel,
		sessions: map[string]*session{}, making: map[string]*session{}, runs: map[string]*ledger.Run{}, live: map[string]run.Process{}, taken: map[*Takeover]bool{}, servers: map[string]*server{},
		ended: map[ledger.AgentState]uint64{}, trees: map[string]worktree.Worktree{}, removing: map[string]bool{}, dirty: map[string]dirtyWord{},
		approvals: newApprovals(),
	}
	if err := w.load(); err != nil {
		cancel()
		return nil, err
	}
	w.loadWorktrees()
	w.armAll()
	w.recover()
	w.turns.Go(w.maintainEveryMinute)
	return w, nil
}

// Close ends all takeovers and stops watching. Jobs go on: their shims hold
// them, and the next daemon adopts them. It returns when nothing of the workbench runs any more.
func (w *Workbench) Close() {
	end, stop := context.WithTimeout(context.Background(), 4*w.limits.Grace.Duration()+time.Second)
	w.EndTakeovers(end)
	stop()
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.cancel()
	w.disarmAll()
	w.turns.Wait()
}

// spawn runs f as a turn, unless the workbench is closing.
func (w *Workbench) spawn(f func()) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closing {
		return false
	}
	w.turns.Go(f)
	return true
}

// session returns the session of that name; nil when there is none.
func (w *Workbench) session(id string) *session {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.sessions[id]
}

// nextSerial gives a number that no session or job had before. It is durable
// with the commit of the record that carries it.
func (w *Workbench) nextSerial() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	return w.serial
}

// announce publishes a change to the event stream.
func (w *Workbench) announce(c Change) {
	c.Time = time.Now()
	w.mu.Lock()
	w.lastTime = c.Time
	w.mu.Unlock()
	w.changes.publish(c)
}

// Subscribe reads all changes from now on.
func (w *Workbench) Subscribe() *Subscription { return w.changes.subscribe() }

// LastChange returns when anything last changed, and a number that grows with
// each change, for caches of what is drawn from the whole.
func (w *Workbench) LastChange() (time.Time, uint64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.lastTime, w.changes.last()
}

// Version is the line of /version.
func (w *Workbench) Version() string { return w.opt.Version }

// Started is when this daemon started.
func (w *Workbench) Started() time.Time { return w.started }

// PromptBytes is limits.prompt_bytes.
func (w *Workbench) PromptBytes() int64 { return int64(w.limits.PromptBytes) }

// ConfigText is /config: the configuration in force with where each value
// came from.
func (w *Workbench) ConfigText() []byte { return w.opt.Config.Render() }
