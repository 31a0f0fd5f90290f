package workbench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/run"
)

// maintainEvery is how often maintenance runs by itself.
const maintainEvery = time.Minute

func (w *Workbench) maintainEveryMinute() {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		if err := w.Maintain(); err != nil {
			w.log.Error("maintenance", "err", err)
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
	}
}

// Maintain forgets what is older than limits.keep, sets aside files that no
// record names, and starts what waited for space. It runs at start and every
// minute, and on request.
func (w *Workbench) Maintain() error {
	w.checkDeadlines()
	w.opt.Runs.Tidy()
	var errs []error
	for _, s := range w.allSessions() {
		if err := w.maintainSession(s, time.Now().Add(-w.limits.Keep.Duration())); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, w.sweepRuns(), w.sweepSessions(), w.sweepLost())...)
}

func (w *Workbench) maintainSession(s *session, before time.Time) error {
	s.tr.Lock()
	defer s.tr.Unlock()
	rec := s.record()
	switch {
	case w.session(rec.ID) != s:
		return nil // forgotten meanwhile
	case rec.Closed && len(s.list()) == 0:
		return w.forgetSession(s) // a daemon died between its last job and it
	}
	var errs []error
	for _, j := range s.list() {
		if rec := j.record(); rec.State.Terminal() && rec.Ended.Before(before) {
			gone, err := w.forget(j)
			if err != nil {
				errs = append(errs, err)
			}
			if gone {
				return errors.Join(errs...)
			}
		}
	}
	errs = append(errs, w.forgetIdle(s))
	w.startNext(s)
	return errors.Join(errs...)
}

// forget removes a job that has ended, with its files and its run; and its
// session with it, when that is closed and this was its last job. The caller
// holds s.tr.
func (w *Workbench) forget(j *job) (sessionGone bool, err error) {
	if !j.link.TryLock() {
		return false, fault.New(fault.Busy, "refused: %s is being resumed at this moment", j.address())
	}
	defer j.link.Unlock()
	rec := j.record()
	sess := j.s.touched()
	left := w.runOfOthers(rec)
	if err := w.commit(func(b *ledger.Batch) {
		b.PutSession(sess)
		b.DeleteJob(rec.Session, rec.Number)
		switch {
		case left != nil:
			b.PutRun(left)
		case rec.Run != "":
			b.DeleteRun(rec.Run)
		}
		for _, a := range j.asks {
			b.DeleteApproval(a.record().Number)
		}
		for _, id := range earlierRuns(rec) {
			b.DeleteRun(id)
		}
	}); err != nil {
		return false, err
	}
	j.s.publish(sess)
	w.approvals.drop(j.asks)
	jobs := j.s.remove(j)
	if left != nil {
		w.showRun(left)
	}
	w.removeFiles(rec, left == nil)
	w.announce(jobChange(JobGone, rec))
	if jobs == 0 && sess.Closed {
		return true, w.forgetSession(j.s)
	}
	return false, nil
}

// runOfOthers is the record that a forgotten job's run has without it; nil when
// nothing else needs the run: no other job, and no server that goes on.
func (w *Workbench) runOfOthers(rec *ledger.Job) *ledger.Run {
	now, ok := w.Run(rec.Run)
	if !ok {
		return nil
	}
	left := *now
	left.Jobs = slices.DeleteFunc(slices.Clone(now.Jobs), func(n uint64) bool { return n == rec.Number })
	if len(left.Jobs) == 0 && now.State.Terminal() {
		return nil
	}
	return &left
}

// earlierRuns are the runs of a reviewed job but for the one that its record
// names. A server that goes on is not among them.
func earlierRuns(rec *ledger.Job) []string {
	if rec.Review == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(rec.Review.Runs), func(id string) bool { return id == rec.Run })
}

// removeFiles removes what a forgotten job leaves. What cannot be removed now
// is swept by maintenance: the job is gone all the same.
func (w *Workbench) removeFiles(rec *ledger.Job, withRun bool) {
	var err error
	if rec.Run != "" && withRun {
		w.dropRun(rec.Run)
		err = w.opt.Runs.Remove(rec.Run)
	}
	for _, id := range earlierRuns(rec) {
		w.dropRun(id)
		err = errors.Join(err, w.opt.Runs.Remove(id))
	}
	if err = errors.Join(err, os.RemoveAll(filepath.Dir(w.JobFile(rec, "prompt")))); err != nil {
		w.log.Warn("files of a forgotten job stay behind until maintenance", "job", address(rec.Session, rec.Number), "err", err)
	}
}

// sweepRuns sets aside run directories that no record names: a daemon died
// between forgetting a run and removing its files.
func (w *Workbench) sweepRuns() error {
	ids, err := w.opt.Runs.List()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		w.mu.RLock()
		rec, known := w.runs[id]
		w.mu.RUnlock()
		switch {
		case rec != nil && rec.State.Terminal():
			errs = append(errs, w.opt.Runs.RemoveTmp(id))
		case !known && w.bad == 0: // else an unreadable record may name it
			if standing, err := w.opt.Runs.Standing(id); err == nil && standing != run.Live {
				errs = append(errs, w.setAside(w.opt.Runs.Path(id, "")))
			}
		}
	}
	return errors.Join(errs...)
}

// setAside moves files that no record names to lost/, where they are kept for
// limits.keep: they may be of a job that was just forgotten, or of a ledger
// that somebody moved away and will bring back.
func (w *Workbench) setAside(path string) error {
	lost := filepath.Join(w.opt.State, "lost")
	if err := os.MkdirAll(lost, 0o700); err != nil {
		return err
	}
	name := fmt.Sprintf("%d-%s-%s", time.Now().UnixNano(), filepath.Base(filepath.Dir(path)), filepath.Base(path))
	w.log.Warn("files that no record names are set aside", "path", path, "to", filepath.Join(lost, name))
	return os.Rename(path, filepath.Join(lost, name))
}

// sweepLost removes what was set aside longer ago than limits.keep.
func (w *Workbench) sweepLost() error {
	lost := filepath.Join(w.opt.State, "lost")
	entries, err := os.ReadDir(lost)
	if err != nil {
		return nil // nothing was ever set aside
	}
	var errs []error
	before := time.Now().Add(-w.limits.Keep.Duration()).UnixNano()
	for _, e := range entries {
		stamp, _, _ := strings.Cut(e.Name(), "-")
		if at, err := strconv.ParseInt(stamp, 10, 64); err == nil && at < before {
			errs = append(errs, os.RemoveAll(filepath.Join(lost, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sweepSessions sets aside the files of sessions and jobs that the ledger does
// not know.
func (w *Workbench) sweepSessions() error {
	top := filepath.Join(w.opt.State, "jobs")
	entries, err := os.ReadDir(top)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	known := map[string]*session{}
	for _, s := range w.allSessions() {
		known[filepath.Base(w.sessionDir(s.record()))] = s
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(top, e.Name())
		switch s := known[e.Name()]; {
		case w.bad > 0: // an unreadable record may name it
		case s != nil:
			errs = append(errs, w.sweepJobs(s, dir))
		default:
			errs = append(errs, w.setAside(dir))
		}
	}
	return errors.Join(errs...)
}

// sweepJobs sets aside the files of jobs that the ledger forgot. A job's files
// come before its record, both under s.tr.
func (w *Workbench) sweepJobs(s *session, dir string) error {
	s.tr.Lock()
	defer s.tr.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // none yet, or gone meanwhile
	}
	var errs []error
	for _, e := range entries {
		if n, ok := ParseJobName(e.Name()); !ok || s.job(n) == nil {
			errs = append(errs, w.setAside(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func (w *Workbench) countEnded(state ledger.AgentState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[state]++
}
