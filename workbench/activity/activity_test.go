package activity

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/workbench/agent"
)

// fixed is a clock that stands.
func fixed() time.Time { return time.UnixMilli(1_790_000_000_123) }

func open(t testing.TB, dir string, opt Options) *Recorder {
	t.Helper()
	if opt.Clock == nil {
		opt.Clock = fixed
	}
	r, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// kill leaves a recorder as a SIGKILL would: what waits is gone.
func kill(r *Recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.events.f.Close()
	r.log.f.Close()
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// recorded reads all events and checks that both files agree, line by line,
// that seq counts the lines, and that nothing is torn.
func recorded(t testing.TB, dir string) []Event {
	t.Helper()
	var all []Event
	var want bytes.Buffer
	for line := range strings.Lines(read(t, dir, EventsFile)) {
		e, ok := decode([]byte(line))
		if !ok || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %d of events is torn: %q", len(all)+1, line)
		}
		if e.Seq != uint64(len(all)+1) {
			t.Fatalf("line %d of events has seq %d", len(all)+1, e.Seq)
		}
		all = append(all, e)
		want.WriteString(Render(e) + "\n")
	}
	if got := read(t, dir, LogFile); got != want.String() {
		t.Fatalf("log does not say what events says:\n%q\n%q", got, want.String())
	}
	return all
}

// kinds lists events shortly, for comparing.
func brief(all []Event) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s:%s\n", e.Kind, e.Text)
	}
	return b.String()
}

func text(s string) agent.Event { return agent.Event{Kind: agent.Text, Text: s} }

func TestReplayAfterDeathNeitherLosesNorDoubles(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{})
	r.Record(Event{Kind: agent.RunStarted, Text: "sh in /w"}, Event{Kind: agent.TurnStarted, Turn: 1, Text: "go", Job: "job-1"})
	r.Parsed(10, text("one"))
	r.Parsed(10, text("two\n\nthree\n"))
	r.Flush()
	r.Parsed(20, text("four")) // never flushed
	kill(r)

	r = open(t, dir, Options{})
	if cp := r.Resume(); cp.Offset != 0 || cp.Parser != nil {
		t.Fatalf("a checkpoint from nowhere: %+v", cp)
	}
	r.Record(Event{Kind: agent.RunStarted, Text: "sh in /w"}, Event{Kind: agent.TurnStarted, Turn: 1, Text: "go"})
	r.Parsed(10, text("one"))
	r.Parsed(10, text("two\n\nthree\n"))
	r.Parsed(20, text("four"))
	r.Record(Event{Kind: agent.TurnEnded, Turn: 1, Status: "completed"}, Event{Kind: agent.TurnEnded, Turn: 1, Status: "failed"})
	r.Record(Event{Kind: agent.RunEnded, Text: "exit 0"}, Event{Kind: agent.RunEnded}, Event{Kind: agent.Note, Text: "late"})
	r.Parsed(30, text("after the end"))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	want := "run_started:sh in /w\nturn_started:go\ntext:one\ntext:two\ntext:\ntext:three\ntext:four\nturn_ended:\nrun_ended:exit 0\n"
	all := recorded(t, dir)
	if got := brief(all); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if e := all[6]; *e.Src != 20 || e.N != 0 || e.Turn != 1 || all[5].N != 3 {
		t.Errorf("places in the output are wrong: %+v, %+v", all[5], e)
	}
}

func TestFullLogKeepsTurnsApprovalsNotesAndTheEnd(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{MaxBytes: 2000})
	for i := range 100 {
		r.Parsed(int64(i+1), text("some text of the agent"))
	}
	r.Parsed(101, agent.Event{Kind: agent.Tool, Text: "$ ls"})
	r.Record(
		Event{Kind: agent.ApprovalRequested, Text: "17: rm", Risk: "process"},
		Event{Kind: agent.ApprovalResolved, Text: "17", Status: "denied", By: "owner"},
		Event{Kind: agent.Note, Text: "noted"}, Event{Kind: agent.Plan, Text: "dropped"},
		Event{Kind: agent.TurnEnded, Turn: 1, Status: "completed"}, Event{Kind: agent.RunEnded, Text: "exit 0"})
	got := brief(recorded(t, dir))
	_, tail, _ := strings.Cut(got, "truncated:")
	want := "the log has reached 2000 bytes; from here on it holds only turns, approvals, notes and the end\n" +
		"approval_requested:17: rm\napproval_resolved:17\nnote:noted\nturn_ended:\nrun_ended:exit 0\n"
	if tail != want {
		t.Errorf("after truncation:\n%s\nwant\n%s", tail, want)
	}
	if events, _ := r.Size(); events < 2000 || events > 3500 {
		t.Errorf("events has %d bytes", events)
	}
}

func TestAgentCannotGrowATruncatedLogByNotes(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{MaxBytes: 4000})
	for i := range 1000 {
		r.Parsed(int64(i+1), agent.Event{Kind: agent.Note, Text: "strange event"})
	}
	r.Flush()
	if events, _ := r.Size(); events > 5000 {
		t.Errorf("events has grown to %d bytes", events)
	}
	if n := strings.Count(brief(recorded(t, dir)), "truncated:"); n != 1 {
		t.Errorf("%d truncated events", n)
	}
	r.Record(Event{Kind: agent.Note, Text: "of the daemon"})
	if all := recorded(t, dir); all[len(all)-1].Text != "of the daemon" {
		t.Error("the daemon's own note is gone")
	}
}

func TestTruncationSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{MaxBytes: 500})
	feed := func() {
		for i := range 30 {
			r.Parsed(int64(i+1), text("some text"))
		}
		r.Flush()
	}
	feed()
	before := read(t, dir, EventsFile)
	kill(r)
	r = open(t, dir, Options{MaxBytes: 500})
	feed()
	if after := read(t, dir, EventsFile); after != before {
		t.Errorf("the replay changed a truncated log:\n%s\n%s", before, after)
	}
}

func TestWhatAnAgentSaysIsMadeSafe(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{MaxText: 40})
	r.Parsed(1, text("a\x1b[31mred\x1b[0m\x07\x00\xff\u009bz"))
	r.Parsed(2, agent.Event{Kind: agent.Tool, Text: "$ cat <<E\n\x1b]0;t\x07x\nE"})
	r.Parsed(3, text(strings.Repeat("é", 40)))
	r.Record(Event{Kind: agent.ApprovalResolved, Status: "approved\n", By: "ow\x1bner", Text: "1"})
	for _, c := range read(t, dir, LogFile) {
		if c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			t.Errorf("log holds %q", c)
		}
	}
	all := recorded(t, dir)
	if len(all) != 4 {
		t.Fatalf("%d events", len(all))
	}
	if got := all[2].Text; got != strings.Repeat("é", 20)+"… (40 bytes more)" {
		t.Errorf("a long text became %q", got)
	}
	if got := Render(all[1]); !strings.HasPrefix(got, "$ cat <<E ⏎ ") || !strings.HasSuffix(got, " ⏎ E") {
		t.Errorf("a command of lines became %q", got)
	}
}

func TestLongTextsAndBatches(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{MaxText: 1 << 30})
	r.room = 1000
	long := strings.Repeat("é", 150<<10) // above what an event may hold
	r.Parsed(1, text("\n \n"+long+"\nx\n\n"))
	for i := range 100 {
		r.Parsed(2, text(fmt.Sprint(i)))
	}
	if events, _ := r.Size(); events == 0 {
		t.Error("a batch without end waits in memory")
	}
	r.Flush()
	kill(r)
	os.Remove(filepath.Join(dir, LogFile))
	open(t, dir, Options{})
	p, err := Page(dir, 0, 200)
	if err != nil || len(p.Events) != 102 {
		t.Fatalf("%d events, %v", len(p.Events), err)
	}
	if got := p.Events[0].Text; got != long[:256<<10]+"… (45056 bytes more)" {
		t.Errorf("a text of %d bytes became one of %d: …%s", len(long), len(got), got[len(got)-40:])
	}
	recorded(t, dir)
	if got := cut("aé", 2); got != "a… (2 bytes more)" {
		t.Errorf("cut within a character: %q", got)
	}
}

func TestCredentialsAreMaskedInBothFiles(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{})
	r.Parsed(1, text("found:\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANB\ngkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\nso there"))
	r.Parsed(2, agent.Event{Kind: agent.Tool, Text: "$ curl -H 'Authorization: Bearer MIIEvQIBADANB' x"})
	r.Record(Event{Kind: agent.TurnStarted, Turn: 1, Text: "use api_\x1b[0mkey=MIIEvQIBADANB\nnow"})
	for _, name := range []string{EventsFile, LogFile} {
		got := read(t, dir, name)
		if strings.Contains(got, "MIIEvQIBADANB") || strings.Contains(got, "gkqhkiG9w0BAQ") {
			t.Errorf("%s tells a secret:\n%s", name, got)
		}
	}
	if got := brief(recorded(t, dir)); !strings.Contains(got, "so there") || !strings.Contains(got, "curl -H") {
		t.Errorf("more than the secrets is gone:\n%s", got)
	}
}

func BenchmarkParsed(b *testing.B) {
	r := open(b, b.TempDir(), Options{MaxBytes: 1 << 40})
	line := "ok  \tscvfs/workbench/activity\t0.123s coverage: 80% of statements"
	b.SetBytes(int64(len(line)))
	for i := range b.N {
		r.Parsed(int64(i+1), text(line))
		if i%500 == 0 {
			r.Flush()
		}
	}
}

func TestHooks(t *testing.T) {
	dir := t.TempDir()
	changes := 0
	var r *Recorder
	r = open(t, dir, Options{Changed: func() { changes++; r.Size(); r.Flush() }})
	r.Flush()
	if changes != 0 {
		t.Error("a change was told that was none")
	}
	r.Parsed(1, text("x"))
	if e, l := r.Size(); e != 0 || l != 0 || changes != 0 {
		t.Error("a waiting event shows")
	}
	r.Flush()
	events, log := r.Size()
	if changes != 1 || events != int64(len(read(t, dir, EventsFile))) || log != int64(len(read(t, dir, LogFile))) {
		t.Errorf("%d changes, sizes %d and %d", changes, events, log)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := r.Record(Event{Kind: agent.Note, Text: "x"}); n != 0 {
		t.Error("a closed recorder records")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Save(1, nil); err == nil {
		t.Error("a closed recorder saves")
	}
}

func TestOpenRefusesWhatIsNoLog(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "gone"), Options{}); err == nil {
		t.Error("opened a log in no directory")
	}
	for _, name := range []string{EventsFile, LogFile} {
		dir := t.TempDir()
		target := filepath.Join(t.TempDir(), "target")
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{}); err == nil {
			t.Errorf("opened %s through a symlink", name)
		}
		dir = t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{}); err == nil {
			t.Errorf("opened a directory as %s", name)
		}
	}
}
