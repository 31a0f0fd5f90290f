package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scvfs/ledger/fault"
)

// recoverPatience is how long Recover waits for the git processes of a dead
// daemon to end.
const recoverPatience = 10 * time.Second

// Recover cleans up after a daemon that died: it undoes worktrees that were
// being made, carries on removals that were under way, and removes what
// inspections left. A daemon calls it when it starts. A worktree that another
// living process is making is left alone. The error joins what could not be
// cleaned and the records that cannot be read; the rest is done all the same.
func (m *Manager) Recover(ctx context.Context) error {
	var errs []error
	for _, at := range m.records() {
		r, err := readRecord(at)
		switch {
		case err != nil:
			errs = append(errs, err)
		case r.State == Ready:
			r.sweep()
		default:
			errs = append(errs, m.recover(ctx, at))
		}
	}
	for _, at := range append(m.places(lockSuffix), m.places(newSuffix)...) {
		sweepLock(at)
	}
	return errors.Join(errs...)
}

// recover finishes one worktree that was left half made or half removed.
func (m *Manager) recover(ctx context.Context, at place) error {
	ctx, cancel := context.WithTimeout(ctx, recoverPatience)
	held, err := waitLock(ctx, at)
	cancel()
	if fault.Is(err, fault.Busy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.done(at)
	r, err := readRecord(at)
	if fault.Is(err, fault.NotFound) || err == nil && r.State == Ready {
		return nil
	}
	if err != nil {
		return err
	}
	return m.demolish(context.WithoutCancel(ctx), r, held)
}

// sweep removes the copied indexes of inspections that were cut off.
func (r *record) sweep() {
	entries, _ := os.ReadDir(r.shadow())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), viewPrefix) {
			_ = os.RemoveAll(filepath.Join(r.shadow(), e.Name()))
		}
	}
}

// sweepLock removes a lock that was left behind, and a record that never took
// its place.
func sweepLock(at place) {
	held, err := tryLock(at)
	if err != nil {
		return
	}
	defer held.done(at)
	_ = os.Remove(at.path() + newSuffix)
}
