package workbench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/config"
	"scvfs/workbench/dialogue"
)

// told is one decision that an asker was handed.
type told struct {
	ask    string
	number uint64
	answer dialogue.Answer
	who    string
}

// fakeAsker is a turn that notes what it is told.
type fakeAsker struct{ told chan told }

func newFakeAsker() *fakeAsker { return &fakeAsker{make(chan told, 100)} }

func (a *fakeAsker) answered(ask string, number uint64, answer dialogue.Answer, who string) {
	a.told <- told{ask, number, answer, who}
}

// next waits for a decision.
func (a *fakeAsker) next(t *testing.T) told {
	t.Helper()
	select {
	case got := <-a.told:
		return got
	case <-time.After(10 * time.Second):
		t.Fatal("no decision came")
		return told{}
	}
}

// nothing fails the test when more decisions came.
func (a *fakeAsker) nothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-a.told:
		t.Errorf("it was told %+v too", got)
	default:
	}
}

// asking is a fixture with one job at work.
func asking(t *testing.T) (*fixture, *job, *ledger.Run) {
	t.Helper()
	f := newFixture(t, 2, 10)
	j, run := f.working(t)
	return f, j, run
}

// working starts a job, which works.
func (f *fixture) working(t *testing.T) (*job, *ledger.Run) {
	t.Helper()
	if _, ok := f.Session("shop"); !ok {
		if _, err := f.RegisterSession("shop", f.place, ""); err != nil {
			t.Fatal(err)
		}
	}
	n := f.start(t, "#!scv agent=mock\nwork")
	f.process(t, n)
	return f.asker(t, n)
}

// asker finds the job and run of a number, as a turn has them.
func (f *fixture) asker(t *testing.T, n uint64) (*job, *ledger.Run) {
	t.Helper()
	j, err := f.find("shop", n)
	if err != nil {
		t.Fatal(err)
	}
	run, ok := f.Run(j.record().Run)
	if !ok {
		t.Fatalf("job-%d has no run", n)
	}
	return j, run
}

func risky(id string) dialogue.Ask {
	return dialogue.Ask{
		ID: id, Kind: dialogue.Permission, Risk: dialogue.Process, Tool: "shell", Summary: "run `rm -rf build`",
		Request: json.RawMessage(`{"command":"rm -rf build"}`),
	}
}

// waits asks for something that has to wait, and returns its number.
func (f *fixture) waits(t *testing.T, j *job, run *ledger.Run, from asker, q dialogue.Ask) uint64 {
	t.Helper()
	n, d, err := f.Workbench.ask(j, run, from, q)
	if err != nil || d != nil {
		t.Fatalf("it does not wait: %+v, %v", d, err)
	}
	return n
}

var owner = Answerer{PID: 4242, Path: "/approvals/1/answer"}

func TestTwoAtOnceBothWaitAndTheJobSaysSo(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	turn := newFakeAsker()
	first := f.waits(t, j, run, turn, risky("a"))
	second := f.waits(t, j, run, turn, dialogue.Ask{ID: "b", Kind: dialogue.Permission, Risk: dialogue.Network, Summary: "fetch a page"})
	if rec := j.record(); rec.State != ledger.AwaitingInput || rec.Detail != "approval 1: run `rm -rf build` (and 1 more)" {
		t.Errorf("the job says %s %s", rec.State, rec.Detail)
	}
	if now, _ := f.Run(run.ID); now.State != ledger.AwaitingInput || now.Detail != j.record().Detail {
		t.Errorf("the run says %s %s", now.State, now.Detail)
	}
	if state, at := f.ConversationState("shop", run.Conversation); state != ledger.AwaitingInput || at != "job-1" {
		t.Errorf("the conversation says %s %s", state, at)
	}
	if all := f.Approvals("shop", 1); len(all) != 2 || all[0].Number != first || all[1].Number != second {
		t.Errorf("there wait %+v", all)
	}
	if snap := f.Snapshot().Approvals; len(snap) != 2 || snap[0].Job != "job-1" || snap[0].Summary != "run `rm -rf build`" {
		t.Errorf("the snapshot has %+v", snap)
	}
	if err := f.Answer(first, "no not now", owner); err != nil {
		t.Fatal(err)
	}
	if got := turn.next(t); got.ask != "a" || got.number != first || got.answer.Allow || got.answer.Reason != "not now" ||
		got.who != "owner (pid 4242, /approvals/1/answer)" {
		t.Errorf("it was told %+v", got)
	}
	if rec := j.record(); rec.State != ledger.AwaitingInput || rec.Detail != "approval 2: fetch a page" {
		t.Errorf("then the job says %s %s", rec.State, rec.Detail)
	}
	if err := f.Approve("shop", 1, "yes", Answerer{Path: "/x"}); err != nil {
		t.Fatal(err)
	}
	if got := turn.next(t); got.ask != "b" || !got.answer.Allow || got.who != "owner (/x)" {
		t.Errorf("it was told %+v", got)
	}
	now, _ := f.Run(run.ID)
	if rec := j.record(); rec.State != ledger.Working || rec.Detail != "" || now.State != ledger.Working || now.Detail != "" {
		t.Errorf("at last the job says %s %q, the run %s %q", rec.State, rec.Detail, now.State, now.Detail)
	}
	turn.nothing(t)
}

func TestTheFirstAnswerWins(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	for round := range 20 {
		turn := newFakeAsker()
		n := f.waits(t, j, run, turn, risky(fmt.Sprint(round)))
		var work sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			work.Go(func() { errs[i] = f.Answer(n, []string{"yes", "no"}[i%2], Answerer{PID: i + 1, Path: "/p"}) })
		}
		work.Wait()
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won >= 0:
				t.Fatalf("%d and %d both answered", won, i)
			case err == nil:
				won = i
			}
		}
		if won < 0 {
			t.Fatal("nobody answered:", errs)
		}
		who := fmt.Sprintf("owner (pid %d, /p)", won+1)
		for i, err := range errs {
			if i != won && (!fault.Is(err, fault.Done) || !strings.Contains(err.Error(), "by "+who)) {
				t.Errorf("the answer that came too late: %v, want %s", err, who)
			}
		}
		if got := turn.next(t); got.who != who || got.answer.Allow != (won%2 == 0) {
			t.Errorf("it was told %+v, %d won", got, won)
		}
		turn.nothing(t)
	}
}

func TestNobodyWatchesSoNothingWaits(t *testing.T) {
	f, j, run := asking(t)
	stop := f.Watch()
	stop()
	stop() // closing twice counts once
	n, d, err := f.Workbench.ask(j, run, newFakeAsker(), risky("a"))
	if err != nil || d == nil || d.Answer.Allow || d.How != "gate (policy on-risk, nobody watches)" {
		t.Fatalf("got %+v, %v", d, err)
	}
	if rec, _ := f.Approval(n); Outcome(rec) != "denied by gate (policy on-risk, nobody watches)" || !rec.Deadline.IsZero() {
		t.Errorf("the record says %s until %s", Outcome(rec), rec.Deadline)
	}
	if j.record().State != ledger.Working {
		t.Errorf("the job is %s", j.record().State)
	}
	f.Looked()
	f.waits(t, j, run, newFakeAsker(), risky("b"))
	f.limits.WatchTTL = config.Duration(time.Nanosecond)
	if _, d, err := f.Workbench.ask(j, run, newFakeAsker(), risky("c")); err != nil || d == nil {
		t.Errorf("a look counts for ever: %+v, %v", d, err)
	}
}

func TestTheDeadlineGivesTheGatesAnswer(t *testing.T) {
	f, j, run := asking(t)
	f.limits.AttendedWait = config.Duration(50 * time.Millisecond)
	stop := f.Watch()
	turn := newFakeAsker()
	n := f.waits(t, j, run, turn, risky("a"))
	stop() // what waits goes on waiting
	got := turn.next(t)
	if got.number != n || got.answer.Allow || got.who != "gate (nobody answered in 0s)" || got.answer.Reason == "" {
		t.Errorf("it was told %+v", got)
	}
	rec, _ := f.Approval(n)
	if rec.State != ledger.ApprovalDenied || rec.Decided.Before(rec.Deadline) || j.record().State != ledger.Working {
		t.Errorf("the record is %+v, the job %s", rec, j.record().State)
	}
	if err := f.Answer(n, "yes", owner); !fault.Is(err, fault.Done) || !strings.Contains(err.Error(), "denied by gate (nobody answered in 0s), at ") {
		t.Errorf("an answer after it: %v", err)
	}
}

func TestARestartNeitherLosesNorAnswersARequest(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	n := f.waits(t, j, run, newFakeAsker(), risky("a"))
	m := f.waits(t, j, run, newFakeAsker(), risky("b"))
	before, _ := f.Approval(n)
	f.Workbench.Close()
	f.open(t)
	j, run = f.asker(t, 1)
	rec, ok := f.Approval(n)
	if !ok || rec.State != ledger.ApprovalWaiting || !rec.Deadline.Equal(before.Deadline) || string(rec.Request) != `{"command":"rm -rf build"}` {
		t.Fatalf("afterwards there is %+v", rec)
	}
	if j.record().State != ledger.AwaitingInput || f.Approvals("", 0)[1].Number != m {
		t.Errorf("the job is %s, there wait %+v", j.record().State, f.Approvals("", 0))
	}
	// One is answered before the run is adopted, one afterwards; a third was
	// asked and not recorded, and a fourth is asked by another run.
	if err := f.Answer(n, "yes", owner); err != nil {
		t.Fatal(err)
	}
	turn := newFakeAsker()
	numbers := f.reask(j, run, turn, []dialogue.Ask{risky("a"), risky("b"), risky("c")})
	if got := turn.next(t); got.ask != "a" || !got.answer.Allow || got.number != n {
		t.Errorf("first it was told %+v", got)
	}
	if got := turn.next(t); got.ask != "c" || got.answer.Allow || got.number != m+1 { // nobody watches this daemon
		t.Errorf("then it was told %+v", got)
	}
	if len(numbers) != 1 || numbers["b"] != m {
		t.Errorf("there wait %v", numbers)
	}
	if err := f.Answer(m, "no", owner); err != nil {
		t.Fatal(err)
	}
	if got := turn.next(t); got.ask != "b" || got.answer.Allow {
		t.Errorf("last it was told %+v", got)
	}
	turn.nothing(t)
}

func TestADecisionThatNeverArrivedIsHandedOverAgain(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	lost := newFakeAsker()
	n := f.waits(t, j, run, lost, risky("a"))
	if err := f.Answer(n, "yes", owner); err != nil {
		t.Fatal(err)
	}
	lost.next(t) // and the daemon dies before it is sent
	f.Workbench.Close()
	f.open(t)
	j, run = f.asker(t, 1)
	turn := newFakeAsker()
	f.reask(j, run, turn, []dialogue.Ask{risky("a")})
	if got := turn.next(t); !got.answer.Allow || got.number != n || got.who != "owner (pid 4242, /approvals/1/answer)" {
		t.Errorf("it was told %+v", got)
	}
	turn.nothing(t)
	// An ask that is replayed from the output is the same one.
	if again, d, err := f.Workbench.ask(j, run, turn, risky("a")); err != nil || again != n || d == nil || !d.Answer.Allow {
		t.Errorf("asked again: %d, %+v, %v", again, d, err)
	}
}

func TestADeadlinePassesWhileNoDaemonRuns(t *testing.T) {
	f, j, run := asking(t)
	stop := f.Watch()
	f.limits.AttendedWait = config.Duration(100 * time.Millisecond)
	n := f.waits(t, j, run, newFakeAsker(), risky("a"))
	stop()
	f.Workbench.Close()
	rec, _ := f.Approval(n)
	<-time.After(time.Until(rec.Deadline))
	f.open(t)
	f.until(t, "the gate's answer", func() bool { rec, _ := f.Approval(n); return rec.State == ledger.ApprovalDenied })
	j, run = f.asker(t, 1)
	turn := newFakeAsker()
	f.reask(j, run, turn, []dialogue.Ask{risky("a")})
	if got := turn.next(t); got.answer.Allow || got.who != "gate (nobody answered in 0s)" {
		t.Errorf("it was told %+v", got)
	}
}

func TestWhatIsNotOpenAnyMoreIsWithdrawn(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	turn := newFakeAsker()
	a, b := f.waits(t, j, run, turn, risky("a")), f.waits(t, j, run, turn, risky("b"))
	f.reask(j, run, turn, []dialogue.Ask{risky("b")})
	if rec, _ := f.Approval(a); Outcome(rec) != "withdrawn: the agent took it back" {
		t.Errorf("a is %s", Outcome(rec))
	}
	if err := f.Answer(a, "yes", owner); !fault.Is(err, fault.Done) || !strings.Contains(err.Error(), "was withdrawn: the agent took it back") {
		t.Errorf("answering it: %v", err)
	}
	f.withdrawAll(run.ID, "its turn ended")
	if rec, _ := f.Approval(b); Outcome(rec) != "withdrawn: its turn ended" || j.record().State != ledger.Working {
		t.Errorf("b is %s, the job %s", Outcome(rec), j.record().State)
	}
	f.withdraw(run.ID, "b", "again") // nothing to do
	turn.nothing(t)
}

func TestCancelWithdrawsAtOnce(t *testing.T) {
	for name, cancel := range map[string]func(*fixture) error{
		"cancel": func(f *fixture) error { return f.Cancel(Caller{}, "shop", 1) },
		"close":  func(f *fixture) error { return f.CloseSession("shop") },
	} {
		t.Run(name, func(t *testing.T) {
			f, j, run := asking(t)
			defer f.Watch()()
			turn := newFakeAsker()
			n := f.waits(t, j, run, turn, risky("a"))
			if err := cancel(f); err != nil {
				t.Fatal(err)
			}
			if rec, _ := f.Approval(n); rec.State != ledger.ApprovalWithdrawn || len(f.Approvals("", 0)) != 0 {
				t.Errorf("it is %s", Outcome(rec))
			}
			if _, d, err := f.Workbench.ask(j, run, turn, risky("late")); err != nil || d == nil || d.Answer.Allow {
				t.Errorf("asked by a job that is being cancelled: %+v, %v", d, err)
			}
			f.until(t, "the end", func() bool { return j.record().State == ledger.Cancelled })
			turn.nothing(t)
		})
	}
}

func TestAnEndWithdrawsAndTheRequestsGoWithTheJob(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	n := f.waits(t, j, run, newFakeAsker(), risky("a"))
	f.runs.of(run.ID).end(exitOK, true)
	f.until(t, "the end", func() bool { return j.record().State.Terminal() })
	if rec, _ := f.Approval(n); Outcome(rec) != "withdrawn: its job "+ended(j.record().State) {
		t.Errorf("it is %s", Outcome(rec))
	}
	if err := f.Dismiss(Caller{}, "shop", 1); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Approval(n); ok {
		t.Error("it outlives its job")
	}
	if err := f.Answer(n, "yes", owner); !fault.Is(err, fault.NotFound) {
		t.Errorf("answering it: %v", err)
	}
	if contents, _, err := f.ledger.Load(); err != nil || len(contents.Approvals) != 0 || contents.Approval != n {
		t.Errorf("the ledger holds %+v, %v", contents.Approvals, err)
	}
}

func TestApproveNeedsToKnowWhich(t *testing.T) {
	f, j, run := asking(t)
	other, otherRun := f.working(t)
	defer f.Watch()()
	turn := newFakeAsker()
	refused := func(job uint64, line string, kind fault.Kind, want string) {
		t.Helper()
		if err := f.Approve("shop", job, line, owner); !fault.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q to job %d: %v, want %s", line, job, err, want)
		}
	}
	refused(1, "yes", fault.NotFound, "nothing of shop/job-1 waits")
	a, b := f.waits(t, j, run, turn, risky("a")), f.waits(t, j, run, turn, risky("b"))
	c := f.waits(t, other, otherRun, turn, risky("c"))
	refused(1, "yes", fault.Invalid, "2 requests of shop/job-1 wait (1, 2): say which, as in: yes 1")
	refused(0, "no", fault.Invalid, "3 requests of shop wait (1, 2, 3)")
	refused(1, "yes 3", fault.NotFound, "there is no approval 3 of shop/job-1")
	refused(1, "yes 99", fault.NotFound, "there is no approval 99")
	refused(2, "maybe", fault.Invalid, `"maybe" is no answer: write yes or no`)
	for _, do := range []struct {
		job  uint64
		line string
	}{{1, "no 1 use make clean"}, {0, "yes 3"}, {1, "YES"}} {
		if err := f.Approve("shop", do.job, do.line, owner); err != nil {
			t.Fatalf("%q: %v", do.line, err)
		}
	}
	for _, want := range []told{{ask: "a", number: a}, {ask: "c", number: c}, {ask: "b", number: b}} {
		if got := turn.next(t); got.ask != want.ask || got.number != want.number || got.answer.Allow == (got.answer.Reason == "use make clean") {
			t.Errorf("it was told %+v", got)
		}
	}
	refused(1, "yes", fault.Done, "nothing of shop/job-1 waits any more: approval 2 was approved by owner")
	refused(0, "yes", fault.NotFound, "nothing of shop waits")
}

func TestAQuestionIsAnsweredInWords(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	turn := newFakeAsker()
	q := dialogue.Ask{ID: "q", Kind: dialogue.Question, Risk: dialogue.Delegate, Summary: "which colour?", Questions: []dialogue.Choice{
		{Text: "Which colour?", Options: []string{"Red", "Blue"}}, {Text: "Which name?"},
	}}
	n := f.waits(t, j, run, turn, q)
	if err := f.Answer(n, "yes", owner); !fault.Is(err, fault.Invalid) {
		t.Errorf("yes: %v", err)
	}
	if err := f.Answer(n, "2\nshop", owner); err != nil {
		t.Fatal(err)
	}
	if got := turn.next(t); !got.answer.Allow || strings.Join(got.answer.Words, "|") != "Blue|shop" {
		t.Errorf("it was told %+v", got)
	}
	if rec, _ := f.Approval(n); strings.Join(rec.Words, "|") != "Blue|shop" {
		t.Errorf("the record has %q", rec.Words)
	}
	long := q
	long.ID, long.Questions = "long", []dialogue.Choice{{Text: strings.Repeat("x", questionsBytes)}}
	if _, d, err := f.Workbench.ask(j, run, turn, long); err != nil || d == nil || d.Answer.Allow {
		t.Errorf("a question without end: %+v, %v", d, err)
	}
}

func TestChangesTellOfRequests(t *testing.T) {
	f, j, run := asking(t)
	defer f.Watch()()
	changes := f.Subscribe()
	turn := newFakeAsker()
	n := f.waits(t, j, run, turn, risky("a"))
	if err := f.Answer(n, "yes", owner); err != nil {
		t.Fatal(err)
	}
	f.Workbench.ask(j, run, turn, dialogue.Ask{ID: "r", Kind: dialogue.Permission, Risk: dialogue.ReadOnly, Summary: "read"})
	var said []string
	for len(said) < 5 {
		got, err := changes.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			said = append(said, fmt.Sprintf("%s %s %d %s %s %s", c.Kind, c.Job, c.Approval, c.Outcome, c.State, c.Detail))
		}
	}
	want := []string{
		"approval job-1 1 waiting  run `rm -rf build`",
		"job job-1 0  awaiting_input approval 1: run `rm -rf build`",
		"approval_resolved job-1 1 approved  approved by owner (pid 4242, /approvals/1/answer)",
		"job job-1 0  working ",
		"approval_resolved job-1 2 approved  approved by gate (policy on-risk)",
	}
	if got := strings.Join(said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s", got)
	}
	var metrics []string
	for _, m := range f.Metrics() {
		if strings.HasPrefix(m.Name, "scvfs_approvals") {
			metrics = append(metrics, fmt.Sprintf("%s{%s} %v", m.Name, m.Labels, m.Value))
		}
	}
	if got := strings.Join(metrics, "\n"); got != `scvfs_approvals_waiting{} 0
scvfs_approvals_total{outcome="approved",by="gate"} 1
scvfs_approvals_total{outcome="approved",by="owner"} 1` {
		t.Errorf("metrics:\n%s", got)
	}
}

// TestManyRequestsAtOnce is for the race detector: agents ask and take back,
// owners answer, deadlines pass, and at the end all are decided once.
func TestManyRequestsAtOnce(t *testing.T) {
	f, j, run := asking(t)
	other, otherRun := f.working(t)
	f.limits.AttendedWait = config.Duration(3 * time.Millisecond)
	defer f.Watch()()
	turn := newFakeAsker()
	turn.told = make(chan told, 1000)
	var work, answering sync.WaitGroup
	const each = 40
	for i := range 4 {
		j, run := j, run
		if i%2 == 0 {
			j, run = other, otherRun
		}
		work.Go(func() {
			for k := range each {
				id := fmt.Sprintf("%d-%d", i, k)
				if _, _, err := f.Workbench.ask(j, run, turn, risky(id)); err != nil {
					t.Error(err)
				}
				if k%5 == 0 {
					f.withdraw(run.ID, id, "not needed")
				}
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		answering.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, rec := range f.Approvals("shop", 0) {
					if err := f.Answer(rec.Number, "yes", owner); err != nil && !fault.Is(err, fault.Done) {
						t.Error(err)
					}
				}
				f.Snapshot()
				f.checkDeadlines()
			}
		})
	}
	work.Wait()
	f.until(t, "the last decision", func() bool { return len(f.Approvals("", 0)) == 0 })
	close(done)
	answering.Wait()
	if j.record().State != ledger.Working || other.record().State != ledger.Working {
		t.Errorf("the jobs are %s and %s", j.record().State, other.record().State)
	}
	given := map[string]bool{}
	for len(turn.told) > 0 {
		got := turn.next(t)
		if given[got.ask] {
			t.Errorf("%s was decided twice", got.ask)
		}
		given[got.ask] = true
	}
	for n := uint64(1); n <= 4*each; n++ {
		rec, ok := f.Approval(n)
		if !ok || rec.State == ledger.ApprovalWaiting {
			t.Fatalf("approval %d is %+v", n, rec)
		}
		if given[rec.Ask] != (rec.State != ledger.ApprovalWithdrawn) {
			t.Errorf("approval %d was %s; told of it: %v", n, Outcome(rec), given[rec.Ask])
		}
	}
}

func TestADecidedRequestIsKeptShort(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		limit   int
		want    string // its beginning
		cut     bool
	}{
		"none":              {"", 100, "", false},
		"short":             {`{"a": 1}`, 100, `{"a":1}`, false},
		"exact":             {`"` + strings.Repeat("x", 98) + `"`, 100, `"xx`, false},
		"long":              {`{"a": "` + strings.Repeat("x", 500) + `"}`, 100, `"{\"a\": \"xx`, true},
		"no JSON":           {"rm -rf \xff", 100, "\"rm -rf \ufffd\"", false},
		"grows when stored": {`"` + strings.Repeat("<", 50) + `"`, 100, `"\"\u003c\u003c`, true},
		"half a character":  {`"` + strings.Repeat("é", 200) + `"`, 101, `"\"éé`, true},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &ledger.Approval{Request: json.RawMessage(tt.request)}
			keepRequest(rec, tt.limit)
			if len(rec.Request) > tt.limit || !strings.HasPrefix(string(rec.Request), tt.want) || len(rec.Request) > 0 && !json.Valid(rec.Request) {
				t.Errorf("kept %q", rec.Request)
			}
			if tt.cut != (rec.RequestBytes > 0) || tt.cut && rec.RequestBytes != len(tt.request) {
				t.Errorf("it says that it had %d bytes", rec.RequestBytes)
			}
			whole := rec.RequestBytes
			keepRequest(rec, tt.limit/2)
			if len(rec.Request) > tt.limit/2 || tt.cut && rec.RequestBytes != whole {
				t.Errorf("then kept %q of %d bytes", rec.Request, rec.RequestBytes)
			}
		})
	}
}
