package fs

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// jobTable is sessions/<session>/jobs/<job>/.
var jobTable = table[*ledger.Job]{
	made:    func(_ *Tree, j *ledger.Job) time.Time { return j.Created },
	changed: jobChanged,
	newest:  jobChanged,
	rows: []row[*ledger.Job]{
		told(line("status", func(_ *Tree, j *ledger.Job) string { return string(j.State.Status()) })),
		line("state", func(_ *Tree, j *ledger.Job) string { return stateLine(j.State, j.Detail) }),
		told(disk("result", diskFile{}, jobResult)),
		jobLog("log"),
		jobLog("events"),
		disk("prompt", diskFile{fixed: true}, func(t *Tree, j *ledger.Job) (string, time.Time) {
			return t.bench.JobFile(j, "prompt"), j.Created
		}),
		constant("task", func(_ *Tree, j *ledger.Job) string { return j.Task }),
		constant("agent", func(_ *Tree, j *ledger.Job) string { return j.Agent }),
		constant("started_by", func(_ *Tree, j *ledger.Job) string { return string(j.StartedBy) }),
		constant("created", func(_ *Tree, j *ledger.Job) string { return moment(j.Created) }),
		line("updated", func(_ *Tree, j *ledger.Job) string { return moment(j.Updated) }),
		line("ended", func(_ *Tree, j *ledger.Job) string { return moment(j.Ended) }),
		line("exit", func(_ *Tree, j *ledger.Job) string { return j.Exit }),
		line("usage", jobUsage),
		text("record", func(_ *Tree, j *ledger.Job) ([]byte, error) { return jsonText(j, "  ") }),
		diffRow,
		ctl(nil,
			verb[*ledger.Job]{syntax{"cancel", "", "stop the job; it says cancelled once all its processes are gone"}, cancelJob},
			verb[*ledger.Job]{syntax{"dismiss", "", "forget the job, once it has ended"}, dismissJob},
			verb[*ledger.Job]{syntax{"resume", "[SESSION]", "run an interrupted job again, as a new job of its session or of that one"}, resumeJob},
		).agents(directsIt, "cancel", "dismiss"),
		stream("wait", func(d tableDir[*ledger.Job]) (source, error) {
			return &waitSource{t: d.t, get: d.get}, nil
		}),
		{name: "resume", typ: Regular, node: resumeFile},
		row[*ledger.Job]{name: "reply", typ: Regular, node: replyFile}.agents(directsIt, "reply"),
		approveRow(nil, func(j *ledger.Job) (string, uint64) { return j.Session, j.Number }),
		{name: "run", typ: Symlink, shown: hasRun, node: jobRun},
		jobLink("conversation", conversationOf),
		jobLink("worktree", worktreeOf),
		jobLink("resumed-as", resumedAs),
		jobLink("resumed-from", resumedFrom),
	},
}

func jobChanged(_ *Tree, j *ledger.Job) time.Time { return j.Updated }

// directsIt lets agents direct the jobs that they started.
func directsIt(t *Tree, who workbench.Caller, j *ledger.Job) error {
	return t.bench.MayDirect(who, j)
}

func cancelJob(ctx context.Context, t *Tree, j *ledger.Job, _ []string) error {
	return t.bench.Cancel(t.who(ctx), j.Session, j.Number)
}

func dismissJob(ctx context.Context, t *Tree, j *ledger.Job, _ []string) error {
	return t.bench.Dismiss(t.who(ctx), j.Session, j.Number)
}

// jobResult is the result's file, once the job has ended.
func jobResult(t *Tree, j *ledger.Job) (string, time.Time) {
	if !j.State.Terminal() {
		return "", j.Updated
	}
	return t.bench.JobFile(j, "result"), j.Updated
}

// runFile finds a file of the job's run, once it has one.
func runFile(name string) func(*Tree, *ledger.Job) (string, time.Time) {
	return func(t *Tree, j *ledger.Job) (string, time.Time) {
		if j.Run == "" {
			return "", j.Updated
		}
		return t.bench.RunFile(j.Run, name), j.Updated
	}
}

// jobLog is a file of the job's run; of a reviewed job, that of the runs of all
// its phases, one after the other.
func jobLog(name string) row[*ledger.Job] {
	where := runFile(name)
	return row[*ledger.Job]{name: name, typ: Regular, node: func(d tableDir[*ledger.Job], at site, _ *ledger.Job) Node {
		f := diskFile{site: at, append: true, where: func() (string, time.Time, error) {
			j, err := d.get()
			if err != nil {
				return "", time.Time{}, err
			}
			name, mtime := where(d.t, j)
			return name, mtime, nil
		}}
		f.before = func() []string {
			j, err := d.get()
			if err != nil || j.Review == nil || len(j.Review.Runs) == 0 {
				return nil
			}
			var names []string
			for _, run := range j.Review.Runs[:len(j.Review.Runs)-1] {
				names = append(names, d.t.bench.RunFile(run, name))
			}
			return names
		}
		return f
	}}
}

// jobUsage says what the job consumed; nothing as long as that is not known.
func jobUsage(_ *Tree, j *ledger.Job) string {
	if j.Usage == nil {
		return ""
	}
	u := j.Usage
	return fmt.Sprintf("input_tokens=%d output_tokens=%d cost_usd=%s", u.InputTokens, u.OutputTokens, strconv.FormatFloat(u.CostUSD, 'f', -1, 64))
}

func hasRun(t *Tree, j *ledger.Job) bool {
	if j.Run == "" {
		return false
	}
	_, ok := t.bench.Run(j.Run)
	return ok
}

func jobRun(d tableDir[*ledger.Job], at site, j *ledger.Job) Node {
	return link{site: at, target: "../../../../runs/" + j.Run, mtime: d.when(jobChanged)}
}

// maxDiff is the longest diff that is shown: it is held in memory while it is
// read.
const maxDiff = 64 << 20

// diffRow is a job's diff. Git takes its time over it, so stat does not ask
// for it and shows no size.
var diffRow = row[*ledger.Job]{name: "diff", typ: Regular, node: func(d tableDir[*ledger.Job], at site, _ *ledger.Job) Node {
	return textFile{site: at, costly: true, mtime: d.when(jobChanged), draw: func(ctx context.Context) ([]byte, error) {
		j, err := d.get()
		if err != nil {
			return nil, err
		}
		b := bounded{name: at.path, dir: j.CWD, most: maxDiff}
		if err := d.t.bench.Diff(ctx, j, &b); err != nil {
			if ctx.Err() != nil {
				return nil, fault.New(fault.Interrupted, "interrupted while git was at work")
			}
			return nil, err
		}
		return b.Bytes(), nil
	}}
}}

// bounded is a buffer that refuses to grow beyond a size.
type bounded struct {
	bytes.Buffer
	name, dir string
	most      int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fault.New(fault.TooLarge, "%s is longer than %d bytes; run git diff in %s", b.name, b.most, b.dir)
	}
	return b.Buffer.Write(p)
}

// job finds a job by its number, as long as it is the same one.
func (t *Tree) job(session string, n, serial uint64) subject[*ledger.Job] {
	return func() (*ledger.Job, error) {
		j, ok := t.bench.Job(session, n)
		if !ok || j.Serial != serial {
			return nil, fault.New(fault.NotFound, "%s/%s is no longer there", session, workbench.JobName(n))
		}
		return j, nil
	}
}

// jobIno is the identity of a job wherever it is shown.
func jobIno(j *ledger.Job) uint64 { return thingIno("job", strconv.FormatUint(j.Serial, 10)) }

// jobsDir is sessions/<session>/jobs/, where rmdir dismisses.
type jobsDir struct {
	collection
	id    string
	owner subject[*ledger.Session]
}

// newJobsDir makes the directory of a session's jobs.
func newJobsDir(d tableDir[*ledger.Session], at site, s *ledger.Session) Node {
	dir := jobsDir{collection: collection{site: at, perm: 0o700, mtime: d.when(sessionChanged)}, id: s.ID, owner: d.get}
	dir.list = func() ([]Entry, error) {
		if _, err := d.get(); err != nil {
			return nil, err
		}
		jobs := at.t.bench.Jobs(dir.id)
		entries := make([]Entry, len(jobs))
		for i, j := range jobs {
			entries[i] = Entry{Name: workbench.JobName(j.Number), Ino: jobIno(j), Type: Directory}
		}
		return entries, nil
	}
	dir.find = func(name string) (Node, bool) {
		n, ok := workbench.ParseJobName(name)
		if !ok {
			return nil, false
		}
		j, ok := at.t.bench.Job(dir.id, n)
		if _, err := d.get(); !ok || err != nil {
			return nil, false
		}
		at := at.child(name).forever()
		at.ino = jobIno(j)
		return tableDir[*ledger.Job]{site: at, table: &jobTable, get: at.t.job(dir.id, n, j.Serial)}, true
	}
	return dir
}

// Rmdir implements Remover: it dismisses a job that has ended.
func (d jobsDir) Rmdir(ctx context.Context, name string) error {
	err := d.dismiss(ctx, name)
	if err != nil {
		d.t.record(ctx, d.child(name).path, err)
	}
	return err
}

func (d jobsDir) dismiss(ctx context.Context, name string) error {
	if err := d.mayRead(ctx); err != nil {
		return err
	}
	if _, err := d.owner(); err != nil {
		return err
	}
	n, ok := workbench.ParseJobName(name)
	if !ok {
		return d.missing(name)
	}
	return d.t.bench.Dismiss(d.t.who(ctx), d.id, n)
}

// activeDir is active/: links to every job that has not ended.
func activeDir(_ tableDir[none], at site, _ none) Node {
	at.scope = allOfThem
	return collection{
		site: at, perm: 0o500, mtime: always(at.t.lastChange),
		list: func() ([]Entry, error) {
			jobs := at.t.bench.Active()
			entries := make([]Entry, len(jobs))
			for i, j := range jobs {
				name := j.Session + "." + workbench.JobName(j.Number)
				entries[i] = Entry{Name: name, Ino: activeIno(at, j), Type: Symlink}
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) { return activeLink(at, name) },
	}
}

// activeIno tells the links of two jobs of one name apart.
func activeIno(dir site, j *ledger.Job) uint64 {
	return childIno(dir.ino, strconv.FormatUint(j.Serial, 10))
}

// activeLink finds one link. Sessions' names may hold dots, jobs' do not.
func activeLink(dir site, name string) (Node, bool) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil, false
	}
	n, ok := workbench.ParseJobName(name[dot+1:])
	if !ok {
		return nil, false
	}
	j, ok := dir.t.bench.Job(name[:dot], n)
	if !ok || j.State.Terminal() {
		return nil, false
	}
	at := dir.child(name)
	at.ino = activeIno(dir, j)
	get := dir.t.job(j.Session, n, j.Serial)
	return link{site: at, target: "../sessions/" + j.Session + "/jobs/" + name[dot+1:], mtime: func() (time.Time, error) {
		j, err := get()
		if err != nil {
			return time.Time{}, err
		}
		if j.State.Terminal() {
			return time.Time{}, dir.missing(name)
		}
		return j.Updated, nil
	}}, true
}

var (
	_ Dir     = jobsDir{}
	_ Remover = jobsDir{}
)
