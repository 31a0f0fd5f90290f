package workbench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// plain is a dialogue of short lines, for an agent that a test plays. The
// agent says: ready, session ID, text WORDS, ask ID WORDS, question ID WORDS, gone ID, end STATUS
// WORDS. It is told: hello, prompt WORDS, steer WORDS, answer ID yes|no, stop.
type plain struct {
	S plainState
	o dialogue.Options
}

type plainState struct {
	Lines   agent.Lines
	Session string
	Ready   bool
	Busy    bool
	Waiting string // a prompt that waits for ready
	Open    []dialogue.Ask
}

var _ dialogue.Dialogue = (*plain)(nil)

func newPlain(_ string, o dialogue.Options) (dialogue.Dialogue, error) { return &plain{o: o}, nil }

func (p *plain) say(emit dialogue.Emit, format string, args ...any) {
	emit(p.S.Lines.Offset, dialogue.Output{Send: fmt.Appendf(nil, format+"\n", args...)})
}

func (p *plain) Open(emit dialogue.Emit) { p.say(emit, "hello %s", p.o.Session) }

func (p *plain) Feed(b []byte, emit dialogue.Emit) {
	p.S.Lines.Feed(b, func(end int64, line []byte, _ int64) {
		verb, rest, _ := strings.Cut(string(line), " ")
		first, words, _ := strings.Cut(rest, " ")
		switch verb {
		case "ready":
			if p.S.Ready = true; p.S.Waiting != "" {
				p.say(emit, "prompt %s", p.S.Waiting)
				p.S.Waiting = ""
			}
		case "session":
			p.S.Session = first
		case "text":
			emit(end, dialogue.Output{Event: &agent.Event{Kind: agent.Text, Text: rest}})
		case "ask", "question":
			q := dialogue.Ask{ID: first, Kind: dialogue.Permission, Risk: dialogue.Process, Summary: words, Request: json.RawMessage("{}")}
			if verb == "question" {
				q.Kind, q.Questions = dialogue.Question, []dialogue.Choice{{Text: words}}
			}
			p.S.Open = append(p.S.Open, q)
			emit(end, dialogue.Output{Ask: &q})
		case "gone":
			p.drop(first)
			emit(end, dialogue.Output{Gone: first})
		case "end":
			p.S.Busy, p.S.Open = false, nil
			out := agent.Outcome{Status: agent.Status(first), Reply: []byte(words)}
			if out.Status == agent.StatusFailed {
				out.Reply, out.Error = nil, words
			}
			emit(end, dialogue.Output{Ended: &out})
		}
	})
}

func (p *plain) drop(id string) bool {
	for i, q := range p.S.Open {
		if q.ID == id {
			p.S.Open = append(p.S.Open[:i:i], p.S.Open[i+1:]...)
			return true
		}
	}
	return false
}

func (p *plain) Prompt(text []byte, emit dialogue.Emit) error {
	if p.S.Busy {
		return fault.New(fault.Busy, "a turn runs")
	}
	if p.S.Busy = true; !p.S.Ready {
		p.S.Waiting = string(text)
		return nil
	}
	p.say(emit, "prompt %s", text)
	return nil
}

func (p *plain) Steer(text []byte, emit dialogue.Emit) error {
	emit(p.S.Lines.Offset, dialogue.Output{Event: &agent.Event{Kind: agent.Steered, Text: string(text)}})
	p.say(emit, "steer %s", text)
	return nil
}
func (p *plain) Steerable() bool      { return p.S.Busy }
func (p *plain) Asks() []dialogue.Ask { return p.S.Open }

func (p *plain) Answer(ask string, a dialogue.Answer, emit dialogue.Emit) error {
	if !p.drop(ask) {
		return fault.New(fault.Done, "answered")
	}
	word := "no"
	if a.Allow {
		word = "yes"
	}
	p.say(emit, "answer %s %s", ask, word)
	return nil
}

func (p *plain) Interrupt(emit dialogue.Emit) {
	for _, q := range p.S.Open {
		emit(p.S.Lines.Offset, dialogue.Output{Gone: q.ID})
	}
	p.S.Open = nil
	p.say(emit, "stop")
}
func (p *plain) Busy() bool           { return p.S.Busy }
func (p *plain) Finish(dialogue.Emit) {}
func (p *plain) Outcome(agent.Exit, []byte) agent.Outcome {
	return agent.Outcome{Status: agent.StatusFailed, Error: "it ended in the middle of a turn"}
}
func (p *plain) Session() string                     { return p.S.Session }
func (p *plain) State() (json.RawMessage, error)     { return json.Marshal(p.S) }
func (p *plain) Restore(state json.RawMessage) error { return json.Unmarshal(state, &p.S) }

// player plays the agent of a run: what it is told, line by line.
type player struct {
	t    *testing.T
	p    *fakeProcess
	in   *os.File
	told *bufio.Reader
}

// served makes a fixture whose agent "served" is a server.
func served(t *testing.T, jobs int) *fixture {
	f := newFixture(t, jobs, 10)
	f.conf.Agents["served"] = agent.Entry{Like: "acp", Command: "/bin/true"}
	f.dialogues = newPlain
	f.reopen(t)
	return f.shop(t)
}

// play takes the part of the agent of a job.
func (f *fixture) play(t *testing.T, n uint64) *player {
	t.Helper()
	f.until(t, "a run of "+JobName(n), func() bool {
		rec, ok := f.Job("shop", n)
		return ok && rec.Run != "" && f.runs.of(rec.Run) != nil
	})
	rec, _ := f.Job("shop", n)
	proc := f.runs.of(rec.Run)
	p := &player{t: t, p: proc, in: proc.in, told: bufio.NewReader(proc.in)}
	p.say("") // its output is there
	return p
}

func (p *player) say(format string, args ...any) {
	p.t.Helper()
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text += "\n"
	}
	if err := p.p.print(text); err != nil {
		p.t.Fatal(err)
	}
}

// hears waits for the next line that it is told.
func (p *player) hears(want string) {
	p.t.Helper()
	_ = p.in.SetReadDeadline(time.Now().Add(10 * time.Second))
	line, err := p.told.ReadString('\n')
	if got := strings.TrimSuffix(line, "\n"); err != nil || got != want {
		p.t.Fatalf("told %q (%v), want %q", got, err, want)
	}
}

// silent checks that nothing more was told.
func (p *player) silent() {
	p.t.Helper()
	_ = p.in.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if line, err := p.told.ReadString('\n'); err == nil {
		p.t.Fatalf("told %q, want nothing", line)
	}
}

func (f *fixture) ask(t *testing.T, doc string) uint64 { return f.start(t, "#!scv agent=served\n"+doc) }

func TestAServerServesTheTurnsOfItsConversation(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready")
	p.hears("prompt one")
	p.say("session s1\ntext working\nend completed done one")
	rec := f.is(t, n, ledger.Completed)
	if rec.Conversation != "served-1" || rec.Exit != "server goes on" {
		t.Fatalf("conversation %q, exit %q", rec.Conversation, rec.Exit)
	}
	run, _ := f.Run(rec.Run)
	if run.State != ledger.Idle || !f.isLive(rec.Run) || run.Vendor != "s1" {
		t.Fatalf("run %+v", run)
	}
	m := f.send(t, "served-1", "two")
	p.hears("prompt two")
	p.say("end failed it broke")
	if rec := f.is(t, m, ledger.Failed); rec.Run != run.ID || rec.Detail != "it broke" {
		t.Fatalf("%+v", rec)
	}
	if run, _ := f.Run(rec.Run); len(run.Jobs) != 2 || run.Turn != 2 {
		t.Fatalf("run %+v", run)
	}
}

func TestAServerThatDiesInATurnFailsIt(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready\nsession s1")
	p.hears("prompt one")
	p.p.end(exited, true)
	if rec := f.is(t, n, ledger.Failed); !strings.Contains(rec.Detail, "middle of a turn") {
		t.Fatal(rec.Detail)
	}
	m := f.send(t, "served-1", "two") // a new server goes on
	p = f.play(t, m)
	p.hears("hello s1")
	p.say("ready")
	p.hears("prompt two")
	p.say("end completed ok")
	f.is(t, m, ledger.Completed)
}

func TestAServerThatDiesBetweenTurnsIsReplaced(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.say("ready\nsession s1\nend completed ok")
	first := f.is(t, n, ledger.Completed)
	p.p.end(exited, true)
	m := f.send(t, "served-1", "two")
	f.until(t, "another run", func() bool {
		rec, _ := f.Job("shop", m)
		return rec.Run != first.Run && f.runs.of(rec.Run) != nil
	})
	p = f.play(t, m)
	p.hears("hello s1")
	p.say("ready")
	p.hears("prompt two")
	p.say("end completed ok")
	f.is(t, m, ledger.Completed)
	if rec, _ := f.Run(first.Run); !rec.State.Terminal() {
		t.Fatalf("the first run is %s", rec.State)
	}
}

func TestACancelInterruptsAndThenStopsTheServer(t *testing.T) {
	for _, answers := range []bool{true, false} {
		f := served(t, 2)
		n := f.ask(t, "one")
		p := f.play(t, n)
		p.hears("hello ")
		p.say("ready\nsession s1")
		p.hears("prompt one")
		if err := f.Cancel(Caller{}, "shop", n); err != nil {
			t.Fatal(err)
		}
		p.hears("stop")
		if answers {
			p.say("end completed cut off")
		}
		rec := f.is(t, n, ledger.Cancelled)
		if run, _ := f.Run(rec.Run); run.State != ledger.Cancelled {
			t.Fatalf("run %s", run.State)
		}
	}
}

func TestARestartGoesOnWithTheServer(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready\nsession s1")
	p.hears("prompt one")
	f.reopen(t)
	p.silent()
	p.say("text working\nend completed ok")
	f.is(t, n, ledger.Completed)
	f.reopen(t)
	m := f.send(t, "served-1", "two")
	p.hears("prompt two")
	f.reopen(t)
	p.silent()
	p.say("end completed ok")
	f.is(t, m, ledger.Completed)
}

func TestAPromptGoesIntoTheRunningTurn(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.hears("hello ")
	p.say("ready\nsession s1")
	p.hears("prompt one")
	for i, mode := range []SendMode{SendSteer, SendAuto} {
		text := []string{"first", "second"}[i]
		addr, err := f.Send(t.Context(), "shop", "served-1", []byte(text), mode)
		if err != nil || addr != "shop/job-1" {
			t.Fatal(addr, err)
		}
		p.hears("steer " + text)
	}
	p.say("end completed ok")
	f.is(t, n, ledger.Completed)
	if _, err := f.Send(t.Context(), "shop", "served-1", []byte("more"), SendSteer); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	f.logged(t, n, "steered by owner: first", "steered by owner: second")
}

func TestAForgottenConversationsServerEnds(t *testing.T) {
	f := served(t, 2)
	n := f.ask(t, "one")
	p := f.play(t, n)
	p.say("ready\nsession s1\nend completed ok")
	rec := f.is(t, n, ledger.Completed)
	if err := f.Release("shop", "served-1"); err != nil {
		t.Fatal(err)
	}
	<-p.p.done
	deadline := time.Now().Add(10 * time.Second)
	for run, _ := f.Run(rec.Run); !run.State.Terminal(); run, _ = f.Run(rec.Run) {
		if time.Now().After(deadline) {
			t.Fatal("the run has no end")
		}
		time.Sleep(time.Millisecond)
	}
}

// reopen restarts the daemon, as it were.
func (f *fixture) reopen(t failer) {
	t.Helper()
	f.Workbench.Close()
	f.open(t)
}
