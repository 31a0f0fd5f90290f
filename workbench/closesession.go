package workbench

import (
	"os"

	"scvfs/ledger"
)

// CloseSession cancels a session's jobs and makes it read-only; one without
// jobs is forgotten.
func (w *Workbench) CloseSession(id string) error {
	s, err := w.open(id)
	if err != nil {
		return err
	}
	s.tr.Lock()
	defer s.tr.Unlock()
	if s.record().Closed {
		return closedFault(id)
	}
	if len(s.list()) == 0 {
		return w.forgetSession(s)
	}
	rec := s.touched()
	rec.Closed = true
	rec.Epoch++
	var stops []stop
	for _, j := range s.unfinished() {
		if j.record().Cancel == nil {
			stops = append(stops, w.stop(j, byClosing, rec.Updated))
		}
	}
	if err := w.commit(func(b *ledger.Batch) {
		b.PutSession(rec)
		for _, st := range stops {
			st.put(b)
		}
	}); err != nil {
		return err
	}
	s.publish(rec)
	for _, st := range stops {
		w.stopped(st)
	}
	for _, c := range s.conversations() {
		c.endTakeover("closing the session")
		c.retireServer("its session was closed")
	}
	w.announce(Change{Kind: SessionChanged, Session: id, Detail: "closed"})
	w.reportEnded(s)
	return nil
}

// forgetSession removes a session without jobs. The caller holds s.tr.
func (w *Workbench) forgetSession(s *session) error {
	rec := s.record()
	if err := w.commit(func(b *ledger.Batch) {
		b.DeleteSession(rec.ID)
		for _, c := range s.conversations() {
			b.DeleteConversation(rec.ID, c.rec.ID)
		}
	}); err != nil {
		return err
	}
	for _, c := range s.conversations() {
		c.endTakeover("closing the session")
		c.retireServer("its session was forgotten")
	}
	for _, c := range s.conversations() {
		s.dropConversation(c)
	}
	w.mu.Lock()
	delete(w.sessions, rec.ID)
	w.mu.Unlock()
	if err := os.RemoveAll(w.sessionDir(rec)); err != nil {
		w.log.Warn("files of a forgotten session stay behind", "session", rec.ID, "err", err)
	}
	w.announce(Change{Kind: SessionGone, Session: rec.ID})
	return nil
}
