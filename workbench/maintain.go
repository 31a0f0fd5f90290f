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
	return errors.Join(append(errs, w.forgetRuns(time.Now().Add(-w.limits.Keep.Duration())), w.sweepRuns(), w.sweepSessions(), w.sweepLost())...)
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
	left, gone := w.runsWithout(rec)
	if err := w.commit(func(b *ledger.Batch) {
		b.PutSession(sess)
		b.DeleteJob(rec.Session, rec.Number)
		for _, run := range left {
			b.PutRun(run)
		}
		for _, id := range gone {
			b.DeleteRun(id)
		}
		for _, a := range j.asks {
			b.DeleteApproval(a.record().Number)
		}
	}); err != nil {
		return false, err
	}
	j.s.publish(sess)
	w.approvals.drop(j.asks)
	jobs := j.s.remove(j)
	for _, run := range left {
		w.showRun(run)
	}
	w.removeFiles(rec, gone)
	w.announce(jobChange(JobGone, rec))
	if jobs == 0 && sess.Closed {
		return true, w.forgetSession(j.s)
	}
	return false, nil
}

// runsWithout are the runs of a forgotten job: the records, without it, of
// those that something else needs, another job or a server that goes on, and the
// names of those that nothing does.
func (w *Workbench) runsWithout(rec *ledger.Job) (left []*ledger.Run, gone []string) {
	ids := []string{rec.Run}
	if rec.Review != nil {
		ids = append(ids, rec.Review.Runs...)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		now, ok := w.Run(id)
		if !ok {
			continue
		}
		run := *now
		run.Jobs = slices.DeleteFunc(slices.Clone(now.Jobs), func(n uint64) bool { return n == rec.Number })
		if len(run.Jobs) == 0 && now.State.Terminal() {
			gone = append(gone, id)
		} else {
			left = append(left, &run)
		}
	}
	return left, gone
}

// removeFiles removes what a forgotten job leaves. What cannot be removed now
// is swept by maintenance: the job is gone all the same.
func (w *Workbench) removeFiles(rec *ledger.Job, runs []string) {
	var err error
	for _, id := range runs {
		w.dropRun(id)
		err = errors.Join(err, w.opt.Runs.Remove(id))
	}
	if err = errors.Join(err, os.RemoveAll(filepath.Dir(w.JobFile(rec, "prompt")))); err != nil {
		w.log.Warn("files of a forgotten job stay behind until maintenance", "job", address(rec.Session, rec.Number), "err", err)
	}
}

// forgetRuns forgets the runs that ended and serve no job, such as takeovers:
// those older than limits.keep, or of a session that is gone.
func (w *Workbench) forgetRuns(before time.Time) error {
	var errs []error
	for _, rec := range w.Runs() {
		if !rec.State.Terminal() || len(rec.Jobs) > 0 || rec.Ended.After(before) && w.session(rec.Session) != nil {
			continue
		}
		if err := w.commit(func(b *ledger.Batch) { b.DeleteRun(rec.ID) }); err != nil {
			return err
		}
		w.dropRun(rec.ID)
		errs = append(errs, w.opt.Runs.Remove(rec.ID))
	}
	return errors.Join(errs...)
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
