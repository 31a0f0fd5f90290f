package ledger

import (
	"bytes"
	"cmp"
	"strings"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// Batch is a set of changes that become durable together or not at all. They
// take effect in the order in which they were added. The zero value is empty
// and ready. A Batch holds its records as they were when they were put in, so
// they may change afterwards. It is for one goroutine, and for one Commit.
//
// A change that the ledger cannot take makes Commit refuse the whole batch.
type Batch struct {
	changes []change
	raise   counters
	err     error // the first change that was refused
}

// change is a put, or with no value a deletion.
type change struct {
	kind  *kind
	key   string
	value []byte
}

// PutSession adds or replaces a session, and raises the serial counter to its
// serial. Like the other puts it sets the record's V.
func (b *Batch) PutSession(s *Session) {
	b.put(sessions, s)
	b.RaiseSerial(s.Serial)
}

// PutJob adds or replaces a job, and raises the serial counter to its serial.
func (b *Batch) PutJob(j *Job) {
	b.put(jobs, j)
	b.RaiseSerial(j.Serial)
}

// PutConversation adds or replaces a conversation.
func (b *Batch) PutConversation(c *Conversation) { b.put(conversations, c) }

// PutRun adds or replaces a run.
func (b *Batch) PutRun(r *Run) { b.put(runs, r) }

// DeleteSession removes a session, if it is there. Its jobs and conversations
// have to be gone by the end of the batch, those that cannot be read too: the
// name could be used again, and they would be taken for the new session's.
func (b *Batch) DeleteSession(id string) {
	key, err := sessionKey(id)
	b.add(sessions, key, nil, err)
}

// DeleteJob removes a job, if it is there.
func (b *Batch) DeleteJob(session string, number uint64) {
	key, err := jobKey(session, number)
	b.add(jobs, key, nil, err)
}

// DeleteConversation removes a conversation, if it is there.
func (b *Batch) DeleteConversation(session, id string) {
	key, err := conversationKey(session, id)
	b.add(conversations, key, nil, err)
}

// DeleteRun removes a run, if it is there.
func (b *Batch) DeleteRun(id string) {
	key, err := runKey(id)
	b.add(runs, key, nil, err)
}

// RaiseSerial records that all serials up to n have been given.
func (b *Batch) RaiseSerial(n uint64) { b.raise.serial = max(b.raise.serial, n) }

// RaiseApproval records that all approval numbers up to n have been given.
func (b *Batch) RaiseApproval(n uint64) { b.raise.approval = max(b.raise.approval, n) }

func (b *Batch) put(k *kind, rec record) {
	key, value, err := encode(rec)
	b.add(k, key, value, err)
}

func (b *Batch) add(k *kind, key string, value []byte, err error) {
	b.err = cmp.Or(b.err, err)
	b.changes = append(b.changes, change{k, key, value})
}

// apply makes the batch's changes in a transaction. An error tells that this
// batch is at fault, not the disk.
func (b *Batch) apply(tx *bolt.Tx) error {
	for _, c := range b.changes {
		if err := c.apply(tx); err != nil {
			return err
		}
	}
	for _, c := range b.changes {
		if c.kind == sessions && c.value == nil {
			if err := checkEmpty(tx, c.key); err != nil {
				return err
			}
		}
	}
	return b.raise.apply(tx)
}

func (c change) apply(tx *bolt.Tx) error {
	key := []byte(c.key)
	bucket := tx.Bucket([]byte(c.kind.bucket))
	if bucket == nil {
		return damaged("it has no bucket " + c.kind.bucket)
	}
	if c.value == nil {
		return bucket.Delete(key)
	}
	if old := bucket.Get(key); old != nil {
		if err := c.kind.readable(key, old); err != nil {
			return fault.New(fault.Exists, "the ledger holds a record %s that cannot be read and is kept as it is: use another name (%w)", c.kind.path(key), err)
		}
	}
	return bucket.Put(key, c.value)
}

// checkEmpty refuses to leave anything behind of a session that is gone.
func checkEmpty(tx *bolt.Tx, id string) error {
	if get(tx, sessions, id) != nil {
		return nil // put again in the same batch
	}
	prefix := []byte(id + sep)
	var left []string
	for _, k := range []*kind{jobs, conversations} {
		c := tx.Bucket([]byte(k.bucket)).Cursor()
		for key, _ := c.Seek(prefix); bytes.HasPrefix(key, prefix) && len(left) < 3; key, _ = c.Next() {
			left = append(left, k.path(key))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fault.New(fault.Busy, "session %s cannot be forgotten, the ledger still has %s of it", id, strings.Join(left, ", "))
}

// get returns what is stored, or nil.
func get(tx *bolt.Tx, k *kind, key string) []byte {
	if b := tx.Bucket([]byte(k.bucket)); b != nil {
		return b.Get([]byte(key))
	}
	return nil
}
