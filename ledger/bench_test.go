package ledger

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// jobChange is the commit of a usual change of state: a job and its run.
func jobChange(b *Batch, n uint64) {
	j := aJob("a", n%1000+1, n+2)
	j.Run = fmt.Sprintf("sh-%06x", n%1000)
	b.PutJob(j)
	b.PutRun(&Run{ID: j.Run, Agent: "sh", Session: "a", Transport: "cli", Jobs: []uint64{j.Number}, CWD: j.CWD, State: Completed, Created: noon, Updated: noon, Ended: noon})
}

func benchLedger(b *testing.B) *Ledger {
	l := open(b, b.TempDir())
	commit(b, l, func(b *Batch) { b.PutSession(aSession("a", 1, 1001)) })
	return l
}

func BenchmarkCommitAlone(b *testing.B) {
	l := benchLedger(b)
	for n := uint64(0); b.Loop(); n++ {
		commit(b, l, func(b *Batch) { jobChange(b, n) })
	}
}

func BenchmarkCommit64(b *testing.B) {
	l := benchLedger(b)
	var n atomic.Uint64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := tryCommit(l, func(b *Batch) { jobChange(b, n.Add(1)) }); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	s := l.Stats()
	b.ReportMetric(float64(s.Batches)/float64(s.Transactions), "batches/tx")
}

func BenchmarkLoad10000Jobs(b *testing.B) {
	l := open(b, b.TempDir())
	const n = 10000
	commit(b, l, func(b *Batch) {
		b.PutSession(aSession("a", 1, n+1))
		for i := uint64(1); i <= n; i++ {
			b.PutJob(aJob("a", i, i+1))
		}
	})
	for b.Loop() {
		if c, _, err := l.Load(); err != nil || len(c.Jobs) != n {
			b.Fatal(len(c.Jobs), err)
		}
	}
	b.ReportMetric(float64(l.Size())/n, "B/job")
}
