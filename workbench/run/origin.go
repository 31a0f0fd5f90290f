package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// Place is where a process stands: in a run's tree, or not.
type Place uint8

// The places.
const (
	Outside Place = iota // in no run's tree
	Inside               // in a run's tree, or started by this process itself
	Unclear              // that cannot be told
)

// Origin is where a process comes from.
type Origin struct {
	Place Place
	Run   string // the run that it is inside of; empty when nobody knows which
	Why   string // when it is unclear, as the end of a sentence
}

// Origin tells where a process or thread comes from, by the kernel's word
// alone: whom it descends from, whatever it did to its environment, session,
// group or parents. A shim is known by the table of those watched, and before
// its run is adopted by its command line. What this process itself started
// (git, with whatever that runs) is inside of no known run, and so are the
// orphans that come to it (TakeOrphans). 0 is a process that the kernel has no
// number for here.
//
// Once known, a process stays what it is: the processes of a run cannot leave
// its tree, for their shim takes the orphans, and no other can get into it. So
// an answer is kept for as long as the number is seen to be the same process.
func (m *Manager) Origin(pid int) Origin {
	if pid <= 0 {
		return Origin{Place: Unclear, Why: "it is not in the daemon's pid namespace"}
	}
	if o, ok := m.origins.fresh(pid, time.Now()); ok {
		return o
	}
	for range originTries {
		if o, ok := m.trace(pid); ok {
			return o
		}
	}
	return Origin{Place: Unclear, Why: "its ancestors change while they are looked at"}
}

// originTries is how often a walk to the ancestors begins anew because one of
// them left under it.
const originTries = 16

// deepest bounds the walk.
const deepest = 4096

// trace walks up from a process to the first of which it is known where it
// stands. It fails when the chain broke: a parent that has left, or whose
// number is a younger process's by now, is the parent no more.
func (m *Manager) trace(pid int) (o Origin, ok bool) {
	s, err := proc.ReadStat(pid)
	if err != nil {
		return Origin{Place: Unclear, Why: "it has ended"}, true
	}
	var chain []proc.Stat
	for len(chain) < deepest {
		if o, ok = m.origins.of(s); ok {
			break
		}
		chain = append(chain, s)
		if o, ok = m.judge(s); ok || s.PPID == 0 {
			break
		}
		parent, err := proc.ReadStat(s.PPID)
		if err != nil {
			if !hidden(s.PPID) {
				return o, false
			}
			break // another user's, which no shim of ours is
		}
		if parent.Start > s.Start {
			return o, false
		}
		s = parent
	}
	m.origins.keep(chain, o, time.Now())
	return o, true
}

// judge tells where a process stands by itself: a shim, or this process.
func (m *Manager) judge(s proc.Stat) (o Origin, ok bool) {
	if s.PID == os.Getpid() {
		return Origin{Place: Inside}, true
	}
	m.mu.Lock()
	p := m.shims[s.PID]
	m.mu.Unlock()
	if p != nil && p.shim.Is(s) {
		return Origin{Place: Inside, Run: p.run}, true
	}
	run, ok := m.shimOf(s.PID)
	if !ok {
		return Origin{}, false
	}
	dir, err := m.open(run)
	if err != nil {
		return Origin{Place: Inside}, true
	}
	defer dir.Close()
	if h, taken, err := readHolder(dir); err != nil || !taken || !h.Is(s) {
		return Origin{Place: Inside}, true // it says so, and only loses by it
	}
	return Origin{Place: Inside, Run: run}, true
}

// shimOf returns the run whose shim a process is by its command line.
func (m *Manager) shimOf(pid int) (run string, ok bool) {
	args, err := proc.Args(pid)
	if err != nil || len(args) != len(m.argv)+1 || !slices.Equal(args[1:len(m.argv)], m.argv[1:]) {
		return "", false
	}
	dir, run := filepath.Split(args[len(m.argv)])
	return run, isRun(run) && filepath.Clean(dir) == m.root
}

// hidden tells whether a process is there although /proc does not show it.
func hidden(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.EPERM) }

// origins is what is known of processes. Its lock is a leaf.
type origins struct {
	mu    sync.Mutex
	known map[int]originOf
}

// originOf is what is known of one process.
type originOf struct {
	start  uint64
	seen   time.Time // when the number was that process's last
	origin Origin
}

const (
	// originFresh is how long a number is taken for the same process without a
	// look. The kernel would have to go through all its numbers meanwhile to
	// give it to another one.
	originFresh = 20 * time.Millisecond

	originsKept = 4096
)

// fresh returns what is known of a number that was looked at just now.
func (a *origins) fresh(pid int, now time.Time) (Origin, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.known[pid]
	return k.origin, ok && now.Sub(k.seen) < originFresh
}

// of returns what is known of a process that is seen now.
func (a *origins) of(s proc.Stat) (Origin, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.known[s.PID]
	if !ok || k.start != s.Start {
		return Origin{}, false
	}
	k.seen = time.Now()
	a.known[s.PID] = k
	return k.origin, true
}

// keep remembers where the processes of a chain stand.
func (a *origins) keep(chain []proc.Stat, o Origin, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known)+len(chain) > originsKept || a.known == nil {
		a.known = make(map[int]originOf)
	}
	for _, s := range chain {
		a.known[s.PID] = originOf{start: s.Start, seen: now, origin: o}
	}
}
