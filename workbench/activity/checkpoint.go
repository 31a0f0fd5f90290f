package activity

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"scvfs/ledger/fault"
)

const (
	checkpointVersion = 1
	// maxCheckpoint bounds the file; a parser keeps far less.
	maxCheckpoint = 32 << 20
)

// Position is a place among the events that a parser gives: after the Count-th
// event that was known Src bytes into the output. The zero value is before all.
type Position struct {
	Src   int64 `json:"src"`
	Count int   `json:"count"`
}

// next is the place after one more event, known at end.
func (p Position) next(end int64) Position {
	if end == p.Src {
		return Position{end, p.Count + 1}
	}
	return Position{end, 1}
}

func (p Position) after(q Position) bool {
	return p.Src > q.Src || p.Src == q.Src && p.Count > q.Count
}

// Mark is what the lines of events up to a place add up to.
type Mark struct {
	Seq       uint64   `json:"seq"`    // number of lines
	Events    int64    `json:"events"` // bytes of events
	Log       int64    `json:"log"`    // bytes of log
	Parsed    Position `json:"parsed"` // last event of a parser
	Truncated bool     `json:"truncated,omitempty"`
	Started   bool     `json:"started,omitempty"`
	Ended     bool     `json:"ended,omitempty"`
	Turn      int      `json:"turn,omitempty"`       // last turn that started
	TurnEnded int      `json:"turn_ended,omitempty"` // last turn that ended
}

// Checkpoint is where a parser stands in its agent's output, and what the log
// held then. The zero value is the beginning.
type Checkpoint struct {
	V      int             `json:"v"`
	Offset int64           `json:"offset"` // bytes of the output that the parser has taken
	Parser json.RawMessage `json:"parser,omitempty"`
	Fed    Position        `json:"fed"` // the parser's last event
	Mark   Mark            `json:"mark"`
}

// SaveCheckpoint replaces a run's checkpoint, durably: when it returns nil, a
// power cut leaves this one. Recorder.Save is what knows a Mark.
func SaveCheckpoint(dir string, cp Checkpoint) error {
	path := filepath.Join(dir, CheckpointFile)
	cp.V = checkpointVersion
	b, err := json.Marshal(cp)
	if err != nil {
		return broken(err, "%s cannot be written", path)
	}
	fresh := path + ".new"
	if err := writeSynced(fresh, b); err != nil {
		os.Remove(fresh)
		return broken(err, "%s cannot be written", path)
	}
	if err := errors.Join(os.Rename(fresh, path), syncDir(dir)); err != nil {
		return broken(err, "%s cannot be replaced", path)
	}
	return nil
}

// LoadCheckpoint returns a run's checkpoint; ok is false when it has none.
// One that cannot be read is an error, and best removed.
func LoadCheckpoint(dir string) (cp Checkpoint, ok bool, err error) {
	path := filepath.Join(dir, CheckpointFile)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return Checkpoint{}, false, nil
	}
	if err != nil {
		return Checkpoint{}, false, broken(err, "%s cannot be read", path)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
	if err == nil && len(b) > maxCheckpoint {
		err = errors.New("it is too long")
	}
	if err != nil {
		return Checkpoint{}, false, broken(err, "%s cannot be read", path)
	}
	if err := json.Unmarshal(b, &cp); err != nil {
		return Checkpoint{}, false, broken(err, "%s is damaged", path)
	}
	if cp.V != checkpointVersion {
		return Checkpoint{}, false, fault.New(fault.Unsupported, "%s is of version %d, and this program knows version %d", path, cp.V, checkpointVersion)
	}
	return cp, true, nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
