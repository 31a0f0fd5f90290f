package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scvfs/workbench/dialogue"
)

// turn runs a turn in which at most one permission is asked for.
func (p *process) turn(prompt string, answer *dialogue.Answer) (status, said string) {
	p.t.Helper()
	mark := len(p.out)
	p.prompt(prompt)
	if answer != nil {
		p.asked()
		p.answer(*answer)
	}
	return p.end(mark)
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.work, name))
	return err == nil
}

// command makes a line by which the model runs a command.
func (w *world) command(name string) string {
	word := w.real.run
	if word == "" {
		word = "RUN"
	}
	return word + ": " + fmt.Sprintf(name, w.work)
}

func (w *world) answer(allow bool) *dialogue.Answer {
	if w.real.run == "" {
		return nil
	}
	return &dialogue.Answer{Allow: allow}
}

func want(t *testing.T, what, status, said, wanted string, words ...string) {
	t.Helper()
	if status != wanted {
		t.Errorf("%s: %s, not %s\n%s", what, status, wanted, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("%s: without %q\n%s", what, word, said)
		}
	}
}

// session is where turns leaves the id of its session for others.
func (w *world) session(t *testing.T) string {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(w.home, "session"))
	if err != nil {
		t.Fatal(err)
	}
	return string(id)
}

func (w *world) turns(t *testing.T) {
	p := w.start(t, dialogue.Options{})
	status, said := p.turn("SAY: First answer, 42.", nil)
	want(t, "say", status, said, "completed", `text "First answer, 42."`, `reply "First answer, 42."`)
	id := p.d.Session()
	if id == "" || os.WriteFile(filepath.Join(w.home, "session"), []byte(id), 0o600) != nil {
		t.Fatalf("the session is %q", id)
	}

	status, said = p.turn("SAY: I run it.\n"+w.command("touch %s/allowed && echo made")+"\nSAY: It ran.", w.answer(true))
	want(t, "allowed", status, said, "completed", `text "I run it."`, "touch "+w.work+"/allowed", `reply "It ran."`)
	if !w.exists("allowed") || strings.Count(said, `tool "`) != 1 {
		t.Errorf("the command that was allowed: ran %v\n%s", w.exists("allowed"), said)
	}
	if w.real.run != "" {
		w.denied(t, p)
	}
	w.failures(t, p)
	w.cancelled(t, p)
	if w.real.steers {
		w.steered(t, p)
	}
	if w.real.asks {
		w.questioned(t, p)
	}
	p.stop()
}

func (w *world) denied(t *testing.T, p *process) {
	status, said := p.turn(w.command("touch %s/denied")+"\nSAY: You said no.", &dialogue.Answer{Reason: "no"})
	if w.real.goesOn {
		want(t, "denied", status, said, "completed", `reply "You said no."`)
	} else {
		want(t, "denied", status, said, "failed", "it stopped at what was denied")
	}
	if w.exists("denied") || strings.Count(said, `tool_failed "not allowed: touch`) != 1 {
		t.Errorf("denied: ran %v\n%s", w.exists("denied"), said)
	}
}

func (w *world) failures(t *testing.T, p *process) {
	status, said := p.turn("REFUSE: I will not do that.", nil)
	if w.real.silent {
		want(t, "refused", status, said, "failed", "it gave no answer")
	} else {
		want(t, "refused", status, said, "declined")
	}
	status, said = p.turn("FAIL: 400 the request is bad", nil)
	if w.real.silent {
		want(t, "bad", status, said, "failed", "it gave no answer")
	} else {
		want(t, "bad", status, said, "failed", "the request is bad")
	}
}

func (w *world) cancelled(t *testing.T, p *process) {
	if w.real.run != "" {
		mark := len(p.out)
		p.prompt(w.command("touch %s/never"))
		p.asked()
		p.d.Interrupt(p.emit)
		status, said := p.end(mark)
		want(t, "cancelled while it asks", status, said, "failed", "it was interrupted", "gone ")
	}
	mark := len(p.out)
	p.prompt(w.command(`python3 -c "import time; open('%s/begun', 'w').close(); time.sleep(600)"`) + "\nSAY: late")
	if w.real.run != "" {
		p.asked()
		p.answer(dialogue.Answer{Allow: true})
	}
	p.logged(mark, `tool "$ python3`)
	for limit := time.Now().Add(patience); !w.exists("begun") && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // gemini was seen to lose a cancel in the first moments of a tool
	p.d.Interrupt(p.emit)
	status, said := p.end(mark)
	want(t, "cancelled while a tool runs", status, said, "failed", "it was interrupted")
	if w.exists("never") || !w.exists("begun") {
		t.Error("the wrong commands ran")
	}
	status, said = p.turn("SAY: Still here.", nil)
	want(t, "after that", status, said, "completed", `reply "Still here."`)
}

func (w *world) steered(t *testing.T, p *process) {
	mark := len(p.out)
	p.prompt(w.command("touch %s/steered") + "\nSAY: Both done.")
	p.asked()
	if !p.d.Steerable() {
		t.Fatal("it is not steerable")
	}
	if err := p.d.Steer([]byte("and mind this"), p.emit); err != nil {
		t.Fatal(err)
	}
	p.answer(dialogue.Answer{Allow: true})
	status, said := p.end(mark)
	want(t, "steered", status, said, "completed", "and mind this", "Both done.")
	if p.d.Busy() {
		t.Error("it is busy after its turn")
	}
}

func (w *world) questioned(t *testing.T, p *process) {
	mark := len(p.out)
	p.prompt("ASK: Which color? | Red | Blue\nRESULT")
	if q := p.asked(); q.Kind != dialogue.Question || q.Questions[0].Text != "Which color?" || !slices.Equal(q.Questions[0].Options, []string{"Red", "Blue"}) {
		t.Errorf("%+v", q)
	}
	p.answer(dialogue.Answer{Allow: true, Words: []string{"Blue"}})
	status, said := p.end(mark)
	want(t, "question", status, said, "completed", "Blue")
}

// continued continues the session in another process.
func (w *world) continued(t *testing.T) {
	w.age(t)
	p := w.start(t, dialogue.Options{Session: w.session(t)})
	mark := len(p.out)
	p.prompt("HISTORY")
	status, said := p.end(mark)
	want(t, "history", status, said, "completed", "First answer, 42.", "HISTORY")
	if begin := strings.Index(said, `text "`); begin < 0 || !strings.HasPrefix(said[begin:], `text "history: `) {
		t.Errorf("the history was told again:\n%s", said)
	}
	if p.d.Session() != w.session(t) {
		t.Errorf("%s became %s", w.session(t), p.d.Session())
	}
	p.stop()
}

// age makes gemini's sessions older. It empties one that is continued within
// the minute in which it began, because it names their files by that.
func (w *world) age(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(w.home, ".gemini/tmp/*/chats/session-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		dir, name := filepath.Split(file)
		year, rest, _ := strings.Cut(strings.TrimPrefix(name, "session-"), "-")
		if err := os.Rename(file, dir+"session-1"+year[1:]+"-"+rest); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) unknown(t *testing.T) {
	p := w.start(t, dialogue.Options{Session: "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"})
	status, said := p.turn("SAY: never", nil)
	want(t, "unknown session", status, said, "failed", "does not know the session that was to be continued")
	p.stop()
}

func (w *world) full(t *testing.T) {
	p := w.start(t, dialogue.Options{Full: true})
	status, said := p.turn("RUN: touch "+w.work+"/unasked\nSAY: Done.", nil)
	want(t, "full permissions", status, said, "completed", `reply "Done."`)
	if !w.exists("unasked") || strings.Contains(said, "ask ") {
		t.Errorf("with full permissions: ran %v\n%s", w.exists("unasked"), said)
	}
	p.stop()
}

func (w *world) settings(t *testing.T) {
	p := w.start(t, dialogue.Options{Mode: "nonsense"})
	status, said := p.turn("SAY: never", nil)
	want(t, "a mode that is none", status, said, "failed", `does not offer the mode \"nonsense\": it offers `)
	p.stop()
	p = w.start(t, w.real.sets)
	status, said = p.turn("SAY: Set.", nil)
	want(t, "settings", status, said, "completed", "reply") // a mode may add to the prompt, which is the model's script
	p.stop()
}
