package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// holder is the file shim: who took the run. Void means that a manager did, so
// that no shim can any more.
type holder struct {
	proc.ID
	Taken time.Time `json:"taken"`
	Void  bool      `json:"void,omitempty"`
}

// claim takes the run for h, for ever; fault.Done when somebody has it. The
// file appears complete or not at all, and only the first link succeeds.
//
// It is not synced: after a power loss the boot id in spec.json says that the
// run is over, whether or not this file was kept.
func claim(dir *os.Root, h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return fault.New(fault.Internal, "the holder of a run cannot be written: %w", err)
	}
	tmp := scratch(shimName)
	defer func() { _ = dir.Remove(tmp) }()
	err = fill(dir, tmp, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	}, false)
	if err == nil {
		err = dir.Link(tmp, shimName)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fault.New(fault.Done, "the run in %s was taken before", dir.Name())
	case err != nil:
		return fileError("take", at(dir, shimName), err)
	}
	return nil
}

// readHolder tells who took the run; ok is false when nobody has. A file that
// makes no sense is a holder of no process: somebody took the run and is gone.
func readHolder(dir *os.Root) (h holder, ok bool, err error) {
	b, err := readFile(dir, shimName, maxRecord)
	switch {
	case fault.Is(err, fault.NotFound):
		return holder{}, false, nil
	case err != nil:
		return holder{}, false, err
	}
	if json.Unmarshal(b, &h) != nil || h.PID <= 1 && !h.Void {
		return holder{}, true, nil
	}
	return h, true, nil
}

// readAgent returns the agent's process; ok is false when it is not known.
func readAgent(dir *os.Root) (id proc.ID, ok bool) {
	b, err := readFile(dir, agentName, maxRecord)
	if err != nil || json.Unmarshal(b, &id) != nil || id.PID <= 1 {
		return proc.ID{}, false
	}
	return id, true
}
