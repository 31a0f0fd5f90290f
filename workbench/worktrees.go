package workbench

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/worktree"
)

// dirtyFor is how long an answer of git about a worktree is good. The tree
// asks for the length of the answer before it reads it.
const dirtyFor = time.Second

// dirtyWord is what git last said of a worktree.
type dirtyWord struct {
	word string
	at   time.Time
}

// Worktrees returns the worktrees that scvfs made, oldest first. It looks at no
// disk: nobody else makes or removes any.
func (w *Workbench) Worktrees() []worktree.Worktree {
	w.mu.RLock()
	all := slices.Collect(maps.Values(w.trees))
	w.mu.RUnlock()
	slices.SortFunc(all, func(a, b worktree.Worktree) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Worktree returns one of them.
func (w *Workbench) Worktree(name string) (worktree.Worktree, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	wt, ok := w.trees[name]
	return wt, ok
}

// loadWorktrees reads what earlier daemons made.
func (w *Workbench) loadWorktrees() {
	for _, wt := range w.opt.Worktrees.List() {
		w.trees[wt.Name] = wt
	}
}

// addWorktree makes a new worktree visible.
func (w *Workbench) addWorktree(wt worktree.Worktree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trees[wt.Name] = wt
}

// dropWorktree makes a removed one invisible.
func (w *Workbench) dropWorktree(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.trees, name)
	delete(w.dirty, name)
}

// WorktreeUsers returns what still works in a worktree: jobs that have not
// ended, by address.
func (w *Workbench) WorktreeUsers(name string) []string {
	wt, ok := w.Worktree(name)
	if !ok {
		return nil
	}
	var users []string
	for _, rec := range w.Active() {
		if rec.Worktree == name || rec.Run == name || under(rec.CWD, wt.Path) {
			users = append(users, address(rec.Session, rec.Number))
		}
	}
	return users
}

// WorktreeDirty is yes, no, or unknown and why.
func (w *Workbench) WorktreeDirty(name string) string {
	w.mu.RLock()
	last, ok := w.dirty[name]
	w.mu.RUnlock()
	if ok && time.Since(last.at) < dirtyFor {
		return last.word
	}
	word := w.askDirty(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty[name] = dirtyWord{word, time.Now()}
	return word
}

// forgetDirty asks git anew: a job that worked there has ended.
func (w *Workbench) forgetDirty(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.dirty, name)
}

func (w *Workbench) askDirty(name string) string {
	wt, err := w.opt.Worktrees.Get(name)
	if err != nil {
		return "unknown: " + err.Error()
	}
	switch dirty, err := w.opt.Worktrees.Dirty(w.ctx, wt); {
	case err != nil:
		return "unknown: " + err.Error()
	case dirty:
		return "yes"
	}
	return "no"
}

// RemoveWorktree removes a worktree that nothing uses and that holds nothing
// which is nowhere else.
func (w *Workbench) RemoveWorktree(ctx context.Context, name string) error {
	wt, err := w.opt.Worktrees.Get(name)
	if err != nil {
		return err
	}
	w.markRemoving(name, true)
	defer w.markRemoving(name, false)
	if err := w.opt.Worktrees.Remove(ctx, wt, w.WorktreeUsers(name)); err != nil {
		return err
	}
	w.dropWorktree(name)
	w.announce(Change{Kind: WorktreeGone, Detail: name})
	return nil
}

// markRemoving keeps jobs from starting in a worktree that is on its way out.
func (w *Workbench) markRemoving(name string, removing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if removing {
		w.removing[name] = true
	} else {
		delete(w.removing, name)
	}
}

// checkRepository refuses a worktree of what is no repository.
func checkRepository(ctx context.Context, dir string) error {
	if !worktree.InRepository(dir) || worktree.Head(ctx, dir) == "" {
		return fault.New(fault.Invalid, "a worktree can only be made of a git repository with a commit, and %s is none: leave worktree away", dir)
	}
	return nil
}

// inWorktree tells whether dir lies in a worktree that belongs to a workspace:
// one of a checkout inside it.
func (w *Workbench) inWorktree(dir, workspace string) (name string, ok bool) {
	wt, found := w.opt.Worktrees.Containing(dir)
	return wt.Name, found && under(wt.Origin, workspace)
}

// verifyWorktree refuses to run anything in a worktree that is not what was
// made: an agent that lands in the main checkout instead does harm.
func (w *Workbench) verifyWorktree(name string) error {
	if name == "" {
		return nil
	}
	w.mu.RLock()
	removing := w.removing[name]
	w.mu.RUnlock()
	if removing {
		return fault.New(fault.Busy, "worktree %s is being removed", name)
	}
	wt, err := w.opt.Worktrees.Get(name)
	if err != nil {
		return err
	}
	return w.opt.Worktrees.Verify(wt)
}

// makeWorktree makes the job's worktree, of the run's name, and records that
// job, run and conversation are there from now on.
func (t *turn) makeWorktree(ctx context.Context) error {
	job := t.j.record()
	if !job.Call.Worktree || job.Worktree != "" {
		return nil
	}
	wt, err := t.w.opt.Worktrees.Make(ctx, job.CWD, t.rec.ID)
	if err != nil {
		return fault.In("worktree", "", err)
	}
	t.w.addWorktree(wt)
	for _, note := range wt.Notes {
		t.notes = append(t.notes, "worktree: "+note)
	}
	if err := t.recordWorktree(wt); err != nil {
		t.dropWorktree()
		return err
	}
	return nil
}

// recordWorktree commits that job, run and conversation are in the worktree.
func (t *turn) recordWorktree(wt worktree.Worktree) error {
	s := t.j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	rec := t.j.next(ledger.Starting, t.j.record().Detail)
	rec.Worktree, rec.CWD, rec.Base = wt.Name, wt.CWD, wt.Base
	runRec := *t.rec
	runRec.CWD = wt.CWD
	var convRec *ledger.Conversation
	if t.conv != nil {
		convRec = t.conv.touched(s, rec.Updated)
		convRec.CWD, convRec.Worktree = wt.CWD, wt.Name
	}
	return t.w.advance(t.j, rec, also{
		put: func(b *ledger.Batch) {
			b.PutRun(&runRec)
			if convRec != nil {
				b.PutConversation(convRec)
			}
		},
		then: func() {
			t.rec = &runRec
			t.w.showRun(&runRec)
			if convRec != nil {
				s.putConversation(t.conv, convRec)
			}
		},
	})
}

// dropWorktree removes the worktree of a run that never was, which no record
// names.
func (t *turn) dropWorktree() {
	wt, err := t.w.opt.Worktrees.Get(t.rec.ID)
	if err != nil {
		return
	}
	if err := t.w.opt.Worktrees.Remove(t.w.ctx, wt, nil); err != nil {
		t.w.log.Warn("a worktree that nothing uses stays behind", "worktree", wt.Name, "err", err)
		return
	}
	t.w.dropWorktree(wt.Name)
}
