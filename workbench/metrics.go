package workbench

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/run"
)

// Metric is one number of /metrics.
type Metric struct {
	Name, Help, Type string // Type: gauge or counter
	Labels           string // `state="running"`, without braces; may be empty
	Value            float64
}

// Metrics returns the numbers of /metrics, those of one name together.
func (w *Workbench) Metrics() []Metric {
	states := map[ledger.AgentState]int{}
	sessions := map[string]int{"live": 0, "closed": 0}
	for _, rec := range w.Sessions() {
		sessions[SessionState(rec)]++
		for _, j := range w.Jobs(rec.ID) {
			states[j.State]++
		}
	}
	metrics := labelled("scvfs_sessions", "Sessions in the tree.", "gauge", "state", sessions)
	metrics = append(metrics, labelled("scvfs_jobs", "Jobs in the tree.", "gauge", "state", states)...)
	w.mu.RLock()
	ended, live, bad := map[ledger.AgentState]uint64{}, len(w.live), w.bad
	for state, n := range w.ended {
		ended[state] = n
	}
	w.mu.RUnlock()
	metrics = append(metrics, labelled("scvfs_jobs_ended_total", "Jobs that ended since the daemon started.", "counter", "state", ended)...)
	metrics = append(metrics, w.approvals.metrics()...)
	gauge := func(name, help string, value float64) {
		metrics = append(metrics, Metric{Name: name, Help: help, Type: "gauge", Value: value})
	}
	_, changes := w.LastChange()
	metrics = append(metrics, Metric{Name: "scvfs_changes_total", Help: "Changes told of since the daemon started.", Type: "counter", Value: float64(changes)})
	gauge("scvfs_runs_live", "Runs whose process lives.", float64(live))
	gauge("scvfs_ledger_bytes", "Size of the ledger's file.", float64(w.opt.Ledger.Size()))
	gauge("scvfs_ledger_unreadable_records", "Ledger records that could not be read at start.", float64(bad))
	if free, err := run.DiskFree(w.opt.State); err == nil {
		gauge("scvfs_disk_free_bytes", "Free space where the state lies.", float64(free))
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	gauge("scvfs_heap_bytes", "Heap in use.", float64(mem.HeapInuse))
	gauge("scvfs_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	gauge("scvfs_start_time_seconds", "When the daemon started, in seconds since 1970.", float64(w.started.UnixNano())/float64(time.Second))
	return metrics
}

// labelled makes one metric for each key of counts, in the keys' order.
func labelled[K ~string, N int | uint64](name, help, kind, label string, counts map[K]N) []Metric {
	var keys []K
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var metrics []Metric
	for _, k := range keys {
		metrics = append(metrics, Metric{Name: name, Help: help, Type: kind, Labels: fmt.Sprintf("%s=%q", label, string(k)), Value: float64(counts[k])})
	}
	return metrics
}
