package workbench

import (
	"slices"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// admit tells in which state a new job of the session would start. The caller
// holds s.tr.
func (w *Workbench) admit(s *session, p *plan) (ledger.AgentState, error) {
	rec, call := s.record(), p.draft.Call
	if rec.Closed || w.session(rec.ID) != s {
		return "", closedFault(rec.ID)
	}
	if call.Session != "" {
		if err := w.admitFollowUp(s, call); err != nil {
			return "", err
		}
	}
	if w.startsNow(s, call.Session) {
		return ledger.Starting, nil
	}
	if err := w.admitDelegated(s, p); err != nil {
		return "", err
	}
	if len(s.queue) >= w.limits.Backlog {
		return "", fault.New(fault.Limit, "session %s runs %d jobs and %d wait, as many as limits.jobs and limits.backlog allow: cancel one (echo cancel > …/ctl) or try later",
			rec.ID, s.running, len(s.queue))
	}
	return ledger.Queued, nil
}

// startsNow tells whether a new job of a conversation, or of none yet, would
// find a slot and a lane that nobody waits for. The caller holds s.tr.
func (w *Workbench) startsNow(s *session, conv string) bool {
	return s.running < w.limits.Jobs && w.next(s) == nil && w.laneFree(s, conv)
}

// admitFollowUp applies the busy policy and the lane's limit. The caller holds
// s.tr.
func (w *Workbench) admitFollowUp(s *session, call ledger.Call) error {
	c := s.conversation(call.Session)
	if c == nil {
		return noConversation(s, call.Session)
	}
	waiting := s.waiting(call.Session)
	busy := !c.free() || waiting > 0
	policy := call.OnBusy
	if policy == steering { // it could not be, or this is only a check
		policy = call.SteerFallback
	}
	switch {
	case busy && policy == "fail":
		return fault.New(fault.Busy, "session busy: conversation %s runs a turn, and %d prompts wait for it", call.Session, waiting)
	case waiting >= w.limits.Queue && busy:
		return fault.New(fault.Limit, "%d prompts wait for conversation %s already, as many as limits.queue allows: cancel one or try later", waiting, call.Session)
	}
	return nil
}

// waiting is how many jobs wait in a conversation's lane. The caller holds
// s.tr.
func (s *session) waiting(conv string) int {
	n := 0
	for _, j := range s.queue {
		if j.record().Conversation == conv {
			n++
		}
	}
	return n
}

// laneFree tells whether a turn of the conversation could begin now; for a new
// one, whether there is room for it. The caller holds s.tr.
func (w *Workbench) laneFree(s *session, conv string) bool {
	if conv == "" {
		return w.room(s)
	}
	c := s.conversation(conv)
	return c != nil && c.free()
}

// next returns the first job in the queue that could begin now: strictly first
// in, first out within each lane. The caller holds s.tr.
func (w *Workbench) next(s *session) *job {
	blocked := map[string]bool{}
	for _, j := range s.queue {
		conv := j.record().Conversation
		if !blocked[conv] && w.laneFree(s, conv) {
			return j
		}
		blocked[conv] = true
	}
	return nil
}

// startNext gives free slots to the jobs that wait, and turns to the agents
// whose background jobs ended. The caller holds s.tr.
func (w *Workbench) startNext(s *session) {
	w.fillSlots(s)
	w.reportEnded(s)
}

// fillSlots gives free slots to the jobs that wait. The caller holds s.tr.
func (w *Workbench) fillSlots(s *session) {
	for s.running < w.limits.Jobs && len(s.queue) > 0 {
		j := w.next(s)
		if j == nil || w.diskFloor() != nil {
			return
		}
		if !w.startQueued(j) {
			return
		}
	}
}

// startQueued takes a job out of the queue and runs it. It tells whether the
// queue moved.
func (w *Workbench) startQueued(j *job) bool {
	s := j.s
	a, err := w.agent(j.record().Agent)
	if err != nil {
		return w.endWithout(j, err.Error())
	}
	if c := s.conversation(j.record().Conversation); c != nil {
		if why := cannotContinue(c.rec, a); why != "" {
			return w.endWithout(j, why)
		}
	}
	rec, sess := j.next(ledger.Starting, ""), s.touched()
	began := rec.Conversation == ""
	g := w.grant(j, rec, sess, a)
	if err := w.advance(j, rec, also{sess: sess, put: g.put, then: g.then}); err != nil {
		w.log.Error("a queued job cannot start; maintenance tries again", "job", j.address(), "err", err)
		g.drop()
		return false
	}
	s.unqueue(j)
	if began {
		s.joined(j)
	}
	w.run(g.turn)
	return true
}

func (s *session) unqueue(j *job) {
	s.queue = slices.DeleteFunc(s.queue, func(q *job) bool { return q == j })
}

// endWithout fails a queued job that cannot run at all, and tells whether that
// could be recorded. The caller holds s.tr.
func (w *Workbench) endWithout(j *job, why string) bool {
	if err := w.advance(j, j.next(ledger.Failed, why), also{}); err != nil {
		w.log.Error("a job's end cannot be recorded", "job", j.address(), "err", err)
		return false
	}
	j.s.unqueue(j)
	return true
}

// grant is what a job gets when it starts: a run, and a place in a
// conversation, which it may begin.
type grant struct {
	w       *Workbench
	turn    *turn
	conv    *conversation
	convRec *ledger.Conversation
	evicted []*conversation
	served  bool // by the server that runs already
}

// grant prepares a job's start. It sets rec's run and conversation, and sess's
// counters; nothing is published before then. The caller holds s.tr.
func (w *Workbench) grant(j *job, rec *ledger.Job, sess *ledger.Session, a *agent.Agent) *grant {
	g := &grant{w: w}
	if reviews(rec) {
		return g.review(j, rec, a)
	}
	if g.conv = j.s.conversation(rec.Conversation); g.conv != nil {
		g.convRec = g.conv.touched(j.s, rec.Updated)
	} else {
		g.conv = &conversation{}
		g.convRec = newConversation(sess, rec)
		g.evicted = w.evict(j.s)
	}
	rec.Conversation = g.convRec.ID
	runRec := w.nextOf(g.conv.server, rec, g.convRec, a)
	var before <-chan struct{}
	if g.served = runRec != nil; !g.served {
		before = g.conv.retireServer("its conversation goes on otherwise")
		runRec = w.newRun(rec, g.convRec, a)
	}
	rec.Run = runRec.ID
	g.turn = newTurn(w, j, a, runRec)
	g.turn.served, g.turn.before = g.served, before
	g.turn.conv, g.turn.lane = g.conv, g.conv
	switch {
	case g.served:
		g.turn.srv = g.conv.server
	case runRec.Transport != agent.TransportCLI:
		g.turn.srv = w.newServer(j.s, g.conv, a, runRec)
		g.turn.srv.kept = g.turn.srv.kept && rec.Review == nil
	}
	return g
}

// review makes the grant of a reviewer's turn: a run of its own, in no
// conversation, while the builder's lane is held.
func (g *grant) review(j *job, rec *ledger.Job, a *agent.Agent) *grant {
	runRec := g.w.newRun(rec, &ledger.Conversation{}, a)
	rec.Run = runRec.ID
	g.turn = newTurn(g.w, j, a, runRec)
	g.turn.lane = j.s.conversation(rec.Conversation)
	if runRec.Transport != agent.TransportCLI {
		g.turn.srv = g.w.newServer(j.s, nil, a, runRec)
	}
	return g
}

// nextOf is the record of a server's run with one more job, nil when the job
// needs a run of its own.
func (w *Workbench) nextOf(v *server, rec *ledger.Job, conv *ledger.Conversation, a *agent.Agent) *ledger.Run {
	if v == nil || v.agent != a || rec.Review != nil {
		return nil // the phases of a review are runs of their own
	}
	now, ok := w.Run(v.id)
	if !ok || now.State.Terminal() {
		return nil
	}
	next := *now
	next.Turn, next.State, next.Detail, next.Updated = conv.Turns+1, ledger.Starting, "", rec.Updated
	if next.Jobs = slices.Clone(now.Jobs); !slices.Contains(next.Jobs, rec.Number) {
		next.Jobs = append(next.Jobs, rec.Number)
	}
	return &next
}

// put adds the grant's records to a batch.
func (g *grant) put(b *ledger.Batch) {
	b.PutRun(g.turn.rec)
	if g.convRec == nil {
		return
	}
	b.PutConversation(g.convRec)
	for _, c := range g.evicted {
		b.DeleteConversation(g.convRec.Session, c.rec.ID)
	}
}

// then publishes what put made durable. The caller holds s.tr.
func (g *grant) then() {
	s := g.turn.j.s
	if g.conv == nil {
		g.w.showRun(g.turn.rec)
		return
	}
	for _, c := range g.evicted {
		c.retireServer("its conversation was forgotten")
		s.dropConversation(c)
	}
	g.conv.turn = g.turn.j
	if g.turn.srv != nil && g.turn.srv.kept {
		g.conv.server = g.turn.srv
	}
	s.putConversation(g.conv, g.convRec)
	g.w.showRun(g.turn.rec)
}

// drop gives up a grant that could not be committed.
func (g *grant) drop() {
	if !g.served {
		g.w.dropRun(g.turn.rec.ID)
	}
}

// newRun makes the record of a run that is to serve the job, and reserves its
// name.
func (w *Workbench) newRun(rec *ledger.Job, conv *ledger.Conversation, a *agent.Agent) *ledger.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	transport, err := a.Carrier()
	if err != nil { // it is not offered any more, which launching tells
		transport = agent.TransportCLI
	}
	taken := func(id string) bool { _, known := w.runs[id]; return known }
	r := &ledger.Run{
		ID: newRunID(a.Name, taken), Agent: a.Name, Session: rec.Session, Transport: transport,
		Conversation: conv.ID, Turn: conv.Turns + 1, Jobs: []uint64{rec.Number}, CWD: rec.CWD, Vendor: conv.Vendor,
		State: ledger.Starting, Created: now, Updated: now,
	}
	if r.Vendor == "" && a.Session == agent.SessionChosen && transport == agent.TransportCLI {
		r.Vendor = newUUID() // durable before the agent learns it, so it is never lost
	}
	w.runs[r.ID] = nil // reserved; visible once it is committed
	return r
}

// run hands a slot to the turn. The caller holds s.tr.
func (w *Workbench) run(t *turn) {
	t.j.turn = t
	t.j.s.running++
	if t.served {
		t.srv.hand(t)
		return
	}
	w.spawn(t.serve) // a closing workbench leaves the job to the next daemon
}
