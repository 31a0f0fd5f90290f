package ledger

import (
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

// sound is a ledger in which everything is as it has to be.
func sound() (Contents, map[string]error) {
	never := time.Time{}
	session := aSession("a", 1, 10)
	session.NextConv = map[string]uint64{"codex": 2}
	closed := aSession("b", 2, 3)
	closed.Closed = true
	first, second := aJob("a", 1, 3), aJob("a", 2, 4)
	first.State, first.ResumedAs = Interrupted, "a/job-2"
	second.ResumedFrom, second.State, second.Ended, second.Run = "a/job-1", Working, never, "codex-aaaaaa"
	stopping := aJob("b", 2, 5)
	stopping.State, stopping.Ended, stopping.Cancel = Working, never, &Cancel{By: "owner", At: noon}
	odd := aJob("a", 3, 6)
	odd.State = StateUnknown
	asking := aJob("a", 4, 7)
	asking.State, asking.Ended, asking.Run = AwaitingInput, never, "codex-bbbbbb"
	waiting := anApproval(3, "a", 4)
	waiting.Run, waiting.State, waiting.Decided = "codex-bbbbbb", ApprovalWaiting, never
	told, report := aJob("a", 5, 8), aJob("a", 6, 9)
	told.StartedBy, told.Parent, told.Reported = ByModel, "codex-aaaaaa", true
	report.StartedBy, report.Origin = ByModel, &TurnOrigin{Kind: OriginBackground, Jobs: []string{"job-5"}}
	return Contents{
		Sessions:      []*Session{session, closed},
		Jobs:          []*Job{first, second, odd, asking, stopping, told, report},
		Conversations: []*Conversation{{Session: "a", ID: "codex-1", Agent: "codex"}},
		Runs:          []*Run{{ID: "codex-aaaaaa", Session: "a", Jobs: []uint64{1, 2}, State: Working}, {ID: "codex-bbbbbb", Session: "a", Jobs: []uint64{4}, State: AwaitingInput}},
		Approvals:     []*Approval{anApproval(2, "a", 2), waiting},
		Serial:        9,
		Approval:      3,
	}, map[string]error{}
}

func TestCheckFindsNothingInASoundLedger(t *testing.T) {
	if found := Check(sound()); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestCheckFindsEachContradiction(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*Contents)
		want  string
	}{
		"job without a session":          {func(c *Contents) { c.Jobs[0].Session = "z" }, "jobs/z/job-1 is of session z, which does not exist"},
		"number not given yet":           {func(c *Contents) { c.Sessions[0].NextJob = 2 }, "jobs/a/job-2 has a number"},
		"serial twice":                   {func(c *Contents) { c.Jobs[0].Serial = 1 }, "has serial 1, as has sessions/a"},
		"serial above the counter":       {func(c *Contents) { c.Serial = 5 }, "above the counter"},
		"no serial":                      {func(c *Contents) { c.Sessions[0].Serial = 0 }, "sessions/a has no serial"},
		"ended without a time":           {func(c *Contents) { c.Jobs[0].Ended = time.Time{} }, "jobs/a/job-1 is interrupted, but"},
		"a time before the end":          {func(c *Contents) { c.Jobs[1].Ended = noon }, "jobs/a/job-2 is working, but"},
		"working in a closed session":    {func(c *Contents) { c.Jobs[4].Cancel = nil }, "jobs/b/job-2 is working in a closed session"},
		"run gone":                       {func(c *Contents) { c.Runs = nil }, "run codex-aaaaaa, which does not exist"},
		"run of another job":             {func(c *Contents) { c.Runs[0].Jobs = []uint64{1} }, "run codex-aaaaaa, which does not exist or"},
		"run of another session":         {func(c *Contents) { c.Runs[0].Session = "b" }, "run codex-aaaaaa, which does not exist or"},
		"resumed link lost":              {func(c *Contents) { c.Jobs[0].ResumedAs = "" }, `jobs/a/job-2 resumes a/job-1, which says that it was resumed as ""`},
		"resumed link one way":           {func(c *Contents) { c.Jobs[1].ResumedFrom = "" }, "jobs/a/job-1 was resumed as a/job-2"},
		"resumed twice":                  {func(c *Contents) { c.Jobs[2].ResumedFrom = "a/job-1" }, "jobs/a/job-3 resumes a/job-1"},
		"resumed while working":          {func(c *Contents) { c.Jobs[0].State, c.Jobs[0].Ended = Working, time.Time{} }, "but was resumed as"},
		"conversation without session":   {func(c *Contents) { c.Conversations[0].Session = "z" }, "conversations/z/codex-1 is of session z"},
		"conversation with a bad name":   {func(c *Contents) { c.Conversations[0].Agent = "pi" }, "is not named after its agent"},
		"conversation number too high":   {func(c *Contents) { c.Conversations[0].ID = "codex-2" }, "its next is 2"},
		"approval without a job":         {func(c *Contents) { c.Approvals[0].Job = 9 }, "approvals/2 is of job a/job-9, which does not exist"},
		"approval above the counter":     {func(c *Contents) { c.Approval = 2 }, "approvals/3 has a number above the counter"},
		"approval decided and waiting":   {func(c *Contents) { c.Approvals[1].Decided = noon }, "approvals/3 is waiting, but"},
		"approval decided at no time":    {func(c *Contents) { c.Approvals[0].Decided = time.Time{} }, "approvals/2 is approved, but"},
		"approval that nobody waits for": {func(c *Contents) { c.Jobs[3].State = Working }, "approvals/3 waits, but its job a/job-4 is working"},
		"approval of another run":        {func(c *Contents) { c.Approvals[1].Run = "x" }, "approvals/3 waits in run x"},
		"job that awaits nothing":        {func(c *Contents) { c.Approvals = c.Approvals[:1] }, "jobs/a/job-4 is awaiting_input, but nothing"},
		"reported before its end": {func(c *Contents) {
			c.Jobs[5].State, c.Jobs[5].Ended, c.Jobs[5].Run = Queued, time.Time{}, ""
		}, "jobs/a/job-5 is queued, but reported"},
		"reported by name only":          {func(c *Contents) { c.Jobs[5].Reported = false }, "jobs/a/job-6 reports a/job-5, which says that it was not"},
		"reported twice":                 {func(c *Contents) { c.Jobs[0].Origin = c.Jobs[6].Origin }, "jobs/a/job-6 reports a/job-5, as does jobs/a/job-1"},
		"run names jobs twice":           {func(c *Contents) { c.Runs[0].Jobs = []uint64{2, 2} }, "wrong order"},
		"run names a job yet to come":    {func(c *Contents) { c.Runs[0].Jobs = []uint64{2, 77} }, "names job 77"},
		"run ended without a time":       {func(c *Contents) { c.Runs[0].State = Failed }, "runs/codex-aaaaaa is failed, but"},
		"run with a time before its end": {func(c *Contents) { c.Runs[0].Ended = noon }, "runs/codex-aaaaaa is working, but"},
	} {
		t.Run(name, func(t *testing.T) {
			c, bad := sound()
			tt.spoil(&c)
			found := Check(c, bad)
			for _, err := range found {
				if strings.Contains(err.Error(), tt.want) {
					return
				}
			}
			t.Errorf("found %q, want %q", found, tt.want)
		})
	}
}

func TestCheckTakesWhatCannotBeReadToBeRight(t *testing.T) {
	c, bad := sound()
	unreadable := fault.New(fault.Internal, "unreadable")
	c.Sessions, c.Runs, c.Jobs, c.Approvals = c.Sessions[1:], nil, c.Jobs[1:], c.Approvals[:1]
	bad["sessions/a"], bad["runs/codex-aaaaaa"], bad["jobs/a/job-1"] = unreadable, unreadable, unreadable
	bad["runs/codex-bbbbbb"], bad["approvals/3"] = unreadable, unreadable
	if found := Check(c, bad); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// A session's name can be used again once it was forgotten; old links then
// lead to jobs that only have the address of those they meant.
func TestCheckTellsJobsOfOneAddressApart(t *testing.T) {
	old := aJob("host", 1, 5)
	old.ResumedFrom = "a/job-1" // of a session a that is gone
	again := aJob("host", 2, 6)
	again.State, again.ResumedAs = Interrupted, "a/job-2" // the same
	c := Contents{
		Sessions: []*Session{aSession("host", 1, 3), aSession("a", 10, 3)},
		Jobs:     []*Job{old, again, aJob("a", 1, 11), aJob("a", 2, 12)},
		Serial:   12,
	}
	if found := Check(c, nil); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestTheLedgersCheckSeesPagesToo(t *testing.T) {
	dir := t.TempDir()
	damagePages(t, filled(t, dir))
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found := l.Check()
	if len(found) == 0 || !strings.Contains(found[0].Error(), "damaged") {
		t.Errorf("found %v", found)
	}
}
