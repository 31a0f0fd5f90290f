package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestKeysSortAsPeopleCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		session := rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,5}`)
		number := rapid.Uint64Min(1)
		s1, s2, n1, n2 := session.Draw(t, "s1"), session.Draw(t, "s2"), number.Draw(t, "n1"), number.Draw(t, "n2")
		k1, err1 := jobKey(s1, n1)
		k2, err2 := jobKey(s2, n2)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if s1 == s2 && (k1 < k2) != (n1 < n2) {
			t.Fatalf("jobs %d and %d are in the wrong order", n1, n2)
		}
		if s1 != s2 && strings.HasPrefix(k2, s1+sep) {
			t.Fatalf("a job of %q is among those of %q", s2, s1)
		}
		if text := jobText([]byte(k1)); text != address(s1, n1) {
			t.Fatalf("the key of %s reads %s", address(s1, n1), text)
		}
	})
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name          string
		session, told bool // may name a session; a run
	}{
		{"a", true, true},
		{"0", true, true},
		{"shop-2.x_y", true, true},
		{strings.Repeat("a", 64), true, true},
		{strings.Repeat("a", 65), false, true},
		{strings.Repeat("a", 201), false, false},
		{"GPT-ab12cd", false, true},
		{"", false, false},
		{".a", false, false},
		{"-a", false, false},
		{"_a", false, false},
		{"a b", false, false},
		{"a/b", false, false},
		{"a\x00", false, false},
		{"é", false, false},
		{"a\n", false, false},
	} {
		if _, err := sessionKey(tt.name); (err == nil) != tt.session {
			t.Errorf("session %q: %v", tt.name, err)
		}
		if _, err := runKey(tt.name); (err == nil) != tt.told {
			t.Errorf("run %q: %v", tt.name, err)
		}
	}
}

func TestDecodingToleratesWhatALaterVersionAdds(t *testing.T) {
	key, _ := jobKey("shop", 3)
	j, err := decode[Job]([]byte(key), []byte(`{"v":1,"session":"shop","number":3,"state":"pondering","mood":{"x":[1]},"started_by":"comet"}`))
	if err != nil {
		t.Fatal(err)
	}
	if j.State != StateUnknown || j.State.Status() != StatusUnknown || j.StartedBy != "comet" {
		t.Errorf("got %+v", j)
	}
}

func TestStates(t *testing.T) {
	terminal := map[AgentState]bool{Completed: true, Failed: true, Declined: true, TimedOut: true, Cancelled: true, Interrupted: true}
	for _, s := range []AgentState{
		Starting, Working, AwaitingInput, Idle, Queued, Completed, Failed, Declined, TimedOut, Cancelled, Interrupted, StateUnknown,
	} {
		var back AgentState
		if err := json.Unmarshal([]byte(toJSON(s)), &back); err != nil || back != s {
			t.Errorf("%s reads back as %s (%v)", s, back, err)
		}
		if s.Terminal() != terminal[s] {
			t.Errorf("%s: terminal is %v", s, s.Terminal())
		}
		want := StatusRunning
		switch {
		case terminal[s]:
			want = JobStatus(s)
		case s == StateUnknown:
			want = StatusUnknown
		}
		if s.Status() != want {
			t.Errorf("%s: status %s, want %s", s, s.Status(), want)
		}
	}
}

// FuzzDecode feeds any bytes to each decoder: what it takes, it writes again
// under the same key, in a form that then reads back the same for ever.
func FuzzDecode(f *testing.F) {
	job, _ := jobKey("shop", 3)
	conv, _ := conversationKey("shop", "codex-1")
	for kind, seed := range []record{aSession("shop", 1, 2), aJob("shop", 3, 2), &Conversation{Session: "shop", ID: "codex-1"}, &Run{ID: "sh-123456"}, anApproval(17, "shop", 3)} {
		key, value, err := encode(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, []byte(key), value)
	}
	f.Add(1, []byte(job), []byte(`{"v":1,"session":"shop","number":3,"call":{"review":{"a":[1,2]}},"ended":"0001-01-01T00:00:00Z","usage":{"cost_usd":1e300}}`))
	f.Add(2, []byte(conv), []byte(`{"v":1,"session":"shop","id":"codex-1","turns":-1}`))
	f.Add(0, []byte("a"), []byte(`{"V":1,"id":"a","workspace":"\ud800"}`))
	f.Fuzz(func(t *testing.T, which int, key, value []byte) {
		switch uint(which) % 5 {
		case 0:
			fuzzDecode[Session](t, sessions, key, value)
		case 1:
			fuzzDecode[Job](t, jobs, key, value)
		case 2:
			fuzzDecode[Conversation](t, conversations, key, value)
		case 3:
			fuzzDecode[Run](t, runs, key, value)
		case 4:
			fuzzDecode[Approval](t, approvals, key, value)
		}
	})
}

func fuzzDecode[T any, P interface {
	*T
	record
}](t *testing.T, k *kind, key, value []byte) {
	k.path(key)
	rec, err := decode[T, P](key, value)
	if err != nil {
		return
	}
	again, stored, err := encode(rec)
	if err != nil {
		return // a path with a NUL, or larger in our spelling
	}
	if again != string(key) {
		t.Fatalf("key %q became %q", key, again)
	}
	back, err := decode[T, P](key, stored)
	if err != nil {
		t.Fatalf("%q became %q: %v", value, stored, err)
	}
	if _, settled, err := encode(back); err != nil {
		t.Fatal(err)
	} else if last, err := decode[T, P](key, settled); err != nil || toJSON(last) != string(settled) {
		t.Fatalf("%s became %s (%v)", settled, toJSON(last), err)
	}
}
