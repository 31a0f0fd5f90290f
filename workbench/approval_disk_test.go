package workbench

import (
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/config"
	"scvfs/workbench/dialogue"
)

// What the ledger cannot take is not decided, whoever asks; it is decided when
// it can.
func TestNothingIsDecidedThatCannotBeRecorded(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	turn := newFakeAsker()
	n, m := f.waits(t, j, run, turn, risky("a")), f.waits(t, j, run, turn, risky("b"))
	f.limits.AttendedWait = config.Duration(time.Millisecond)
	late := f.waits(t, j, run, turn, risky("late"))
	if rec, _ := f.Approval(late); rec.State == ledger.ApprovalWaiting {
		f.until(t, "the first deadline", func() bool { rec, _ := f.Approval(late); return rec.State != ledger.ApprovalWaiting })
	}
	turn.next(t)
	if err := f.ledger.Close(); err != nil { // as good as a disk that takes nothing
		t.Fatal(err)
	}
	if err := f.Answer(m, "yes", owner); !fault.Is(err, fault.Closed) {
		t.Errorf("an answer: %v", err)
	}
	if number, d, err := f.Workbench.ask(j, run, turn, risky("c")); !fault.Is(err, fault.Closed) || d != nil || number != 0 {
		t.Errorf("a request: %d, %+v, %v", number, d, err)
	}
	if _, d, err := f.Workbench.ask(j, run, turn, dialogue.Ask{ID: "r", Kind: dialogue.Permission, Risk: dialogue.ReadOnly}); err == nil || d != nil {
		t.Errorf("a request that the gate allows: %+v, %v", d, err)
	}
	f.withdraw(run.ID, "a", "the agent took it back")
	if rec, _ := f.Approval(n); rec.State != ledger.ApprovalWaiting {
		t.Errorf("it is shown as %s", rec.State)
	}
	if err := f.Answer(n, "yes", owner); !fault.Is(err, fault.Done) || !strings.Contains(err.Error(), "withdrawn: the agent took it back") {
		t.Errorf("an answer to what was taken back: %v", err)
	}
	if j.record().State != ledger.AwaitingInput || len(f.Approvals("", 0)) != 2 {
		t.Errorf("the job is %s, there wait %+v", j.record().State, f.Approvals("", 0))
	}
	turn.nothing(t)
	f.Workbench.Close()
	var err error
	if f.ledger, err = ledger.Open(f.state, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	f.open(t)
	j, run = f.asker(t, 1)
	f.reask(j, run, turn, []dialogue.Ask{risky("b")})
	if rec, _ := f.Approval(n); rec.State != ledger.ApprovalWithdrawn {
		t.Errorf("afterwards it is %s", Outcome(rec))
	}
	if err := f.Answer(m, "yes", owner); err != nil {
		t.Fatal(err)
	}
	if got := turn.next(t); got.ask != "b" || !got.answer.Allow {
		t.Errorf("it was told %+v", got)
	}
}

// A deadline that passes while nothing can be recorded holds as soon as
// something can.
func TestADeadlineOnAFullDiskHoldsLater(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	f.limits.AttendedWait = config.Duration(100 * time.Millisecond)
	turn := newFakeAsker()
	n := f.waits(t, j, run, turn, risky("a"))
	if err := f.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	rec, _ := f.Approval(n)
	<-time.After(time.Until(rec.Deadline) + 20*time.Millisecond)
	f.checkDeadlines() // and not only its own clock
	if rec, _ := f.Approval(n); rec.State != ledger.ApprovalWaiting {
		t.Errorf("it is %s, and that is not recorded", Outcome(rec))
	}
	turn.nothing(t)
	f.Workbench.Close()
	var err error
	if f.ledger, err = ledger.Open(f.state, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	f.open(t)
	f.until(t, "the gate's answer", func() bool { rec, _ := f.Approval(n); return rec.State == ledger.ApprovalDenied })
}
