package ledger

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	refused(t, dir, fault.Unsupported, "newer scvfs (schema 2, this one knows 1)")
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
	third := schema{3, []func(*bolt.Tx) error{
		createBuckets,
		func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("two")); return err },
		func(tx *bolt.Tx) error { return tx.Bucket([]byte("two")).Put([]byte("three"), []byte("3")) },
	}}
	failing := third
	failing.steps = append(append([]func(*bolt.Tx) error{}, third.steps[:2]...), func(*bolt.Tx) error { return errors.New("no") })
	if l, err := openSchema(dir, Options{Clock: time.Now}, failing); err == nil {
		l.Close()
		t.Fatal("a failed upgrade went through")
	}
	l := open(t, dir) // it is as before, and its lock is free
	if n := versionOf(t, l); n != 1 {
		t.Errorf("after a failed upgrade the schema is %d", n)
	}
	l.Close()
	for range 2 {
		l, err := openSchema(dir, Options{Clock: time.Now}, third)
		if err != nil {
			t.Fatal(err)
		}
		if n := versionOf(t, l); n != 3 || len(load(t, l).Jobs) != 199 {
			t.Errorf("schema %d, %d jobs", n, len(load(t, l).Jobs))
		}
		l.Close()
	}
	refused(t, dir, fault.Unsupported, "schema 3")
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

// A ledger of each released schema is kept, and has to be read for ever.
func TestALedgerOfSchema1IsRead(t *testing.T) {
	const packed, lines = "testdata/schema1.db.gz", "testdata/schema1.jsonl"
	if *update {
		l := open(t, t.TempDir())
		commit(t, l, fixture)
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
	if got := dump(t, l); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var b Batch
	fixture(&b)
	again := open(t, t.TempDir())
	if err := again.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if !equal(load(t, l), load(t, again)) {
		t.Error("its records read otherwise than they were written")
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
