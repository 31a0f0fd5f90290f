package workbench

import (
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench/agent"
)

// refusesInterrupt checks that an interrupt of a conversation is refused, in
// which words and state, and that nothing was stopped or begun by it.
func (f *fixture) refusesInterrupt(t *testing.T, conv string, n uint64, state AttachState, words string) {
	t.Helper()
	before, _ := f.Job("shop", n)
	for _, job := range []string{"", JobName(n)} {
		_, err := f.InterruptAndAttach(t.Context(), "shop", conv, job, takeover.Size{})
		if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), words) {
			t.Errorf("interrupt %s: %v, want %q", job, err, words)
		}
	}
	at := f.AttachState("shop", conv)
	if at.State != state || at.Interrupt || !strings.Contains(at.Detail, words) {
		t.Errorf("attach-state says %+v", at)
	}
	if now, _ := f.Job("shop", n); now != before || f.takeovers() != 0 {
		t.Errorf("%s became %s (%s), and %d takeovers run", JobName(n), now.State, now.Detail, f.takeovers())
	}
}

// withFull has agents of full permissions, whose terminal is offered: one over a
// dialogue that the test plays, one of a process for each turn.
func withFull(t *testing.T) *fixture {
	f := newFixture(t, 2, 10)
	f.conf.Agents["talks"] = agent.Entry{Like: "claude", Command: "/bin/true", Transport: "stream", Permissions: "full"}
	f.conf.Agents["turns"] = agent.Entry{Like: "claude", Command: "/bin/true", Transport: "cli", Permissions: "full"}
	f.dialogues = newPlain
	f.reopen(t)
	return f.shop(t)
}

func TestNoInterruptOfAJobThatWaitsForAnAnswer(t *testing.T) {
	f := withFull(t)
	defer f.Watch()()
	n := f.start(t, "#!scv agent=talks\none")
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready\nsession s1")
	p.hears("prompt one")
	p.say("question q1 which one")
	f.until(t, "a question", func() bool { rec, _ := f.Job("shop", n); return rec.State == ledger.AwaitingInput })
	f.refusesInterrupt(t, "talks-1", n, AttachBusy, "waits for an approval")
	if err := f.Answer(1, "no", Answerer{}); err != nil {
		t.Fatal(err)
	}
	p.hears("answer q1 no")
	p.say("end completed ok")
	f.is(t, n, ledger.Completed)
}

func TestNoInterruptOfAReviewedJob(t *testing.T) {
	f := withFull(t)
	n := f.start(t, `{"agent":"turns","prompt":"build it","review":{"agent":"turns"}}`)
	f.process(t, n)
	f.refusesInterrupt(t, "turns-1", n, AttachReviewed, "a reviewed job")
}
