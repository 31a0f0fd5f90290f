package ledger

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// Contents is all that a ledger holds and that can be read.
type Contents struct {
	Sessions      []*Session      // by id
	Jobs          []*Job          // by session, then number
	Conversations []*Conversation // by session, then id
	Runs          []*Run          // by id
	Approvals     []*Approval     // by number

	Serial   uint64 // the last serial given to a session or a job
	Approval uint64 // the last number given to an approval
}

// Load reads the ledger. bad tells why records could not be read, by names
// like jobs/shop/job-3; they stay in the file as they are. A counter among them
// (meta/serial, meta/approval) is as high as what is in use, as far as records
// tell.
func (l *Ledger) Load() (c Contents, bad map[string]error, err error) {
	bad = map[string]error{}
	err = l.view(func(tx *bolt.Tx) error {
		c.load(tx, bad)
		return nil
	})
	return c, bad, err
}

func (c *Contents) load(tx *bolt.Tx, bad map[string]error) {
	c.Sessions = loadAll[Session](tx, sessions, bad)
	c.Jobs = loadAll[Job](tx, jobs, bad)
	c.Conversations = loadAll[Conversation](tx, conversations, bad)
	c.Runs = loadAll[Run](tx, runs, bad)
	c.Approvals = loadAll[Approval](tx, approvals, bad)
	c.Serial = loadCounter(tx, serialKey, bad)
	c.Approval = loadCounter(tx, approvalKey, bad)
	if bad[counterPath(serialKey)] != nil {
		c.Serial = c.maxSerial()
	}
	if n := len(c.Approvals); bad[counterPath(approvalKey)] != nil && n > 0 {
		c.Approval = c.Approvals[n-1].Number
	}
}

func loadAll[T any, P interface {
	*T
	record
}](tx *bolt.Tx, k *kind, bad map[string]error) []P {
	var all []P
	each(tx, k, func(key, value []byte) {
		rec, err := decode[T, P](key, value)
		if err != nil {
			bad[k.path(key)] = err
			return
		}
		all = append(all, rec)
	})
	return all
}

// each calls fn for all records of a kind, in the order of their keys. A
// bucket that is missing holds none.
func each(tx *bolt.Tx, k *kind, fn func(key, value []byte)) {
	bucket := tx.Bucket([]byte(k.bucket))
	if bucket == nil {
		return
	}
	c := bucket.Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		fn(key, value)
	}
}

func counterPath(key string) string { return metaBucket + "/" + key }

// loadCounter returns a counter, 0 before it was ever raised.
func loadCounter(tx *bolt.Tx, key string, bad map[string]error) uint64 {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil || meta.Get([]byte(key)) == nil {
		return 0
	}
	n, ok := number(tx, key)
	if !ok {
		bad[counterPath(key)] = fault.New(fault.Internal, "the counter is no number: %.40q", meta.Get([]byte(key)))
	}
	return n
}

// maxSerial returns the highest serial in use.
func (c *Contents) maxSerial() uint64 {
	top := uint64(0)
	for _, s := range c.Sessions {
		top = max(top, s.Serial)
	}
	for _, j := range c.Jobs {
		top = max(top, j.Serial)
	}
	return top
}

// line is one line of a dump: a record or a number as it is stored, or what
// cannot be read with the reason.
type line struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"` // base64
	Reason string          `json:"error,omitempty"`
}

// Dump writes everything as JSON lines, ordered by kind and key. It sees one
// state of the ledger, and a slow w holds nothing up.
func (l *Ledger) Dump(w io.Writer) error {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	err := l.view(func(tx *bolt.Tx) error {
		for _, key := range []string{versionKey, serialKey, approvalKey} {
			if n, ok := number(tx, key); ok {
				lines.Encode(line{Key: counterPath(key), Value: strconv.AppendUint(nil, n, 10)})
			}
		}
		for _, k := range kinds {
			each(tx, k, func(key, value []byte) { lines.Encode(dumpLine(k, key, value)) })
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}

func dumpLine(k *kind, key, value []byte) line {
	if err := k.readable(key, value); err != nil {
		return line{Key: k.path(key), Bytes: value, Reason: err.Error()}
	}
	return line{Key: k.path(key), Value: value}
}
