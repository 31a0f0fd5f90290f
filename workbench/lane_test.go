package workbench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/run"
	"scvfs/workbench/run/proc"
)

// What a claude-like program prints in a turn of a session.
const (
	initLine   = `{"type":"system","subtype":"init","session_id":"%s","model":"m"}` + "\n"
	resultLine = `{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s","usage":{"input_tokens":10,"output_tokens":2}}` + "\n"
)

var (
	exited = run.Exit{}
	killed = run.Exit{Code: -1, Signal: "KILL"}
)

// shop makes the session that the tests work in.
func (f *fixture) shop(t *testing.T) *fixture {
	t.Helper()
	if _, err := f.RegisterSession("shop", f.place, "The shop"); err != nil {
		t.Fatal(err)
	}
	return f
}

// turn lets a mock job's process do one turn of a session and end.
func (f *fixture) turn(t *testing.T, n uint64, session, reply string) {
	t.Helper()
	p := f.process(t, n)
	if err := p.print(fmt.Sprintf(initLine, session) + fmt.Sprintf(resultLine, reply, session)); err != nil {
		t.Fatal(err)
	}
	p.end(exited, true)
	f.is(t, n, ledger.Completed)
}

// is waits for a job's end and checks how it ended.
func (f *fixture) is(t *testing.T, n uint64, state ledger.AgentState) *ledger.Job {
	t.Helper()
	f.until(t, fmt.Sprintf("job-%d %s", n, state), func() bool {
		rec, ok := f.Job("shop", n)
		return ok && rec.State == state
	})
	rec, _ := f.Job("shop", n)
	return rec
}

// send queues a follow-up that must be taken, and returns its number.
func (f *fixture) send(t *testing.T, conv, prompt string) uint64 {
	t.Helper()
	addr, err := f.Send(context.Background(), "shop", conv, []byte(prompt), SendQueue)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := ParseJobName(strings.TrimPrefix(addr, "shop/"))
	return n
}

// argv is the command line that a job's run was given.
func (f *fixture) argv(t *testing.T, n uint64) string {
	t.Helper()
	f.process(t, n)
	rec, _ := f.Job("shop", n)
	spec, err := os.ReadFile(f.runs.Path(rec.Run, "spec.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(spec)
}

func TestLaneIsFirstInFirstOut(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	first := f.start(t, `{"agent":"mock","prompt":"one"}`)
	f.process(t, first)
	second, third := f.send(t, "mock-1", "two"), f.send(t, "mock-1", "three")
	other := f.start(t, `{"agent":"mock","prompt":"else"}`)
	f.process(t, other) // another conversation does not wait behind this lane
	for _, n := range []uint64{second, third} {
		if rec, _ := f.Job("shop", n); rec.State != ledger.Queued {
			t.Fatalf("job-%d is %s before its lane is free", n, rec.State)
		}
	}
	f.turn(t, first, "vendor-1", "r1")
	if argv := f.argv(t, second); !strings.Contains(argv, `"--resume"`) || !strings.Contains(argv, "vendor-1") {
		t.Errorf("the second turn does not continue the session: %s", argv)
	}
	if rec, _ := f.Job("shop", third); rec.State != ledger.Queued {
		t.Fatalf("the third turn is %s beside the second", rec.State)
	}
	f.turn(t, second, "vendor-1", "r2")
	f.turn(t, third, "vendor-1", "r3")
	conv, _ := f.Conversation("shop", "mock-1")
	if conv.Turns != 3 || conv.Vendor != "vendor-1" {
		t.Errorf("conversation %+v", conv)
	}
	var names []uint64
	for _, rec := range f.ConversationJobs("shop", "mock-1") {
		names = append(names, rec.Number)
	}
	if !slices.Equal(names, []uint64{first, second, third}) {
		t.Errorf("jobs of the conversation: %d", names)
	}
	f.turn(t, other, "vendor-2", "r")
}

func TestConversationIsIdleOnceItsResultIsSeen(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	for i := range 20 {
		n := f.start(t, `{"agent":"mock","prompt":"x"}`)
		p := f.process(t, n)
		if err := p.print(fmt.Sprintf(initLine, "v") + fmt.Sprintf(resultLine, "r", "v")); err != nil {
			t.Fatal(err)
		}
		p.end(exited, true)
		if _, err := f.Wait(context.Background(), "shop", n); err != nil {
			t.Fatal(err)
		}
		rec, _ := f.Job("shop", n)
		d := Draft{Prompt: []byte("next"), Call: ledger.Call{Session: rec.Conversation, OnBusy: "fail"}}
		if _, err := f.Start(context.Background(), "shop", d); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		f.process(t, n+1).end(exited, true)
		f.is(t, n+1, ledger.Failed) // it printed nothing
		for _, done := range []uint64{n, n + 1} {
			if err := f.Dismiss(Caller{}, "shop", done); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFollowUpRefusals(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	f.conf.Limits.Queue = 2
	f.Workbench.Close()
	f.open(t)
	n := f.start(t, `{"agent":"mock","prompt":"one"}`)
	f.process(t, n)
	f.send(t, "mock-1", "two")
	f.send(t, "mock-1", "three")
	for _, c := range []struct {
		call ledger.Call
		kind fault.Kind
		says string
	}{
		{ledger.Call{Session: "mock-1"}, fault.Limit, "limits.queue"},
		{ledger.Call{Session: "mock-1", OnBusy: "fail"}, fault.Busy, "session busy"},
		{ledger.Call{Session: "mock-1", OnBusy: "steer", SteerFallback: "fail"}, fault.Busy, "session busy"},
		{ledger.Call{Session: "mock-2"}, fault.NotFound, "no conversation"},
		{ledger.Call{Session: "mock-1", Agent: "sh"}, fault.Invalid, "belongs to mock"},
		{ledger.Call{Session: "mock-1", CWD: "/"}, fault.Invalid, "outside the workspace"},
	} {
		_, err := f.Start(context.Background(), "shop", Draft{Prompt: []byte("x"), Call: c.call})
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want %v that says %q", c.call, err, c.kind, c.says)
		}
	}
	if err := f.CheckSend("shop", "mock-1", []byte("x"), SendSteer); !fault.Is(err, fault.Unsupported) {
		t.Errorf("steer: %v", err)
	}
	if err := f.Release("shop", "mock-1"); !fault.Is(err, fault.Busy) {
		t.Errorf("release of a conversation in use: %v", err)
	}
	if state, _ := f.ConversationState("shop", "mock-1"); state != ledger.Working {
		t.Errorf("state %s", state)
	}
	if err := f.CloseSession("shop"); err != nil {
		t.Fatal(err)
	}
	f.is(t, 3, ledger.Cancelled)
	f.is(t, 1, ledger.Cancelled)
}

func TestLeastRecentlyUsedConversationIsForgotten(t *testing.T) {
	f := newFixture(t, 2, 10).shop(t)
	f.conf.Limits.Conversations = 3
	f.Workbench.Close()
	f.open(t)
	for i := range 3 {
		f.turn(t, f.start(t, `{"agent":"mock","prompt":"x"}`), fmt.Sprintf("v%d", i), "r")
	}
	f.turn(t, f.send(t, "mock-1", "again"), "v0", "r") // used last
	f.turn(t, f.start(t, `{"agent":"mock","prompt":"x"}`), "v3", "r")
	var left []string
	for _, c := range f.Conversations("shop") {
		left = append(left, c.ID)
	}
	if !slices.Equal(left, []string{"mock-1", "mock-3", "mock-4"}) {
		t.Errorf("left: %q", left)
	}
	if err := f.Release("shop", "mock-1"); err != nil {
		t.Error(err)
	}
	if _, ok := f.Conversation("shop", "mock-1"); ok {
		t.Error("a released conversation is still there")
	}
}

func TestInterruptedTurnCutsItsLaneOffAndIsResumedInOrder(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	ctx := context.Background()
	first := f.start(t, `{"agent":"mock","prompt":"one"}`)
	p := f.process(t, first)
	second := f.send(t, "mock-1", "two")
	if err := p.print(fmt.Sprintf(initLine, "kept")); err != nil {
		t.Fatal(err)
	}
	p.end(killed, false) // its shim was killed
	f.is(t, first, ledger.Interrupted)
	f.is(t, second, ledger.Interrupted)
	if _, err := f.Resume(ctx, "shop", "shop", second); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "resume that first") {
		t.Errorf("a follow-up before what it waited for: %v", err)
	}
	addr, err := f.Resume(ctx, "shop", "shop", first)
	if err != nil || addr != "shop/job-3" {
		t.Fatalf("%q, %v", addr, err)
	}
	if argv := f.argv(t, 3); !strings.Contains(argv, "kept") {
		t.Errorf("the agent's own session is not continued: %s", argv)
	}
	prompt, _ := os.ReadFile(f.JobFile(f.is(t, 3, ledger.Working), "prompt"))
	if string(prompt) != cutOffNote {
		t.Errorf("told %q", prompt)
	}
	old, _ := f.Job("shop", first)
	now, _ := f.Job("shop", 3)
	if old.ResumedAs != "shop/job-3" || now.ResumedFrom != "shop/job-1" || now.Conversation != "mock-1" {
		t.Errorf("links: %q, %q in %s", old.ResumedAs, now.ResumedFrom, now.Conversation)
	}
	if _, err := f.Resume(ctx, "shop", "shop", first); !fault.Is(err, fault.Done) {
		t.Errorf("resumed twice: %v", err)
	}
	if addr, err = f.Resume(ctx, "shop", "shop", second); err != nil || addr != "shop/job-4" {
		t.Fatalf("the follow-up: %q, %v", addr, err)
	}
	f.is(t, 4, ledger.Queued)
	f.turn(t, 3, "kept", "r")
	prompt, _ = os.ReadFile(f.JobFile(f.is(t, 4, ledger.Working), "prompt"))
	if string(prompt) != "two" {
		t.Errorf("the follow-up says %q", prompt)
	}
	f.turn(t, 4, "kept", "r")
}

func TestResumeStartsOverWithoutASession(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	n := f.start(t, `{"agent":"mock","prompt":"build it"}`)
	f.process(t, n).end(killed, false)
	f.is(t, n, ledger.Interrupted)
	if _, err := f.Resume(context.Background(), "shop", "shop", n); err != nil {
		t.Fatal(err)
	}
	prompt, _ := os.ReadFile(f.JobFile(f.is(t, 2, ledger.Working), "prompt"))
	if string(prompt) != againNote+"build it" {
		t.Errorf("told %q", prompt)
	}
	f.turn(t, 2, "v", "r")
	script := f.start(t, "echo hello")
	f.process(t, script).end(killed, false)
	f.is(t, script, ledger.Interrupted)
	if _, err := f.ResumeWith(context.Background(), "shop", "shop", script, []byte("echo again")); err != nil {
		t.Fatal(err)
	}
	prompt, _ = os.ReadFile(f.JobFile(f.is(t, script+1, ledger.Working), "prompt"))
	if string(prompt) != "echo again" {
		t.Errorf("the script is %q", prompt)
	}
	f.process(t, script+1).end(exited, true)
	f.is(t, script+1, ledger.Completed)
}

func TestResumeRefusals(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	elsewhere := t.TempDir()
	for id, dir := range map[string]string{"other": elsewhere, "same": f.place, "gone": f.place} {
		if _, err := f.RegisterSession(id, dir, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.CloseSession("gone"); err != nil {
		t.Fatal(err)
	}
	done := f.start(t, "true")
	f.process(t, done).end(exited, true)
	f.is(t, done, ledger.Completed)
	running := f.start(t, "true")
	f.process(t, running)
	stopped := f.start(t, "true")
	f.process(t, stopped)
	if err := f.Cancel(Caller{}, "shop", stopped); err != nil {
		t.Fatal(err)
	}
	f.is(t, stopped, ledger.Cancelled)
	sub := f.place + "/sub"
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	lost := f.start(t, `{"prompt":"true","cwd":"sub"}`)
	f.process(t, lost).end(killed, false)
	f.is(t, lost, ledger.Interrupted)
	if err := os.Remove(sub); err != nil {
		t.Fatal(err)
	}
	cut := f.start(t, "true")
	f.process(t, cut).end(killed, false)
	f.is(t, cut, ledger.Interrupted)
	for _, c := range []struct {
		host   string
		job    uint64
		prompt string
		kind   fault.Kind
		says   string
	}{
		{"shop", 99, "", fault.NotFound, "no job"},
		{"shop", running, "", fault.Busy, "has not ended"},
		{"shop", running, "x", fault.Busy, "has not ended"},
		{"shop", done, "", fault.Invalid, "only an interrupted job"},
		{"shop", stopped, "x", fault.Invalid, "was cancelled"},
		{"nobody", cut, "", fault.NotFound, "no session"},
		{"gone", cut, "", fault.NotFound, "no session"},
		{"other", cut, "", fault.Invalid, "name a session of that workspace"},
		{"shop", lost, "", fault.Invalid, "sub does not exist"},
		{"shop", cut, " \n", fault.Invalid, "prompt is empty"},
	} {
		var prompt []byte
		if c.prompt != "" {
			prompt = []byte(c.prompt)
		}
		err := f.CheckResume(c.host, "shop", c.job, prompt)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("resume job-%d in %s with %q: %v; want %v that says %q", c.job, c.host, c.prompt, err, c.kind, c.says)
		}
	}
	addr, err := f.Resume(context.Background(), "same", "shop", cut)
	if err != nil || addr != "same/job-1" {
		t.Fatalf("in another session of the workspace: %q, %v", addr, err)
	}
	if rec, _ := f.Job("shop", cut); rec.ResumedAs != "same/job-1" {
		t.Errorf("linked to %q", rec.ResumedAs)
	}
	if _, err := f.ResumeWith(context.Background(), "shop", "shop", done, []byte("true")); err != nil {
		t.Errorf("a completed job with a prompt: %v", err)
	}
	for _, s := range []string{"shop", "same"} {
		if err := f.CloseSession(s); err != nil {
			t.Fatal(err)
		}
	}
}

// A resumed run that crashes keeps the session's id, so it can be resumed
// again.
func TestCrashOfAResumedRunKeepsTheSession(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	n := f.start(t, `{"agent":"mock","prompt":"one"}`)
	if err := f.process(t, n).print(fmt.Sprintf(initLine, "kept")); err != nil {
		t.Fatal(err)
	}
	f.process(t, n).end(killed, false)
	for range 3 {
		f.is(t, n, ledger.Interrupted)
		if _, err := f.Resume(context.Background(), "shop", "shop", n); err != nil {
			t.Fatal(err)
		}
		n++
		if argv := f.argv(t, n); !strings.Contains(argv, "kept") {
			t.Fatalf("job-%d does not go on with the session: %s", n, argv)
		}
		f.process(t, n).end(killed, false) // without a word
	}
	f.is(t, n, ledger.Interrupted)
}

func TestResumeIsRefusedWhileAProcessOfTheRunLives(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	n := f.start(t, "true")
	f.process(t, n).end(killed, false)
	rec := f.is(t, n, ledger.Interrupted)
	self, err := proc.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(self)
	if err != nil {
		t.Fatal(err)
	}
	alive := f.runs.Path(rec.Run, "agent")
	if err := os.WriteFile(alive, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckResume("shop", "shop", n, nil); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "still lives") {
		t.Errorf("resumed beside a living process: %v", err)
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckResume("shop", "shop", n, nil); err != nil {
		t.Error(err)
	}
}

func TestReviewedJobIsNeverResumed(t *testing.T) {
	for _, state := range []ledger.AgentState{ledger.Interrupted, ledger.Completed} {
		err := resumable("shop/job-1", &ledger.Job{State: state, Reviewed: true}, true)
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "reviewed job") {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestReplyLinksOnce(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	n := f.start(t, `{"agent":"mock","prompt":"one"}`)
	f.turn(t, n, "v", "r")
	for range 2 {
		if _, err := f.Reply(context.Background(), Caller{}, "shop", n, []byte("and now?")); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := f.Job("shop", n)
	second, _ := f.Job("shop", n+1)
	third, _ := f.Job("shop", n+2)
	if first.ResumedAs != "shop/job-2" || second.ResumedFrom != "shop/job-1" || third.ResumedFrom != "" || third.Conversation != "mock-1" {
		t.Errorf("links %q, %q, %q", first.ResumedAs, second.ResumedFrom, third.ResumedFrom)
	}
	f.turn(t, n+1, "v", "r")
	f.turn(t, n+2, "v", "r")
}

func TestQueuedPromptsSurviveARestart(t *testing.T) {
	f := newFixture(t, 1, 10).shop(t)
	n := f.start(t, `{"agent":"mock","prompt":"one"}`)
	f.process(t, n)
	f.send(t, "mock-1", "two")
	f.start(t, `{"agent":"mock","prompt":"else"}`)
	f.Workbench.Close()
	f.open(t)
	f.turn(t, 1, "v", "r")
	f.turn(t, 2, "v", "r")
	f.turn(t, 3, "w", "r")
	if c, _ := f.Conversation("shop", "mock-1"); c.Turns != 2 {
		t.Errorf("conversation %+v", c)
	}
}
