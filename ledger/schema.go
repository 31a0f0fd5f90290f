package ledger

import (
	"strconv"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// metaBucket holds what there is one of, as decimal numbers: the schema's
// version and the counters.
const (
	metaBucket  = "meta"
	versionKey  = "schema"
	serialKey   = "serial"
	approvalKey = "approval"
)

// schema is what a program knows of the file's form. Changing it means: raise
// Version, add the step that brings an older file to it, and a fixture of the
// older file to testdata.
type schema struct {
	version int
	// steps[i] brings a file from version i to version i+1. The first makes an
	// empty file a ledger. All that are needed run in one transaction.
	steps []func(*bolt.Tx) error
}

var current = schema{Version, []func(*bolt.Tx) error{createBuckets, addApprovals}}

func createBuckets(tx *bolt.Tx) error {
	for _, k := range []*kind{sessions, jobs, conversations, runs} {
		if _, err := tx.CreateBucketIfNotExists([]byte(k.bucket)); err != nil {
			return err
		}
	}
	_, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	return err
}

// addApprovals makes schema 2, whose records of approvals schema 1 had only the
// counter of.
func addApprovals(tx *bolt.Tx) error {
	_, err := tx.CreateBucketIfNotExists([]byte(approvals.bucket))
	return err
}

// readVersion returns the version of the file, 0 for an empty one, and refuses
// what this program must not write to. It writes nothing.
func (l *Ledger) readVersion(s schema) (version int, err error) {
	err = l.view(func(tx *bolt.Tx) error {
		if info, err := l.file.Stat(); err != nil {
			return err
		} else if info.Size() < tx.Size() {
			return damaged("its end is missing")
		}
		if first, _ := tx.Cursor().First(); first == nil {
			return nil
		}
		value, ok := number(tx, versionKey)
		if !ok || value < 1 {
			return fault.New(fault.Invalid, "%s is a database, but no ledger of scvfs: move it away, or use --state", fileName)
		}
		if value > uint64(s.version) {
			return fault.New(fault.Unsupported, "%s was written by a newer scvfs (schema %d, this one knows %d): run that one, or use --state", fileName, value, s.version)
		}
		version = int(value)
		return nil
	})
	return version, err
}

// bring takes an older file, or an empty one, to the schema.
func (s schema) bring(tx *bolt.Tx, from int) error {
	for _, step := range s.steps[from:] {
		if err := step(tx); err != nil {
			return err
		}
	}
	return setNumber(tx, versionKey, uint64(s.version))
}

// number reads a number of the meta bucket. ok is false when it is not there
// or is none.
func number(tx *bolt.Tx, key string) (n uint64, ok bool) {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(meta.Get([]byte(key))), 10, 64)
	return n, err == nil
}

func setNumber(tx *bolt.Tx, key string, n uint64) error {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		return damaged("it has no bucket " + metaBucket)
	}
	return meta.Put([]byte(key), strconv.AppendUint(nil, n, 10))
}

// counters are the last numbers given; they never go back.
type counters struct{ serial, approval uint64 }

// apply raises the stored counters to c. One that cannot be read is replaced:
// c was given by someone who had loaded what Load makes of it.
func (c counters) apply(tx *bolt.Tx) error {
	for _, counter := range []struct {
		key string
		n   uint64
	}{{serialKey, c.serial}, {approvalKey, c.approval}} {
		if stored, _ := number(tx, counter.key); counter.n > stored {
			if err := setNumber(tx, counter.key, counter.n); err != nil {
				return err
			}
		}
	}
	return nil
}
