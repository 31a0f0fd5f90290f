package run

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// orphans is what is needed to tell this process's orphans: its children that
// it did not start, and whose own parents are gone. Of what it starts, the
// shims alone are in sessions of their own; what comes from below a shim is in
// another session than this process.
type orphans struct {
	taken atomic.Bool // they come to this process

	// spawning is held for reading from the fork of a shim until it is entered
	// in Manager.forked, and for writing while children are looked at.
	spawning sync.RWMutex
}

// TakeOrphans makes this process the parent of all whose own parents below it
// are gone. They are what a killed shim, or a program that git ran, has left,
// and stay inside for Origin. It lasts as long as the process.
func (m *Manager) TakeOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fault.New(fault.Unsupported, "this kernel gives the daemon no orphans: %w", err)
	}
	m.orphans.taken.Store(true)
	return nil
}

// orphaned returns the orphans, zombies too; none when they go to somebody
// else.
func (m *Manager) orphaned() ([]proc.Stat, error) {
	if !m.orphans.taken.Load() {
		return nil, nil
	}
	m.orphans.spawning.Lock()
	defer m.orphans.spawning.Unlock()
	t, err := proc.Processes()
	if err != nil {
		return nil, err
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []proc.Stat
	for _, s := range t {
		if s.PPID == os.Getpid() && s.SID != session && !m.forked[s.ID()] {
			found = append(found, s)
		}
	}
	return found, nil
}

// Tidy ends the orphans and what they started, and collects those that have
// ended. It does nothing before TakeOrphans.
func (m *Manager) Tidy() {
	if stopped, left, err := endTree(m.strays, 0); stopped > 0 || len(left) > 0 || err != nil {
		m.warn("processes that a run or git had left were found" + tally(stopped, left, err))
	}
	m.collectOrphans()
}

// strays returns the living orphans and all that descend from them. To the
// first process of a machine or a container come everybody's, so that one has
// none.
func (m *Manager) strays() ([]proc.Stat, error) {
	if os.Getpid() == 1 {
		return nil, nil
	}
	orphans, err := m.orphaned()
	if err != nil || len(orphans) == 0 {
		return nil, err
	}
	t, err := proc.Processes()
	if err != nil {
		return nil, err
	}
	named := map[int]bool{}
	for _, s := range orphans {
		named[s.PID] = true
	}
	return living(closure(t, named)), nil
}

// orStrays makes find find the strays too.
func (m *Manager) orStrays(find func() ([]proc.Stat, error)) func() ([]proc.Stat, error) {
	return func() ([]proc.Stat, error) {
		found, err := find()
		if err != nil {
			return nil, err
		}
		strays, err := m.strays()
		for _, s := range strays {
			if !slices.ContainsFunc(found, func(f proc.Stat) bool { return f.ID() == s.ID() }) {
				found = append(found, s)
			}
		}
		return found, err
	}
}

// collectOrphans collects the orphans that have ended.
func (m *Manager) collectOrphans() {
	orphans, err := m.orphaned()
	if err != nil {
		return
	}
	for _, s := range orphans {
		if s.Ended() {
			waitChild(s.PID)
		}
	}
}

// unfork takes a shim that was collected out of those that are no orphans.
func (m *Manager) unfork(shim proc.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.forked, shim)
}
