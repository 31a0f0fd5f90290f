package workbench

import (
	"cmp"
	"slices"

	"scvfs/ledger"
	"scvfs/workbench/run"
)

// showRun publishes a committed record of a run.
func (w *Workbench) showRun(rec *ledger.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[rec.ID] = rec
}

// dropRun gives up the name of a run.
func (w *Workbench) dropRun(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, id)
	delete(w.live, id)
}

// setLive records the process of a run; nil when it has ended.
func (w *Workbench) setLive(id string, proc run.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if proc == nil {
		delete(w.live, id)
		return
	}
	w.live[id] = proc
}

// setServer records the server that a run is; nil when it has ended.
func (w *Workbench) setServer(id string, v *server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v == nil {
		delete(w.servers, id)
		return
	}
	w.servers[id] = v
}

// Runs returns the records of all runs, newest first.
func (w *Workbench) Runs() []*ledger.Run {
	w.mu.RLock()
	all := make([]*ledger.Run, 0, len(w.runs))
	for _, r := range w.runs {
		if r != nil {
			all = append(all, r)
		}
	}
	w.mu.RUnlock()
	slices.SortFunc(all, func(a, b *ledger.Run) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Run returns one run's record.
func (w *Workbench) Run(id string) (*ledger.Run, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	r := w.runs[id]
	return r, r != nil
}

// RunProcess returns the pid of a live run's agent, 0 when it has ended.
func (w *Workbench) RunProcess(id string) int {
	w.mu.RLock()
	proc := w.live[id]
	w.mu.RUnlock()
	if proc == nil {
		return 0
	}
	return proc.PID() // may read a file
}

// isLive tells whether a run has a process.
func (w *Workbench) isLive(id string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.live[id] != nil
}

// RunFile returns the path of a file of a run's directory: log, events, stderr.
func (w *Workbench) RunFile(id, name string) string { return w.opt.Runs.Path(id, name) }
