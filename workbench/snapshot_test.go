package workbench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"scvfs/ledger"
)

// everyKind fills a workbench with sessions, jobs and runs of all kinds.
func everyKind(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, 3, 10).shop(t)
	for _, id := range []string{"empty", "closed", "old"} {
		if _, err := f.RegisterSession(id, f.place, "The "+id+" one"); err != nil {
			t.Fatal(err)
		}
	}
	up := f.parent(t)
	child := f.startIn(t, up, "make")
	f.script(t, child, "made\n")
	f.turn(t, up, "v", "delegated")
	f.turn(t, f.turnFor(t, child).Number, "v", "told")
	f.process(t, f.start(t, "exit 3")).end(exited, false)
	f.is(t, 4, ledger.Interrupted)
	cut := f.start(t, `{"agent":"mock","prompt":"cut off"}`)
	p := f.process(t, cut)
	f.send(t, "mock-2", "behind it")
	p.end(killed, false)
	f.is(t, 6, ledger.Interrupted)
	if _, err := f.Resume(t.Context(), "shop", "shop", 4); err != nil {
		t.Fatal(err)
	}
	failing := f.process(t, 7)
	failing.end(killed, true)
	f.is(t, 7, ledger.Failed)
	stopped := f.start(t, "sleep 1")
	f.process(t, stopped)
	if err := f.Cancel(Caller{}, "shop", stopped); err != nil {
		t.Fatal(err)
	}
	f.is(t, stopped, ledger.Cancelled)
	working := f.start(t, `{"agent":"mock","prompt":"at work"}`)
	f.process(t, working)
	f.send(t, "mock-3", "waits")
	f.shut(t, "closed", 5)
	f.shut(t, "old", 0)
	f.process(t, f.start(t, "second slot"))
	f.process(t, f.start(t, "third slot"))
	f.start(t, "no slot")
	return f
}

// shut starts jobs in a session, one of which the owner cancels before it
// runs, and closes it.
func (f *fixture) shut(t *testing.T, id string, jobs int) {
	t.Helper()
	for i := range jobs {
		if _, err := f.Start(t.Context(), id, Draft{Prompt: fmt.Appendf(nil, "task %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if jobs > 0 {
		if err := f.Cancel(Caller{}, id, uint64(jobs)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.CloseSession(id); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the end of the jobs of "+id, func() bool {
		return !slices.ContainsFunc(f.Jobs(id), func(j *ledger.Job) bool { return !j.State.Terminal() })
	})
}

// The snapshot says what the ledger holds, no more and no less.
func TestSnapshotIsWhatTheLedgerHolds(t *testing.T) {
	f := everyKind(t)
	defer f.endAll(t)
	snap := f.Snapshot()
	held, bad, err := f.ledger.Load()
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	if time.Since(snap.Generated) > time.Minute {
		t.Errorf("generated %s", snap.Generated)
	}
	var states []string
	for i, j := range snap.Jobs {
		states = append(states, string(j.State))
		if i > 0 && j.Created.After(snap.Jobs[i-1].Created) {
			t.Errorf("%s/%s is not behind what is newer", j.Session, j.Job)
		}
	}
	for _, state := range []ledger.AgentState{ledger.Queued, ledger.Working, ledger.Completed, ledger.Failed, ledger.Cancelled, ledger.Interrupted} {
		if !slices.Contains(states, string(state)) {
			t.Errorf("the test has no %s job", state)
		}
	}
	compareAll(t, "jobs", snap.Jobs, wantJobs(held))
	compareAll(t, "sessions", snap.Sessions, wantSessions(held))
	compareAll(t, "runs", ledgerPart(snap.Runs), wantRuns(held))
	if snap.Approvals == nil || len(snap.Approvals) > 0 {
		t.Errorf("approvals %v", snap.Approvals)
	}
}

// endAll ends what a test left at work.
func (f *fixture) endAll(t *testing.T) {
	if err := f.CloseSession("shop"); err != nil {
		t.Error(err)
	}
	f.until(t, "the end of all jobs", func() bool { return len(f.Active()) == 0 })
}

// asLines is each of some things as JSON with its keys in order.
func asLines[T any](t *testing.T, all []T) []string {
	t.Helper()
	var out []string
	for _, v := range all {
		text, err := json.Marshal(v)
		var keys map[string]any
		if err == nil {
			err = json.Unmarshal(text, &keys)
		}
		if err != nil {
			t.Fatal(err)
		}
		sorted, _ := json.Marshal(keys)
		out = append(out, string(sorted))
	}
	return out
}

// compareAll compares two lists of things as JSON, whatever their order.
func compareAll[A, B any](t *testing.T, what string, got []A, want []B) {
	t.Helper()
	x, y := asLines(t, got), asLines(t, want)
	for _, l := range x {
		if !slices.Contains(y, l) {
			t.Errorf("%s: the snapshot alone has\n%s", what, l)
		}
	}
	for _, l := range y {
		if !slices.Contains(x, l) {
			t.Errorf("%s: the ledger alone has\n%s", what, l)
		}
	}
	if len(x) != len(y) || len(x) == 0 {
		t.Errorf("%s: %d in the snapshot, %d in the ledger", what, len(x), len(y))
	}
}

// fields is a JSON object in which what is empty is left away, as in the
// snapshot's optional fields.
func fields(always map[string]any, known map[string]string) map[string]any {
	for key, value := range known {
		if value != "" {
			always[key] = value
		}
	}
	return always
}

func wantJobs(held ledger.Contents) (want []map[string]any) {
	for _, j := range held.Jobs {
		want = append(want, fields(map[string]any{
			"session": j.Session, "job": fmt.Sprintf("job-%d", j.Number), "agent": j.Agent, "task": j.Task, "workspace": j.Workspace,
			"cwd": j.CWD, "state": j.State, "started_by": j.StartedBy, "reviewed": j.Reviewed, "created": j.Created, "updated": j.Updated,
			"resumable": j.State == ledger.Interrupted && j.ResumedAs == "",
		}, map[string]string{
			"detail": j.Detail, "conversation": j.Conversation, "run": j.Run, "worktree": j.Worktree, "resumed_as": j.ResumedAs,
		}))
	}
	return want
}

func wantSessions(held ledger.Contents) (want []map[string]any) {
	for _, s := range held.Sessions {
		all, running, queued := 0, 0, 0
		for _, j := range held.Jobs {
			switch {
			case j.Session != s.ID:
				continue
			case j.State == ledger.Queued:
				queued++
			case j.Ended.IsZero():
				running++
			}
			all++
		}
		want = append(want, map[string]any{
			"id": s.ID, "label": s.Label, "workspace": s.Workspace, "state": map[bool]string{false: "live", true: "closed"}[s.Closed],
			"agent": "sh", "jobs": all, "running": running, "queued": queued, "created": s.Created, "updated": s.Updated,
		})
	}
	return want
}

// ledgerPart is what the snapshot says of runs without what the ledger does not
// know.
func ledgerPart(runs []RunSnapshot) []map[string]any {
	var all []map[string]any
	for _, r := range runs {
		text, _ := json.Marshal(r)
		var one map[string]any
		_ = json.Unmarshal(text, &one)
		for _, key := range []string{"last_activity", "attach"} {
			delete(one, key)
		}
		all = append(all, one)
	}
	return all
}

func wantRuns(held ledger.Contents) (want []map[string]any) {
	for _, r := range held.Runs {
		jobs, last := []string{}, ""
		for _, n := range r.Jobs {
			last = fmt.Sprintf("%s/job-%d", r.Session, n)
			jobs = append(jobs, last)
		}
		want = append(want, fields(map[string]any{
			"handle": r.ID, "agent": r.Agent, "session": r.Session, "transport": r.Transport, "turn": r.Turn, "jobs": jobs, "cwd": r.CWD,
			"state": r.State, "started": r.Created, "live": r.Ended.IsZero(), "steerable": false,
		}, map[string]string{"conversation": r.Conversation, "job": last, "detail": r.Detail}))
	}
	return want
}

func TestSnapshotNamesThePromptsThatNeverRan(t *testing.T) {
	f := everyKind(t)
	defer f.endAll(t)
	var got []string
	for _, r := range f.Snapshot().Restorable {
		got = append(got, r.Session+"/"+r.Job+" "+r.Task)
		if rec, _ := f.Job(r.Session, jobNumber(t, r.Job)); !r.Saved.Equal(rec.Updated) {
			t.Errorf("%s was saved %s", r.Job, r.Saved)
		}
	}
	slices.Sort(got)
	// The fifth was cancelled by its owner, before the session was closed.
	if want := []string{"closed/job-4 task 3", "shop/job-6 behind it"}; !slices.Equal(got, want) {
		t.Errorf("restorable %q", got)
	}
}

func jobNumber(t *testing.T, name string) uint64 {
	t.Helper()
	n, ok := ParseJobName(name)
	if !ok {
		t.Fatalf("%q is no job", name)
	}
	return n
}

// A run says of its conversation what that itself says, and of one that is
// forgotten that nothing is known.
func TestSnapshotTellsWhichConversationsCanBeTakenOver(t *testing.T) {
	f := everyKind(t)
	defer f.endAll(t)
	full := f.conf.Agents["mock"]
	full.Permissions = "full"
	f.conf.Agents["mock"] = full
	f.Workbench.Close()
	f.open(t)
	f.process(t, 9)
	if err := f.Release("shop", "sh-1"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, r := range f.Snapshot().Runs {
		if r.Attach != f.AttachState(r.Session, r.Conversation) {
			t.Errorf("%s: %+v", r.Handle, r.Attach)
		}
		if r.Session == "shop" {
			seen[r.Conversation] = fmt.Sprintf("%s %s %v", r.Attach.State, r.Attach.Job, r.Attach.Interrupt)
		}
	}
	want := map[string]string{
		"mock-1": "ready  true", "mock-2": "no_session  false", "mock-3": "no_session  false", "sh-1": "unknown  false",
		"sh-2": "ready  true", "sh-3": "ready  true", "sh-4": "busy job-11 true", "sh-5": "busy job-12 true",
	}
	if !maps.Equal(seen, want) {
		t.Errorf("attach: %v\nwant %v; jobs: %s", seen, want, f.describe())
	}
}
