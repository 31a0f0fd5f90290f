package workbench

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// conversation is a thread of turns with one agent. Its lane is the order of
// its jobs in session.queue.
type conversation struct {
	rec  *ledger.Conversation // published; guarded by session.mu
	turn *job                 // whose turn runs; guarded by session.tr

	// server is the agent's process that goes on between turns; nil when there
	// is none. Guarded by session.tr.
	server *server

	// taken is the takeover that holds the lane; nil for none. It is set with
	// session.tr. shown is the same while it has a terminal.
	taken, shown atomic.Pointer[Takeover]
}

// free tells whether a turn of the conversation could begin. The caller holds
// s.tr.
func (c *conversation) free() bool { return c.turn == nil && c.taken.Load() == nil }

// conversation returns the conversation of that name; nil when there is none.
func (s *session) conversation(id string) *conversation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.convs[id]
}

// putConversation publishes a committed record.
func (s *session) putConversation(c *conversation, rec *ledger.Conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.rec = rec
	s.convs[rec.ID] = c
}

func (s *session) dropConversation(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.convs, c.rec.ID)
}

// conversations returns those of the session by agent and number.
func (s *session) conversations() []*conversation {
	s.mu.RLock()
	all := slices.Collect(maps.Values(s.convs))
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b *conversation) int {
		x, y := s.convRecord(a), s.convRecord(b)
		return cmp.Or(strings.Compare(x.Agent, y.Agent), cmp.Compare(len(x.ID), len(y.ID)), strings.Compare(x.ID, y.ID))
	})
	return all
}

func (s *session) convRecord(c *conversation) *ledger.Conversation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return c.rec
}

// touched returns a copy of the record to change, used now.
func (c *conversation) touched(s *session, now time.Time) *ledger.Conversation {
	rec := *s.convRecord(c)
	rec.Used = now
	return &rec
}

// newConversation makes the record of a job's new conversation and raises the
// session's counter.
func newConversation(sess *ledger.Session, rec *ledger.Job) *ledger.Conversation {
	counters := maps.Clone(sess.NextConv)
	if counters == nil {
		counters = map[string]uint64{}
	}
	n := max(counters[rec.Agent], 1)
	counters[rec.Agent] = n + 1
	sess.NextConv = counters
	return &ledger.Conversation{
		Session: sess.ID, ID: rec.Agent + "-" + strconv.FormatUint(n, 10), Agent: rec.Agent, CWD: rec.CWD, Worktree: rec.Worktree,
		Vendor: rec.Vendor, Created: sess.Updated, Used: sess.Updated,
	}
}

// conversationLimit is never less than the jobs that may run, since each has
// one.
func (w *Workbench) conversationLimit() int { return max(w.limits.Conversations, w.limits.Jobs) }

// idle returns the conversations that no job uses or waits for, the least
// recently used first. The caller holds s.tr.
func (s *session) idle() []*conversation {
	all := slices.DeleteFunc(s.conversations(), func(c *conversation) bool { return !c.free() || s.waiting(c.rec.ID) > 0 })
	slices.SortStableFunc(all, func(a, b *conversation) int { return a.rec.Used.Compare(b.rec.Used) })
	return all
}

// room tells whether one more conversation can begin. The caller holds s.tr.
func (w *Workbench) room(s *session) bool {
	s.mu.RLock()
	n := len(s.convs)
	s.mu.RUnlock()
	return n < w.conversationLimit() || len(s.idle()) > 0
}

// evict picks the idle conversations that make room for one more. The caller
// holds s.tr.
func (w *Workbench) evict(s *session) []*conversation {
	over := len(s.conversations()) + 1 - w.conversationLimit()
	idle := s.idle()
	return idle[:min(max(over, 0), len(idle))]
}

// planFollowUp finds the agent and directory of the conversation that a call
// continues.
func (w *Workbench) planFollowUp(s *session, p *plan) error {
	call := p.draft.Call
	c := s.conversation(call.Session)
	if c == nil {
		return noConversation(s, call.Session)
	}
	rec := s.convRecord(c)
	if call.Agent != "" && call.Agent != rec.Agent {
		return fault.New(fault.Invalid, "conversation %s belongs to %s, not to %s", rec.ID, rec.Agent, call.Agent)
	}
	var err error
	if p.agent, err = w.offered(rec.Agent); err != nil {
		return err
	}
	if !p.agent.Resumes() {
		return fault.New(fault.Unsupported, "%s cannot continue a conversation: start a new one", rec.Agent)
	}
	if why := cannotContinue(rec, p.agent); why != "" {
		return fault.New(fault.Unsupported, "%s: start a new job", why)
	}
	p.worktree = rec.Worktree
	if p.cwd, err = w.samePlace(rec.Worktree, rec.CWD); err != nil {
		return fault.In("conversation "+rec.ID, "", err)
	}
	if call.Worktree {
		return fault.New(fault.Invalid, "conversation %s goes on in %s, where it began: leave worktree away", rec.ID, p.cwd)
	}
	if call.CWD != "" {
		dir, _, err := w.workDir(p.workspace, call.CWD)
		if err != nil {
			return err
		}
		if dir != p.cwd {
			return fault.New(fault.Invalid, "conversation %s goes on in %s, where it began, not in %s: leave cwd away", rec.ID, p.cwd, dir)
		}
	}
	return nil
}

func noConversation(s *session, id string) error {
	return fault.New(fault.NotFound, "session %s has no conversation %q, or has forgotten it", s.record().ID, agent.OneLine(id, 64))
}

// cannotContinue says why a follow-up has nothing to go on with; empty when it
// has, or when the first turn is still to end.
func cannotContinue(c *ledger.Conversation, a *agent.Agent) string {
	if a.Stateless || c.Vendor != "" || c.Turns == 0 {
		return ""
	}
	return "conversation " + c.ID + " cannot be continued: its agent told no session of its own"
}

// Conversations returns the conversations of a session, by agent and number.
func (w *Workbench) Conversations(session string) []*ledger.Conversation {
	s := w.session(session)
	if s == nil {
		return nil
	}
	var recs []*ledger.Conversation
	for _, c := range s.conversations() {
		recs = append(recs, s.convRecord(c))
	}
	return recs
}

// Conversation returns one conversation's record.
func (w *Workbench) Conversation(session, id string) (*ledger.Conversation, bool) {
	s := w.session(session)
	if s == nil {
		return nil, false
	}
	c := s.conversation(id)
	if c == nil {
		return nil, false
	}
	return s.convRecord(c), true
}

// ConversationJobs returns the jobs of a conversation, oldest first.
func (w *Workbench) ConversationJobs(session, id string) []*ledger.Job {
	s := w.session(session)
	if s == nil {
		return nil
	}
	return records(s.lane(id))
}

// ConversationState is that of the job that runs its turn, queued when one
// only waits, else idle.
func (w *Workbench) ConversationState(session, id string) (ledger.AgentState, string) {
	state, detail := ledger.Idle, ""
	if k, ok := w.Takeover(session, id); ok {
		return ledger.Working, "takeover " + k.Run()
	}
	for _, rec := range w.ConversationJobs(session, id) {
		switch {
		case rec.State == ledger.Queued && state == ledger.Idle:
			state = ledger.Queued
		case !rec.State.Terminal() && rec.State != ledger.Queued:
			return rec.State, JobName(rec.Number)
		}
	}
	return state, detail
}

// SendMode is how the owner's prompt is handed to a conversation. The words
// are the seed's.
type SendMode string

// The modes.
const (
	SendAuto  SendMode = "auto"  // into the running turn if the agent can take it, else queued
	SendQueue SendMode = "queue" // behind the running turn
	SendSteer SendMode = "steer" // into the running turn, or not at all
)

// Send gives a conversation of a live session the owner's prompt, and returns
// the new job's address.
func (w *Workbench) Send(ctx context.Context, session, conversation string, prompt []byte, mode SendMode) (string, error) {
	d, err := w.followUp(session, conversation, prompt, mode)
	if err != nil {
		return "", err
	}
	return w.Start(ctx, session, d)
}

// CheckSend makes every check that Send would make, and sends nothing.
func (w *Workbench) CheckSend(session, conversation string, prompt []byte, mode SendMode) error {
	d, err := w.followUp(session, conversation, prompt, mode)
	if err != nil {
		return err
	}
	return w.CheckDraft(session, d)
}

// PrecheckSend looks at the part of a prompt that has come so far, and refuses
// what no continuation can mend.
func (w *Workbench) PrecheckSend(session, conversation string, part []byte, mode SendMode) error {
	if err := w.precheckPrompt(part); err != nil {
		return err
	}
	return w.CheckSend(session, conversation, anyPrompt, mode)
}

// anyPrompt stands for a prompt that is not complete yet in checks that do not
// look at it.
var anyPrompt = []byte("…")

func (w *Workbench) followUp(session, conversation string, prompt []byte, mode SendMode) (Draft, error) {
	s, err := w.open(session)
	if err != nil {
		return Draft{}, err
	}
	c := s.conversation(conversation)
	if c == nil {
		return Draft{}, noConversation(s, conversation)
	}
	if err := checkPrompt(prompt); err != nil {
		return Draft{}, err
	}
	d := Draft{Prompt: prompt, Call: ledger.Call{Session: conversation}, steerOnly: mode == SendSteer}
	if mode != SendQueue {
		d.Call.OnBusy = steering
	}
	return d, nil
}

// Release forgets a conversation that no job uses or waits for.
func (w *Workbench) Release(session, id string) error {
	s, err := w.open(session)
	if err != nil {
		return err
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	c := s.conversation(id)
	switch {
	case w.session(session) != s || s.record().Closed:
		return closedFault(session)
	case c == nil:
		return noConversation(s, id)
	case c.taken.Load() != nil:
		return fault.New(fault.Busy, "refused: conversation %s is taken over; end that first: echo end > its takeover/ctl", id)
	case c.turn != nil || s.waiting(id) > 0:
		return fault.New(fault.Busy, "refused: conversation %s is in use; wait for its jobs or cancel them", id)
	}
	return w.forgetConversations(s, []*conversation{c})
}

// forgetConversations removes conversations. The caller holds s.tr.
func (w *Workbench) forgetConversations(s *session, gone []*conversation) error {
	if len(gone) == 0 {
		return nil
	}
	rec := s.touched()
	if err := w.commit(func(b *ledger.Batch) {
		b.PutSession(rec)
		for _, c := range gone {
			b.DeleteConversation(rec.ID, c.rec.ID)
		}
	}); err != nil {
		return err
	}
	s.publish(rec)
	for _, c := range gone {
		c.retireServer("its conversation was forgotten")
		s.dropConversation(c)
	}
	w.announce(Change{Kind: SessionChanged, Session: rec.ID, Detail: SessionState(rec)})
	w.reportEnded(s)
	return nil
}

// forgetIdle forgets the conversations that nobody used for
// limits.conversation_idle. The caller holds s.tr.
func (w *Workbench) forgetIdle(s *session) error {
	before := time.Now().Add(-w.limits.ConversationIdle.Duration())
	gone := slices.DeleteFunc(s.idle(), func(c *conversation) bool { return !c.rec.Used.Before(before) })
	return w.forgetConversations(s, gone)
}
