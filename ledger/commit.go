package ledger

import (
	bolt "go.etcd.io/bbolt"
)

// request is a batch that waits for the committer.
type request struct {
	batch *Batch
	done  chan error // takes one answer without a reader
}

// Commit makes a batch durable: when it returns nil, no crash undoes it. While
// one transaction is written, the batches that come meanwhile gather and share
// the next; one that comes alone is written at once.
//
// A batch that fails has changed nothing and hurts no other: fault.NoSpace on
// a full disk (later batches work once there is room), fault.Invalid,
// fault.TooLarge, fault.Exists or fault.Busy for changes that the ledger does
// not take, fault.Closed after Close, fault.Internal when the disk fails. Only
// after the last is it unknown whether the batch is there; then no batch is
// taken any more.
func (l *Ledger) Commit(b *Batch) error {
	if b.err != nil {
		return b.err
	}
	r := &request{batch: b, done: make(chan error, 1)}
	if err := l.enqueue(r); err != nil {
		return err
	}
	return <-r.done
}

func (l *Ledger) enqueue(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return closedFault()
	}
	l.queue = append(l.queue, r)
	select {
	case l.wake <- struct{}{}:
	default: // it is awake, and takes the queue after this
	}
	return nil
}

func (l *Ledger) dequeue() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.queue
	l.queue = nil
	return all
}

// commitAll is the committer. Each batch is queued before its token is put into
// wake, and Close takes no token away, so what was queued before is written.
func (l *Ledger) commitAll() {
	defer close(l.idle)
	for range l.wake {
		l.serve(l.dequeue())
	}
}

// serve writes all of them in one transaction, if they let it, and answers
// each.
func (l *Ledger) serve(all []*request) {
	for len(all) > 0 {
		culprit, err := l.write(all)
		switch {
		case err != nil && culprit >= 0:
			l.answer(err, all[culprit])
			all = append(all[:culprit:culprit], all[culprit+1:]...)
			continue
		case err != nil && len(all) > 1:
			// What does not fit together may fit one by one.
			for i := range all {
				l.serve(all[i : i+1])
			}
		default:
			l.answer(err, all...)
		}
		return
	}
}

func (l *Ledger) answer(err error, to ...*request) {
	if err != nil {
		l.stats.refused.Add(uint64(len(to)))
	} else {
		l.stats.batches.Add(uint64(len(to)))
	}
	for _, r := range to {
		r.done <- err
	}
}

// write makes one transaction of the requests. When one of them cannot be
// applied, culprit is its index and nothing was written; otherwise it is -1.
func (l *Ledger) write(all []*request) (culprit int, err error) {
	culprit = -1
	if e := l.broken.Load(); e != nil {
		return culprit, e
	}
	id, finished := 0, false
	err = guard(func() error {
		err := l.update(func(tx *bolt.Tx) error {
			id = tx.ID()
			for i, r := range all {
				if err := r.batch.apply(tx); err != nil {
					culprit = i
					return err
				}
			}
			return nil
		})
		finished = true
		return err
	})
	switch {
	case err == nil:
		l.stats.transactions.Add(1)
		l.reserve()
	case !finished:
		return -1, l.broke(err) // bbolt panicked: its memory is not to be trusted
	case culprit < 0 && l.headMoved(id):
		return -1, l.broke(err)
	}
	return culprit, err
}

// headMoved tells whether a transaction that failed has replaced the file's
// head all the same. Then it is unknown which of the two heads the disk holds,
// and the next transaction could overwrite pages that one of them needs.
func (l *Ledger) headMoved(id int) bool {
	now := id
	err := l.view(func(tx *bolt.Tx) error {
		now = tx.ID()
		return nil
	})
	return err != nil || now >= id
}
