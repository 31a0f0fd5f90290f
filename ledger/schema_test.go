package ledger

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

func TestANewerLedgerIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filled(t, dir)
	l := open(t, dir)
	raw(t, l, func(tx *bolt.Tx) error { return setNumber(tx, versionKey, Version+1) })
	l.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(path)
	refused(t, dir, fault.Unsupported, "newer scvfs (schema 3, this one knows 2)")
	after, err := os.ReadFile(path)
	if now, _ := os.Stat(path); err != nil || !bytes.Equal(before, after) || !now.ModTime().Equal(info.ModTime()) {
		t.Error("it was changed")
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("files were left beside it: %v", entries)
	}
}

func TestEverySchemaHasAStep(t *testing.T) {
	if len(current.steps) != current.version {
		t.Errorf("%d steps lead to schema %d", len(current.steps), current.version)
	}
}

func TestAnOlderLedgerIsBroughtUpInOneTransaction(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir)
	later := schema{4, []func(*bolt.Tx) error{
		createBuckets,
		addApprovals,
		func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("two")); return err },
		func(tx *bolt.Tx) error { return tx.Bucket([]byte("two")).Put([]byte("three"), []byte("3")) },
	}}
	failing := later
	failing.steps = append(append([]func(*bolt.Tx) error{}, later.steps[:3]...), func(*bolt.Tx) error { return errors.New("no") })
	if l, err := openSchema(dir, Options{Clock: time.Now}, failing); err == nil {
		l.Close()
		t.Fatal("a failed upgrade went through")
	}
	l := open(t, dir) // it is as before, and its lock is free
	if n := versionOf(t, l); n != 2 {
		t.Errorf("after a failed upgrade the schema is %d", n)
	}
	l.Close()
	for range 2 {
		l, err := openSchema(dir, Options{Clock: time.Now}, later)
		if err != nil {
			t.Fatal(err)
		}
		if n := versionOf(t, l); n != 4 || len(load(t, l).Jobs) != 199 {
			t.Errorf("schema %d, %d jobs", n, len(load(t, l).Jobs))
		}
		l.Close()
	}
	refused(t, dir, fault.Unsupported, "schema 4")
}

func versionOf(t *testing.T, l *Ledger) (version uint64) {
	t.Helper()
	if err := l.view(func(tx *bolt.Tx) error { version, _ = number(tx, versionKey); return nil }); err != nil {
		t.Fatal(err)
	}
	return version
}

// fixture is a batch that has every field of every record.
func fixture(b *Batch) {
	b.PutSession(&Session{
		ID: "shop", Serial: 1, Label: "the shop <ü>", Workspace: "/src/shop", Agent: "codex", NextJob: 258,
		NextConv: map[string]uint64{"codex": 2}, Created: noon, Updated: noon,
	})
	b.PutSession(&Session{ID: "old.one", Serial: 2, Workspace: "/src/old", Closed: true, NextJob: 1, Created: noon, Updated: noon})
	full := aJob("shop", 256, 3)
	full.Call = Call{
		Agent: "codex", CWD: "web", Session: "codex-1", Model: "m", Effort: "high", Timeout: 60, Worktree: true, OnBusy: "steer",
		SteerFallback: "queue", Review: []byte(`{"by":["claude"]}`),
	}
	full.State, full.Detail, full.Exit, full.ResumedAs = Interrupted, "its shim was killed", "shim killed", "shop/job-257"
	full.Cancel = &Cancel{By: "owner", At: noon}
	full.Parent, full.Depth, full.StartedBy, full.Reviewed, full.Reported = "codex-ab12cd", 1, ByModel, true, true
	full.Conversation, full.Run, full.Worktree, full.Base = "codex-1", "codex-ab12cd", "codex-77aa01", "0123456789abcdef"
	full.Usage, full.ResultBytes = &Usage{InputTokens: 1, OutputTokens: 2, CostUSD: 0.5}, 1<<21
	b.PutJob(full)
	next := aJob("shop", 257, 4)
	next.State, next.ResumedFrom = Queued, "shop/job-256"
	next.Ended, next.Exit = time.Time{}, ""
	b.PutJob(next)
	b.PutConversation(&Conversation{
		Session: "shop", ID: "codex-1", Agent: "codex", CWD: "/src/shop", Worktree: "codex-77aa01", Vendor: "0199-abc", Turns: 3, Created: noon, Used: noon,
	})
	b.PutRun(&Run{
		ID: "codex-ab12cd", Agent: "codex", Session: "shop", Transport: "cli", Conversation: "codex-1", Turn: 3, Jobs: []uint64{256},
		CWD: "/src/shop", State: Interrupted, Detail: "its shim was killed", Vendor: "0199-abc", Created: noon, Updated: noon, Ended: noon,
	})
	b.RaiseSerial(40)
	b.RaiseApproval(17)
}

// released are the schemas that there were, each with what its fixture holds.
// That of the last is written by -update, as long as it is not released.
var released = []func(*Batch){
	fixture,
	func(b *Batch) { fixture(b); approvalFixture(b) },
}

// approvalFixture is what schema 2 has beyond schema 1.
func approvalFixture(b *Batch) {
	full := anApproval(18, "shop", 256)
	full.Conversation, full.Tool, full.CWD, full.Request = "codex-1", "shell", "/src/shop", []byte(`{"command":["rm","-rf","<build>"]}`)
	full.RequestBytes = 300_000
	full.Questions = []Question{{Text: "Which?", Options: []string{"a", "b"}, Multi: true}}
	full.Words, full.Reason = []string{"a, b"}, "because"
	b.PutApproval(full)
}

// A ledger of each released schema is kept, and has to be read for ever.
func TestALedgerOfEachSchemaIsRead(t *testing.T) {
	for i, fill := range released {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			packed, lines := fmt.Sprintf("testdata/schema%d.db.gz", i+1), fmt.Sprintf("testdata/schema%d.jsonl", i+1)
			if *update && i+1 == Version {
				l := open(t, t.TempDir())
				commit(t, l, fill)
				writeGolden(t, lines, []byte(dump(t, l)))
				l.Close()
				writeGolden(t, packed, gzipped(t, fileOf(l)))
			}
			dir := t.TempDir()
			unzip(t, packed, filepath.Join(dir, fileName))
			l := open(t, dir)
			want, err := os.ReadFile(lines)
			if err != nil {
				t.Fatal(err)
			}
			_, records, _ := strings.Cut(string(want), "\n")
			if got := dump(t, l); got != fmt.Sprintf(`{"key":"meta/schema","value":%d}`, Version)+"\n"+records {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			again := open(t, t.TempDir())
			commit(t, again, fill)
			if !equal(load(t, l), load(t, again)) {
				t.Error("its records read otherwise than they were written")
			}
			commit(t, l, approvalFixture) // whatever it was, it takes what there is now
		})
	}
}

func writeGolden(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, os.WriteFile(to, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}
