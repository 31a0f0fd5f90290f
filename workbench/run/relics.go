package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// killPatience is how long a manager tries to end processes that a shim has
// left. One that outlives it waits for a device or is another user's.
const killPatience = 10 * time.Second

// relics is what is known of a run whose shim is gone, for finding what the
// run has left. The tree hangs together no more: orphans have gone to the first
// process, and numbers may belong to strangers by now. So a process counts as
// the run's only when
//
//   - it is the agent, by number and start time, or
//   - its environment bears the run's directory, and it is of our user, or
//   - it is in the shim's session or the agent's group and reads or writes the
//     run's files, or
//   - it is in that session or group, and these are surely still the run's:
//     their leader, or somebody in them that is the run's, has kept the number
//     from being given away, or
//   - it descends from one that is the run's, or
//   - it was found to be the run's before, or
//   - it came to this process as an orphan, whose ever it was (see orphans).
//
// On a terminal the agent leads a session as well, of the group's number.
type relics struct {
	dir   string  // the run's directory
	tag   string  // the entry of the environment that has it
	shim  proc.ID // zero when nobody knows
	agent proc.ID // zero when nobody knows
	known map[proc.ID]bool
}

// relics returns what is known of a run by its name and its shim.
func (m *Manager) relics(run string, shim proc.ID) relics {
	dir := m.Path(run, "")
	return relics{dir: dir, tag: dirTag + "=" + dir, shim: shim, known: map[proc.ID]bool{}}
}

// clear stops what a dead shim left, and says so.
func (m *Manager) clear(run string, shim proc.ID, grace time.Duration) {
	r := m.relics(run, shim)
	if dir, err := m.open(run); err == nil {
		if id, ok := readAgent(dir); ok && id.SameBoot() {
			r.agent = id
		}
		dir.Close()
	}
	stopped, left, err := endTree(m.orStrays(r.find), grace)
	m.collectOrphans()
	m.warn(fmt.Sprintf("the shim of run %s died without saying how the run ended%s", run, tally(stopped, left, err)))
}

// clearLost stops what is left of a run whose directory is gone, if it ever
// had one.
func (m *Manager) clearLost(run string) {
	r := m.relics(run, proc.ID{})
	if stopped, left, err := endTree(r.find, defaultGrace); stopped > 0 || len(left) > 0 || err != nil {
		m.warn(fmt.Sprintf("the directory of run %s is gone%s", run, tally(stopped, left, err)))
	}
}

// tally says in words what endTree did.
func tally(stopped int, left []proc.Stat, err error) string {
	var b strings.Builder
	if stopped > 0 {
		fmt.Fprintf(&b, "; %d of its processes were stopped", stopped)
	}
	for _, s := range left {
		fmt.Fprintf(&b, "; process %d (%s) does not end", s.PID, s.Comm)
	}
	if err != nil {
		fmt.Fprintf(&b, "; its processes cannot be looked for: %v", err)
	}
	return b.String()
}

// find returns the living processes that are the run's.
func (r relics) find() ([]proc.Stat, error) {
	t, err := proc.Processes()
	if err != nil {
		return nil, err
	}
	found := r.pick(t, r.tagged, r.holds)
	for _, s := range found {
		r.known[s.ID()] = true
	}
	return found, nil
}

// tagged tells whether a process of our user bears the run's tag.
func (r relics) tagged(s proc.Stat) bool {
	if !proc.Tagged(s.PID, r.tag) {
		return false
	}
	uid, err := proc.Owner(s.PID)
	return err == nil && uid == os.Geteuid()
}

// holds tells whether one of a process's standard descriptors is open on a
// file of the run's directory.
func (r relics) holds(s proc.Stat) bool {
	for fd := range 3 {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", s.PID, fd))
		if err == nil && strings.HasPrefix(link, r.dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// pick chooses the run's processes out of a table.
func (r relics) pick(t proc.Table, tagged, holds func(proc.Stat) bool) []proc.Stat {
	t = r.candidates(t)
	sessions, groups := r.shim.PID > 1, r.agent.PID > 1
	inSession := func(s proc.Stat) bool { return sessions && s.SID == r.shim.PID }
	inGroup := func(s proc.Stat) bool { return groups && (s.PGID == r.agent.PID || s.SID == r.agent.PID) }
	mine := map[int]bool{}
	session, group := false, false // surely still the run's
	for _, s := range t {
		switch {
		case r.shim.Is(s):
			session = true // a zombie, and its number is still its own
			continue
		case r.agent.Is(s), r.known[s.ID()], tagged(s), (inSession(s) || inGroup(s)) && holds(s):
			mine[s.PID] = true
			session, group = session || inSession(s), group || inGroup(s)
		}
	}
	for _, s := range t {
		if session && inSession(s) || group && inGroup(s) {
			mine[s.PID] = true
		}
	}
	delete(mine, r.shim.PID)
	return living(closure(t, mine))
}

// candidates leaves out what cannot be the run's: whatever is older than its
// shim, and this process, with it as a bridge to its children.
func (r relics) candidates(t proc.Table) proc.Table {
	var c proc.Table
	for _, s := range t {
		if s.PID > 1 && s.PID != os.Getpid() && s.Start >= r.shim.Start {
			c = append(c, s)
		}
	}
	return c
}

// closure returns the processes named and all their descendants.
func closure(t proc.Table, named map[int]bool) []proc.Stat {
	all := map[int]bool{}
	for pid := range named {
		all[pid] = true
		for _, s := range t.Descendants(pid) {
			all[s.PID] = true
		}
	}
	var found []proc.Stat
	for _, s := range t {
		if all[s.PID] {
			found = append(found, s)
		}
	}
	return found
}

// living leaves out processes that have ended and are only not collected yet.
func living(all []proc.Stat) []proc.Stat {
	var l []proc.Stat
	for _, s := range all {
		if !s.Ended() {
			l = append(l, s)
		}
	}
	return l
}

// endTree stops what find finds, until it finds nothing twice: TERM and the
// grace, unless that is 0, then KILL. It returns how many it stopped, and those
// that KILL did not end in killPatience.
func endTree(find func() ([]proc.Stat, error), grace time.Duration) (stopped int, left []proc.Stat, err error) {
	told := map[proc.ID]bool{}
	sig, wait := unix.SIGTERM, grace
	if grace <= 0 {
		sig, wait = unix.SIGKILL, lastLook
	}
	deadline := time.Now().Add(grace + killPatience)
	for empty := 0; empty < 2; {
		if left, err = find(); err != nil {
			return len(told), nil, err
		}
		if len(left) == 0 {
			empty++
			continue
		}
		if time.Now().After(deadline) {
			break
		}
		empty = 0
		for _, s := range left {
			told[s.ID()] = true
		}
		signalEach(left, sig)
		await(left, wait)
		sig, wait = unix.SIGKILL, lastLook
	}
	return max(0, len(told)-len(left)), left, nil
}

// await waits until the processes have ended, but no longer than d.
func await(procs []proc.Stat, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, s := range procs {
		if !s.ID().Alive() {
			continue
		}
		h, err := proc.Open(s.ID())
		if err != nil {
			continue // gone meanwhile; one that cannot be held is found again
		}
		select {
		case <-h.Done():
			h.Close()
		case <-timer.C:
			h.Close()
			return
		}
	}
}
