package workbench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/run"
)

// model is what a session's jobs must look like: the rules of DESIGN 5 and 6
// in the fewest words.
type model struct {
	jobs    map[uint64]ledger.AgentState
	order   []uint64
	slots   int
	backlog int
	closed  bool
	next    uint64
}

func (m *model) in(states ...ledger.AgentState) []uint64 {
	var found []uint64
	for _, n := range m.order {
		if slices.Contains(states, m.jobs[n]) {
			found = append(found, n)
		}
	}
	return found
}

// fill gives free slots to those who wait, first in first out.
func (m *model) fill() {
	for _, n := range m.in(ledger.Queued) {
		if len(m.in(ledger.Working)) >= m.slots {
			return
		}
		m.jobs[n] = ledger.Working
	}
}

func (m *model) drop(n uint64) {
	delete(m.jobs, n)
	m.order = slices.DeleteFunc(m.order, func(o uint64) bool { return o == n })
}

// terminal are the states that a job stays in.
var terminal = []ledger.AgentState{
	ledger.Completed, ledger.Failed, ledger.Declined, ledger.TimedOut, ledger.Cancelled, ledger.Interrupted,
}

func TestJobsFollowTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state, err := os.MkdirTemp("", "scvfs-model-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(state)
		m := &model{jobs: map[uint64]ledger.AgentState{}, slots: rapid.IntRange(1, 3).Draw(t, "slots"), backlog: 3, next: 1}
		f := openFixture(t, state, "/", m.slots, m.backlog)
		defer func() { f.close(t) }()
		if _, err := f.RegisterSession("shop", "/", ""); err != nil {
			t.Fatal(err)
		}
		t.Repeat(actions(f, m))
	})
}

func actions(f *fixture, m *model) map[string]func(*rapid.T) {
	pick := func(t *rapid.T, states ...ledger.AgentState) uint64 {
		found := m.in(states...)
		if len(found) == 0 {
			t.Skip("no such job")
		}
		return rapid.SampledFrom(found).Draw(t, "job")
	}
	ends := func(to ledger.AgentState, exit run.Exit, said bool) func(*rapid.T) {
		return func(t *rapid.T) {
			n := pick(t, ledger.Working)
			f.process(t, n).end(exit, said)
			m.jobs[n] = to
			m.fill()
		}
	}
	return map[string]func(*rapid.T){
		"start":     func(t *rapid.T) { f.modelStart(t, m) },
		"complete":  ends(ledger.Completed, run.Exit{}, true),
		"fail":      ends(ledger.Failed, run.Exit{Code: 3}, true),
		"signal":    ends(ledger.Failed, run.Exit{Code: -1, Signal: "SEGV"}, true),
		"time out":  ends(ledger.TimedOut, run.Exit{Code: -1, Signal: "KILL", TimedOut: 1}, true),
		"kill shim": ends(ledger.Interrupted, run.Exit{}, false),
		"cancel": func(t *rapid.T) {
			n := pick(t, ledger.Working, ledger.Queued)
			if err := f.Cancel(Caller{}, "shop", n); err != nil {
				t.Fatal(err)
			}
			m.jobs[n] = ledger.Cancelled
			m.fill()
		},
		"cancel again": func(t *rapid.T) {
			if err := f.Cancel(Caller{}, "shop", pick(t, terminal...)); !fault.Is(err, fault.Done) {
				t.Fatalf("cancelling a job that has ended: %v", err)
			}
		},
		"dismiss": func(t *rapid.T) {
			n := pick(t, terminal...)
			switch err := f.Dismiss(Caller{}, "shop", n); {
			case m.closed && fault.Is(err, fault.Closed):
			case m.closed || err != nil:
				t.Fatalf("dismiss: %v, closed %v", err, m.closed)
			default:
				m.drop(n)
			}
		},
		"dismiss unfinished": func(t *rapid.T) {
			n := pick(t, ledger.Working, ledger.Queued)
			if err := f.Dismiss(Caller{}, "shop", n); !fault.Is(err, fault.Busy) {
				t.Fatalf("dismissing a job that runs: %v", err)
			}
		},
		"close":   func(t *rapid.T) { f.modelClose(t, m) },
		"reopen":  func(t *rapid.T) { f.modelReopen(t, m) },
		"restart": func(t *rapid.T) { f.Workbench.Close(); f.open(t) },
		"":        func(t *rapid.T) { f.compare(t, m) },
	}
}

func (f *fixture) modelStart(t *rapid.T, m *model) {
	addr, err := f.Start(context.Background(), "shop", Draft{Prompt: []byte("true")})
	switch {
	case m.closed:
		if !fault.Is(err, fault.Closed) && !fault.Is(err, fault.NotFound) {
			t.Fatalf("started in a closed session: %q, %v", addr, err)
		}
	case len(m.in(ledger.Queued)) >= m.backlog:
		if !fault.Is(err, fault.Limit) {
			t.Fatalf("started beyond the backlog: %q, %v", addr, err)
		}
	case err != nil || addr != fmt.Sprintf("shop/job-%d", m.next):
		t.Fatalf("got %q, %v; want job-%d", addr, err, m.next)
	default:
		m.jobs[m.next] = ledger.Queued
		m.order = append(m.order, m.next)
		m.next++
		m.fill()
	}
}

func (f *fixture) modelClose(t *rapid.T, m *model) {
	err := f.CloseSession("shop")
	if m.closed {
		if !fault.Is(err, fault.Closed) && !fault.Is(err, fault.NotFound) {
			t.Fatalf("closed twice: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.closed = true
	for _, n := range m.in(ledger.Working, ledger.Queued) {
		m.jobs[n] = ledger.Cancelled
	}
}

func (f *fixture) modelReopen(t *rapid.T, m *model) {
	_, existed := f.Session("shop")
	_, err := f.RegisterSession("shop", "/", "again")
	if !m.closed {
		if !fault.Is(err, fault.Exists) {
			t.Fatalf("made twice: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.closed = false
	if !existed {
		m.next = 1 // forgotten with its counter, being empty
	}
}

// compare waits until every job is as the model says; a state that is final
// in the model must be reached and never left.
func (f *fixture) compare(t *rapid.T, m *model) {
	f.until(t, fmt.Sprintf("%v", m.jobs), func() bool {
		recs := f.Jobs("shop")
		if len(recs) != len(m.order) {
			return false
		}
		for i, rec := range recs {
			if rec.Number != m.order[i] || rec.State != m.jobs[rec.Number] {
				return false
			}
			if rec.State.Terminal() == rec.Ended.IsZero() {
				t.Fatalf("job-%d is %s and ended %v", rec.Number, rec.State, rec.Ended)
			}
		}
		return true
	})
}
