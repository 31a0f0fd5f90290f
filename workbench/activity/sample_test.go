package activity

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scvfs/workbench/agent"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sampleRun records a run with each kind of event.
func sampleRun(t *testing.T, dir string) {
	now := time.UnixMilli(1_790_000_000_000)
	r := open(t, dir, Options{Clock: func() time.Time { now = now.Add(1500 * time.Millisecond); return now }})
	say := func(end int64, kind agent.EventKind, text string) { r.Parsed(end, agent.Event{Kind: kind, Text: text}) }

	r.Record(
		Event{Kind: agent.RunStarted, Text: "codex in /home/u/shop"},
		Event{Kind: agent.TurnStarted, Turn: 1, Job: "job-3", By: "owner", Text: "Make the tests pass.\n\nDo not touch the documents.\n"})
	say(120, agent.Plan, "run the tests\nfix what fails")
	say(260, agent.Text, "I will run the tests first.\n\nThen I fix what fails:\n\tgo test ./...\n")
	say(400, agent.Tool, "$ make test")
	say(900, agent.ToolFailed, "exit 2: make test")
	say(1200, agent.Tool, "edit cart/total.go")
	say(1500, agent.Tool, "$ API_TOKEN=abcdef0123456789 make deploy <<E\nyes\nE")
	r.ParsedAs(1700, Event{Kind: agent.ApprovalRequested, Job: "job-3", Risk: "process", Text: "17: run rm -rf build"})
	r.Record(Event{Kind: agent.ApprovalResolved, Job: "job-3", Status: "approved", By: "owner", Text: "17"})
	r.Record(Event{Kind: agent.Steered, Turn: 1, Job: "job-3", By: "owner", Text: "Leave the lock file alone."})
	say(2100, agent.Text, "Tests pass: \x1b[32mok\x1b[0m <all> & done.")
	say(2100, agent.UnknownEvent, "thread.compacted")
	r.Record(
		Event{Kind: agent.Note, Text: "the agent left 2 processes, which were stopped"},
		Event{Kind: agent.TurnEnded, Turn: 1, Job: "job-3", Status: "completed"},
		Event{Kind: agent.TurnStarted, Turn: 2, Text: "go on"},
		Event{Kind: agent.TurnEnded, Turn: 2, Status: "failed", Text: "the model is overloaded"},
		Event{Kind: agent.RunEnded, Status: "failed", Text: "exit 1"})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSampleRunLooksAsDocumented(t *testing.T) {
	dir := t.TempDir()
	sampleRun(t, dir)
	recorded(t, dir)
	for _, name := range []string{EventsFile, LogFile} {
		golden := filepath.Join("testdata", "sample."+name)
		got := read(t, dir, name)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, "testdata", "sample."+name); got != want {
			t.Errorf("%s is now\n%s\nand was\n%s", name, got, want)
		}
	}
}

func TestRenderIsOneLine(t *testing.T) {
	long := ""
	for range 300 {
		long += "ä"
	}
	for _, tt := range []struct {
		e    Event
		want string
	}{
		{Event{Kind: agent.Text}, ""},
		{Event{Kind: agent.Text, Text: "  a\tb  "}, "  a\tb  "},
		{Event{Kind: agent.Tool, Text: "$ ls\n-l"}, "$ ls ⏎ -l"},
		{Event{Kind: agent.Tool, Text: "search: x"}, "tool: search: x"},
		{Event{Kind: agent.TurnStarted, Text: "\n\n  say hi  \n\nnow"}, "turn: say hi …"},
		{Event{Kind: agent.TurnStarted, Turn: 2, Job: "job-1", Text: long}, "turn 2 (job-1): " + long[:2*199] + "…"},
		{Event{Kind: agent.TurnStarted, Turn: 2}, "turn 2"},
		{Event{Kind: agent.TurnEnded, Turn: 2}, "turn 2 ended"},
		{Event{Kind: agent.TurnEnded, Turn: 2, Status: "failed", Text: "a\nb"}, "turn 2 ended: failed: a ⏎ b"},
		{Event{Kind: agent.RunEnded}, "-- run ended"},
		{Event{Kind: agent.Truncated, Text: "x"}, "-- truncated: x"},
		{Event{Kind: agent.ApprovalRequested, Text: "rm"}, "approval asked: rm"},
		{Event{Kind: agent.ApprovalResolved, Status: "denied", By: "policy", Text: "1"}, "approval 1 denied by policy"},
		{Event{Kind: "tele\npathy", Text: "x"}, "tele ⏎ pathy: x"},
	} {
		if got := Render(tt.e); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.e, got, tt.want)
		}
	}
}
