package run

import (
	"os"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// defaultGrace stands in for the grace of a run whose spec cannot be read.
const defaultGrace = 2 * time.Second

// Standing says how a run stands, and changes nothing. Never means here only
// that no shim has taken the run so far; Adopt makes that final. A run whose
// shim died is Live until its leftovers are stopped. fault.NotFound when the run has no directory.
func (m *Manager) Standing(run string) (Standing, error) {
	dir, err := m.open(run)
	if err != nil {
		return Never, err
	}
	defer dir.Close()
	if m.watched(run) != nil {
		return Live, nil
	}
	h, taken, err := readHolder(dir)
	if err != nil {
		return Never, err
	}
	return standing(dir, h, taken), nil
}

// standing judges a run by its files. The shim is asked for before the exit:
// once it is gone, whatever it wrote is there.
func standing(dir *os.Root, h holder, taken bool) Standing {
	if taken && !h.Void && h.Alive() {
		return Live
	}
	if _, ok := readExit(dir); ok {
		return Ended
	}
	if taken && !h.Void {
		return Dead
	}
	_, boot, err := readSpec(dir)
	if err != nil {
		return Never // half made: no shim can start it
	}
	// What the disk says of a run of another boot cannot be trusted: a shim may
	// have taken it and the machine have lost that.
	if same := thisBoot(boot); taken && h.Boot != boot || !taken && !same {
		return Dead
	}
	return Never
}

// Adopt takes over a run that an earlier daemon left, or that this one watches
// already. Of a live run the process is watched from now on; of any other it
// is done already when Adopt returns. A dead run's leftovers are stopped first,
// which takes the grace at worst and some seconds more; a run that no shim took
// is void afterwards, so a late shim starts nothing. After a reboot nothing is
// signalled. fault.NotFound when the run has no directory.
func (m *Manager) Adopt(run string) (Process, Standing, error) {
	if err := m.running(); err != nil {
		return nil, Never, err
	}
	if p := m.watched(run); p != nil {
		return p, Live, nil
	}
	dir, err := m.open(run)
	if fault.Is(err, fault.NotFound) {
		m.clearLost(run) // whoever removed it removed no process
	}
	if err != nil {
		return nil, Never, err
	}
	defer dir.Close()
	h, err := takenOrVoid(dir)
	if err != nil {
		return nil, Never, err
	}
	spec, boot, err := readSpec(dir)
	if err != nil {
		spec.Grace = defaultGrace
	}
	s := standing(dir, h, true)
	if s != Live {
		defer collect(h.ID) // last, as long as it may keep a number from strangers
	}
	switch s {
	case Live:
		handle, err := proc.Open(h.ID)
		if fault.Is(err, fault.NotFound) {
			return m.Adopt(run) // it has left this moment
		}
		if err != nil {
			return nil, Live, err
		}
		return m.watch(&process{m: m, run: run, grace: spec.Grace, shim: h.ID, handle: handle, done: make(chan struct{})}, nil), Live, nil
	case Dead:
		if h.SameBoot() && !h.Void || h.PID == 0 && thisBoot(boot) {
			m.clear(run, h.ID, spec.Grace)
		}
		p := m.over(run, dir)
		p.exit, p.ok = Exit{}, false // an exit that came now tells of our own stopping
		return p, Dead, nil
	default:
		return m.over(run, dir), s, nil
	}
}

// takenOrVoid returns who has the run, which is this process when nobody had.
func takenOrVoid(dir *os.Root) (holder, error) {
	for {
		if h, taken, err := readHolder(dir); err != nil || taken {
			return h, err
		}
		self, err := proc.Of(os.Getpid())
		if err != nil {
			return holder{}, err
		}
		h := holder{ID: self, Taken: time.Now(), Void: true}
		if err := claim(dir, h); !fault.Is(err, fault.Done) {
			return h, err
		}
	}
}

// over returns the process of a run that has ended, one way or the other.
func (m *Manager) over(run string, dir *os.Root) *process {
	p := &process{m: m, run: run, done: make(chan struct{})}
	p.exit, p.ok = readExit(dir)
	close(p.done)
	return p
}
