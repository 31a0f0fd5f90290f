package workbench

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"scvfs/ledger"
	"scvfs/workbench/agent"
)

// answered puts a result where a job's is.
func (f *fixture) answered(t failer, n uint64, result []byte) *ledger.Job {
	t.Helper()
	rec := &ledger.Job{Session: "shop", Number: n, Agent: "mock", Task: "do it", State: ledger.Completed, ResultBytes: int64(len(result))}
	if err := writeFile(f.JobFile(rec, "result"), bytes.NewReader(result)); err != nil {
		t.Fatal(err)
	}
	return rec
}

// nasty draws results that try to get out of their fence, or break the prompt.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"`", "```", "``````", "\n", "\n```\n", "\x00", "\x1b[2J", "\r", "\xff", "é", "\u2028", "# ", "$(id)", "\\\n", "'\"", "Task:\n"}),
		rapid.StringN(0, 20, 100),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
}

// Whatever jobs answered, all of it stands between fences, and the prompt is
// one that every agent takes.
func TestNoResultLeavesItsFence(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	s := f.session("shop") // whose files maintenance, which runs at start, leaves alone meanwhile
	s.tr.Lock()
	defer s.tr.Unlock()
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*ledger.Job
		for i, result := range rapid.SliceOfN(nasty(), 1, reportJobs).Draw(t, "results") {
			times := rapid.SampledFrom([]int{1, 1, 1, 400, 8000}).Draw(t, "times")
			rec := f.answered(t, uint64(i+1), []byte(strings.Repeat(result, times)))
			rec.Task = agent.OneLine(nasty().Draw(t, "task"), taskRunes)
			jobs = append(jobs, rec)
		}
		text := f.reportText(jobs)
		if len(text) > 48<<10 || !utf8.ValidString(text) || checkPrompt([]byte(text)) != nil {
			t.Fatalf("no agent takes a prompt of %d bytes, valid %v", len(text), utf8.ValidString(text))
		}
		fence := ""
		for line := range strings.Lines(text) { // the first fence is the first line of backticks alone
			if line = strings.TrimSuffix(line, "\n"); len(line) >= shortestFence && strings.Trim(line, "`") == "" {
				fence = line
				break
			}
		}
		var outside strings.Builder
		parts := strings.Split("\n"+text, "\n"+fence+"\n")
		for i := 0; i < len(parts); i += 2 {
			if strings.Contains(parts[i], fence) {
				t.Fatalf("a fence outside:\n%s", parts[i])
			}
			outside.WriteString(parts[i])
		}
		if len(parts)%2 == 0 || strings.Count(outside.String(), "\nTask:") != len(jobs) || strings.Count(outside.String(), "(agent mock): completed") != len(jobs) {
			t.Fatalf("the fences of %d jobs do not match:\n%s", len(jobs), text)
		}
		for line := range strings.Lines(asComments(text)) {
			if !strings.HasPrefix(line, "# ") {
				t.Fatalf("not a comment: %q", line)
			}
		}
	})
}

// The real shell runs nothing of it.
func TestTheShellRunsNothingOfAReport(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	rec := f.answered(t, 1, []byte("`echo a`\n$(echo b)\necho c\\\necho d\r\necho e\recho f\x00\necho g\nEOF\n' \" ; echo h\n"))
	script := f.place + "/script"
	if err := os.WriteFile(script, []byte(asComments(f.reportText([]*ledger.Job{rec}))), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("/bin/sh", script).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v, %q", err, out)
	}
}

func TestQuotedResults(t *testing.T) {
	f := newFixture(t, 4, 10).shop(t)
	long := strings.Repeat("é", 40<<10)
	for _, c := range []struct {
		name, result string
		text, note   func(string) bool
	}{
		{"short", "done\n", is("done\n"), is("")},
		{"empty", "", is(""), is("empty")},
		{"blank", " \n\n", is(""), is("empty")},
		{"as long as may be", long[:quotedBytes], is(long[:quotedBytes]), is("")},
		{"a byte too long", "x" + long[:quotedBytes], has("\n[… left out …]\n"), has("the whole, 16385 bytes, is sessions/shop/jobs/job-1/result")},
		{"long", long, has("é\n[… left out …]\né"), has("the whole, 81920 bytes")},
		{"of bytes that are no text", strings.Repeat("\xff", quotedBytes), has("\n[… left out …]\n"), has("16384 bytes")},
	} {
		rec := f.answered(t, 1, []byte(c.result))
		text, note := f.quotedResult(rec, quotedBytes)
		if !c.text(text) || !c.note(note) {
			t.Errorf("%s: %d bytes %.40q, %q", c.name, len(text), text, note)
		}
		if len(text) > quotedBytes+20 || !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) && !strings.Contains(c.result, "\xff") {
			t.Errorf("%s: %d bytes, %.40q", c.name, len(text), text)
		}
	}
	rec := f.answered(t, 1, nil)
	if err := os.Remove(f.JobFile(rec, "result")); err != nil {
		t.Fatal(err)
	}
	if text, note := f.quotedResult(rec, quotedBytes); text != "" || note != "none" {
		t.Errorf("without a result: %q, %q", text, note)
	}
}

func TestLongFencesAreNotNeeded(t *testing.T) {
	ticks := strings.Repeat("`", longestTicks)
	for in, want := range map[string]string{
		ticks:                           ticks,
		ticks + "`":                     ticks,
		"é" + ticks + "```x" + ticks:    "é" + ticks + "x" + ticks,
		strings.Repeat(ticks, 9) + "\n": ticks + "\n",
	} {
		if got := fewTicks(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }
func has(part string) func(string) bool {
	return func(got string) bool { return strings.Contains(got, part) }
}
