package workbench

import (
	"encoding/json"
	"testing"

	"scvfs/ledger"
)

// again decodes a text as T and encodes it.
func again[T any](t *testing.T, text string) (T, string) {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return v, string(out)
}

// What the seed's types read and write, these read and write.
func TestJobChangeIsTheSeeds(t *testing.T) {
	for _, c := range []struct {
		in, out string // empty out: the same
		started bool
	}{
		{`{"job":"job-1","tool":"agent_codex","status":"running","task":"fix it"}`, "", true},
		{`{"job":"job-1","tool":"agent_codex","status":"completed"}`, "", false},
		{`{"job":"job-1","tool":"agent_codex","status":"completed","task":""}`, `{"job":"job-1","tool":"agent_codex","status":"completed"}`, false},
		{`{"job":"job-1","tool":"agent_x","status":"pondering","mood":1}`, `{"job":"job-1","tool":"agent_x","status":"unknown"}`, false},
		{`{"job":"job-1","tool":"agent_x","status":"failed","task":"ü \"<&>\" \u2028"}`, `{"job":"job-1","tool":"agent_x","status":"failed","task":"ü \"\u003c\u0026\u003e\" \u2028"}`, false},
		{`{"job":"j","tool":"t","status":"declined"}`, "", false},
		{`{"job":"j","tool":"t","status":"timeout"}`, "", false},
		{`{"job":"j","tool":"t","status":"cancelled"}`, "", false},
		{`{"job":"j","tool":"t","status":"interrupted"}`, "", false},
		{`{"job":"j","tool":"t","status":"unknown"}`, "", false},
	} {
		change, out := again[JobChange](t, c.in)
		if c.out == "" {
			c.out = c.in
		}
		if out != c.out || change.Started() != c.started {
			t.Errorf("%s became %s, started %v", c.in, out, change.Started())
		}
		if twice, same := again[JobChange](t, out); twice != change || same != out {
			t.Errorf("%s became %s in the end", out, same)
		}
	}
}

func TestTurnOriginIsTheSeeds(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"background","jobs":["job-3"]}`:        `{"kind":"background","jobs":["job-3"]}`,
		`{"kind":"background","jobs":[]}`:               `{"kind":"background"}`,
		`{"kind":"background"}`:                         `{"kind":"background"}`,
		`{"kind":"weather","jobs":["job-1","job-2"]}`:   `{"kind":"unknown","jobs":["job-1","job-2"]}`,
		`{"kind":"background","retry_seconds":30}`:      `{"kind":"background"}`,
		`{"kind":"unknown","jobs":["job-1"],"more":{}}`: `{"kind":"unknown","jobs":["job-1"]}`,
	} {
		if _, out := again[TurnOrigin](t, in); out != want {
			t.Errorf("%s became %s", in, out)
		}
	}
	if _, out := again[OwnTurn](t, `{"origin":{"kind":"background","jobs":["job-3"]},"job":"job-9","conversation":"codex-1"}`); out !=
		`{"origin":{"kind":"background","jobs":["job-3"]},"job":"job-9","conversation":"codex-1"}` {
		t.Errorf("a turn became %s", out)
	}
}

func TestAttachStateReadsWhatItDoesNotKnow(t *testing.T) {
	for in, want := range map[string]string{
		`{"state":"ready","interrupt":false}`:                                  `{"state":"ready","interrupt":false}`,
		`{"state":"busy","detail":"x","interrupt":true,"job":"job-1"}`:         `{"state":"busy","detail":"x","interrupt":true,"job":"job-1"}`,
		`{"state":"elsewhere","detail":"x","interrupt":false,"new":[1,2,"3"]}`: `{"state":"unknown","detail":"x","interrupt":false}`,
	} {
		if _, out := again[Attach](t, in); out != want {
			t.Errorf("%s became %s", in, out)
		}
	}
}

func TestWhichChangesClientsOfASessionSee(t *testing.T) {
	for _, c := range []struct {
		change Change
		status JobStatus // empty: none
		turn   bool
	}{
		{Change{Kind: JobStarted, Status: ledger.StatusRunning}, ledger.StatusRunning, false},
		{Change{Kind: JobChanged, Status: ledger.StatusRunning}, "", false},
		{Change{Kind: JobChanged, Status: JobStatus(ledger.TimedOut)}, JobStatus(ledger.TimedOut), false},
		{Change{Kind: JobLinked, Status: JobStatus(ledger.Completed)}, "", false},
		{Change{Kind: JobSettled, Status: JobStatus(ledger.Completed)}, "", false},
		{Change{Kind: TurnStarted, Status: ledger.StatusRunning, Origin: &TurnOrigin{Kind: ledger.OriginBackground}}, "", true},
		{Change{Kind: TurnStarted}, "", false},
		{Change{Kind: SessionChanged}, "", false},
	} {
		c.change.Agent = "codex"
		j, told := c.change.JobChange()
		_, turn := c.change.OwnTurn()
		if told != (c.status != "") || told && (j.Status != c.status || j.Tool != "agent_codex") || turn != c.turn {
			t.Errorf("%+v: %+v, %v, %v", c.change, j, told, turn)
		}
	}
}
