package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// lock is a flock that is held. The git processes that work under it inherit
// it: unlocking frees it at once, the death of its holder only with them.
type lock struct {
	f    *os.File
	once sync.Once
	free func() // what else to do when it is released; may be nil
}

// release gives the lock back; a second call does nothing.
func (l *lock) release() {
	l.once.Do(func() {
		_ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
		l.f.Close()
		if l.free != nil {
			l.free()
		}
	})
}

// acquire takes the lock of a file, which it makes. The file can be removed by
// whoever holds its lock, so one that is no longer there is taken anew.
func acquire(ctx context.Context, name string) (*lock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := await(ctx, f); err != nil {
			return nil, err
		}
		if same(f, name) {
			return &lock{f: f}, nil
		}
		f.Close()
	}
}

// await waits for a flock. When ctx ends first, the file is closed as soon as
// the kernel gives the lock.
func await(ctx context.Context, f *os.File) error {
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil {
		return nil
	}
	got := make(chan error, 1)
	go func() { got <- flock(f, unix.LOCK_EX) }()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
		}
		return err
	case <-ctx.Done():
		go func() {
			<-got
			f.Close()
		}()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.New(fault.Busy, "another process holds %s: try again when it is done", f.Name())
		}
		return fault.New(fault.Interrupted, "interrupted while waiting for %s", f.Name())
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// same tells whether name still names the open file.
func same(f *os.File, name string) bool {
	a, err := f.Stat()
	b, err2 := os.Lstat(name)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// tryLock takes a worktree's lock unless another holds it, and makes the
// directory that it lies in. Releasing it removes its file.
func tryLock(at place) (*lock, error) {
	for {
		if err := os.MkdirAll(at.dir, 0o700); err != nil {
			return nil, fileError("make", at.dir, err)
		}
		f, err := os.OpenFile(at.lock(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the directory was empty, and somebody else removed it
		}
		if err != nil {
			return nil, fileError("open", at.lock(), err)
		}
		if flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
			f.Close()
			return nil, fault.New(fault.Busy, "worktree %s is being made or removed: try again when that is done", at.name)
		}
		if same(f, at.lock()) {
			return ownLock(at, f), nil
		}
		f.Close()
	}
}

// waitLock takes a worktree's lock when whoever holds it is done.
func waitLock(ctx context.Context, at place) (*lock, error) {
	l, err := acquire(ctx, at.lock())
	if err != nil {
		return nil, fileError("lock", at.lock(), err)
	}
	return ownLock(at, l.f), nil
}

// ownLock is a worktree's lock, whose file goes before it is released.
func ownLock(at place, f *os.File) *lock {
	return &lock{f: f, free: func() { _ = os.Remove(at.dir) }} // only when nothing is left in it
}

// done removes the file of a worktree's lock and releases it.
func (l *lock) done(at place) {
	_ = os.Remove(at.lock())
	l.release()
}

// lockRepository waits for the lock of a repository. Of this process only one
// goroutine waits in the kernel for each.
func (m *Manager) lockRepository(ctx context.Context, common string) (*lock, error) {
	top, err := m.top()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(top, digest(common)+lockSuffix)
	turn := m.turn(name)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.New(fault.Interrupted, "interrupted while waiting for other worktrees of %s", common)
	}
	ctx, cancel := context.WithTimeout(ctx, longLimit)
	defer cancel()
	l, err := acquire(ctx, name)
	if err != nil {
		<-turn
		return nil, fileError("lock", name, err)
	}
	l.free = func() { <-turn }
	return l, nil
}

// turn is the queue of this process for a lock.
func (m *Manager) turn(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turns[name] == nil {
		m.turns[name] = make(chan struct{}, 1)
	}
	return m.turns[name]
}

// digest tells paths apart in a name.
func digest(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:6])
}
