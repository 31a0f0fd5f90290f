package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

func talk(t *testing.T) *Talk {
	t.Helper()
	a, err := agent.Builtin().Get("claude")
	if err != nil {
		t.Fatal(err)
	}
	return New(a, "claude")
}

func collect(to *[]dialogue.Output) dialogue.Emit {
	return func(_ int64, o dialogue.Output) { *to = append(*to, o) }
}

func TestALineTooLongIsSkippedWithANote(t *testing.T) {
	w := talk(t)
	var out []dialogue.Output
	line := func([]byte) { t.Error("it is handed over") }
	for range 17 {
		w.Feed([]byte(strings.Repeat("x", 1<<20)), collect(&out), line)
	}
	state, err := w.State(nil)
	if err != nil || len(state) > 4096 {
		t.Errorf("a state of %d bytes, %v", len(state), err)
	}
	w.Feed([]byte("\n \r\n"), collect(&out), line)
	if len(out) != 1 || out[0].Event == nil || out[0].Event.Kind != agent.Note || !strings.Contains(out[0].Event.Text, "was skipped") {
		t.Errorf("%+v", out)
	}
}

func TestWhatWaitsIsBoundedInBytes(t *testing.T) {
	w := talk(t)
	var out []dialogue.Output
	request := json.RawMessage(`"` + strings.Repeat("x", MaxAsked/3) + `"`)
	taken := 0
	w.Do(collect(&out), func() {
		for _, id := range []string{"a", "b", "c", "d"} {
			if w.Ask(id, dialogue.Ask{Request: request, Summary: id}) {
				taken++
			}
		}
	})
	if taken != 2 || len(w.Asks()) != 2 {
		t.Fatalf("%d were taken, %d wait", taken, len(w.Asks()))
	}
	if _, _, err := w.Take("1"); err != nil {
		t.Fatal(err)
	}
	w.Do(collect(&out), func() {
		if !w.Ask("e", dialogue.Ask{Request: request}) {
			t.Error("there is room again, and it was not taken")
		}
	})
	if _, _, err := w.Take("1"); !fault.Is(err, fault.Done) {
		t.Error(err)
	}
}

// A request comes back as it was, blanks and all, over a state.
func TestRequestsKeepTheirBytes(t *testing.T) {
	w := talk(t)
	const request = "{ \"a\" :\t1.0, \"b\": \"<\u2028>\" }"
	w.Do(func(int64, dialogue.Output) {}, func() { w.Ask("x", dialogue.Ask{Request: json.RawMessage(request)}) })
	state, err := w.State(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := talk(t)
	if err := again.Restore(state, new(any)); err != nil {
		t.Fatal(err)
	}
	if got := string(again.Asks()[0].Request); got != request {
		t.Errorf("%q, not %q", got, request)
	}
}

func TestCallsWithinAnOutputAreTaken(t *testing.T) {
	w := talk(t)
	var out []dialogue.Output
	inner := collect(&out)
	w.Do(func(end int64, o dialogue.Output) {
		out = append(out, o)
		if o.Ask != nil {
			w.Do(inner, func() { w.Note("within") })
		}
	}, func() {
		w.Ask("x", dialogue.Ask{})
		w.Note("behind")
	})
	if len(out) != 3 || out[1].Event.Text != "within" || out[2].Event.Text != "behind" {
		t.Errorf("%+v", out)
	}
}
