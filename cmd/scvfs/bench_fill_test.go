package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/workbench"
)

const (
	manyJobs = 10_000
	bigLog   = 256 << 20 // bytes of the log of the last of them
)

// fill puts n finished jobs into a state that no daemon has: their records by
// package ledger, and the files that their runs would have left. The last one
// has a log of bigLog bytes, whose path it returns.
func (w *world) fill(n uint64) (log string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.state, "runs"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	led, err := ledger.Open(w.state, ledger.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer led.Close()
	now := time.Now()
	var batch ledger.Batch
	batch.PutSession(&ledger.Session{
		ID: "shop", Serial: 1, Workspace: w.place, NextJob: n + 1, Created: now, Updated: now,
	})
	for number := uint64(1); number <= n; number++ {
		job, run := w.finished(number, now)
		batch.PutJob(job)
		batch.PutRun(run)
		if log, err = w.leave(job, run); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := led.Commit(&batch); err != nil {
		w.t.Fatal(err)
	}
	grow(w.t, log)
	return log
}

// finished makes the records of a job like that of `echo true > start`.
func (w *world) finished(number uint64, at time.Time) (*ledger.Job, *ledger.Run) {
	job := &ledger.Job{
		Session: "shop", Number: number, Serial: number + 1, Agent: "sh", Task: "make test", Workspace: w.place, CWD: w.place,
		Timeout: time.Hour, StartedBy: ledger.ByOwner, State: ledger.Completed, Exit: "exit 0", Run: fmt.Sprintf("sh-%06x", number),
		ResultBytes: 8, Created: at, Updated: at, Ended: at,
	}
	return job, &ledger.Run{
		ID: job.Run, Agent: "sh", Session: "shop", Transport: "cli", Jobs: []uint64{number}, CWD: w.place,
		State: ledger.Completed, Created: at, Updated: at, Ended: at,
	}
}

// leave writes the files of a finished job and returns the path of its log.
func (w *world) leave(job *ledger.Job, run *ledger.Run) (log string, err error) {
	jobDir := filepath.Join(w.state, "jobs", "shop.1", workbench.JobName(job.Number))
	runDir := filepath.Join(w.state, "runs", run.ID)
	if err := errors.Join(os.MkdirAll(jobDir, 0o700), os.Mkdir(runDir, 0o700)); err != nil {
		return "", err
	}
	files := map[string]string{
		filepath.Join(jobDir, "prompt"): "make test\n", filepath.Join(jobDir, "result"): "testing\n",
		filepath.Join(runDir, "stdout"): "testing\n", filepath.Join(runDir, "stderr"): "",
		filepath.Join(runDir, "log"):    "-- run started: sh\ntesting\n-- run ended: completed: exit 0\n",
		filepath.Join(runDir, "events"): `{"seq":1,"kind":"text","text":"testing"}` + "\n",
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return filepath.Join(runDir, "log"), nil
}

// grow makes a file bigLog bytes long.
func grow(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := []byte(strings.Repeat("a line of a log that goes on and on and on, as logs do for ever\n", 1<<20>>6))
	for range bigLog / len(block) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
