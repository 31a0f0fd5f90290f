package fs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench"
	"scvfs/workbench/worktree"
)

// fake is a workbench in memory: jobs change when a test says so. What it does
// not implement panics.
type fake struct {
	Bench
	dir   string
	limit int64

	mu       sync.Mutex
	at       time.Time
	serial   uint64
	sessions map[string]*ledger.Session
	jobs     map[string][]*ledger.Job
	convs    map[string][]*ledger.Conversation
	runs     []*ledger.Run
	prompts  []string // of the jobs that were started, in order
	full     bool     // Start and CheckDraft refuse
	failing  bool     // Start alone refuses
	starting chan struct{}
	diff     string
	diffs    int

	approvals []*ledger.Approval
	askedBy   map[uint64]uint64 // serials of the jobs, by the number of a request
	watchers  int
	looks     int
	callers   map[int]workbench.Caller // by pid; the others are the owner's

	worktrees []worktree.Worktree
	dirty     string

	seen []string // "job-1 by 4242" for each call of Seen

	changes []workbench.Change
	wake    chan struct{}
	done    map[uint64]chan struct{}
}

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func newFake(dir string) *fake {
	return &fake{
		dir: dir, limit: 1 << 20, at: epoch,
		sessions: map[string]*ledger.Session{}, jobs: map[string][]*ledger.Job{}, convs: map[string][]*ledger.Conversation{},
		askedBy: map[uint64]uint64{},
		wake:    make(chan struct{}), done: map[uint64]chan struct{}{},
	}
}

// newTree returns a tree over a fake, in which nothing has happened yet.
func newTree(t testing.TB) (*Tree, *fake) {
	f := newFake(t.TempDir())
	return f.tree(Options{WorkDir: "/src", MountPoint: "/home/u/scv"}), f
}

func (f *fake) tree(opt Options) *Tree {
	opt.Clock = f.clock
	t := New(f, opt)
	t.subscribe = f.feed
	return t
}

// clock moves on by a second each time that it is asked.
func (f *fake) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tick()
}

func (f *fake) tick() time.Time {
	f.at = f.at.Add(time.Second)
	return f.at
}

func (f *fake) publish(c workbench.Change) {
	c.Seq, c.Time = uint64(len(f.changes)+1), f.at
	f.changes = append(f.changes, c)
	close(f.wake)
	f.wake = make(chan struct{})
}

// fakeFeed reads a fake's changes.
type fakeFeed struct {
	f    *fake
	next int
}

func (f *fake) feed() feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &fakeFeed{f, len(f.changes)}
}

func (u *fakeFeed) Next(ctx context.Context) ([]workbench.Change, error) {
	for {
		u.f.mu.Lock()
		got, wake := slices.Clone(u.f.changes[u.next:]), u.f.wake
		u.f.mu.Unlock()
		if u.next += len(got); len(got) > 0 {
			return got, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, fault.New(fault.Interrupted, "interrupted")
		}
	}
}

func (f *fake) Sessions() []*ledger.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*ledger.Session
	for _, s := range f.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *ledger.Session) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (f *fake) Session(id string) (*ledger.Session, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	return s, ok
}

func (f *fake) Jobs(session string) []*ledger.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.jobs[session])
}

func (f *fake) Job(session string, n uint64) (*ledger.Job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index(session, n)
	if i < 0 {
		return nil, false
	}
	return f.jobs[session][i], true
}

func (f *fake) index(session string, n uint64) int {
	i, ok := slices.BinarySearchFunc(f.jobs[session], n, func(j *ledger.Job, n uint64) int { return int(j.Number) - int(n) })
	if !ok {
		return -1
	}
	return i
}

func (f *fake) Active() []*ledger.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*ledger.Job
	for _, jobs := range f.jobs {
		for _, j := range jobs {
			if !j.State.Terminal() {
				all = append(all, j)
			}
		}
	}
	slices.SortFunc(all, func(a, b *ledger.Job) int { return int(a.Serial) - int(b.Serial) })
	return all
}

func (f *fake) Runs() []*ledger.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Clone(f.runs)
	slices.Reverse(all)
	return all
}

func (f *fake) Run(id string) (*ledger.Run, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.runs, func(r *ledger.Run) bool { return r.ID == id })
	if i < 0 {
		return nil, false
	}
	return f.runs[i], true
}

func (f *fake) RunProcess(id string) int {
	if r, ok := f.Run(id); ok && r.Ended.IsZero() {
		return 4711
	}
	return 0
}

func (f *fake) RunFile(run, name string) string { return filepath.Join(f.dir, "runs", run, name) }

func (f *fake) JobFile(j *ledger.Job, name string) string {
	return filepath.Join(f.dir, "jobs", fmt.Sprint(j.Serial), name)
}

func (f *fake) RegisterSession(id, workspace, label string) (*ledger.Session, error) {
	if err := workbench.CheckSessionID(id); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(workspace, "/") {
		return nil, fault.New(fault.Invalid, "%q is not an absolute path", workspace)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.tick()
	s := &ledger.Session{ID: id, NextJob: 1, Created: now}
	if old := f.sessions[id]; old != nil {
		if !old.Closed {
			return nil, fault.New(fault.Exists, "session %s exists already", id)
		}
		*s = *old
	} else {
		f.serial++
		s.Serial = f.serial
	}
	s.Workspace, s.Label, s.Closed, s.Updated = workspace, label, false, now
	f.sessions[id] = s
	f.publish(workbench.Change{Kind: workbench.SessionChanged, Session: id, Detail: "live"})
	return s, nil
}

func (f *fake) change(id string, edit func(*ledger.Session)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.sessions[id]
	switch {
	case old == nil:
		return fault.New(fault.NotFound, "there is no session %q", id)
	case old.Closed:
		return fault.New(fault.Closed, "session %s is closed", id)
	}
	s := *old
	s.Updated = f.tick()
	edit(&s)
	f.sessions[id] = &s
	f.publish(workbench.Change{Kind: workbench.SessionChanged, Session: id})
	return nil
}

func (f *fake) SetLabel(id, label string) error {
	return f.change(id, func(s *ledger.Session) { s.Label = label })
}

func (f *fake) SetWorkspace(id, dir string) error {
	return f.change(id, func(s *ledger.Session) { s.Workspace = dir })
}

func (f *fake) DefaultAgent(s *ledger.Session) string { return cmp.Or(s.Agent, "sh") }

func (f *fake) SetAgent(id, agent string) error {
	if agent != "sh" && agent != "codex" {
		return fault.New(fault.Invalid, "unknown agent %s; there are codex, sh", agent)
	}
	return f.change(id, func(s *ledger.Session) { s.Agent = agent })
}

// CloseSession forgets a session without jobs, as the workbench does.
func (f *fake) CloseSession(id string) error {
	if err := f.change(id, func(s *ledger.Session) { s.Closed = true }); err != nil {
		return err
	}
	for _, j := range f.Jobs(id) {
		if !j.State.Terminal() {
			f.end(id, j.Number, ledger.Cancelled, "")
		}
	}
	if len(f.Jobs(id)) == 0 {
		f.forget(id)
	}
	return nil
}

func (f *fake) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, id)
	delete(f.convs, id)
	f.tick()
	f.publish(workbench.Change{Kind: workbench.SessionGone, Session: id})
}

func (f *fake) PrecheckDraft(_ workbench.Caller, session string, doc []byte) error {
	if s, ok := f.Session(session); !ok || s.Closed {
		return fault.New(fault.Closed, "session %s is closed", session)
	}
	if bytes.Contains(doc, []byte("REFUSE")) {
		return fault.New(fault.Invalid, "the document says REFUSE")
	}
	return nil
}

func (f *fake) CheckDraft(session string, d workbench.Draft) error {
	if err := f.PrecheckDraft(d.By, session, d.Prompt); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return fault.New(fault.Limit, "as many jobs as limits.jobs allows")
	}
	return nil
}

func (f *fake) Start(ctx context.Context, session string, d workbench.Draft) (string, error) {
	if ctx.Err() != nil {
		return "", fault.New(fault.Interrupted, "interrupted")
	}
	if f.starting != nil {
		<-f.starting
	}
	if err := f.CheckDraft(session, d); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing {
		return "", fault.New(fault.NoSpace, "the disk is full")
	}
	s := *f.sessions[session]
	now := f.tick()
	f.serial++
	task, _, _ := strings.Cut(string(d.Prompt), "\n")
	j := &ledger.Job{
		Session: session, Number: s.NextJob, Serial: f.serial, Agent: "sh", Task: task, Call: d.Call, Workspace: s.Workspace,
		CWD: s.Workspace, StartedBy: ledger.ByOwner, State: ledger.Queued, Created: now, Updated: now,
	}
	if d.By.Agent {
		j.StartedBy, j.Parent = ledger.ByModel, d.By.Run
	}
	s.NextJob++
	s.Updated = now
	f.sessions[session] = &s
	f.jobs[session] = append(f.jobs[session], j)
	f.done[j.Serial] = make(chan struct{})
	f.prompts = append(f.prompts, string(d.Prompt))
	write(f.JobFile(j, "prompt"), string(d.Prompt))
	f.publish(change(workbench.JobStarted, j))
	return session + "/" + workbench.JobName(j.Number), nil
}

func (f *fake) Seen(session string, n uint64, pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, fmt.Sprintf("%s/job-%d by %d", session, n, pid))
}

func change(kind workbench.ChangeKind, j *ledger.Job) workbench.Change {
	return workbench.Change{
		Kind: kind, Session: j.Session, Job: workbench.JobName(j.Number), Agent: j.Agent, State: j.State,
		Status: j.State.Status(), Task: j.Task, Detail: j.Detail,
	}
}

func (f *fake) PromptBytes() int64 { return f.limit }

// edit changes a job's record.
func (f *fake) edit(session string, n uint64, how func(*ledger.Job)) *ledger.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index(session, n)
	j := *f.jobs[session][i]
	j.Updated = f.tick()
	how(&j)
	f.jobs[session][i] = &j
	f.publish(change(workbench.JobChanged, &j))
	return &j
}

// run gives a job a run.
func (f *fake) run(session string, n uint64) string {
	j := f.edit(session, n, func(j *ledger.Job) {
		j.State, j.Run = ledger.Working, fmt.Sprintf("sh-%06x", j.Serial)
		f.runs = append(f.runs, &ledger.Run{
			ID: j.Run, Agent: j.Agent, Session: session, Jobs: []uint64{n}, CWD: j.CWD, State: ledger.Working,
			Created: j.Updated, Updated: j.Updated,
		})
	})
	return j.Run
}

// end ends a job.
func (f *fake) end(session string, n uint64, state ledger.AgentState, result string) {
	j, _ := f.Job(session, n)
	if result != "" {
		write(f.JobFile(j, "result"), result)
	}
	for _, a := range f.Approvals(session, n) {
		f.resolve(a.Number, ledger.ApprovalWithdrawn, ledger.DecidedByEnd, "its job ended")
	}
	f.edit(session, n, func(j *ledger.Job) {
		if j.State.Terminal() {
			return // somebody else was faster
		}
		j.State, j.Ended, j.Exit = state, j.Updated, "exit 0"
		close(f.done[j.Serial])
		for i, r := range f.runs {
			if r.ID == j.Run {
				over := *r
				over.State, over.Updated, over.Ended = state, j.Updated, j.Updated
				f.runs[i] = &over
			}
		}
	})
}

func (f *fake) Cancel(by workbench.Caller, session string, n uint64) error {
	j, ok := f.Job(session, n)
	switch {
	case !ok:
		return fault.New(fault.NotFound, "there is no job %s", address(session, n))
	case f.MayDirect(by, j) != nil:
		return f.MayDirect(by, j)
	case j.State.Terminal():
		return fault.New(fault.Done, "refused: %s already %s", address(session, n), j.State)
	}
	f.end(session, n, ledger.Cancelled, "")
	return nil
}

func (f *fake) Dismiss(by workbench.Caller, session string, n uint64) error {
	j, ok := f.Job(session, n)
	switch {
	case !ok:
		return fault.New(fault.NotFound, "there is no job %s", address(session, n))
	case f.MayDirect(by, j) != nil:
		return f.MayDirect(by, j)
	case !j.State.Terminal():
		return fault.New(fault.Busy, "refused: %s has not ended; cancel it first", address(session, n))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index(session, n)
	f.jobs[session] = slices.Delete(slices.Clone(f.jobs[session]), i, i+1)
	f.tick()
	f.publish(change(workbench.JobGone, j))
	return nil
}

func (f *fake) Wait(ctx context.Context, session string, n uint64) (ledger.JobStatus, error) {
	j, ok := f.Job(session, n)
	if !ok {
		return "", fault.New(fault.NotFound, "there is no job %s", address(session, n))
	}
	f.mu.Lock()
	done := f.done[j.Serial]
	f.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return "", fault.New(fault.Interrupted, "interrupted")
	}
	j, _ = f.Job(session, n)
	return j.State.Status(), nil
}

func (f *fake) Diff(_ context.Context, _ *ledger.Job, to io.Writer) error {
	f.mu.Lock()
	f.diffs++
	text := f.diff
	f.mu.Unlock()
	_, err := io.WriteString(to, text)
	return err
}

func (f *fake) LastChange() (time.Time, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, uint64(len(f.changes))
}

func (f *fake) Snapshot() workbench.Snapshot {
	snap := workbench.Snapshot{Generated: epoch}
	for _, s := range f.Sessions() {
		for _, j := range f.Jobs(s.ID) {
			snap.Jobs = append(snap.Jobs, workbench.JobSnapshot{Session: s.ID, Job: workbench.JobName(j.Number), State: j.State})
		}
	}
	return snap
}

func (f *fake) Agents() []workbench.AgentInfo {
	return []workbench.AgentInfo{
		{Name: "codex", Offered: "no: codex is not in PATH", Command: "codex exec", Transport: "cli", Models: "a\nb\x1b[2J\n", Resume: "yes", Takeover: "yes"},
		{Name: "sh", Offered: "yes", Command: "/bin/sh", Transport: "cli", Resume: "no: sh keeps no conversation"},
	}
}

func (f *fake) Metrics() []workbench.Metric {
	return []workbench.Metric{
		{Name: "scvfs_jobs", Help: "Jobs by state,\nnow.", Type: "gauge", Labels: `state="running"`, Value: float64(len(f.Active()))},
		{Name: "scvfs_jobs", Help: "Jobs by state,\nnow.", Type: "gauge", Labels: `state="failed"`},
		{Name: "scvfs_commits_total", Help: "Commits.", Type: "counter", Value: 1.5e9},
	}
}

func (f *fake) Maintain() error     { return nil }
func (f *fake) Version() string     { return "scvfs 1.2.3 go1.26 linux/amd64" }
func (f *fake) Started() time.Time  { return epoch }
func (f *fake) ConfigText() []byte  { return []byte("[limits]\njobs = 4 # default\n") }
func (f *fake) started() []string   { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.prompts) }
func (f *fake) sayDiff(text string) { f.mu.Lock(); defer f.mu.Unlock(); f.diff = text }
func (f *fake) drawnDiffs() int     { f.mu.Lock(); defer f.mu.Unlock(); return f.diffs }
func (f *fake) set(how func(*fake)) { f.mu.Lock(); defer f.mu.Unlock(); how(f) }

func (f *fake) Conversations(session string) []*ledger.Conversation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.convs[session]
}

func (f *fake) Conversation(session, id string) (*ledger.Conversation, bool) {
	for _, c := range f.Conversations(session) {
		if c.ID == id {
			return c, true
		}
	}
	return nil, false
}

func (f *fake) ConversationJobs(session, id string) []*ledger.Job {
	return slices.DeleteFunc(f.Jobs(session), func(j *ledger.Job) bool { return j.Conversation != id })
}

func (f *fake) ConversationState(session, id string) (ledger.AgentState, string) {
	return ledger.Idle, ""
}

func (f *fake) PrecheckSend(_, _ string, part []byte, _ workbench.SendMode) error { return nil }

func (f *fake) CheckSend(_, _ string, prompt []byte, mode workbench.SendMode) error {
	if mode == workbench.SendSteer {
		return fault.New(fault.Unsupported, "this agent takes no prompt into a running turn")
	}
	return nil
}

func (f *fake) Send(ctx context.Context, session, conversation string, prompt []byte, mode workbench.SendMode) (string, error) {
	if err := f.CheckSend(session, conversation, prompt, mode); err != nil {
		return "", err
	}
	return f.Start(ctx, session, workbench.Draft{Prompt: prompt})
}

// converse puts a job into a conversation.
func (f *fake) converse(session string, n uint64, id string) {
	f.edit(session, n, func(j *ledger.Job) {
		j.Conversation = id
		if !slices.ContainsFunc(f.convs[session], func(c *ledger.Conversation) bool { return c.ID == id }) {
			f.convs[session] = append(f.convs[session], &ledger.Conversation{
				Session: session, ID: id, Agent: j.Agent, CWD: j.CWD, Created: j.Created, Used: j.Updated,
			})
		}
	})
}

func write(name, text string) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		panic(err)
	}
}

func appendTo(name, text string) {
	old, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	write(name, string(old)+text)
}

func (f *fake) AttachState(_, _ string) workbench.Attach {
	return workbench.Attach{State: workbench.AttachReady, Interrupt: true}
}

func (f *fake) Takeover(_, _ string) (*workbench.Takeover, bool) { return nil, false }

func (f *fake) AttachTerminal(_ context.Context, _, id string, size takeover.Size) error {
	return fault.New(fault.Unsupported, "no terminal of %s for %s", size, id)
}

func (f *fake) InterruptAndAttach(_ context.Context, _, id, job string, size takeover.Size) (string, error) {
	return "", fault.New(fault.Busy, "no terminal of %s for %s, not %s", size, id, job)
}

func (f *fake) EndTakeover(context.Context, string, string) (note, screen string, err error) {
	return "", "", fault.New(fault.NotFound, "nothing is taken over")
}

func (f *fake) Caller(pid int) workbench.Caller {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.callers[pid]
}

// be makes a process somebody's.
func (f *fake) be(pid int, who workbench.Caller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.callers == nil {
		f.callers = map[int]workbench.Caller{}
	}
	f.callers[pid] = who
}

func (f *fake) MayStart(by workbench.Caller, session string) error {
	if by.Owner() || by.Agent && by.Reads(session) {
		return nil
	}
	return workbench.OwnersAlone(by)
}

func (f *fake) MayDirect(by workbench.Caller, j *ledger.Job) error {
	if by.Owner() || by.Agent && by.Reads(j.Session) && j.Parent == by.Run {
		return nil
	}
	return workbench.OwnersAlone(by)
}

func (f *fake) PrecheckReply(workbench.Caller, string, uint64, []byte) error { return nil }

func (f *fake) CheckReply(workbench.Caller, string, uint64, []byte) error { return nil }

func (f *fake) Reply(ctx context.Context, by workbench.Caller, session string, _ uint64, prompt []byte) (string, error) {
	return f.Start(ctx, session, workbench.Draft{Prompt: prompt, By: by})
}
