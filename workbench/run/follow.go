package run

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"scvfs/ledger/fault"
)

// coarse is how often a follow that inotify has no room for is woken.
const coarse = time.Second

// Follow tells that a file of a run may have grown.
type Follow struct {
	all  *follows
	path string
	c    chan struct{}
}

// Follow begins to follow a file of a run's directory, such as "stdout";
// fault.NotFound when there is none. When inotify is at its limit the follow
// is woken once a second instead, and OnWarning is told.
func (m *Manager) Follow(run, file string) (*Follow, error) {
	path := m.Path(run, file)
	if path == "" {
		return nil, fault.New(fault.Invalid, "%q is no name of a run", run)
	}
	return m.follows.add(path)
}

// C is signalled when the file may have grown: at first once, then for any
// number of changes at least once after the last of them. It is never closed.
func (f *Follow) C() <-chan struct{} { return f.c }

// Close ends the follow. It may be called twice.
func (f *Follow) Close() { f.all.remove(f) }

// wake signals unless a signal waits already.
func (f *Follow) wake() {
	select {
	case f.c <- struct{}{}:
	default:
	}
}

// follows is all follows of a manager: one inotify instance for all of them.
type follows struct {
	warn  func(string)
	open  func() (*fsnotify.Watcher, error)
	watch func(w *fsnotify.Watcher, path string) error

	// adding is held over calls into fsnotify, which may wait for its
	// goroutine to read, so the reader takes mu alone.
	adding  sync.Mutex
	watcher *fsnotify.Watcher // made by the first follow; nil when that failed
	ended   bool
	warned  bool

	mu     sync.Mutex
	paths  map[string]map[*Follow]bool // woken by events
	clocks map[*Follow]bool            // woken by the clock
	stop   chan struct{}               // ends the clock; nil when it stands
}

func newFollows(warn func(string)) *follows {
	return &follows{
		warn: warn, open: fsnotify.NewWatcher, watch: (*fsnotify.Watcher).Add,
		paths: map[string]map[*Follow]bool{}, clocks: map[*Follow]bool{},
	}
}

// add starts a follow of a path.
func (a *follows) add(path string) (*Follow, error) {
	f := &Follow{all: a, path: path, c: make(chan struct{}, 1)}
	f.wake()
	a.adding.Lock()
	defer a.adding.Unlock()
	if a.ended {
		return nil, fault.New(fault.Gone, "the daemon stops, so %s is not followed", path)
	}
	// It is entered before it is watched, so that no event can fall between.
	if first := a.enter(f); !first {
		return f, nil
	}
	if err := a.watchPath(path); err != nil {
		a.leave(f)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "there is no file %s to follow", path)
		}
		a.byClock(f)
		a.complain(path, err)
	}
	return f, nil
}

// complain says once that inotify has no room, with adding held.
func (a *follows) complain(path string, err error) {
	if !a.warned {
		a.warned = true
		a.warn(fmt.Sprintf("%s is looked at once a second, as inotify cannot watch it (fs.inotify.max_user_watches and max_user_instances set its limits): %v", path, err))
	}
}

// watchPath has the path watched, with adding held.
func (a *follows) watchPath(path string) error {
	if a.watcher == nil {
		w, err := a.open()
		if err != nil {
			return err
		}
		a.watcher = w
		go a.read(w)
	}
	return a.watch(a.watcher, path)
}

// read wakes whom an event concerns, until the watcher is closed.
func (a *follows) read(w *fsnotify.Watcher) {
	events, errs := w.Events, w.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			a.wake(e.Name)
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			a.wakeAll() // events were lost: anybody may have missed one
		}
	}
}

func (a *follows) wake(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.paths[path] {
		f.wake()
	}
}

func (a *follows) wakeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.paths {
		for f := range of {
			f.wake()
		}
	}
}

// enter enters a follow under its path and tells whether it is the first.
func (a *follows) enter(f *Follow) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.paths[f.path]
	if of == nil {
		of = map[*Follow]bool{}
		a.paths[f.path] = of
	}
	of[f] = true
	return len(of) == 1
}

// leave takes a follow out and tells whether it was its path's last.
func (a *follows) leave(f *Follow) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocks[f] {
		delete(a.clocks, f)
		if len(a.clocks) == 0 {
			close(a.stop)
			a.stop = nil
		}
		return false
	}
	of := a.paths[f.path]
	if !of[f] {
		return false
	}
	delete(of, f)
	if len(of) == 0 {
		delete(a.paths, f.path)
	}
	return len(of) == 0
}

// byClock has a follow woken by the clock, which runs while it wakes anybody.
func (a *follows) byClock(f *Follow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clocks[f] = true
	if a.stop == nil {
		a.stop = make(chan struct{})
		go a.tick(a.stop)
	}
}

func (a *follows) tick(stop chan struct{}) {
	t := time.NewTicker(coarse)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			a.mu.Lock()
			for f := range a.clocks {
				f.wake()
			}
			a.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// remove ends a follow.
func (a *follows) remove(f *Follow) {
	a.adding.Lock()
	defer a.adding.Unlock()
	if a.leave(f) && a.watcher != nil && !a.ended {
		_ = a.watcher.Remove(f.path) // the file may be gone, and its watch with it
	}
}

// close ends all follows; their channels stay silent.
func (a *follows) close() {
	a.adding.Lock()
	defer a.adding.Unlock()
	a.ended = true
	if a.watcher != nil {
		_ = a.watcher.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
	clear(a.paths)
	clear(a.clocks)
}
