package workbench

import (
	"sync"
	"time"
)

// Watch says that the owner watches approvals, until stop is called. A request
// that the gate would deny waits for an answer meanwhile.
func (w *Workbench) Watch() (stop func()) {
	w.approvals.watch(1)
	return sync.OnceFunc(func() { w.approvals.watch(-1) })
}

// Looked says that the owner has looked at approvals, which counts as watching
// for limits.watch_ttl.
func (w *Workbench) Looked() {
	w.approvals.mu.Lock()
	defer w.approvals.mu.Unlock()
	w.approvals.looked = time.Now()
}

// watching tells whether the owner watches now.
func (w *Workbench) watching() bool {
	w.approvals.mu.RLock()
	defer w.approvals.mu.RUnlock()
	looked := w.approvals.looked
	return w.approvals.watchers > 0 || !looked.IsZero() && time.Since(looked) < w.limits.WatchTTL.Duration()
}

func (s *approvals) watch(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers += by
}
