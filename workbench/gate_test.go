package workbench

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scvfs/ledger"
	"scvfs/workbench/dialogue"
)

func TestTheGateDecidesByPolicy(t *testing.T) {
	const permission, question = dialogue.Permission, dialogue.Question
	for _, tt := range []struct {
		policy string
		full   bool
		kind   dialogue.Kind
		risk   dialogue.Risk
		want   string
	}{
		{policyOnRisk, false, permission, dialogue.ReadOnly, "yes"},
		{policyOnRisk, false, permission, dialogue.Process, "no, or the owner"},
		{policyOnRisk, false, permission, "of another kind", "no, or the owner"},
		{policyOnRisk, false, permission, "", "no, or the owner"},
		{policyOnRisk, false, question, dialogue.ReadOnly, "no, or the owner"},
		{policyAlways, false, permission, dialogue.ReadOnly, "no, or the owner"},
		{policyAlways, false, permission, dialogue.Network, "no, or the owner"},
		{policyNever, false, permission, dialogue.ReadOnly, "yes"},
		{policyNever, false, permission, dialogue.Filesystem, "no"},
		{policyNever, false, question, dialogue.Delegate, "no"},
		{policyOnRisk, true, permission, dialogue.Process, "yes"},
		{policyAlways, true, permission, dialogue.Process, "yes"},
		{policyNever, true, permission, dialogue.Process, "yes"},
		{policyOnRisk, true, question, dialogue.Delegate, "no, or the owner"},
	} {
		got := "no"
		switch r := rule(tt.policy, tt.full, tt.kind, tt.risk); {
		case r.allow:
			got = "yes"
		case r.waits:
			got = "no, or the owner"
		}
		if got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// askAny draws a request.
func askAny(t *rapid.T, id string) dialogue.Ask {
	q := dialogue.Ask{
		ID:      id,
		Kind:    rapid.SampledFrom([]dialogue.Kind{dialogue.Permission, dialogue.Question}).Draw(t, "kind"),
		Risk:    rapid.SampledFrom([]dialogue.Risk{dialogue.ReadOnly, dialogue.Filesystem, dialogue.Process, dialogue.Network, dialogue.Delegate, "new"}).Draw(t, "risk"),
		Summary: rapid.SampledFrom([]string{"", "run `make`", "two\nlines \x1b[2J", strings.Repeat("long ", 400)}).Draw(t, "summary"),
		Request: rapid.SampledFrom([][]byte{nil, []byte(`{"a":[1,"<"]}`), []byte("no json\xff"), []byte(`"` + strings.Repeat("<", 300<<10) + `"`)}).Draw(t, "request"),
	}
	if q.Kind == dialogue.Question {
		q.Questions = []dialogue.Choice{{Text: "Which?", Options: []string{"red", "blue"}}}
	}
	return q
}

// TestTheGateOnAnyRequests asks anything under any policy: the attended gate
// denies nothing that the unattended one allows, allows nothing by itself that
// that one denies, and makes nothing wait that nobody would see.
func TestTheGateOnAnyRequests(t *testing.T) {
	f, j, run := asking(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		f.conf.Policy = rapid.SampledFrom([]string{policyOnRisk, policyAlways, policyNever}).Draw(t, "policy")
		watched := rapid.Bool().Draw(t, "watched")
		if stop := f.Watch(); watched {
			defer stop()
		} else {
			stop()
		}
		n++
		q, turn := askAny(t, string(rune('a'+n%26))+time.Now().String()), newFakeAsker()
		g := rule(f.conf.Policy, false, q.Kind, q.Risk)
		number, d, err := f.Workbench.ask(j, run, turn, q)
		if err != nil {
			t.Fatal(err)
		}
		rec, ok := f.Approval(number)
		switch {
		case !ok || rec.Ask != q.ID:
			t.Fatalf("approval %d is %+v", number, rec)
		case d == nil != (watched && !g.allow && g.waits):
			t.Fatalf("watched %v, the gate says %+v: %+v", watched, g, d)
		case d == nil && (rec.State != ledger.ApprovalWaiting || j.record().State != ledger.AwaitingInput):
			t.Fatalf("the request is %s, its job %s", rec.State, j.record().State)
		case d != nil && d.Answer.Allow != g.allow:
			t.Fatalf("the gate says %+v: %+v", g, d)
		case d != nil && !d.Answer.Allow && d.Answer.Reason == "":
			t.Fatal("the agent is not told why not")
		case len(rec.Request) > requestBytes || strings.ContainsAny(rec.Summary, "\n\x1b") || rec.Summary == "":
			t.Fatalf("the record holds %d bytes of request and says %q", len(rec.Request), rec.Summary)
		}
		f.withdraw(run.ID, q.ID, "done with it")
		if j.record().State != ledger.Working {
			t.Fatalf("the job is %s", j.record().State)
		}
	})
	for _, err := range f.ledger.Check() {
		t.Error(err)
	}
	if len(j.asks) > approvalsKept {
		t.Errorf("%d requests are kept", len(j.asks))
	}
}
