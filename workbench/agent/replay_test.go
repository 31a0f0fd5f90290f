package agent

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Outcomes of recorded streams are in two files of the same form, which -update
// rewrites: testdata/streams.golden for the streams that are committed, and
// testdata/recorded.golden for those of the real programs, which lie outside
// the repository. Read the change before you commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

// stream is one recorded output of an agent.
type stream struct {
	name   string // <agent or version>/<case>
	agent  string
	output []byte
	stderr []byte
	exit   Exit
}

// committed returns the streams below testdata/streams, whose file names tell
// the exit: case.exit1.out, case.sigKILL.out.
func committed(t testing.TB) []stream {
	t.Helper()
	files, err := filepath.Glob("testdata/streams/*/*.out")
	if err != nil || len(files) == 0 {
		t.Fatal("no streams in testdata", err)
	}
	var all []stream
	for _, file := range files {
		dir, base := filepath.Split(strings.TrimSuffix(file, ".out"))
		name, end, _ := strings.Cut(base, ".")
		s := stream{name: filepath.Base(dir) + "/" + name, agent: filepath.Base(dir), output: read(t, file)}
		s.stderr, _ = os.ReadFile(strings.TrimSuffix(file, ".out") + ".err")
		if signal, ok := strings.CutPrefix(end, "sig"); ok {
			s.exit = Exit{Code: -1, Signal: signal}
		} else if s.exit.Code, err = strconv.Atoi(strings.TrimPrefix(end, "exit")); err != nil {
			t.Fatal(file, err)
		}
		if s.agent == FormatText {
			s.agent = shell
		}
		all = append(all, s)
	}
	return all
}

// recorded returns what the real programs wrote; none where that is absent.
func recorded(t testing.TB) []stream {
	t.Helper()
	dir := shared(t)
	var all []stream
	for _, version := range []string{"claude", "claude-2.1.197", "codex", "copilot", "gemini", "opencode", "pi", "pi-0.73.1"} {
		metas, _ := filepath.Glob(filepath.Join(dir, version, "*.meta.json"))
		for _, meta := range metas {
			base := strings.TrimSuffix(meta, ".meta.json")
			output, err := os.ReadFile(base + ".jsonl")
			if err != nil {
				continue // too long to keep
			}
			var told struct {
				ExitCode int `json:"exit_code"`
			}
			if err := json.Unmarshal(read(t, meta), &told); err != nil {
				t.Fatal(meta, err)
			}
			name, _, _ := strings.Cut(version, "-")
			s := stream{name: version + "/" + filepath.Base(base), agent: name, output: output, exit: Exit{Code: told.ExitCode}}
			if told.ExitCode < 0 {
				s.exit = Exit{Code: -1, Signal: map[int]string{-2: "INT", -9: "KILL", -15: "TERM"}[told.ExitCode]}
			}
			s.stderr, _ = os.ReadFile(base + ".stderr")
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		t.Fatal("no recordings in", dir)
	}
	return all
}

// shared finds the recordings beside the repository, or skips the test.
func shared(t testing.TB) string {
	t.Helper()
	for dir := "../.."; len(dir) < 30; dir += "/.." {
		if found := filepath.Join(dir, "shared", "fixtures"); isDir(found) {
			return found
		}
	}
	t.Skip("the recordings of the real agents are not beside the repository")
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s stream) parser(t testing.TB) Parser {
	t.Helper()
	a, err := Builtin().Get(s.agent)
	if err != nil {
		t.Fatal(err)
	}
	return a.NewParser()
}

// logged is an event as it was emitted.
type logged struct {
	end int64
	Event
}

func collect(to *[]logged) func(int64, Event) {
	return func(end int64, e Event) { *to = append(*to, logged{end, e}) }
}

func (s stream) run(t testing.TB) ([]logged, Outcome) {
	t.Helper()
	var events []logged
	p := s.parser(t)
	p.Parse(s.output, collect(&events))
	p.Finish(collect(&events))
	return events, p.Outcome(s.exit, s.stderr)
}

// describe writes a stream's events and outcome as they stand in a golden
// file.
func describe(s stream, events []logged, o Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s (%s)\n", s.name, strings.TrimSpace(s.exit.Signal+" "+strconv.Itoa(s.exit.Code)))
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %s\n", e.end, e.Kind, short(e.Text))
	}
	fmt.Fprintf(&b, "-> %s", o.Status)
	if o.Session != "" {
		fmt.Fprintf(&b, " session %s", o.Session)
	}
	if u := o.Usage; u != nil {
		fmt.Fprintf(&b, " tokens %d/%d cost %.4f total %v", u.InputTokens, u.OutputTokens, u.CostUSD, u.Total)
	}
	if len(o.Unknown) > 0 {
		fmt.Fprintf(&b, " unknown %v", o.Unknown)
	}
	if o.ReplyTail {
		b.WriteString("\nreply: the end of the output")
	} else if o.Reply != nil {
		fmt.Fprintf(&b, "\nreply: %s", short(string(o.Reply)))
	}
	if o.Error != "" {
		fmt.Fprintf(&b, "\nerror: %s", o.Error)
	}
	return b.String() + "\n\n"
}

func short(s string) string {
	if len(s) > 120 {
		return fmt.Sprintf("%q … %d bytes", s[:120], len(s))
	}
	return fmt.Sprintf("%q", s)
}

func compareGolden(t *testing.T, file string, streams []stream) {
	t.Helper()
	var got strings.Builder
	for _, s := range streams {
		events, o := s.run(t)
		got.WriteString(describe(s, events, o))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := strings.Split(string(read(t, file)), "== ")
	have := strings.Split(got.String(), "== ")
	if len(want) != len(have) {
		t.Errorf("%s holds %d cases, and there are %d", file, len(want)-1, len(have)-1)
	}
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] {
			t.Errorf("want == %sgot  == %s", want[i], have[i])
		}
	}
}

func TestCommittedStreamsComeToTheirOutcomes(t *testing.T) {
	compareGolden(t, "testdata/streams.golden", committed(t))
}

func TestRecordingsOfRealAgentsComeToTheirOutcomes(t *testing.T) {
	compareGolden(t, "testdata/recorded.golden", recorded(t))
}

// What each case of the recordings is, by its name, must come out as such
// whatever the golden file says.
func TestRecordingsEndAsTheirNamesSay(t *testing.T) {
	expect := map[string]Status{
		"say": StatusCompleted, "tool": StatusCompleted, "tools": StatusCompleted, "write": StatusCompleted, "long": StatusCompleted, "ask": StatusCompleted,
		"resume-1": StatusCompleted, "resume-2": StatusCompleted, "readonly": StatusCompleted, "takeover-1-headless": StatusCompleted, "json": StatusCompleted,
		"refuse": StatusDeclined, "fail400": StatusFailed, "fail401": StatusFailed, "fail429": StatusFailed, "fail500": StatusFailed,
		"resume-unknown": StatusFailed, "badurl": StatusFailed, "sigterm-group": StatusFailed,
	}
	words := map[string]string{
		"fail401": "is not signed in", "fail400": "refused the request", "fail500": "model service failed", "resume-unknown": "does not know the session",
	}
	for _, s := range recorded(t) {
		_, o := s.run(t)
		version, name, _ := strings.Cut(s.name, "/")
		if want, ok := expect[name]; ok && o.Status != want {
			t.Errorf("%s: status %q, want %q (%s)", s.name, o.Status, want, o.Error)
		}
		if !strings.Contains(o.Error, words[name]) {
			t.Errorf("%s: error %q does not say %q", s.name, o.Error, words[name])
		}
		if (o.Status == StatusCompleted) != (o.Error == "") {
			t.Errorf("%s: status %s with error %q", s.name, o.Status, o.Error)
		}
		if len(o.Unknown) > 0 {
			t.Errorf("%s: events that nobody knows: %v", s.name, o.Unknown)
		}
		if o.Status == StatusCompleted && o.Session == "" {
			t.Errorf("%s: no session id", s.name)
		}
		if version == "claude" && name == "resume-2" && o.Usage.CostUSD > 0.06 {
			t.Errorf("%s: costs %v, which is that of both turns", s.name, o.Usage.CostUSD)
		}
	}
}
