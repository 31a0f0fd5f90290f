package workbench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// agent returns the caller that a working job's agent is.
func (f *fixture) agent(t *testing.T, n uint64) Caller {
	t.Helper()
	f.process(t, n)
	rec, _ := f.Job("shop", n)
	return f.agentOf(rec.Run)
}

// startBy starts a job for a caller.
func (f *fixture) startBy(by Caller, call ledger.Call) (uint64, error) {
	if call.Agent == "" && call.Session == "" {
		call.Agent = "mock"
	}
	addr, err := f.Start(context.Background(), "shop", Draft{Prompt: []byte("x"), Call: call, By: by})
	n, _ := ParseJobName(strings.TrimPrefix(addr, "shop/"))
	return n, err
}

// delegated starts an agent's job, which must be taken, and returns its agent.
func (f *fixture) delegated(t *testing.T, by Caller) (uint64, Caller) {
	t.Helper()
	n, err := f.startBy(by, ledger.Call{})
	if err != nil {
		t.Fatal(err)
	}
	return n, f.agent(t, n)
}

// denied checks an error that says each of the words.
func denied(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%v is not %s", err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestCallers(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	if c := f.Caller(os.Getppid()); !c.Owner() {
		t.Errorf("who started the daemon is %v", c)
	}
	if c := f.Caller(os.Getpid()); c.Owner() || !c.Agent || c.Reads("shop") || !strings.Contains(c.String(), "the daemon or an agent") {
		t.Errorf("what the daemon started is %v", c)
	}
	if c := f.Caller(0); c.Owner() || c.Agent || !c.Reads("shop") || !strings.Contains(c.String(), "pid namespace") {
		t.Errorf("a process of another namespace is %v", c)
	}
	first := f.start(t, `{"agent":"mock","prompt":"x"}`)
	a := f.agent(t, first)
	if a.Session != "shop" || a.Job != first || a.Conversation != "mock-1" || a.Depth != 0 || a.Owner() {
		t.Errorf("the agent is %+v", a)
	}
	if !a.Reads("shop") || a.Reads("other") || a.Reads("") {
		t.Error("it reads what is not its own, or not what is")
	}
	if lost := f.agentOf("mock-000000"); lost.Owner() || lost.Reads("shop") || lost.Reads("") {
		t.Errorf("the agent of a run without a record is %+v", lost)
	}
	for _, c := range []Caller{f.Caller(0), a} {
		if err := OwnersAlone(c); !fault.Is(err, fault.Denied) {
			t.Errorf("%v does what the owner does: %v", c, err)
		}
	}
	unclear := f.Caller(0)
	if unclear.Same(unclear) || !a.Same(f.agentOf(a.Run)) || a.Same(Caller{}) || !(Caller{}).Same(Caller{}) {
		t.Error("callers are told apart wrongly")
	}
	f.turn(t, first, "v", "r")
}

func TestAnAgentsJobIsOneLevelDeeperUpToTheLimit(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	first := f.start(t, `{"agent":"mock","prompt":"x"}`)
	by := f.agent(t, first)
	jobs := []uint64{first}
	for depth := 1; depth <= f.limits.DelegationDepth; depth++ {
		n, deeper := f.delegated(t, by)
		rec, _ := f.Job("shop", n)
		if rec.StartedBy != ledger.ByModel || rec.Parent != by.Run || rec.Depth != depth || deeper.Depth != depth {
			t.Errorf("the job at depth %d is %+v, its agent %+v", depth, rec, deeper)
		}
		by = deeper
		jobs = append(jobs, n)
	}
	_, err := f.startBy(by, ledger.Call{})
	denied(t, err, fault.Denied, "limits.delegation_depth", "2", "the agent of shop/job-3")
	denied(t, f.CheckDraft("shop", Draft{Prompt: []byte("x"), By: by}), fault.Denied, "delegation_depth")
	denied(t, f.PrecheckDraft(by, "shop", []byte("x")), fault.Denied, "delegation_depth")
	if rec, _ := f.Job("shop", first); rec.StartedBy != ledger.ByOwner || rec.Depth != 0 || rec.Parent != "" {
		t.Errorf("the owner's job is %+v", rec)
	}
	for _, n := range jobs {
		f.turn(t, n, "v", "r")
	}
}

func TestAnAgentStartsJobsInItsOwnSessionAlone(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	if _, err := f.RegisterSession("other", f.place, ""); err != nil {
		t.Fatal(err)
	}
	first := f.start(t, `{"agent":"mock","prompt":"x"}`)
	_, err := f.Start(context.Background(), "other", Draft{Prompt: []byte("x"), By: f.agent(t, first)})
	denied(t, err, fault.Denied, "its own session", "other")
	_, err = f.startBy(f.Caller(0), ledger.Call{})
	denied(t, err, fault.Denied, "pid namespace")
	_, err = f.startBy(f.Caller(os.Getpid()), ledger.Call{})
	denied(t, err, fault.Denied)
	if jobs := append(f.Jobs("other"), f.Jobs("shop")...); len(jobs) != 1 {
		t.Errorf("there are jobs %+v", jobs)
	}
	f.turn(t, first, "v", "r")
}

// An agent that waits for its own job holds the slot that the job would need.
func TestAnAgentsJobsDoNotWait(t *testing.T) {
	f := newFixture(t, 2, 10).shop(t)
	first := f.start(t, `{"agent":"mock","prompt":"x"}`)
	by := f.agent(t, first)
	n, _ := f.delegated(t, by)
	_, err := f.startBy(by, ledger.Call{})
	denied(t, err, fault.Limit, "limits.jobs", "do not wait", "echo cancel > sessions/shop/jobs/job-2/ctl")
	denied(t, f.CheckDraft("shop", Draft{Prompt: []byte("x"), Call: ledger.Call{Agent: "mock"}, By: by}), fault.Limit)
	if len(f.Jobs("shop")) != 2 {
		t.Errorf("a refused job is there: %s", f.describe())
	}
	// One that waits for its conversation's own turn has that turn's slot to come.
	next, err := f.Reply(context.Background(), by, "shop", n, []byte("and then?"))
	if err != nil || next != "shop/job-3" {
		t.Fatal(next, err)
	}
	f.turn(t, n, "v", "r")
	f.turn(t, 3, "v", "r")
	if rec, _ := f.Job("shop", 3); rec.StartedBy != ledger.ByModel || rec.Parent != by.Run || rec.Depth != 1 || rec.Conversation != "mock-2" {
		t.Errorf("the reply is %+v", rec)
	}
	// The owner's jobs have the slot and the queue before it.
	owners := f.start(t, `{"agent":"mock","prompt":"y"}`)
	f.process(t, owners)
	_, err = f.Reply(context.Background(), by, "shop", n, []byte("and now?"))
	denied(t, err, fault.Limit, "wait until one has ended")
	f.turn(t, owners, "w", "r")
	f.turn(t, first, "u", "r")
}

func TestAnAgentDirectsTheJobsThatItStarted(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	if _, err := f.RegisterSession("other", f.place, ""); err != nil {
		t.Fatal(err)
	}
	first, owners := f.start(t, `{"agent":"mock","prompt":"x"}`), f.start(t, `{"agent":"mock","prompt":"y"}`)
	by, peer := f.agent(t, first), f.agent(t, owners)
	child, childs := f.delegated(t, by)
	grandchild, _ := f.delegated(t, childs)
	acts := map[string]func(Caller, uint64) error{
		"cancel":  func(c Caller, n uint64) error { return f.Cancel(c, "shop", n) },
		"dismiss": func(c Caller, n uint64) error { return f.Dismiss(c, "shop", n) },
		"reply": func(c Caller, n uint64) error {
			_, err := f.Reply(context.Background(), c, "shop", n, []byte("x"))
			return errors.Join(err, f.PrecheckReply(c, "shop", n, []byte("x")))
		},
	}
	for name, act := range acts {
		for who, c := range map[string]Caller{"its agent": by, "another agent": peer, "a stranger": f.Caller(os.Getpid()), "nobody": f.Caller(0)} {
			if err := act(c, owners); !fault.Is(err, fault.Denied) {
				t.Errorf("%s of the owner's job by %s: %v", name, who, err)
			}
			if c.Same(by) {
				continue
			}
			if err := act(c, child); !fault.Is(err, fault.Denied) {
				t.Errorf("%s of an agent's job by %s: %v", name, who, err)
			}
		}
		if err := act(childs, first); !fault.Is(err, fault.Denied) { // who started it
			t.Errorf("%s of the job above: %v", name, err)
		}
		if err := act(by, first); !fault.Is(err, fault.Denied) {
			t.Errorf("%s of itself: %v", name, err)
		}
	}
	// Nor does it go on with a conversation that it did not begin, its own either.
	for _, conv := range []string{"mock-1", "mock-2"} {
		_, err := f.startBy(by, ledger.Call{Session: conv})
		denied(t, err, fault.Denied, conv, "did not begin")
	}
	if err := f.Cancel(by, "shop", grandchild); err != nil {
		t.Errorf("what its own job started: %v", err)
	}
	if rec := f.is(t, grandchild, ledger.Cancelled); !strings.Contains(rec.Detail, "the agent of shop/job-1") {
		t.Errorf("the cancelled job says %q", rec.Detail)
	}
	f.Seen("shop", grandchild, f.pid(t, child)) // else there are turns that report them
	f.turn(t, child, "v", "r")
	f.Seen("shop", child, f.pid(t, first))
	f.turn(t, first, "u", "r")
	// A later turn of the conversation goes on with what an earlier one started.
	later := f.send(t, "mock-1", "on")
	if err := f.Dismiss(f.agent(t, later), "shop", child); err != nil {
		t.Errorf("a job that an earlier turn started: %v", err)
	}
	f.turn(t, later, "u", "r")
	f.turn(t, owners, "w", "r")
}

func TestDelegationIsKnownAfterARestart(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	first := f.start(t, `{"agent":"mock","prompt":"x"}`)
	by := f.agent(t, first)
	child, childs := f.delegated(t, by)
	f.Workbench.Close()
	f.open(t)
	if now := f.agentOf(childs.Run); now != childs {
		t.Errorf("the agent was %+v and is %+v", childs, now)
	}
	if err := f.Cancel(f.agentOf(by.Run), "shop", child); err != nil {
		t.Error(err)
	}
	f.is(t, child, ledger.Cancelled)
	f.turn(t, first, "v", "r")
}
