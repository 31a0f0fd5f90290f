package fs

import (
	"bytes"
	"strconv"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// runTable is runs/<run>/.
var runTable = table[*ledger.Run]{
	made:    func(_ *Tree, r *ledger.Run) time.Time { return r.Created },
	changed: runChanged,
	newest:  runChanged,
	rows: []row[*ledger.Run]{
		disk("log", diskFile{append: true}, ownFile("log")),
		disk("events", diskFile{append: true}, ownFile("events")),
		line("state", func(_ *Tree, r *ledger.Run) string { return stateLine(r.State, r.Detail) }),
		constant("agent", func(_ *Tree, r *ledger.Run) string { return r.Agent }),
		constant("session", func(_ *Tree, r *ledger.Run) string { return r.Session }),
		line("job", runJob),
		constant("conversation", func(_ *Tree, r *ledger.Run) string { return r.Conversation }),
		line("turn", func(_ *Tree, r *ledger.Run) string { return strconv.Itoa(r.Turn) }),
		text("jobs", func(_ *Tree, r *ledger.Run) ([]byte, error) { return runJobs(r), nil }),
		line("pid", runPID),
		line("cwd", func(_ *Tree, r *ledger.Run) string { return r.CWD }),
		constant("started", func(_ *Tree, r *ledger.Run) string { return moment(r.Created) }),
		line("ended", func(_ *Tree, r *ledger.Run) string { return moment(r.Ended) }),
		disk("stderr", diskFile{append: true}, ownFile("stderr")),
	},
}

func runChanged(_ *Tree, r *ledger.Run) time.Time { return r.Updated }

func ownFile(name string) func(*Tree, *ledger.Run) (string, time.Time) {
	return func(t *Tree, r *ledger.Run) (string, time.Time) { return t.bench.RunFile(r.ID, name), r.Updated }
}

// runJob is the address of the job that the run serves, or served last.
func runJob(_ *Tree, r *ledger.Run) string {
	if len(r.Jobs) == 0 {
		return ""
	}
	return address(r.Session, r.Jobs[len(r.Jobs)-1])
}

// runJobs are the addresses of all jobs that the run served, oldest first.
func runJobs(r *ledger.Run) []byte {
	var b bytes.Buffer
	for _, n := range r.Jobs {
		b.WriteString(address(r.Session, n) + "\n")
	}
	return b.Bytes()
}

func address(session string, n uint64) string { return session + "/" + workbench.JobName(n) }

func runPID(t *Tree, r *ledger.Run) string {
	if pid := t.bench.RunProcess(r.ID); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

func runIno(r *ledger.Run) uint64 {
	return thingIno("run", r.ID+" "+strconv.FormatInt(r.Created.UnixNano(), 10))
}

// runsDir is runs/.
func runsDir(_ tableDir[none], at site, _ none) Node {
	return collection{
		site: at, perm: 0o500, mtime: always(at.t.lastChange),
		list: func() ([]Entry, error) {
			runs := at.t.bench.Runs()
			entries := make([]Entry, len(runs))
			for i, r := range runs {
				entries[i] = Entry{Name: r.ID, Ino: runIno(r), Type: Directory}
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) {
			r, ok := at.t.bench.Run(name)
			if !ok {
				return nil, false
			}
			dir := at.child(name)
			dir.ino, dir.readers = runIno(r), readers(r.Session)
			return tableDir[*ledger.Run]{site: dir, table: &runTable, get: at.t.run(name, r.Created)}, true
		},
	}
}

// run finds a run, as long as it is the same one.
func (t *Tree) run(id string, made time.Time) subject[*ledger.Run] {
	return func() (*ledger.Run, error) {
		r, ok := t.bench.Run(id)
		if !ok || !r.Created.Equal(made) {
			return nil, fault.New(fault.NotFound, "run %s is no longer there", id)
		}
		return r, nil
	}
}
