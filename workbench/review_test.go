package workbench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// phase lets the current run of a reviewed job do a turn, and returns what it
// was asked.
func (f *fixture) phase(t *testing.T, n uint64, before, session, reply string) (run, prompt string) {
	t.Helper()
	f.until(t, "another run of "+JobName(n), func() bool {
		rec, ok := f.Job("shop", n)
		return ok && rec.State == ledger.Working && rec.Run != before && f.runs.of(rec.Run) != nil
	})
	rec, _ := f.Job("shop", n)
	p := f.runs.of(rec.Run)
	b, err := os.ReadFile(f.runs.Path(rec.Run, "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.print(fmt.Sprintf(initLine, session) + fmt.Sprintf(resultLine, reply, session)); err != nil {
		t.Fatal(err)
	}
	p.end(exited, true)
	return rec.Run, string(b)
}

func reviewed(t *testing.T, review string) (*fixture, uint64) {
	t.Helper()
	f := newFixture(t, 1, 10).shop(t)
	return f, f.start(t, `{"agent":"mock","prompt":"build it","review":`+review+`}`)
}

func (f *fixture) result(t *testing.T, rec *ledger.Job) string {
	t.Helper()
	b, err := os.ReadFile(f.JobFile(rec, "result"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAReviewGoesRoundUntilItApproves(t *testing.T) {
	f, n := reviewed(t, `{"agent":"mock","rounds":3,"focus":"the edges"}`)
	run, prompt := f.phase(t, n, "", "b1", "built it")
	if prompt != "build it" {
		t.Fatalf("the builder was asked %q", prompt)
	}
	m := f.send(t, "mock-1", "meanwhile") // the lane is held
	run, prompt = f.phase(t, n, run, "r1", `look at ${x}\n**VERDICT: changes**`)
	for _, want := range []string{"build it", "built it", "the edges", "round 1 of at most 3"} {
		if !strings.Contains(prompt, want) {
			t.Fatalf("the reviewer was not told %q:\n%s", want, prompt)
		}
	}
	if rec, _ := f.Run(run); rec.Conversation != "" {
		t.Fatalf("the reviewer's run is in conversation %s", rec.Conversation)
	}
	run, prompt = f.phase(t, n, run, "b1", "changed it")
	if !strings.Contains(prompt, "look at ${x}") {
		t.Fatalf("the builder was told %q", prompt)
	}
	if rec, _ := f.Job("shop", m); rec.State != ledger.Queued {
		t.Fatalf("what waits in the lane is %s", rec.State)
	}
	_, _ = f.phase(t, n, run, "r2", `fine\nVERDICT: approve`)
	rec := f.is(t, n, ledger.Completed)
	if rec.Review.Outcome != reviewApproved || rec.Review.Round != 2 || len(rec.Review.Runs) != 4 {
		t.Fatalf("review %+v", rec.Review)
	}
	result := f.result(t, rec)
	if !strings.HasPrefix(result, "changed it\n") || !strings.Contains(result, "round 2, by mock:\nfine") {
		t.Fatalf("result %q", result)
	}
	if rec.Usage.InputTokens != 40 {
		t.Fatalf("usage %+v", rec.Usage)
	}
	f.phase(t, m, "", "b1", "done")
	f.is(t, m, ledger.Completed)
	conv, _ := f.Conversation("shop", "mock-1")
	if conv.Vendor != "b1" || conv.Turns != 3 {
		t.Fatalf("conversation %+v", conv)
	}
	if err := f.CheckResume("shop", "shop", n, []byte("go on")); !fault.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
}

func TestAReviewEndsByItsVerdict(t *testing.T) {
	for said, outcome := range map[string]string{
		`hm\nVERDICT: changes`: reviewUnresolved, `hm\nVERDICT: escalate`: reviewEscalated, `hm`: reviewNoVerdict,
	} {
		f, n := reviewed(t, `{"agent":"mock","rounds":1}`)
		run, _ := f.phase(t, n, "", "b1", "built it")
		f.phase(t, n, run, "r1", said)
		rec := f.is(t, n, ledger.Failed)
		if rec.Review.Outcome != outcome || !strings.Contains(rec.Detail, "review: ") || !strings.Contains(f.result(t, rec), "hm") {
			t.Fatalf("%q: %+v, %s", said, rec.Review, rec.Detail)
		}
	}
}

func TestAReviewOutlivesTheDaemon(t *testing.T) {
	f, n := reviewed(t, `{"agent":"mock"}`)
	f.process(t, n)
	f.reopen(t)
	run, _ := f.phase(t, n, "", "b1", "built it")
	f.until(t, "a reviewer", func() bool { rec, _ := f.Job("shop", n); return rec.Run != run && f.runs.of(rec.Run) != nil })
	f.reopen(t)
	f.phase(t, n, run, "r1", `VERDICT: approve`)
	f.is(t, n, ledger.Completed)
}

func TestACancelEndsAReviewInAnyPhase(t *testing.T) {
	f, n := reviewed(t, `{"agent":"mock"}`)
	run, _ := f.phase(t, n, "", "b1", "built it")
	f.until(t, "a reviewer", func() bool { rec, _ := f.Job("shop", n); return rec.Run != run && f.runs.of(rec.Run) != nil })
	if err := f.Cancel(Caller{}, "shop", n); err != nil {
		t.Fatal(err)
	}
	if rec := f.is(t, n, ledger.Cancelled); rec.Review.Outcome != reviewStopped {
		t.Fatalf("%+v", rec.Review)
	}
	m := f.send(t, "mock-1", "go on") // the lane is free again
	f.phase(t, m, "", "b1", "done")
	f.is(t, m, ledger.Completed)
	if err := f.Dismiss(Caller{}, "shop", n); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Run(run); ok {
		t.Fatal("the builder's run is left")
	}
}

func TestAReviewIsRefusedThatCannotBe(t *testing.T) {
	f := newFixture(t, 1, 10).shop(t)
	for call, want := range map[string]string{
		`"agent":"sh","review":{}`:                       "sh cannot be reviewed",
		`"agent":"mock","review":{"agent":"sh"}`:         "sh cannot review",
		`"agent":"mock","review":{"agent":"nobody"}`:     "no agent",
		`"agent":"mock","review":{"rounds":0}`:           "review.rounds cannot be 0",
		`"agent":"mock","review":{"rounds":21}`:          "review.rounds cannot be 21",
		`"agent":"mock","review":{"round":2}`:            "review cannot be",
		`"agent":"mock","review":true`:                   "review cannot be",
		`"agent":"mock","review":{"model":"x"}`:          "need review.agent",
		`"agent":"mock","review":{"timeout_seconds":-1}`: "review.timeout_seconds",
	} {
		d, err := ParseDraft([]byte(`{"prompt":"x",` + call + `}`))
		if err == nil {
			err = f.CheckDraft("shop", d)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", call, err, want)
		}
	}
}

func TestAVerdictIsFoundHoweverItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"VERDICT: approve": "approve", "x\n\n**Verdict:** changes\n": "changes", "> VERDICT: Escalate.": "escalate",
		"the VERDICT: approve": "", "VERDICT: approved?": "", "": "", "VERDICT: changes\nlater\nVERDICT: approve": "approve", "`VERDICT: approve`": "approve",
	} {
		if got := verdictOf([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
