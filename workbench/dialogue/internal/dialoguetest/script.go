// Package dialoguetest plays conversations to dialogues, for their tests:
// scripts of what an agent said and what was called, cut and restored anywhere,
// and real agents against a scripted model server.
package dialoguetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Step is one thing that is done to a dialogue: it gets output of the agent,
// or a call.
type Step struct {
	Output []byte
	Name   string // of the call
	Call   func(dialogue.Dialogue, dialogue.Emit) error
}

// Says is a line of the agent.
func Says(line string) Step { return Step{Output: []byte(line + "\n")} }

// Opens opens the dialogue.
func Opens() Step {
	return Step{Name: "open", Call: func(d dialogue.Dialogue, e dialogue.Emit) error { d.Open(e); return nil }}
}

// Prompts begins a turn.
func Prompts(text string) Step {
	return Step{Name: "prompt " + Short(text), Call: func(d dialogue.Dialogue, e dialogue.Emit) error { return d.Prompt([]byte(text), e) }}
}

// Steers puts a text into the turn.
func Steers(text string) Step {
	return Step{Name: "steer " + Short(text), Call: func(d dialogue.Dialogue, e dialogue.Emit) error { return d.Steer([]byte(text), e) }}
}

// Answers answers an ask.
func Answers(ask string, a dialogue.Answer) Step {
	return Step{Name: fmt.Sprintf("answer %s %v %q", ask, a.Allow, a.Words), Call: func(d dialogue.Dialogue, e dialogue.Emit) error { return d.Answer(ask, a, e) }}
}

// Interrupts interrupts the turn.
func Interrupts() Step {
	return Step{Name: "interrupt", Call: func(d dialogue.Dialogue, e dialogue.Emit) error { d.Interrupt(e); return nil }}
}

// Finishes ends the output.
func Finishes() Step {
	return Step{Name: "finish", Call: func(d dialogue.Dialogue, e dialogue.Emit) error { d.Finish(e); return nil }}
}

// Played is what came of a script.
type Played struct {
	D       dialogue.Dialogue // as it is at the end
	Lines   []string          // the transcript: calls, and outputs with their ends
	Outputs []dialogue.Output
	Ends    []int64
}

// Sends returns the messages that were sent.
func (p *Played) Sends() []string {
	var all []string
	for _, o := range p.Outputs {
		if o.Send != nil {
			all = append(all, strings.TrimSuffix(string(o.Send), "\n"))
		}
	}
	return all
}

// Everywhere is a cut between all steps.
const Everywhere = -1

// Play plays a script to a dialogue that make makes. At each of the cuts,
// which are counts of the agent's bytes, what is fed is cut, and another
// dialogue goes on from the state.
func Play(t testing.TB, make func() dialogue.Dialogue, script []Step, cuts ...int) *Played {
	t.Helper()
	p := &Played{D: make()}
	sort.Ints(cuts)
	at, end := 0, int64(0)
	emit := func(e int64, o dialogue.Output) {
		if e < end {
			t.Fatalf("an end of %d after %d", e, end)
		}
		end = e
		p.Outputs, p.Ends = append(p.Outputs, o), append(p.Ends, e)
		p.Lines = append(p.Lines, fmt.Sprintf("%d %s", e, Describe(o)))
	}
	again := func() {
		state, err := p.D.State()
		if err != nil {
			t.Fatal(err)
		}
		p.D = make()
		if err := p.D.Restore(state); err != nil {
			t.Fatalf("restoring at %d: %v", at, err)
		}
	}
	for _, s := range script {
		if len(cuts) > 0 && cuts[0] == Everywhere {
			again()
		}
		for rest := s.Output; len(rest) > 0; {
			n := len(rest)
			for len(cuts) > 0 && cuts[0] != Everywhere && cuts[0] <= at {
				again()
				cuts = cuts[1:]
			}
			if len(cuts) > 0 && cuts[0] != Everywhere {
				n = min(n, cuts[0]-at)
			}
			p.D.Feed(rest[:n], emit)
			at, rest = at+n, rest[n:]
		}
		if s.Call != nil {
			p.Lines = append(p.Lines, "-- "+s.Name)
			if err := s.Call(p.D, emit); err != nil {
				p.Lines = append(p.Lines, "   "+err.Error())
			}
		}
		check(t, p, at)
	}
	return p
}

// check looks at what holds after each step.
func check(t testing.TB, p *Played, at int) {
	t.Helper()
	if n := len(p.Ends); n > 0 && p.Ends[n-1] > int64(at) {
		t.Fatalf("an end of %d of %d bytes", p.Ends[n-1], at)
	}
	open := map[string]bool{}
	for _, o := range p.Outputs {
		switch {
		case o.Ask != nil && open[o.Ask.ID]:
			t.Fatalf("the ask %s comes twice", o.Ask.ID)
		case o.Ask != nil:
			open[o.Ask.ID] = true
		}
	}
	asks := p.D.Asks()
	for _, q := range asks {
		if !open[q.ID] {
			t.Fatalf("the ask %s waits and was never put out", q.ID)
		}
	}
	if !p.D.Busy() && len(asks) > 0 {
		t.Fatalf("%d asks outlive their turn", len(asks))
	}
	if len(asks) > dialogue.MaxAsks {
		t.Fatalf("%d asks wait", len(asks))
	}
}

// CutAnywhere plays a script cut at all kinds of places, and wants the same.
func CutAnywhere(t *testing.T, make func() dialogue.Dialogue, script []Step) {
	t.Helper()
	want := Play(t, make, script)
	total := 0
	for _, s := range script {
		total += len(s.Output)
	}
	rapid.Check(t, func(r *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(0, total), 0, 12).Draw(r, "cuts")
		Same(t, Play(t, make, script, cuts...), want)
	})
	Same(t, Play(t, make, script, Everywhere), want)
}

// Same fails unless the same came of two plays.
func Same(t testing.TB, got, want *Played) {
	t.Helper()
	for i := range min(len(got.Lines), len(want.Lines)) {
		if got.Lines[i] != want.Lines[i] {
			t.Fatalf("it says\n  %s\nnot\n  %s", got.Lines[i], want.Lines[i])
		}
	}
	if len(got.Lines) != len(want.Lines) {
		t.Fatalf("it says %d lines, not %d", len(got.Lines), len(want.Lines))
	}
}

// Describe writes an output as it stands in a transcript.
func Describe(o dialogue.Output) string {
	switch {
	case o.Event != nil:
		return string(o.Event.Kind) + " " + Short(o.Event.Text)
	case o.Send != nil:
		return "send " + Short(strings.TrimSuffix(string(o.Send), "\n"))
	case o.Ask != nil:
		q := *o.Ask
		s := fmt.Sprintf("ask %s %s %s %s: %s", q.ID, q.Kind, q.Risk, q.Tool, q.Summary)
		if q.CWD != "" {
			s += " in " + q.CWD
		}
		for _, c := range q.Questions {
			s += fmt.Sprintf("; %q %q multi %v", c.Text, c.Options, c.Multi)
		}
		return s + "; request " + Short(string(q.Request))
	case o.Gone != "":
		return "gone " + o.Gone
	case o.Ended != nil:
		return "ended " + DescribeOutcome(*o.Ended)
	}
	return "nothing"
}

// DescribeOutcome writes an outcome as it stands in a transcript.
func DescribeOutcome(o agent.Outcome) string {
	s := string(o.Status) + " session " + o.Session
	if u := o.Usage; u != nil {
		s += fmt.Sprintf(" tokens %d/%d cost %.4f total %v", u.InputTokens, u.OutputTokens, u.CostUSD, u.Total)
	}
	if len(o.Unknown) > 0 {
		s += fmt.Sprintf(" unknown %v", o.Unknown)
	}
	if o.Reply != nil {
		s += " reply " + Short(string(o.Reply))
	}
	if o.Error != "" {
		s += " error " + o.Error
	}
	return s
}

// Short is a text in quotes, of which a long one shows only its beginning.
func Short(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%q … %d bytes", s[:200], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// Golden compares a transcript with a file, which -update rewrites.
func Golden(t *testing.T, file string, p *Played) {
	t.Helper()
	got := strings.Join(p.Lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	Same(t, p, &Played{Lines: strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")})
}

// Recorded is one message of a recorded conversation.
type Recorded struct {
	Sent bool // by the client
	Msg  json.RawMessage
}

// Recording reads a conversation that was recorded with a real agent, or skips
// the test where there is none.
func Recording(t testing.TB, name string) []Recorded {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Shared(t, "fixtures"), name))
	if err != nil {
		t.Fatal(err)
	}
	var all []Recorded
	for line := range strings.Lines(string(text)) {
		var r struct {
			Dir string
			Msg json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Dir == "<" || r.Dir == ">" {
			all = append(all, Recorded{r.Dir == ">", r.Msg})
		}
	}
	return all
}

// Shared finds what lies beside the repository, or skips the test.
func Shared(t testing.TB, name string) string {
	t.Helper()
	for dir := ".."; len(dir) < 40; dir += "/.." {
		found := filepath.Join(dir, "shared", name)
		if _, err := os.Stat(found); err == nil {
			return found
		}
	}
	t.Skip("there is no shared/" + name + " beside the repository")
	return ""
}

// Case is a script and what has to come of it.
type Case struct {
	Name   string
	Make   func() dialogue.Dialogue
	Script []Step
	Want   []string // what the outputs and errors say, in this order
	Not    string   // what none of them says
	Busy   bool     // whether a turn runs at the end
}

// Run plays a case, and then plays it cut anywhere.
func (c Case) Run(t *testing.T, otherwise func() dialogue.Dialogue) {
	if c.Make == nil {
		c.Make = otherwise
	}
	p := Play(t, c.Make, c.Script)
	var said strings.Builder
	for _, line := range p.Lines {
		if !strings.HasPrefix(line, "-- ") {
			said.WriteString(line + "\n")
		}
	}
	rest := said.String()
	for _, want := range c.Want {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("nothing says %q, at its place, in\n%s", want, strings.Join(p.Lines, "\n"))
		}
		rest = after
	}
	if c.Not != "" && strings.Contains(said.String(), c.Not) {
		t.Fatalf("something says %q in\n%s", c.Not, strings.Join(p.Lines, "\n"))
	}
	if p.D.Busy() != c.Busy {
		t.Fatalf("busy %v in\n%s", p.D.Busy(), strings.Join(p.Lines, "\n"))
	}
	CutAnywhere(t, c.Make, c.Script)
}
