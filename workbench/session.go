package workbench

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// labelRunes is the longest label, in characters.
const labelRunes = 200

// record returns the session's published record.
func (s *session) record() *ledger.Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rec
}

// publish makes rec the session's record.
func (s *session) publish(rec *ledger.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec = rec
}

// touched returns a copy of the record to change, dated now.
func (s *session) touched() *ledger.Session {
	rec := *s.record()
	rec.Updated = time.Now()
	return &rec
}

// job returns the job of that number; nil when there is none.
func (s *session) job(n uint64) *job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.jobs[n]
}

// list returns the jobs, oldest first.
func (s *session) list() []*job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.order)
}

// add makes a new job visible.
func (s *session) add(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[j.number] = j
	s.order = append(s.order, j)
	rec := j.record()
	if !rec.State.Terminal() {
		s.open[j.number] = j
	}
	if rec.Conversation != "" {
		s.lanes[rec.Conversation] = append(s.lanes[rec.Conversation], j)
	}
}

// joined enters a job in the conversation that it began after it was added.
func (s *session) joined(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := j.record().Conversation
	s.lanes[id] = append(s.lanes[id], j)
}

// ended takes a job out of those that have not.
func (s *session) ended(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, j.number)
}

// remove makes a job invisible and tells how many are left.
func (s *session) remove(j *job) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.number)
	id := j.record().Conversation
	if left := slices.DeleteFunc(slices.Clone(s.lanes[id]), func(o *job) bool { return o == j }); len(left) > 0 {
		s.lanes[id] = left
	} else {
		delete(s.lanes, id)
	}
	if i, ok := slices.BinarySearchFunc(s.order, j.number, byNumber); ok {
		s.order = slices.Delete(slices.Clone(s.order), i, i+1)
	}
	return len(s.order)
}

func byNumber(j *job, n uint64) int { return cmp.Compare(j.number, n) }

// Sessions returns all sessions, open and closed, by name.
func (w *Workbench) Sessions() []*ledger.Session {
	all := w.allSessions()
	recs := make([]*ledger.Session, len(all))
	for i, s := range all {
		recs[i] = s.record()
	}
	slices.SortFunc(recs, func(a, b *ledger.Session) int { return strings.Compare(a.ID, b.ID) })
	return recs
}

// allSessions returns the sessions in no order.
func (w *Workbench) allSessions() []*session {
	w.mu.RLock()
	defer w.mu.RUnlock()
	all := make([]*session, 0, len(w.sessions))
	for _, s := range w.sessions {
		all = append(all, s)
	}
	return all
}

// Session returns one session's record; it is shared and not to be changed.
func (w *Workbench) Session(id string) (*ledger.Session, bool) {
	s := w.session(id)
	if s == nil {
		return nil, false
	}
	return s.record(), true
}

// open returns a live session.
func (w *Workbench) open(id string) (*session, error) {
	s := w.session(id)
	switch {
	case s == nil:
		return nil, fault.New(fault.NotFound, "there is no session %q", id)
	case s.record().Closed:
		return nil, closedFault(id)
	}
	return s, nil
}

func closedFault(id string) error {
	return fault.New(fault.Closed, "session %s is closed; open it again by writing its name and workspace to sessions/new", id)
}

// RegisterSession makes a live session, or opens a closed one again with the
// given workspace and label.
func (w *Workbench) RegisterSession(id, workspace, label string) (*ledger.Session, error) {
	if err := CheckSessionID(id); err != nil {
		return nil, err
	}
	dir, err := resolveDir(workspace, w.opt.Mount)
	if err != nil {
		return nil, err
	}
	for {
		s := w.session(id)
		if s == nil {
			s = w.newSession(id)
		}
		rec, again, err := w.registerIn(s, dir, agent.OneLine(label, labelRunes))
		if !again {
			return rec, err
		}
	}
}

// newSession reserves the name. The session is visible only once its record
// is committed; two callers at once get the same one.
func (w *Workbench) newSession(id string) *session {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.making[id]; s != nil {
		return s
	}
	s := newSession(&ledger.Session{ID: id, NextJob: 1})
	w.making[id] = s
	return s
}

// registerIn commits the session's record. again is true when s was forgotten
// meanwhile and the name has to be looked up again.
func (w *Workbench) registerIn(s *session, workspace, label string) (rec *ledger.Session, again bool, err error) {
	s.tr.Lock()
	defer s.tr.Unlock()
	old := s.record()
	current := w.session(old.ID)
	switch {
	case current == nil && w.isMaking(s):
	case current != s:
		return nil, true, nil
	case !old.Closed:
		return nil, false, fault.New(fault.Exists, "session %s exists already, in %s", old.ID, old.Workspace)
	}
	rec = s.touched()
	rec.Workspace, rec.Label, rec.Closed = workspace, label, false
	if rec.Serial == 0 {
		rec.Serial, rec.Created = w.nextSerial(), rec.Updated
	}
	if err := w.commit(func(b *ledger.Batch) { b.PutSession(rec) }); err != nil {
		w.unmake(s, false)
		return nil, false, err
	}
	s.publish(rec)
	w.unmake(s, true)
	w.announce(Change{Kind: SessionChanged, Session: rec.ID, Detail: "live"})
	return rec, false, nil
}

func (w *Workbench) isMaking(s *session) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.making[s.rec.ID] == s
}

// unmake ends the making of s, which is visible from now on when made.
func (w *Workbench) unmake(s *session, made bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.making, s.rec.ID)
	if made {
		w.sessions[s.rec.ID] = s
	}
}

// byClosing is who cancels the jobs of a session that is closed.
const byClosing = "closing the session"

// unfinished returns the jobs that have not ended, oldest first.
func (s *session) unfinished() []*job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.open), func(a, b *job) int { return cmp.Compare(a.number, b.number) })
}

// lane returns the jobs of a conversation, oldest first.
func (s *session) lane(id string) []*job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(slices.Values(s.lanes[id]), func(a, b *job) int { return cmp.Compare(a.number, b.number) })
}

// SetLabel changes whom a live session says that it serves.
func (w *Workbench) SetLabel(id, label string) error {
	return w.change(id, func(rec *ledger.Session) { rec.Label = agent.OneLine(label, labelRunes) })
}

// SetWorkspace changes the directory that new jobs run in.
func (w *Workbench) SetWorkspace(id, dir string) error {
	dir, err := resolveDir(dir, w.opt.Mount)
	if err != nil {
		return err
	}
	return w.change(id, func(rec *ledger.Session) { rec.Workspace = dir })
}

// SetAgent changes the agent that plain prompts go to.
func (w *Workbench) SetAgent(id, name string) error {
	if _, err := w.agent(name); err != nil {
		return err
	}
	return w.change(id, func(rec *ledger.Session) { rec.Agent = name })
}

// change commits a live session's record after edit.
func (w *Workbench) change(id string, edit func(*ledger.Session)) error {
	s, err := w.open(id)
	if err != nil {
		return err
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	rec := s.touched()
	if rec.Closed || w.session(id) != s {
		return closedFault(id)
	}
	edit(rec)
	if err := w.commit(func(b *ledger.Batch) { b.PutSession(rec) }); err != nil {
		return err
	}
	s.publish(rec)
	w.announce(Change{Kind: SessionChanged, Session: id, Detail: "live"})
	return nil
}
