package workbench

import (
	"context"
	"sync"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench/activity"
	"scvfs/workbench/run"
)

// transportTerminal is the transport of a takeover's run: the agent's own
// terminal, with a person before it.
const transportTerminal = "terminal"

// Takeover is the owner driving a conversation in the agent's own terminal.
// It holds the conversation's lane from before the turn that it interrupts
// ends until nothing of the terminal's process lives.
type Takeover struct {
	w    *Workbench
	s    *session
	conv *conversation
	id   string // of its run
	note string // what was done to get here; empty for nothing

	ready chan struct{} // closed when the terminal is there, or failed is set
	over  chan struct{} // closed when the lane is free again

	mu       sync.Mutex // a leaf
	terminal *takeover.Terminal
	proc     run.TerminalProcess
	log      *activity.Recorder
	failed   error
	why      string // who or what ended it
	holder   int    // process that took the terminal last
	held     *takeover.Hold
}

// Run returns the name of its run.
func (k *Takeover) Run() string { return k.id }

// Terminal returns the terminal; nil while it is still to come.
func (k *Takeover) Terminal() *takeover.Terminal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.terminal
}

// Takeover returns the takeover of a conversation that has a terminal.
func (w *Workbench) Takeover(session, id string) (*Takeover, bool) {
	s := w.session(session)
	if s == nil {
		return nil, false
	}
	c := s.conversation(id)
	if c == nil {
		return nil, false
	}
	k := c.shown.Load()
	return k, k != nil
}

// takeovers is how many takeovers run or start.
func (w *Workbench) takeovers() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return len(w.taken)
}

// TakeoverSessions returns the sessions with a takeover, which count as in use.
func (w *Workbench) TakeoverSessions() map[string]bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	sessions := map[string]bool{}
	for k := range w.taken {
		sessions[k.s.record().ID] = true
	}
	return sessions
}

// AttachTerminal takes a conversation of a live session over in its agent's own
// terminal. It returns once the terminal is there, also when the conversation
// was taken over before. size is the zero Size for the configuration's. It
// stops nothing. When ctx ends first, the terminal comes all the same.
func (w *Workbench) AttachTerminal(ctx context.Context, session, id string, size takeover.Size) error {
	_, err := w.take(ctx, session, id, size, false, "")
	return err
}

// InterruptAndAttach is AttachTerminal, stopping first the job that runs the
// conversation's turn; the lane is held before. With a job, nothing is stopped
// when another one runs the turn. It returns a note of what was stopped.
func (w *Workbench) InterruptAndAttach(ctx context.Context, session, id, job string, size takeover.Size) (note string, err error) {
	return w.take(ctx, session, id, size, true, job)
}

func (w *Workbench) take(ctx context.Context, session, id string, size takeover.Size, interrupt bool, job string) (string, error) {
	if size == (takeover.Size{}) {
		size = w.terminalSize()
	}
	if err := w.checkSize(size); err != nil {
		return "", err
	}
	k, err := w.hold(session, id, size, interrupt, job)
	if err != nil {
		return "", err
	}
	if !patient(ctx, k.ready) {
		return "", fault.New(fault.Interrupted, "interrupted while the terminal was being opened; it is opened all the same")
	}
	return k.note, k.failed
}

// signalPatience is how long a caller that a signal interrupts still waits for
// what takes a moment: most signals, such as that of an ended child of a
// shell, are no wish to go.
const signalPatience = 5 * time.Second

// patient waits for done, and tells whether it came. An interrupted caller
// waits on for a bounded time.
func patient(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	more := time.NewTimer(signalPatience)
	defer more.Stop()
	select {
	case <-done:
		return true
	case <-more.C:
		return false
	}
}

// terminalSize is the configuration's terminal.
func (w *Workbench) terminalSize() takeover.Size {
	return takeover.Size{Cols: w.limits.Terminal.Cols, Rows: w.limits.Terminal.Rows}
}

func (w *Workbench) checkSize(s takeover.Size) error {
	least, most := takeover.MinSize, takeover.MaxSize
	if s.Cols < least.Cols || s.Rows < least.Rows || s.Cols > most.Cols || s.Rows > most.Rows {
		return fault.New(fault.Invalid, "a terminal cannot be %s: give a size from %s to %s", s, least, most)
	}
	return nil
}

// hold makes every check, takes the lane, and has the takeover begin; or
// returns the takeover that there is.
func (w *Workbench) hold(session, id string, size takeover.Size, interrupt bool, job string) (*Takeover, error) {
	s, err := w.open(session)
	if err != nil {
		return nil, err
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	c := s.conversation(id)
	switch {
	case w.session(session) != s:
		return nil, closedFault(session)
	case c == nil:
		return nil, noConversation(s, id)
	}
	if k := c.taken.Load(); k != nil && !interrupt {
		return k, nil
	}
	var turn *ledger.Job
	if c.turn != nil {
		turn = c.turn.record()
	}
	at := w.attachable(s, s.convRecord(c), c.taken.Load(), turn)
	switch {
	case at.State == AttachReady && !s.hasJob(job):
		return nil, fault.New(fault.NotFound, "refused: there is no %s in session %s", job, session)
	case at.State == AttachReady:
	case interrupt && at.State == AttachBusy && at.Interrupt:
		if job != "" && job != at.Job {
			return nil, fault.New(fault.Busy, "refused: %s runs the turn of conversation %s now, not %s; nothing was stopped", at.Job, id, job)
		}
	default:
		return nil, at.err()
	}
	return w.beginTakeover(s, c, size)
}

// beginTakeover commits the run of a takeover, and with it the cancel of the
// turn that runs. The caller holds s.tr and has made the checks.
func (w *Workbench) beginTakeover(s *session, c *conversation, size takeover.Size) (*Takeover, error) {
	rec := s.convRecord(c)
	k := &Takeover{w: w, s: s, conv: c, ready: make(chan struct{}), over: make(chan struct{})}
	runRec := w.newTakeoverRun(rec)
	k.id = runRec.ID
	if err := w.enter(k); err != nil {
		w.dropRun(k.id)
		return nil, err
	}
	var st *stop
	if c.turn != nil && c.turn.record().Cancel == nil {
		one := w.stop(c.turn, "the owner, who took "+rec.ID+" over", time.Now())
		st = &one
	}
	if err := w.commit(func(b *ledger.Batch) {
		b.PutRun(runRec)
		if st != nil {
			st.put(b)
		}
	}); err != nil {
		w.leaveTaken(k)
		w.dropRun(k.id)
		return nil, err
	}
	c.taken.Store(k)
	w.showRun(runRec)
	turn := c.turn
	if turn != nil {
		k.note = turn.address() + " was stopped for the takeover"
	}
	if st != nil {
		w.stopped(*st)
	}
	before := c.retireServer("its conversation was taken over")
	if !w.spawn(func() { k.serve(turn, before, runRec, size) }) {
		go k.fail(fault.New(fault.Gone, "the daemon stopped before the terminal was opened")) // it needs s.tr
	}
	return k, nil
}

// newTakeoverRun makes the record of a takeover's run, and reserves its name.
func (w *Workbench) newTakeoverRun(conv *ledger.Conversation) *ledger.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	taken := func(id string) bool { _, known := w.runs[id]; return known }
	r := &ledger.Run{
		ID: newRunID(conv.Agent, taken), Agent: conv.Agent, Session: conv.Session, Transport: transportTerminal,
		Conversation: conv.ID, CWD: conv.CWD, Vendor: conv.Vendor, State: ledger.Starting, Created: now, Updated: now,
	}
	w.runs[r.ID] = nil
	return r
}

// enter counts a takeover among those that run, unless none may start.
func (w *Workbench) enter(k *Takeover) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing || w.noTakeovers:
		return fault.New(fault.Gone, "refused: the daemon is stopping, and starts no takeover")
	case len(w.taken) >= w.limits.Takeovers: // another session was faster
		return fault.New(fault.Limit, "refused: %d takeovers run, as many as limits.takeovers allows", len(w.taken))
	}
	w.taken[k] = true
	return nil
}

func (w *Workbench) leaveTaken(k *Takeover) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.taken, k)
}

// hasJob tells whether a job of that name is there; of an empty name it is.
func (s *session) hasJob(name string) bool {
	n, ok := ParseJobName(name)
	return name == "" || ok && s.job(n) != nil
}
