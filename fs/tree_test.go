package fs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// fullTree has a live session with an ended, a working and a queued job, and a
// closed session.
func fullTree(t testing.TB) (client, *fake) {
	c, f := newShop(t)
	must(f.RegisterSession("old", "/old", "Bob\x1b[2J"))
	for _, s := range []string{"shop", "shop", "shop", "old"} {
		must(f.Start(c.ctx, s, draftOf("fix it\nnow")))
	}
	if err := f.CloseSession("old"); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(2) {
		run := f.run("shop", n+1)
		for _, name := range []string{"log", "events", "stderr"} {
			write(f.RunFile(run, name), name+" of "+run+"\n")
		}
	}
	f.converse("shop", 1, "sh-1")
	f.edit("shop", 1, func(j *ledger.Job) {
		j.Usage = &ledger.Usage{InputTokens: 1200, OutputTokens: 30, CostUSD: 0.0125}
		j.Detail = "approval 17:\nrun \u202erm"
		j.ResumedAs = "shop/job-2"
	})
	f.end("shop", 1, ledger.Completed, "all\nfixed")
	f.edit("shop", 2, func(j *ledger.Job) { j.ResumedFrom = "shop/job-1"; j.Conversation = "sh-1" })
	f.sayDiff("--- a\n+++ b\n")
	return c, f
}

func TestFiles(t *testing.T) {
	c, f := fullTree(t)
	job, _ := f.Job("shop", 1)
	runs := f.Runs()
	first := runs[len(runs)-1]
	stamp := func(at time.Time) string { return at.Format(time.RFC3339) + "\n" }
	const j, r = "sessions/shop/jobs/job-1/", "runs/sh-000003/"
	for name, want := range map[string]string{
		"version":                               "scvfs 1.2.3 go1.26 linux/amd64\n",
		"config":                                "[limits]\njobs = 4 # default\n",
		"errors":                                "",
		"metrics":                               "# HELP scvfs_jobs Jobs by state,\\nnow.\n# TYPE scvfs_jobs gauge\nscvfs_jobs{state=\"running\"} 2\nscvfs_jobs{state=\"failed\"} 0\n# HELP scvfs_commits_total Commits.\n# TYPE scvfs_commits_total counter\nscvfs_commits_total 1.5e+09\n",
		"agents/codex/offered":                  "no: codex is not in PATH\n",
		"agents/codex/command":                  "codex exec\n",
		"agents/codex/transport":                "cli\n",
		"agents/codex/models":                   "a\nb\n",
		"agents/codex/resume":                   "yes\n",
		"agents/codex/takeover":                 "yes\n",
		"agents/codex/signin":                   "",
		"sessions/old/label":                    "Bob\n",
		"sessions/old/state":                    "closed\n",
		"sessions/shop/label":                   "",
		"sessions/shop/workspace":               "/src\n",
		"sessions/shop/state":                   "live\n",
		"sessions/shop/agent":                   "sh\n",
		"sessions/shop/conversations/sh-1/cwd":  "/src\n",
		"sessions/shop/jobs/job-2/state":        "working\n",
		"sessions/shop/jobs/job-3/state":        "queued\n",
		"sessions/shop/jobs/job-3/status":       "running\n",
		"sessions/shop/jobs/job-3/log":          "",
		"sessions/shop/jobs/job-2/result":       "",
		"sessions/shop/jobs/job-2/exit":         "",
		"sessions/shop/jobs/job-2/usage":        "",
		j + "status":                            "completed\n",
		j + "state":                             "completed approval 17: run rm\n",
		j + "result":                            "all\nfixed",
		j + "log":                               "log of sh-000003\n",
		j + "events":                            "events of sh-000003\n",
		j + "prompt":                            "fix it\nnow",
		j + "task":                              "fix it\n",
		j + "agent":                             "sh\n",
		j + "started_by":                        "owner\n",
		j + "created":                           stamp(job.Created),
		j + "updated":                           stamp(job.Updated),
		j + "ended":                             stamp(job.Ended),
		j + "exit":                              "exit 0\n",
		j + "usage":                             "input_tokens=1200 output_tokens=30 cost_usd=0.0125\n",
		j + "diff":                              "--- a\n+++ b\n",
		j + "wait":                              "completed\n",
		j + "ctl":                               "# cancel                stop the job; it says cancelled once all its processes are gone\n# dismiss               forget the job, once it has ended\n# resume [SESSION]      run an interrupted job again, as a new job of its session or of that one\n",
		r + "log":                               "log of sh-000003\n",
		r + "events":                            "events of sh-000003\n",
		r + "stderr":                            "stderr of sh-000003\n",
		r + "state":                             "completed\n",
		r + "agent":                             "sh\n",
		r + "session":                           "shop\n",
		r + "job":                               "shop/job-1\n",
		r + "jobs":                              "shop/job-1\n",
		r + "pid":                               "",
		r + "cwd":                               "/src\n",
		r + "started":                           stamp(first.Created),
		r + "ended":                             stamp(first.Ended),
		"runs/sh-000004/pid":                    "4711\n",
		"runs/sh-000004/ended":                  "",
		"sessions/shop/conversations/sh-1/auto": "# write a prompt: a turn of this conversation, now or behind what runs\n",
	} {
		if got := c.cat(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRecordAndSnapshotAreJSON(t *testing.T) {
	c, f := fullTree(t)
	var rec ledger.Job
	text := c.cat("sessions/shop/jobs/job-1/record")
	if err := json.Unmarshal([]byte(text), &rec); err != nil || rec.Detail != "approval 17:\nrun \u202erm" {
		t.Errorf("%v, %+v", err, rec)
	}
	if strings.ContainsRune(text, '\u202e') || !strings.HasSuffix(text, "\n}\n") {
		t.Errorf("record: %s", text)
	}
	before := c.cat("snapshot")
	f.Cancel(workbench.Caller{}, "shop", 2)
	after := c.cat("snapshot")
	if before == after || !json.Valid([]byte(after)) || !strings.Contains(after, `"cancelled"`) {
		t.Errorf("snapshot: %s", after)
	}
}

func TestLinks(t *testing.T) {
	c, _ := fullTree(t)
	for name, want := range map[string]string{
		"active/shop.job-2":                           "../sessions/shop/jobs/job-2",
		"sessions/shop/jobs/job-1/run":                "../../../../runs/sh-000003",
		"sessions/shop/jobs/job-1/resumed-as":         "../../../shop/jobs/job-2",
		"sessions/shop/jobs/job-2/resumed-from":       "../../../shop/jobs/job-1",
		"sessions/shop/jobs/job-1/conversation":       "../../conversations/sh-1",
		"sessions/shop/conversations/sh-1/jobs/job-1": "../../../jobs/job-1",
	} {
		n, err := c.at(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := n.(Link).Readlink(c.ctx)
		if a := c.attr(name); got != want || err != nil || a.Size != int64(len(want)) || a.Type != Symlink {
			t.Errorf("%s: %q, %v, %+v", name, got, err, a)
		}
		dir := name[:strings.LastIndexByte(name, '/')+1]
		if _, err := c.at(clean("/" + dir + got)); err != nil {
			t.Errorf("%s leads nowhere: %v", name, err)
		}
	}
	_, err := c.at("sessions/shop/jobs/job-3/run")
	isKind(t, err, fault.NotFound, "job-3 has no run")
}

// clean resolves "..", which a node's Lookup never sees.
func clean(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			parts = parts[:len(parts)-1]
		} else if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// A session whose name holds dots is told from its job.
func TestDotsInNames(t *testing.T) {
	c, f := newClient(t)
	for _, s := range []string{"a", "a.job-1"} {
		must(f.RegisterSession(s, "/src", ""))
		must(f.Start(c.ctx, s, draftOf("x")))
	}
	if got := strings.Join(c.list("active"), " "); got != "a.job-1 a.job-1.job-1" {
		t.Errorf("active: %s", got)
	}
	for name, want := range map[string]string{"a.job-1": "../sessions/a/jobs/job-1", "a.job-1.job-1": "../sessions/a.job-1/jobs/job-1"} {
		if got := must(must(c.at("active/" + name)).(Link).Readlink(c.ctx)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestNamesThatAreNotThere(t *testing.T) {
	c, _ := fullTree(t)
	for _, name := range []string{
		"x", "agents/nobody", "active/shop", "active/shop.job-1", "active/.job-1", "active/shop.job-9", "sessions/nobody",
		"sessions/shop/x", "sessions/shop/jobs/job-9", "sessions/shop/jobs/job-01", "sessions/shop/jobs/1", "sessions/shop/jobs/job-",
		"runs/x", "sessions/shop/jobs/job-1/x", "", "sessions/shop/conversations/x", strings.Repeat("x", 5000),
	} {
		if name == "" {
			_, err := c.tree.Root().Lookup(c.ctx, "")
			isKind(t, err, fault.NotFound, "")
			continue
		}
		_, err := c.at(name)
		isKind(t, err, fault.NotFound, "")
		if len(err.Error()) > 400 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
}

func TestModesAndTimes(t *testing.T) {
	c, f := fullTree(t)
	job, _ := f.Job("shop", 1)
	log := f.RunFile(job.Run, "log")
	logged := epoch.Add(time.Hour)
	if err := os.Chtimes(log, logged, logged); err != nil {
		t.Fatal(err)
	}
	shop, _ := f.Session("shop")
	run, _ := f.Run(job.Run)
	last, _ := f.LastChange()
	for name, want := range map[string]struct {
		perm  uint32
		mtime time.Time
	}{
		"":                                     {0o500, last},
		"README":                               {0o400, epoch},
		"version":                              {0o400, epoch},
		"config":                               {0o400, epoch},
		"ctl":                                  {0o600, epoch},
		"errors":                               {0o400, epoch},
		"snapshot":                             {0o400, last},
		"events":                               {0o400, epoch},
		"agents":                               {0o500, epoch},
		"agents/sh":                            {0o500, epoch},
		"agents/sh/offered":                    {0o400, epoch},
		"active":                               {0o500, last},
		"runs":                                 {0o500, last},
		"runs/sh-000003":                       {0o500, run.Updated},
		"runs/sh-000003/pid":                   {0o400, run.Updated},
		"runs/sh-000003/cwd":                   {0o400, run.Updated},
		"runs/sh-000003/agent":                 {0o400, run.Created},
		"sessions":                             {0o700, last},
		"sessions/new":                         {0o600, epoch},
		"sessions/shop":                        {0o500, shop.Updated},
		"sessions/shop/start":                  {0o600, shop.Updated},
		"sessions/shop/label":                  {0o400, shop.Updated},
		"sessions/shop/agent":                  {0o600, shop.Updated},
		"sessions/shop/jobs":                   {0o700, shop.Updated},
		"sessions/shop/jobs/job-1":             {0o500, job.Updated},
		"sessions/shop/jobs/job-1/status":      {0o400, job.Updated},
		"sessions/shop/jobs/job-1/diff":        {0o400, job.Updated},
		"sessions/shop/jobs/job-1/ctl":         {0o600, job.Updated},
		"sessions/shop/jobs/job-1/wait":        {0o400, job.Updated},
		"sessions/shop/jobs/job-1/task":        {0o400, job.Created},
		"sessions/shop/jobs/job-1/created":     {0o400, job.Created},
		"sessions/shop/jobs/job-1/log":         {0o400, logged},
		"sessions/shop/jobs/job-1/run":         {0o777, job.Updated},
		"active/shop.job-2":                    {0o777, must2(f.Job("shop", 2)).Updated},
		"sessions/shop/conversations":          {0o500, shop.Updated},
		"sessions/shop/conversations/sh-1/ctl": {0o600, must2(f.Conversation("shop", "sh-1")).Used},
	} {
		a := c.attr(name)
		if a.Perm != want.perm || !a.Mtime.Equal(want.mtime) {
			t.Errorf("%s: %o %v, want %o %v", name, a.Perm, a.Mtime, want.perm, want.mtime)
		}
	}
	for _, name := range []string{"log", "events"} {
		if !c.attr("sessions/shop/jobs/job-1/"+name).Append || !c.attr("runs/sh-000003/"+name).Append {
			t.Errorf("%s does not say that it grows", name)
		}
	}
	// A refused write is a change of what its file and errors show.
	isKind(t, c.write("ctl", "bogus"), fault.Invalid, "")
	for _, name := range []string{"", "ctl", "errors"} {
		if !c.attr(name).Mtime.After(last) {
			t.Errorf("%q does not show that it changed", name)
		}
	}
}

func must2[T any](v T, ok bool) T {
	if !ok {
		panic("not there")
	}
	return v
}

func TestTheReadmeFitsAScreenAndTellsTheTruth(t *testing.T) {
	c, _ := fullTree(t)
	text := c.cat("README")
	if n := strings.Count(text, "\n"); n > 24 {
		t.Errorf("%d lines", n)
	}
	for l := range strings.Lines(text) {
		if len(l) > 81 {
			t.Errorf("%d columns: %s", len(l)-1, l)
		}
	}
	if !strings.Contains(text, "\n  cd /home/u/scv\n") {
		t.Errorf("README does not say where it is:\n%s", text)
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n;", r) }) {
		if strings.HasPrefix(word, "sessions/") && word != "sessions/new" {
			if _, err := c.at(strings.TrimSuffix(word, ":")); err != nil {
				t.Errorf("README names %s: %v", word, err)
			}
		}
	}
	for _, entry := range []string{"active", "errors", "events", "snapshot", "metrics", "config", "agents"} {
		if !strings.Contains(text, entry) {
			t.Errorf("README does not name %s", entry)
		}
	}
	for dir, want := range map[string]string{"": "cd ~/scv\n", "/a b": "cd '/a b'\n", "/a'b": `cd '/a'\''b'` + "\n", "/ä": "cd /ä\n", "/$x": "cd '/$x'\n"} {
		if got := string(readme(dir)); !strings.Contains(got, want) {
			t.Errorf("%q: no %q", dir, want)
		}
	}
}

// Everything of a job is gone with it, also for those who stand in it.
func TestADismissedJobVanishesAtOnce(t *testing.T) {
	c, f := fullTree(t)
	job := must(c.at("sessions/shop/jobs/job-1")).(Dir)
	status := must(c.at("sessions/shop/jobs/job-1/status")).(File)
	open := must(status.Open(c.ctx, Mode{Read: true}))
	log := must(c.open("sessions/shop/jobs/job-1/log", Mode{Read: true}))
	defer log.Release(c.ctx)
	late := must(c.open("sessions/shop/jobs/job-1/diff", Mode{Read: true}))
	if err := c.rmdir("sessions/shop/jobs/job-1"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(job.Attr(c.ctx)), second(job.List(c.ctx)), second(job.Lookup(c.ctx, "status")), second(status.Attr(c.ctx)),
		second(status.Open(c.ctx, Mode{Read: true})), second(c.at("sessions/shop/jobs/job-1")),
	} {
		isKind(t, err, fault.NotFound, "job-1")
	}
	// What was open stays readable.
	if got := must(readAll(c.ctx, open, 0)); got != "completed\n" {
		t.Errorf("status: %q", got)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	if got := must(readAll(c.ctx, log, 0)); got != "log of sh-000003\n" {
		t.Errorf("log: %q", got)
	}
	isKind(t, second(readAll(c.ctx, late, 0)), fault.Gone, "job-1")
}

func second[T any](_ T, err error) error { return err }

// A job of a session that took the name of a forgotten one is another job.
func TestNamesThatAreUsedAgain(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("x")))
	names := []string{"sessions/shop", "sessions/shop/jobs", "sessions/shop/label", "sessions/shop/jobs/job-1", "sessions/shop/jobs/job-1/status", "active/shop.job-1"}
	var old []Node
	inos := map[uint64]string{}
	for _, name := range names {
		old = append(old, must(c.at(name)))
		inos[c.attr(name).Ino] = name
	}
	f.set(func(f *fake) { delete(f.jobs, "shop") })
	f.forget("shop")
	must(f.RegisterSession("shop", "/src", ""))
	must(f.Start(c.ctx, "shop", draftOf("y")))
	for i, name := range names {
		if _, err := old[i].Attr(c.ctx); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of the old session: %v", name, err)
		}
		if was := inos[c.attr(name).Ino]; was != "" {
			t.Errorf("%s has the number of the old %s", name, was)
		}
	}
	isKind(t, old[1].(Remover).Rmdir(c.ctx, "job-1"), fault.NotFound, "no longer there")
}

func TestDiffIsDrawnByReadersOnly(t *testing.T) {
	c, f := fullTree(t)
	const name = "sessions/shop/jobs/job-1/diff"
	h := must(c.open(name, Mode{Read: true}))
	if a := c.attr(name); a.Size != 0 || f.drawnDiffs() != 0 {
		t.Errorf("%d bytes, drawn %d times", a.Size, f.drawnDiffs())
	}
	if got := must(readAll(c.ctx, h, 0)); got != "--- a\n+++ b\n" || f.drawnDiffs() != 1 {
		t.Errorf("%q, drawn %d times", got, f.drawnDiffs())
	}
	b := bounded{name: "/x/diff", dir: "/src", most: 3}
	must(b.Write([]byte("abc")))
	_, err := b.Write([]byte("d"))
	isKind(t, err, fault.TooLarge, "run git diff in /src")
}

func TestAVersionLastsUntilTheNextReadFromTheStart(t *testing.T) {
	c, f := fullTree(t)
	const name = "sessions/shop/jobs/job-2/"
	h := must(c.open(name+"status", Mode{Read: true}))
	early := must(c.open(name+"result", Mode{Read: true}))
	log := must(c.open("sessions/shop/jobs/job-3/log", Mode{Read: true}))
	var p [4]byte
	must(h.Read(c.ctx, p[:], 0))
	f.end("shop", 2, ledger.Failed, "why")
	if got := string(p[:]) + must(readAll(c.ctx, h, 4)); got != "running\n" {
		t.Errorf("a mixed version: %q", got)
	}
	if got := must(readAll(c.ctx, h, 0)); got != "failed\n" {
		t.Errorf("the next version: %q", got)
	}
	if got := must(readAll(c.ctx, early, 0)); got != "why" {
		t.Errorf("a result that came after the open: %q", got)
	}

	// A log that is followed from before its run.
	if got := must(readAll(c.ctx, log, 0)); got != "" {
		t.Errorf("log: %q", got)
	}
	run := f.run("shop", 3)
	off := int64(0)
	for i := range 3 {
		line := fmt.Sprintf("line %d\n", i)
		appendTo(f.RunFile(run, "log"), line)
		if a := c.attr("sessions/shop/jobs/job-3/log"); a.Size != off+int64(len(line)) {
			t.Errorf("size %d after line %d", a.Size, i)
		}
		got := must(readAll(c.ctx, log, off))
		if off += int64(len(got)); got != line {
			t.Errorf("read %q, want %q", got, line)
		}
	}
	for _, h := range []Handle{early, log} {
		h.Release(c.ctx)
	}
}

func TestAFileThatCannotBeReadIsOurFault(t *testing.T) {
	c, f := fullTree(t)
	job, _ := f.Job("shop", 1)
	if err := os.Remove(f.RunFile(job.Run, "events")); err != nil {
		t.Fatal(err)
	}
	write(f.RunFile(job.Run, "events")+"/in the way", "x") // a directory in its place
	_, err := c.read("sessions/shop/jobs/job-1/events")
	isKind(t, err, fault.Internal, "events cannot be read")
}
