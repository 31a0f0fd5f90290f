package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/workbench"
)

// everyKind fills the tree with jobs of all kinds, and leaves two at work.
func (w *world) everyKind() {
	w.t.Helper()
	w.sh(`git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
mkdir "$M/sessions/old" "$M/sessions/empty"; echo "label The shop" > "$S/ctl"; echo claude > "$M/sessions/empty/agent"
echo 'echo one' > "$M/sessions/old/start"; cat "$M/sessions/old/jobs/job-1/wait"; rmdir "$M/sessions/old"`)
	w.delegate("echo child", "")
	w.sh(`cat "$J/job-2/wait"; touch go; until [ -e "$J/job-3" ]; do sleep 0.02; done; cat "$J/job-3/wait"
echo 'exit 3' > "$S/start"; cat "$J/job-4/wait"
echo '{"prompt":"echo $$ > pid; exec sleep 1000","worktree":true}' > "$S/start"; cat "$J/job-5/log" > /dev/null
until [ -s "$J/job-5/worktree/path" ] && [ -s "$(cat "$J/job-5/worktree/path")/pid" ]; do sleep 0.02; done
echo 'echo behind' > "$J/job-5/reply"
kill -KILL $(ps -o ppid= -p $(cat "$(cat "$J/job-5/worktree/path")/pid")); cat "$J/job-5/wait" "$J/job-6/wait"
echo 'echo again' > "$J/job-5/resume"; cat "$J/job-7/wait"
echo 'sleep 1000' > "$S/start"; echo cancel > "$J/job-8/ctl"; cat "$J/job-8/wait"
for i in 1 2; do echo 'sleep 1000' > "$S/start"; done
echo 'echo waits' > "$S/start"; echo 'echo waits too' > "$J/job-9/reply"
for i in 9 10; do until grep -q working "$J/job-$i/state"; do sleep 0.02; done; done`)
}

// What the snapshot says is what the files say, thing by thing.
func TestSnapshotIsWhatTheTreeShows(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 2\n").session()
	w.everyKind()
	var snap workbench.Snapshot
	if err := json.Unmarshal([]byte(w.file("snapshot")), &snap); err != nil {
		t.Fatal(err)
	}
	sessions, jobs, runs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	states := map[ledger.AgentState]bool{}
	for _, s := range snap.Sessions {
		sessions[s.ID] = true
		w.compareSession(s)
	}
	for _, j := range snap.Jobs {
		jobs[j.Session+"/"+j.Job] = true
		states[j.State] = true
		w.compareJob(j)
	}
	for _, r := range snap.Runs {
		runs[r.Handle] = true
		w.compareRun(r)
	}
	w.sameNames("sessions", "sessions/*/label", 1, sessions)
	w.sameNames("runs", "runs/*", 1, runs)
	w.sameNames("jobs", "sessions/*/jobs/*", -1, jobs)
	for _, s := range []ledger.AgentState{ledger.Queued, ledger.Working, ledger.Completed, ledger.Failed, ledger.Cancelled, ledger.Interrupted} {
		if !states[s] {
			t.Errorf("the test has no job that is %s", s)
		}
	}
	if len(snap.Restorable) != 1 || snap.Restorable[0].Job != "job-6" || snap.Restorable[0].Task != w.line("sessions/shop/jobs/job-6/task") {
		t.Errorf("restorable: %+v", snap.Restorable)
	}
	if old := time.Since(snap.Generated); old < 0 || old > patience {
		t.Errorf("generated %s", snap.Generated)
	}
}

// sameNames compares what a pattern below the mount finds with what the
// snapshot has: the part of the path at an index, or for -1 the job's address.
func (w *world) sameNames(what, pattern string, part int, have map[string]bool) {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.mount, pattern))
	if err != nil || len(paths) == 0 || len(paths) != len(have) {
		w.t.Errorf("%s: %d in the tree, %d in the snapshot, %v", what, len(paths), len(have), err)
	}
	for _, p := range paths {
		parts := strings.Split(strings.TrimPrefix(p, w.mount+"/"), "/")
		name := parts[1] + "/" + parts[len(parts)-1]
		if part >= 0 {
			name = parts[part]
		}
		if !have[name] {
			w.t.Errorf("%s: the snapshot lacks %s", what, name)
		}
	}
}

// file is what a file of the tree holds; line is the same without its newline.
func (w *world) file(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.mount, name))
	if err != nil {
		w.t.Error(err)
	}
	return string(text)
}

func (w *world) line(name string) string {
	w.t.Helper()
	return strings.TrimSuffix(w.file(name), "\n")
}

// leadsTo is the last part of where a link leads; empty when there is none.
func (w *world) leadsTo(name string) string {
	target, err := os.Readlink(filepath.Join(w.mount, name))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// shows compares files of a directory with what they are to hold.
func (w *world) shows(dir string, want map[string]string) {
	w.t.Helper()
	for name, text := range want {
		if got := w.line(dir + "/" + name); got != text {
			w.t.Errorf("%s/%s says %q, the snapshot %q", dir, name, got, text)
		}
	}
}

func stamp(at time.Time) string { return at.Format(time.RFC3339) }

func (w *world) compareSession(s workbench.SessionSnapshot) {
	dir := "sessions/" + s.ID
	w.shows(dir, map[string]string{"label": s.Label, "workspace": s.Workspace, "state": s.State, "agent": s.Agent})
	var states []string
	jobs, _ := filepath.Glob(filepath.Join(w.mount, dir, "jobs/*"))
	for _, j := range jobs {
		word, _, _ := strings.Cut(w.line(dir+"/jobs/"+filepath.Base(j)+"/state"), " ")
		states = append(states, word)
	}
	count := func(words ...string) (n int) {
		for _, s := range states {
			if slices.Contains(words, s) {
				n++
			}
		}
		return n
	}
	if s.Jobs != len(states) || s.Queued != count("queued") || s.Running != count("starting", "working", "awaiting_input") {
		w.t.Errorf("%s: %d jobs, %d queued, %d running; the tree has %q", s.ID, s.Jobs, s.Queued, s.Running, states)
	}
}

func (w *world) compareJob(j workbench.JobSnapshot) {
	dir := "sessions/" + j.Session + "/jobs/" + j.Job
	w.shows(dir, map[string]string{
		"status": string(j.State.Status()), "state": strings.TrimSpace(string(j.State) + " " + j.Detail), "agent": j.Agent, "task": j.Task,
		"started_by": string(j.StartedBy), "created": stamp(j.Created), "updated": stamp(j.Updated),
	})
	for name, want := range map[string]string{
		"run": j.Run, "worktree": j.Worktree, "conversation": j.Conversation, "resumed-as": filepath.Base(j.ResumedAs),
	} {
		if got := w.leadsTo(dir + "/" + name); got != want && !(want == "." && got == "") {
			w.t.Errorf("%s/%s leads to %q, the snapshot says %q", dir, name, got, want)
		}
	}
	var rec ledger.Job
	if err := json.Unmarshal([]byte(w.file(dir+"/record")), &rec); err != nil {
		w.t.Error(err)
	}
	if rec.CWD != j.CWD || rec.Workspace != j.Workspace || rec.Reviewed != j.Reviewed || rec.ResumedAs != j.ResumedAs {
		w.t.Errorf("%s: the record says %+v", dir, rec)
	}
	if can := j.State == ledger.Interrupted && j.ResumedAs == ""; j.Resumable != can {
		w.t.Errorf("%s is %s and resumable %v", dir, j.State, j.Resumable)
	}
	if active := w.leadsTo("active/"+j.Session+"."+j.Job) != ""; active == j.State.Terminal() {
		w.t.Errorf("%s is %s, in active %v", dir, j.State, active)
	}
}

func (w *world) compareRun(r workbench.RunSnapshot) {
	dir := "runs/" + r.Handle
	w.shows(dir, map[string]string{
		"agent": r.Agent, "session": r.Session, "job": r.Job, "jobs": strings.Join(r.Jobs, "\n"), "conversation": r.Conversation,
		"turn": strconv.Itoa(r.Turn), "cwd": r.CWD, "state": strings.TrimSpace(string(r.State) + " " + r.Detail), "started": stamp(r.Started),
	})
	if pid := w.line(dir + "/pid"); r.Live != (pid != "") || r.Steerable || r.LastActivity.Before(r.Started) {
		w.t.Errorf("%s: pid %q, live %v, steerable %v, last activity %s", dir, pid, r.Live, r.Steerable, r.LastActivity)
	}
	state := filepath.Join("sessions", r.Session, "conversations", r.Conversation, "attach-state")
	if _, err := os.Stat(filepath.Join(w.mount, state)); err != nil {
		if r.Attach.State != workbench.AttachUnknown {
			w.t.Errorf("%s: %+v, although its conversation is forgotten", dir, r.Attach)
		}
		return
	}
	var attach workbench.Attach
	if err := json.Unmarshal([]byte(w.file(state)), &attach); err != nil || attach != r.Attach {
		w.t.Errorf("%s: %+v; attach-state says %+v, %v", dir, r.Attach, attach, err)
	}
}
