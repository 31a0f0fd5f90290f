package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// resumed parses a stream with State and Restore at each of the cuts.
func resumed(t testing.TB, s stream, cuts ...int) ([]logged, Outcome) {
	t.Helper()
	var events []logged
	p, last := s.parser(t), 0
	for _, cut := range append(cuts, len(s.output)) {
		p.Parse(s.output[last:cut], collect(&events))
		state, err := p.State()
		if err != nil {
			t.Fatal(err)
		}
		p = s.parser(t)
		if err := p.Restore(state); err != nil {
			t.Fatalf("%s: restoring at %d: %v", s.name, cut, err)
		}
		last = cut
	}
	p.Finish(collect(&events))
	return events, p.Outcome(s.exit, s.stderr)
}

func same(t testing.TB, what string, events []logged, o Outcome, wantEvents []logged, want Outcome) {
	t.Helper()
	if !reflect.DeepEqual(events, wantEvents) {
		t.Fatalf("%s: other events:\n%v\nwant\n%v", what, events, wantEvents)
	}
	if !bytes.Equal(o.Reply, want.Reply) || o.Status != want.Status || o.Error != want.Error || o.Session != want.Session ||
		!reflect.DeepEqual(o.Usage, want.Usage) || fmt.Sprint(o.Unknown) != fmt.Sprint(want.Unknown) {
		t.Fatalf("%s: other outcome:\n%+v\nwant\n%+v", what, o, want)
	}
}

func TestStreamsAreTheSameByteByByte(t *testing.T) {
	for _, s := range committed(t) {
		want, outcome := s.run(t)
		var events []logged
		p := s.parser(t)
		for i := range s.output {
			p.Parse(s.output[i:i+1], collect(&events))
		}
		p.Finish(collect(&events))
		same(t, s.name, events, p.Outcome(s.exit, s.stderr), want, outcome)
	}
}

func TestStateIsExactAtEveryByte(t *testing.T) {
	for _, s := range committed(t) {
		want, outcome := s.run(t)
		step := 1 + len(s.output)/500 // every byte of the small ones
		for cut := 0; cut <= len(s.output); cut += step {
			events, o := resumed(t, s, cut)
			same(t, fmt.Sprintf("%s at %d", s.name, cut), events, o, want, outcome)
		}
	}
}

func TestEndsNeverGoBackAndStayWithinTheOutput(t *testing.T) {
	for _, s := range committed(t) {
		var last int64
		p := s.parser(t)
		for i := range s.output {
			p.Parse(s.output[i:i+1], func(end int64, _ Event) {
				if end < last || end > int64(i+1) {
					t.Errorf("%s: end %d after %d with %d bytes read", s.name, end, last, i+1)
				}
				last = end
			})
		}
		p.Finish(func(end int64, _ Event) {
			if end != int64(len(s.output)) {
				t.Errorf("%s: end %d at the end of %d bytes", s.name, end, len(s.output))
			}
		})
	}
}

func TestRecordingsAreTheSameHoweverTheyAreCut(t *testing.T) {
	streams := recorded(t)
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.SampledFrom(streams).Draw(r, "stream")
		want, outcome := s.run(t)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(s.output)), 0, 8).Draw(r, "cuts")
		slices.Sort(cuts)
		events, o := resumed(t, s, cuts...)
		same(t, fmt.Sprint(s.name, cuts), events, o, want, outcome)
	})
}

// A tool's output belongs to nobody but the model.
func TestNoEventHoldsWhatAToolPrinted(t *testing.T) {
	for _, s := range committed(t) {
		events, _ := s.run(t)
		if s.agent == shell {
			continue
		}
		for _, e := range events {
			if strings.Contains(e.Text, "secret output") {
				t.Errorf("%s: %v", s.name, e)
			}
		}
	}
}

func TestAStateOfAnotherFormatIsRefused(t *testing.T) {
	table := Builtin()
	for _, name := range []string{"sh", "codex", "claude"} {
		a, _ := table.Lookup(name)
		for _, bad := range []string{``, `{`, `[]`, `{}`, `{"format":"other"}`, `{"format":"gemini","offset":4}`} {
			p := a.NewParser()
			if err := p.Restore(json.RawMessage(bad)); err == nil {
				t.Errorf("%s takes %q for its state", name, bad)
			}
		}
	}
}

func TestOneStateIsSmall(t *testing.T) {
	for _, s := range committed(t) {
		p := s.parser(t)
		p.Parse(s.output, func(int64, Event) {})
		state, err := p.State()
		if err != nil || len(state) > 2048 {
			t.Errorf("%s: state of %d bytes, %v", s.name, len(state), err)
		}
	}
}

// feed parses a long output that is made of n times piece.
func feed(p Parser, piece string, n int, emit func(int64, Event)) {
	for range n {
		p.Parse([]byte(piece), emit)
	}
}

func TestALineTooLongIsSkippedWithANote(t *testing.T) {
	for _, name := range []string{"codex", "claude", "pi", "gemini", "opencode", "copilot"} {
		a, _ := Builtin().Lookup(name)
		p := a.NewParser()
		var events []logged
		emit := collect(&events)
		p.Parse([]byte(`{"type":"`), emit)
		feed(p, strings.Repeat("x", 1<<20), 17, emit)
		if state, err := p.State(); err != nil || len(state) > 1024 {
			t.Errorf("%s: a line that is skipped leaves a state of %d bytes, %v", name, len(state), err)
		}
		p.Parse([]byte("\"}\n"), emit)
		p.Finish(emit)
		if len(events) != 1 || events[0].Kind != Note || !strings.Contains(events[0].Text, "was skipped") || events[0].end != 17<<20+12 {
			t.Errorf("%s: %v", name, events)
		}
	}
}

func TestALineOfManyMegabytesIsRead(t *testing.T) {
	a, _ := Builtin().Lookup("codex")
	p := a.NewParser()
	var events []logged
	emit := collect(&events)
	p.Parse([]byte(`{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"`), emit)
	feed(p, strings.Repeat("word ", 1<<18), 10, emit)
	p.Parse([]byte("\"}}\n"+`{"type":"turn.completed"}`), emit)
	p.Finish(emit)
	o := p.Outcome(Exit{}, nil)
	if o.Status != StatusCompleted || len(o.Reply) != 10*5<<18 {
		t.Fatalf("%s %q, a reply of %d bytes", o.Status, o.Error, len(o.Reply))
	}
	total := 0
	for _, e := range events {
		if len(e.Text) > maxText {
			t.Errorf("an event of %d bytes", len(e.Text))
		}
		total += len(e.Text)
	}
	if total != len(o.Reply) {
		t.Errorf("events hold %d of %d bytes", total, len(o.Reply))
	}
}

func TestALineOfAScriptWithoutEndBecomesPieces(t *testing.T) {
	a, _ := Builtin().Lookup("sh")
	for _, text := range []string{
		strings.Repeat("é", 3*maxText/2) + "\n", strings.Repeat("x", maxText) + "\n", strings.Repeat("x", maxText) + "\r\n", strings.Repeat("x", maxText+1),
		"a" + strings.Repeat("€", maxText) + "\r\nend", strings.Repeat("\xff", 2*maxText+7), strings.Repeat("x", maxText) + "\n\n",
	} {
		var want []logged
		p := a.NewParser()
		p.Parse([]byte(text), collect(&want))
		p.Finish(collect(&want))
		var joined strings.Builder
		for _, e := range want {
			if len(e.Text) > maxText {
				t.Errorf("a piece of %d bytes", len(e.Text))
			}
			joined.WriteString(e.Text)
		}
		if got := joined.String(); got != strings.NewReplacer("\r\n", "", "\n", "").Replace(text) {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
		if blank := want[len(want)-1].Text == ""; blank != strings.HasSuffix(text, "\n\n") {
			t.Errorf("%d pieces of %d bytes, the last blank: %v", len(want), len(text), blank)
		}
		for _, size := range []int{1, 1000, 4096, maxText - 1, maxText, maxText + 1} {
			var got []logged
			q := a.NewParser()
			for i := 0; i < len(text); i += size {
				q.Parse([]byte(text[i:min(i+size, len(text))]), collect(&got))
			}
			q.Finish(collect(&got))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d bytes in chunks of %d: other events", len(text), size)
			}
		}
	}
}
