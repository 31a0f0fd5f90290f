package ledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// gate holds the committer in front of its first transaction until all others
// wait.
type gate struct {
	entered, open chan struct{}
	once          sync.Once
}

func newGate(l *Ledger) *gate {
	g := &gate{entered: make(chan struct{}), open: make(chan struct{})}
	inner := l.update
	l.update = func(fn func(*bolt.Tx) error) error {
		g.once.Do(func() { close(g.entered); <-g.open })
		return inner(fn)
	}
	return g
}

// together commits the batches so that the first has a transaction of its own
// and all others come while that is written. It returns their errors.
func together(t *testing.T, l *Ledger, batches []*Batch) []error {
	t.Helper()
	g := newGate(l)
	errs := make([]error, len(batches))
	var all sync.WaitGroup
	for i, b := range batches {
		all.Go(func() { errs[i] = l.Commit(b) })
		if i == 0 {
			<-g.entered
		} else {
			waitQueued(t, l, i)
		}
	}
	close(g.open)
	all.Wait()
	return errs
}

// waitQueued waits until n batches wait.
func waitQueued(t *testing.T, l *Ledger, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Microsecond) {
		l.mu.Lock()
		queued := len(l.queue)
		l.mu.Unlock()
		if queued == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d batches wait, not %d", queued, n)
		}
	}
}

func sessionBatch(n int) *Batch {
	b := new(Batch)
	b.PutSession(aSession(fmt.Sprintf("s%03d", n), uint64(n+1), 1))
	return b
}

func TestCommitsThatComeTogetherShareATransaction(t *testing.T) {
	const n = 64
	l := open(t, t.TempDir())
	batches := make([]*Batch, n)
	for i := range batches {
		batches[i] = sessionBatch(i)
	}
	before := l.db.Stats().TxStats
	for i, err := range together(t, l, batches) {
		if err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	after := l.db.Stats().TxStats
	if got, want := l.Stats(), (Stats{Batches: n, Transactions: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	// bbolt writes each page once, so so few writes cannot be 64 transactions.
	if writes := after.GetWrite() - before.GetWrite(); writes >= n {
		t.Errorf("bbolt wrote %d times", writes)
	}
	if c := load(t, reopen(t, l)); len(c.Sessions) != n {
		t.Errorf("%d sessions, want %d", len(c.Sessions), n)
	}
}

func TestABadBatchFailsAlone(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) { b.PutSession(aSession("full", 100, 2)); b.PutJob(aJob("full", 1, 101)) })
	putRaw(t, l, runs, "sh-123456", "noise")
	batches := []*Batch{sessionBatch(0), sessionBatch(1), new(Batch), sessionBatch(2), new(Batch), sessionBatch(3)}
	batches[2].RaiseApproval(99)
	batches[2].DeleteSession("full")
	batches[4].PutSession(aSession("lost", 50, 1))
	batches[4].PutRun(&Run{ID: "sh-123456"})
	errs := together(t, l, batches)
	for i, err := range errs {
		want := map[int]fault.Kind{2: fault.Busy, 4: fault.Exists}
		if kind, bad := want[i]; (err != nil) != bad || bad && !fault.Is(err, kind) {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if got, want := l.Stats(), (Stats{Batches: 5, Transactions: 3, Refused: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	c, _, _ := l.Load()
	if len(c.Sessions) != 5 || c.Approval != 0 || strings.Contains(dump(t, l), "lost") {
		t.Errorf("the ledger holds\n%s", dump(t, l))
	}
	commit(t, l, func(b *Batch) { b.DeleteRun("sh-123456") })
}

func TestAFailedSharedTransactionIsTriedOneByOne(t *testing.T) {
	l := open(t, t.TempDir())
	inner, limit := l.update, 0
	l.update = func(fn func(*bolt.Tx) error) error {
		return inner(func(tx *bolt.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			// As on a disk that has room for one more session and no other.
			if n := count(tx, sessions); n > limit {
				return fmt.Errorf("write: %w", unix.ENOSPC)
			}
			return nil
		})
	}
	limit = 3
	errs := together(t, l, []*Batch{sessionBatch(0), sessionBatch(1), sessionBatch(2), sessionBatch(3), sessionBatch(4)})
	for i, err := range errs {
		if (err != nil) != (i > 2) || err != nil && !fault.Is(err, fault.NoSpace) {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if c := load(t, l); len(c.Sessions) != 3 {
		t.Errorf("%d sessions", len(c.Sessions))
	}
	limit = 100
	commit(t, l, func(b *Batch) { b.PutSession(aSession("later", 9, 1)) })
}

func count(tx *bolt.Tx, k *kind) (n int) {
	each(tx, k, func(_, _ []byte) { n++ })
	return n
}

func TestNothingIsWrittenAfterAFailureThatLeavesTheFileInDoubt(t *testing.T) {
	eio := errors.New("fdatasync: input/output error")
	for name, failing := range map[string]func(l *Ledger, fn func(*bolt.Tx) error) error{
		"the head was replaced, but perhaps not on the disk": func(l *Ledger, fn func(*bolt.Tx) error) error {
			if err := l.db.Update(fn); err != nil {
				return err
			}
			return eio
		},
		"bbolt panics": func(*Ledger, func(*bolt.Tx) error) error { panic("page 7 already freed") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			commit(t, l, func(b *Batch) { b.PutSession(aSession("first", 1, 1)) })
			l.update = func(fn func(*bolt.Tx) error) error { return failing(l, fn) }
			for i, err := range together(t, l, []*Batch{sessionBatch(1), sessionBatch(2), sessionBatch(3)}) {
				if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "start scvfs again") {
					t.Errorf("batch %d: %v", i, err)
				}
			}
			l.update = l.db.Update
			if err := tryCommit(l, func(b *Batch) { b.RaiseSerial(9) }); !fault.Is(err, fault.Internal) {
				t.Errorf("a later batch: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if c := load(t, open(t, dir)); len(c.Sessions) == 0 || c.Sessions[0].ID != "first" {
				t.Errorf("the ledger holds %+v", c.Sessions)
			}
		})
	}
}

func TestAnErrorBeforeTheHeadIsReplacedHurtsNothing(t *testing.T) {
	l := open(t, t.TempDir())
	inner := l.update
	l.update = func(fn func(*bolt.Tx) error) error {
		return inner(func(tx *bolt.Tx) error { return errors.Join(fn(tx), unix.EIO) })
	}
	if err := tryCommit(l, func(b *Batch) { b.RaiseSerial(1) }); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
	l.update = inner
	commit(t, l, func(b *Batch) { b.RaiseSerial(2) })
}

func TestCloseWritesWhatWasHandedOver(t *testing.T) {
	l := open(t, t.TempDir())
	g := newGate(l)
	errs := make([]error, 10)
	var all sync.WaitGroup
	all.Go(func() { errs[0] = l.Commit(sessionBatch(0)) })
	<-g.entered
	for i := 1; i < len(errs); i++ {
		all.Go(func() { errs[i] = l.Commit(sessionBatch(i)) })
		waitQueued(t, l, i)
	}
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	for !isClosed(l) {
		time.Sleep(50 * time.Microsecond)
	}
	if err := l.Commit(sessionBatch(20)); !fault.Is(err, fault.Closed) {
		t.Errorf("a commit after Close: %v", err)
	}
	close(g.open)
	all.Wait()
	if err := errors.Join(append(errs, <-closed)...); err != nil {
		t.Fatal(err)
	}
	if c := load(t, open(t, l.dir)); len(c.Sessions) != len(errs) {
		t.Errorf("%d sessions, want %d", len(c.Sessions), len(errs))
	}
}

func isClosed(l *Ledger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func TestReadersSeeWholeBatches(t *testing.T) {
	l := open(t, t.TempDir())
	commit(t, l, func(b *Batch) { b.PutSession(aSession("a", 1, 1)) })
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, bad, err := l.Load()
				if found := Check(c, bad); err != nil || len(found) > 0 {
					t.Errorf("%v %v", err, found)
					return
				}
			}
		})
	}
	for n := uint64(1); n <= 50; n++ {
		commit(t, l, func(b *Batch) { b.PutJob(aJob("a", n, n+1)); b.PutSession(aSession("a", 1, n+1)) })
	}
	close(stop)
	readers.Wait()
}
