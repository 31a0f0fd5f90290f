package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

func TestANewLedgerIsEmpty(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "a", "state"))
	if c := load(t, l); !reflect.DeepEqual(c, Contents{}) {
		t.Errorf("it holds %+v", c)
	}
	if got, want := dump(t, l), `{"key":"meta/schema","value":2}`+"\n"; got != want {
		t.Errorf("dump: %q, want %q", got, want)
	}
}

func TestWhatWasCommittedIsThereAfterReopening(t *testing.T) {
	l := open(t, t.TempDir())
	s, j := aSession("shop", 1, 301), aJob("shop", 300, 2)
	s.NextConv = map[string]uint64{"codex": 2}
	j.Call = Call{Agent: "codex", Timeout: 60, Review: []byte(`{"by":"claude"}`)}
	j.Usage = &Usage{InputTokens: 10, OutputTokens: 20, CostUSD: 0.25}
	j.Cancel = &Cancel{By: "owner", At: noon}
	j.Detail = "<quoted> & \u2028 \"text\""
	early, late := aJob("shop", 2, 3), aJob("shop", 256, 4)
	conv := &Conversation{Session: "shop", ID: "codex-1", Agent: "codex", CWD: "/src/shop", Vendor: "0199", Turns: 2, Created: noon, Used: noon}
	r := &Run{ID: "codex-ab12cd", Agent: "codex", Session: "shop", Transport: "cli", Jobs: []uint64{2, 256}, State: Idle, Created: noon, Updated: noon}
	ask := anApproval(17, "shop", 256)
	commit(t, l, func(b *Batch) {
		b.PutJob(j)
		b.PutJob(late)
		b.PutJob(early)
		b.PutSession(s)
		b.PutRun(r)
		b.PutConversation(conv)
		b.PutApproval(ask)
	})
	l = reopen(t, l)
	want := Contents{
		Sessions: []*Session{s}, Jobs: []*Job{early, late, j}, Conversations: []*Conversation{conv}, Runs: []*Run{r}, Approvals: []*Approval{ask},
		Serial: 4, Approval: 17,
	}
	if got := load(t, l); !equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, v := range []int{s.V, j.V, conv.V, r.V, ask.V} {
		if v != Version {
			t.Errorf("a record is stamped %d, want %d", v, Version)
		}
	}
	commit(t, l, func(b *Batch) {
		b.DeleteJob("shop", 300)
		b.DeleteJob("shop", 256)
		b.DeleteJob("shop", 2)
		b.DeleteJob("shop", 1) // was never there
		b.DeleteConversation("shop", "codex-1")
		b.DeleteRun("codex-ab12cd")
		b.DeleteApproval(17)
		b.DeleteSession("shop")
	})
	if got := load(t, reopen(t, l)); !equal(got, Contents{Serial: 4, Approval: 17}) {
		t.Errorf("after deleting everything: %+v", got)
	}
}

// equal compares what is stored: times as they are written, not as they are
// held.
func equal(a, b Contents) bool { return toJSON(a) == toJSON(b) }

func TestABatchHoldsTheRecordsAsTheyWere(t *testing.T) {
	l := open(t, t.TempDir())
	s := aSession("shop", 1, 1)
	var b Batch
	b.PutSession(s)
	s.Label = "changed afterwards"
	if err := l.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if got := load(t, l).Sessions[0].Label; got != "" {
		t.Errorf("the label is %q", got)
	}
}

func TestChangesTakeEffectInOrder(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) {
		b.PutSession(aSession("a", 1, 1))
		b.DeleteSession("a")
		b.DeleteSession("b")
		b.PutSession(aSession("b", 2, 1))
	})
	if c := load(t, l); len(c.Sessions) != 1 || c.Sessions[0].ID != "b" {
		t.Errorf("it holds %+v", c.Sessions)
	}
}

func TestCountersNeverGoBack(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) { b.RaiseSerial(10); b.RaiseApproval(5) })
	commit(t, l, func(b *Batch) { b.RaiseSerial(3); b.RaiseApproval(4); b.PutSession(aSession("a", 7, 1)) })
	if c := load(t, reopen(t, l)); c.Serial != 10 || c.Approval != 5 {
		t.Errorf("serial %d, approval %d", c.Serial, c.Approval)
	}
}

func TestChangesThatNoLedgerTakes(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := map[string]struct {
		fill func(*Batch)
		kind fault.Kind
	}{
		"session without a name":      {func(b *Batch) { b.PutSession(aSession("", 1, 1)) }, fault.Invalid},
		"session named with a slash":  {func(b *Batch) { b.PutSession(aSession("a/b", 1, 1)) }, fault.Invalid},
		"session named in upper case": {func(b *Batch) { b.PutSession(aSession("Shop", 1, 1)) }, fault.Invalid},
		"session named with a NUL":    {func(b *Batch) { b.PutSession(aSession("a\x00b", 1, 1)) }, fault.Invalid},
		"session named ..":            {func(b *Batch) { b.PutSession(aSession("..", 1, 1)) }, fault.Invalid},
		"session with a long name":    {func(b *Batch) { b.PutSession(aSession(long, 1, 1)) }, fault.Invalid},
		"job without a number":        {func(b *Batch) { b.PutJob(aJob("a", 0, 2)) }, fault.Invalid},
		"job without a session":       {func(b *Batch) { b.PutJob(aJob("", 1, 2)) }, fault.Invalid},
		"run without a name":          {func(b *Batch) { b.PutRun(&Run{}) }, fault.Invalid},
		"conversation of no session":  {func(b *Batch) { b.PutConversation(&Conversation{ID: "codex-1"}) }, fault.Invalid},
		"conversation without a name": {func(b *Batch) { b.PutConversation(&Conversation{Session: "a"}) }, fault.Invalid},
		"deletion of no session":      {func(b *Batch) { b.DeleteSession("*") }, fault.Invalid},
		"deletion of no job":          {func(b *Batch) { b.DeleteJob("a", 0) }, fault.Invalid},
		"deletion of no run":          {func(b *Batch) { b.DeleteRun("../x") }, fault.Invalid},
		"deletion of no conversation": {func(b *Batch) { b.DeleteConversation("a", "") }, fault.Invalid},
		"path that is no text":        {func(b *Batch) { s := aSession("a", 1, 1); s.Workspace = "/src/\xff"; b.PutSession(s) }, fault.Invalid},
		"path with a NUL":             {func(b *Batch) { j := aJob("a", 1, 1); j.CWD = "/src/\x00"; b.PutJob(j) }, fault.Invalid},
		"year that JSON cannot hold":  {func(b *Batch) { j := aJob("a", 1, 1); j.Ended = noon.AddDate(9000, 0, 0); b.PutJob(j) }, fault.Invalid},
		"record of a megabyte":        {func(b *Batch) { j := aJob("a", 1, 1); j.Detail = strings.Repeat("x", maxRecord); b.PutJob(j) }, fault.TooLarge},
	}
	l := open(t, t.TempDir())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tryCommit(l, func(b *Batch) {
				b.PutSession(aSession("good", 9, 1))
				tt.fill(b)
				b.RaiseApproval(3)
			})
			if !fault.Is(err, tt.kind) {
				t.Errorf("got %v (%v), want %v", err, fault.KindOf(err), tt.kind)
			}
			if c := load(t, l); !equal(c, Contents{}) {
				t.Errorf("the rest of the batch was written: %+v", c)
			}
		})
	}
}

func TestTextThatIsNoUTF8IsKeptAsFarAsItGoes(t *testing.T) {
	l := open(t, t.TempDir())
	j := aJob("a", 1, 2)
	j.Detail = "failed: \xff"
	commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 1, 2)); b.PutJob(j) })
	if got := load(t, l).Jobs[0].Detail; got != "failed: \ufffd" {
		t.Errorf("detail is %q", got)
	}
}

func TestASessionIsForgottenWithAllThatIsItsOwn(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) {
		b.PutSession(aSession("shop", 1, 3))
		b.PutSession(aSession("shop-2", 2, 2))
		b.PutJob(aJob("shop", 2, 3))
		b.PutJob(aJob("shop-2", 1, 4))
	})
	before := dump(t, l)
	err := tryCommit(l, func(b *Batch) { b.DeleteSession("shop") })
	if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "jobs/shop/job-2") {
		t.Errorf("got %v, want the job in its way", err)
	}
	if after := dump(t, l); after != before {
		t.Errorf("a refused batch changed the ledger:\n%s", after)
	}
	commit(t, l, func(b *Batch) { b.DeleteSession("shop"); b.DeleteJob("shop", 2) })
	if c := load(t, l); len(c.Sessions) != 1 || len(c.Jobs) != 1 {
		t.Errorf("left: %+v %+v", c.Sessions, c.Jobs)
	}
}

func TestABadRecordHidesNoOther(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) {
		for n := range uint64(3) {
			b.PutSession(aSession("s"+string('a'+rune(n)), n+1, 2))
			b.PutJob(aJob("s"+string('a'+rune(n)), 1, n+11))
		}
	})
	jobB, _ := jobKey("sb", 1)
	values := map[string]string{
		"half a record":        `{"v":1,"session":"sb","num`,
		"nothing":              ``,
		"noise":                "\x00\xff\x17",
		"null":                 `null`,
		"a list":               `[1]`,
		"no version":           `{"session":"sb","number":1}`,
		"another's record":     `{"v":1,"session":"sc","number":1,"state":"completed"}`,
		"a newer version":      `{"v":99,"session":"sb","number":1,"state":"completed"}`,
		"a newer, other shape": `{"v":99,"session":["sb"],"number":"one"}`,
		"a wrong type":         `{"v":1,"session":"sb","number":1,"state":3}`,
		"a wrong time":         `{"v":1,"session":"sb","number":1,"created":"noon"}`,
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			putRaw(t, l, jobs, jobB, value)
			c, bad, err := l.Load()
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Sessions) != 3 || len(c.Jobs) != 2 || c.Jobs[0].Session != "sa" || c.Jobs[1].Session != "sc" {
				t.Errorf("read %d sessions and %d jobs", len(c.Sessions), len(c.Jobs))
			}
			if len(bad) != 1 || bad["jobs/sb/job-1"] == nil {
				t.Errorf("bad: %v", bad)
			}
			if found := Check(c, bad); len(found) > 0 {
				t.Errorf("check: %v", found)
			}
			if len(l.Check()) != 1 {
				t.Errorf("the ledger's own check: %v", l.Check())
			}
			err = tryCommit(l, func(b *Batch) { b.PutJob(aJob("sb", 1, 12)) })
			if !fault.Is(err, fault.Exists) {
				t.Errorf("it was replaced: %v", err)
			}
			if got := rawBytes(t, l, jobs, jobB); got != value {
				t.Errorf("its bytes are now %q", got)
			}
			if !strings.Contains(dump(t, l), `{"key":"jobs/sb/job-1","`) {
				t.Error("the dump does not show it")
			}
		})
	}
	commit(t, l, func(b *Batch) { b.DeleteJob("sb", 1) })
	if load(t, l); rawBytes(t, l, jobs, jobB) != "" {
		t.Error("an explicit deletion did not remove it")
	}
}

func TestAnUnreadableSessionKeepsItsNameAndItsJobs(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) { b.PutSession(aSession("shop", 1, 2)); b.PutJob(aJob("shop", 1, 2)) })
	putRaw(t, l, sessions, "shop", `{"v":99,"id":"shop"}`)
	if err := tryCommit(l, func(b *Batch) { b.PutSession(aSession("shop", 3, 1)) }); !fault.Is(err, fault.Exists) {
		t.Errorf("another session took the name: %v", err)
	}
	c, bad, err := l.Load()
	if err != nil || len(c.Jobs) != 1 || bad["sessions/shop"] == nil {
		t.Fatalf("jobs %v, bad %v, err %v", c.Jobs, bad, err)
	}
	if !fault.Is(bad["sessions/shop"], fault.Unsupported) {
		t.Errorf("a newer record is told as %v", bad["sessions/shop"])
	}
	if found := Check(c, bad); len(found) > 0 {
		t.Errorf("check: %v", found)
	}
	// The newer scvfs is back.
	_, value, err := encode(aSession("shop", 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, l, sessions, "shop", string(value))
	commit(t, l, func(b *Batch) { b.PutSession(aSession("shop", 1, 3)) })
}

func TestKeysThatAreNoneAreTold(t *testing.T) {
	l := open(t, t.TempDir())
	for _, bad := range []struct {
		kind     *kind
		key, say string
	}{
		{sessions, "A b", `sessions/"A b"`},
		{jobs, "shop", `jobs/"shop"`},
		{jobs, "shop\x00123", `jobs/"shop\x00123"`},
		{conversations, "shop", `conversations/"shop"`},
		{runs, "\x00", `runs/"\x00"`},
		{approvals, "17", `approvals/"17"`},
	} {
		putRaw(t, l, bad.kind, bad.key, `{"v":1}`)
		_, told, err := l.Load()
		if err != nil || told[bad.say] == nil || len(told) != 1 {
			t.Errorf("key %q: %v %v", bad.key, told, err)
		}
		raw(t, l, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bad.kind.bucket)).Delete([]byte(bad.key)) })
	}
}

func TestACounterThatCannotBeRead(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 5, 2)); b.PutJob(aJob("a", 1, 8)); b.RaiseSerial(20) })
	raw(t, l, func(tx *bolt.Tx) error { return tx.Bucket([]byte(metaBucket)).Put([]byte(serialKey), []byte("many")) })
	c, bad, err := l.Load()
	if err != nil || bad["meta/serial"] == nil || c.Serial != 8 {
		t.Fatalf("serial %d, bad %v, err %v", c.Serial, bad, err)
	}
	commit(t, l, func(b *Batch) { b.PutJob(aJob("a", 1, 9)) })
	if c := load(t, l); c.Serial != 9 {
		t.Errorf("serial %d", c.Serial)
	}
}

func TestAMissingBucketHoldsNothing(t *testing.T) {
	l := open(t, t.TempDir())
	raw(t, l, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(runs.bucket)) })
	if c := load(t, l); len(c.Runs) != 0 {
		t.Errorf("runs: %v", c.Runs)
	}
	err := tryCommit(l, func(b *Batch) { b.PutRun(&Run{ID: "sh-123456"}) })
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "runs") {
		t.Errorf("got %v", err)
	}
	commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 1, 1)) })
}

func TestNothingWorksAfterClose(t *testing.T) {
	l := open(t, t.TempDir())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	_, _, loadErr := l.Load()
	for what, err := range map[string]error{
		"commit": tryCommit(l, func(b *Batch) { b.RaiseSerial(1) }), "load": loadErr, "dump": l.Dump(os.Stderr), "check": errors.Join(l.Check()...),
	} {
		if !fault.Is(err, fault.Closed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if l.Size() != 0 {
		t.Errorf("size %d", l.Size())
	}
}
