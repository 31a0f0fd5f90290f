package workbench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger"
)

// delegation is an agent, mock-1, at work for somebody who ends its turns and
// its jobs, reads some results for it, and restarts the daemon, in any order.
type delegation struct {
	*fixture
	children []uint64
	read     map[uint64]bool // by the agent, before it was told
}

// turn returns the job whose turn runs in mock-1, once every job that could
// start has; 0 when it is idle.
func (d *delegation) turnNow(t failer) (n uint64) {
	d.until(t, "everything that can start", func() bool {
		n = 0
		s := d.session("shop")
		s.tr.Lock()
		reporting := s.reporting
		s.tr.Unlock()
		for _, rec := range d.Jobs("shop") {
			switch {
			case rec.State == ledger.Starting:
				return false
			case rec.Conversation == "mock-1" && rec.State == ledger.Working:
				n = rec.Number
			}
		}
		return !reporting
	})
	return n
}

// running returns the agent's jobs that have not ended.
func (d *delegation) running(t failer) []uint64 {
	return slices.DeleteFunc(slices.Clone(d.children), func(n uint64) bool { return d.job(t, n).State.Terminal() })
}

// end lets the process of a job end and waits for its end.
func (d *delegation) end(t failer, n uint64) {
	p := d.process(t, n)
	out := "done\n"
	if d.job(t, n).Agent == "mock" {
		out = fmt.Sprintf(initLine, "v") + fmt.Sprintf(resultLine, "r", "v")
	}
	if err := p.print(out); err != nil {
		t.Fatal(err)
	}
	p.end(exited, true)
	d.until(t, "an end of "+JobName(n), func() bool { return d.job(t, n).State == ledger.Completed })
}

// told returns how many turns report each job.
func (d *delegation) told() map[string]int {
	told := map[string]int{}
	for _, rec := range d.Jobs("shop") {
		if rec.Origin != nil {
			for _, name := range rec.Origin.Jobs {
				told[name]++
			}
		}
	}
	return told
}

// fewer lowers the number of a property's tries, each of which is dear, unless
// somebody asked for a number.
func fewer(t *testing.T, checks string) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Value.Set(f.DefValue) })
}

func TestEveryBackgroundJobIsReadOrReportedOnce(t *testing.T) {
	fewer(t, "25")
	rapid.Check(t, func(t *rapid.T) {
		state, err := os.MkdirTemp("", "scvfs-reports-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(state)
		d := &delegation{fixture: openFixture(t, state, "/", 4, 100), read: map[uint64]bool{}}
		defer func() { d.close(t) }()
		if _, err := d.RegisterSession("shop", "/", ""); err != nil {
			t.Fatal(err)
		}
		d.start(t, `{"agent":"mock","prompt":"delegate"}`)
		t.Repeat(d.actions())
		d.finish(t)
	})
}

func (d *delegation) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"delegate": func(t *rapid.T) {
			if n := d.turnNow(t); n != 0 && len(d.Active()) < d.conf.Limits.Jobs { // an agent's jobs do not wait
				d.children = append(d.children, d.startIn(t, n, "make"))
			}
		},
		"end a job": func(t *rapid.T) {
			d.turnNow(t)
			for _, n := range d.running(t) {
				if d.job(t, n).State == ledger.Working {
					d.end(t, n)
					return
				}
			}
		},
		"end the turn": func(t *rapid.T) {
			if n := d.turnNow(t); n != 0 {
				d.end(t, n)
			}
		},
		"read": func(t *rapid.T) {
			n := d.turnNow(t)
			if n == 0 || len(d.children) == 0 {
				return
			}
			child := rapid.SampledFrom(d.children).Draw(t, "child")
			fresh := Unreported(d.job(t, child))
			d.Seen("shop", child, d.pid(t, n))
			if fresh {
				d.read[child] = true
			}
		},
		"prompt": func(t *rapid.T) {
			if len(d.ConversationJobs("shop", "mock-1")) > 0 && d.session("shop").waiting("mock-1") < 3 {
				if _, err := d.Send(context.Background(), "shop", "mock-1", []byte("go on"), SendQueue); err != nil {
					t.Fatal(err)
				}
			}
		},
		"restart": func(*rapid.T) { d.Workbench.Close() },
		"": func(t *rapid.T) {
			if d.ctx.Err() != nil {
				d.open(t)
			}
			for name, n := range d.told() {
				if child, _ := ParseJobName(name); n != 1 || d.read[child] || !slices.Contains(d.children, child) {
					t.Fatalf("%s is reported %d times, read %v", name, n, d.read[child])
				}
			}
		},
	}
}

// finish lets everything end, until there is nothing to be told of.
func (d *delegation) finish(t *rapid.T) {
	for {
		n := d.turnNow(t)
		for _, child := range d.running(t) {
			if d.job(t, child).State == ledger.Working {
				n = child
			}
		}
		if n == 0 {
			break
		}
		d.end(t, n)
	}
	told := d.told()
	for _, n := range d.children {
		if want := !d.read[n]; (told[JobName(n)] == 1) != want || !d.job(t, n).Reported {
			t.Fatalf("%s: reported by %d turns, read %v: %s", JobName(n), told[JobName(n)], d.read[n], d.describe())
		}
	}
	for _, rec := range d.Jobs("shop") {
		if rec.Origin != nil && len(rec.Origin.Jobs) > reportJobs {
			t.Fatalf("job-%d reports %q", rec.Number, rec.Origin.Jobs)
		}
	}
}
