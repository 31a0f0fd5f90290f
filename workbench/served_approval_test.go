package workbench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"scvfs/ledger"
)

// asks plays an agent up to a request, which waits, and returns its number.
func (f *fixture) asks(t *testing.T, n uint64) (*player, uint64) {
	t.Helper()
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready\nsession s1")
	p.hears("prompt one")
	p.say("ask a run `rm -rf build`")
	f.until(t, "a waiting request", func() bool { return len(f.Approvals("shop", n)) == 1 })
	return p, f.Approvals("shop", n)[0].Number
}

// logged checks that the run's log has lines, in their order.
func (f *fixture) logged(t *testing.T, n uint64, want ...string) {
	t.Helper()
	rec, _ := f.Job("shop", n)
	text, err := os.ReadFile(f.RunFile(rec.Run, "log"))
	if err != nil {
		t.Fatal(err)
	}
	left := string(text)
	for _, line := range want {
		_, after, found := strings.Cut(left, line+"\n")
		if !found || strings.Count(string(text), line+"\n") != 1 {
			t.Errorf("the log lacks %q, or has it twice or elsewhere:\n%s", line, text)
		}
		left = after
	}
}

func TestTheOwnersAnswerReachesTheServer(t *testing.T) {
	f := served(t, 2)
	defer f.Watch()()
	n := f.ask(t, "one")
	p, number := f.asks(t, n)
	if rec, _ := f.Job("shop", n); rec.State != ledger.AwaitingInput || rec.Detail != fmt.Sprintf("approval %d: run `rm -rf build`", number) {
		t.Errorf("the job is %s %s", rec.State, rec.Detail)
	}
	if at := f.AttachState("shop", "served-1"); at.State == AttachReady || at.Interrupt {
		t.Errorf("a takeover would do away with it: %+v", at)
	}
	p.say("ask b fetch it")
	f.until(t, "two requests", func() bool { return len(f.Approvals("shop", n)) == 2 })
	if err := f.Approve("shop", n, "yes 2", owner); err != nil {
		t.Fatal(err)
	}
	p.hears("answer b yes")
	p.say("gone a")
	f.is(t, n, ledger.Working)
	if rec, _ := f.Approval(number); rec.State != ledger.ApprovalWithdrawn {
		t.Errorf("the first is %s", Outcome(rec))
	}
	p.say("end completed ok")
	f.is(t, n, ledger.Completed)
	f.logged(t, n, "approval 1 asked (process): run `rm -rf build`", "approval 2 asked (process): fetch it",
		"approval 2 approved by owner (pid 4242, /approvals/1/answer): approved", "approval 1 withdrawn by the agent: withdrawn", "turn 1 ended: completed")
}

func TestARequestOutlivesTheDaemon(t *testing.T) {
	for _, answered := range []string{"before the daemon stops", "after it has gone on"} {
		t.Run(answered, func(t *testing.T) {
			f := served(t, 2)
			stop := f.Watch()
			n := f.ask(t, "one")
			p, number := f.asks(t, n)
			stop()
			if answered == "before the daemon stops" {
				if err := f.Answer(number, "yes", owner); err != nil {
					t.Fatal(err)
				}
				f.reopen(t)
			} else {
				f.reopen(t)
				f.is(t, n, ledger.AwaitingInput)
				p.silent()
				f.reopen(t)
				if err := f.Answer(number, "yes", owner); err != nil {
					t.Fatal(err)
				}
			}
			p.hears("answer a yes")
			p.silent() // it is told once
			f.is(t, n, ledger.Working)
			f.reopen(t)
			p.silent()
			p.say("end completed ok")
			f.is(t, n, ledger.Completed)
			f.logged(t, n, "approval 1 asked (process): run `rm -rf build`", "turn 1 ended: completed")
		})
	}
}

func TestCancelTakesTheRequestFromTheServer(t *testing.T) {
	f := served(t, 2)
	defer f.Watch()()
	n := f.ask(t, "one")
	p, number := f.asks(t, n)
	if err := f.Cancel(Caller{}, "shop", n); err != nil {
		t.Fatal(err)
	}
	if rec, _ := f.Approval(number); Outcome(rec) != "withdrawn: its job is being cancelled by the owner" {
		t.Errorf("it is %s", Outcome(rec))
	}
	p.hears("stop")
	f.is(t, n, ledger.Cancelled)
}

func TestAnAgentThatDiesLeavesNoRequest(t *testing.T) {
	f := served(t, 2)
	defer f.Watch()()
	n := f.ask(t, "one")
	p, number := f.asks(t, n)
	f.reopen(t)
	p.p.end(exited, true)
	f.is(t, n, ledger.Failed)
	if rec, _ := f.Approval(number); rec.State != ledger.ApprovalWithdrawn {
		t.Errorf("it is %s", Outcome(rec))
	}
}
