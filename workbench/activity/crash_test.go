package activity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/workbench/agent"
)

// output is what an agent's output means to a parser: events, each known after
// so many bytes, and those that only its end brings.
type output struct {
	events []parsed
	atEnd  int // events from this one on come from Finish
	size   int64
}

type parsed struct {
	end int64
	e   agent.Event
}

func drawOutput(t *rapid.T) output {
	var o output
	kinds := []agent.EventKind{agent.Text, agent.Text, agent.Tool, agent.ToolFailed, agent.Plan, agent.Note}
	for i := range rapid.IntRange(0, 40).Draw(t, "events") {
		o.size += rapid.SampledFrom([]int64{0, 0, 1, 7, 300}).Draw(t, "bytes")
		txt := fmt.Sprintf("%d%s", i, rapid.SampledFrom([]string{"", " x", "\nb", "\n\nb\n", "\x1b[1m\xff"}).Draw(t, "text"))
		o.events = append(o.events, parsed{o.size, agent.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Text: txt}})
	}
	o.atEnd = len(o.events)
	for i := range rapid.IntRange(0, 2).Draw(t, "at end") {
		o.events = append(o.events, parsed{o.size, text(fmt.Sprintf("end %d", i))})
	}
	return o
}

// lines is what the log must hold of the output.
func (o output) lines() []string {
	var all []string
	at := Position{}
	for _, p := range o.events {
		for _, piece := range texts(p.e.Kind, p.e.Text, defaultMaxText) {
			at = at.next(p.end)
			all = append(all, fmt.Sprintf("%d.%d %s:%s", at.Src, at.Count, p.e.Kind, piece))
		}
	}
	return all
}

// crasher drives a recorder as a daemon does, and kills it now and then.
type crasher struct {
	dir   string
	out   output
	rec   *Recorder
	next  int   // the parser's state: its next event
	fed   int64 // of the output
	notes int
	turn  int
	sure  []string // daemon's events that no SIGKILL may take

	synced int64 // of log, by the last checkpoint

	// What the last flush did, for dying in the middle of it.
	before, after [2]int64
	fresh         []string
}

func (c *crasher) open(t *rapid.T) {
	var err error
	if c.rec, err = Open(c.dir, Options{Clock: fixed}); err != nil {
		t.Fatal(err)
	}
	cp := c.rec.Resume()
	c.synced = cp.Mark.Log
	if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
		cp = Checkpoint{}
		c.rec.Restart()
	}
	c.next, c.fed = 0, cp.Offset
	if cp.Parser != nil {
		if err := json.Unmarshal(cp.Parser, &c.next); err != nil {
			t.Fatal(err)
		}
	}
	c.quiet()
}

// quiet says that nothing is at risk of a SIGKILL.
func (c *crasher) quiet() {
	c.sure, c.fresh = append(c.sure, c.fresh...), nil
	e, l := c.rec.Size()
	c.before = [2]int64{e, l}
	c.after = c.before
}

// flushed notes what a flush changed.
func (c *crasher) flushed(fresh ...string) {
	c.fresh = fresh
	c.after[0], c.after[1] = c.rec.Size()
}

func (c *crasher) Feed(t *rapid.T) {
	c.quiet()
	c.fed = min(c.out.size, c.fed+rapid.Int64Range(0, 700).Draw(t, "chunk"))
	for ; c.next < c.out.atEnd && c.out.events[c.next].end <= c.fed; c.next++ {
		c.rec.Parsed(c.out.events[c.next].end, c.out.events[c.next].e)
	}
	if rapid.Bool().Draw(t, "flush") {
		c.rec.Flush()
		c.flushed()
	}
}

func (c *crasher) Note(*rapid.T) {
	c.quiet()
	c.notes++
	name := fmt.Sprintf("own %d", c.notes)
	c.rec.Record(Event{Kind: agent.Note, Text: name})
	c.flushed("note:" + name)
}

func (c *crasher) Turn(t *rapid.T) {
	c.quiet()
	c.turn = max(1, c.turn+rapid.IntRange(0, 1).Draw(t, "another turn"))
	c.rec.Record(
		Event{Kind: agent.RunStarted}, Event{Kind: agent.TurnStarted, Turn: c.turn, Text: fmt.Sprint(c.turn)},
		Event{Kind: agent.TurnEnded, Turn: c.turn, Text: fmt.Sprint(c.turn)})
	c.flushed()
}

func (c *crasher) Save(t *rapid.T) {
	c.quiet()
	state, _ := json.Marshal(c.next)
	if err := c.rec.Save(c.fed, state); err != nil {
		t.Fatal(err)
	}
	c.flushed()
	c.quiet()
	_, c.synced = c.rec.Size()
}

// Kill dies by SIGKILL: perhaps in the middle of the last flush.
func (c *crasher) Kill(t *rapid.T) {
	kill(c.rec)
	switch rapid.IntRange(0, 2).Draw(t, "where") {
	case 0:
		c.quiet()
	case 1:
		c.cut(t, EventsFile, rapid.Int64Range(c.before[0], c.after[0]).Draw(t, "events"))
		c.cut(t, LogFile, c.before[1])
	case 2:
		c.cut(t, LogFile, rapid.Int64Range(c.before[1], c.after[1]).Draw(t, "log"))
		c.sure, c.fresh = append(c.sure, c.fresh...), nil
	}
	c.fresh = nil
	c.open(t)
	c.Check(t)
}

// PowerCut leaves of each file what it likes.
func (c *crasher) PowerCut(t *rapid.T) {
	kill(c.rec)
	c.sure, c.fresh = nil, nil
	for _, name := range []string{EventsFile, LogFile} {
		info, err := os.Stat(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size := rapid.Int64Range(max(0, info.Size()-200), info.Size()).Draw(t, name)
		if rapid.Bool().Draw(t, "deep") {
			size = rapid.Int64Range(0, info.Size()).Draw(t, name)
		}
		c.cut(t, name, size)
		if zeros := rapid.SampledFrom([]int64{0, 0, 100}).Draw(t, "zeros"); zeros > 0 {
			c.cut(t, name, size+zeros)
		}
		if name == LogFile && size > c.synced && rapid.Bool().Draw(t, "hole") {
			c.hole(t, c.synced, size)
		}
	}
	c.open(t)
	c.Check(t)
}

// hole zeroes a part of log, as blocks do that never reached the disk.
func (c *crasher) hole(t *rapid.T, from, to int64) {
	from = rapid.Int64Range(from, to-1).Draw(t, "hole from")
	to = rapid.Int64Range(from+1, to).Draw(t, "hole to")
	f, err := os.OpenFile(filepath.Join(c.dir, LogFile), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		t.Fatal(err)
	}
}

func (c *crasher) cut(t *rapid.T, name string, size int64) {
	if err := os.Truncate(filepath.Join(c.dir, name), size); err != nil {
		t.Fatal(err)
	}
}

// Check is called after each step; what waits is not in the files yet.
func (c *crasher) Check(t *rapid.T) {
	all := c.recorded(t)
	want := c.out.lines()
	got := fromParser(all)
	if len(got) > len(want) {
		t.Fatalf("%d events of the agent are recorded, and there are %d", len(got), len(want))
	}
	if strings.Join(got, "\n") != strings.Join(want[:len(got)], "\n") {
		t.Fatalf("recorded\n%s\nwant a beginning of\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	have := map[string]int{}
	for _, e := range all {
		if e.Src == nil {
			have[string(e.Kind)+":"+e.Text]++
		}
	}
	for what, n := range have {
		if n > 1 {
			t.Fatalf("%q is recorded %d times", what, n)
		}
	}
	for _, what := range c.sure {
		if have[what] == 0 {
			t.Fatalf("%q is lost", what)
		}
	}
}

// recorded reads the events, and checks log against them.
func (c *crasher) recorded(t *rapid.T) []Event {
	var want bytes.Buffer
	var all []Event
	page := RunLogPage{More: true}
	for page.More {
		var err error
		if page, err = Page(c.dir, page.Next, rapid.IntRange(1, 9).Draw(t, "page")); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Events...)
	}
	for i, e := range all {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d has seq %d", i+1, e.Seq)
		}
		want.WriteString(Render(e) + "\n")
	}
	log, err := os.ReadFile(filepath.Join(c.dir, LogFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(log) != want.String() {
		t.Fatalf("log does not say what events says:\n%q\n%q", log, want.String())
	}
	return all
}

func fromParser(all []Event) []string {
	var got []string
	for _, e := range all {
		if e.Src != nil {
			got = append(got, fmt.Sprintf("%d.%d %s:%s", *e.Src, e.N+1, e.Kind, e.Text))
		}
	}
	return got
}

// Whatever dies when, and whatever is cut where: after the output was fed
// again, each event of the agent is there once, in order, and log is the
// rendering of events.
func TestEachEventOnceWhateverDies(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "run")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c := &crasher{dir: dir, out: drawOutput(t)}
		c.open(t)
		defer func() { kill(c.rec) }()
		t.Repeat(map[string]func(*rapid.T){
			"": c.Check, "feed": c.Feed, "feed on": c.Feed, "note": c.Note, "turn": c.Turn,
			"save": c.Save, "kill": c.Kill, "power": c.PowerCut,
		})
		c.fed = c.out.size
		for ; c.next < len(c.out.events); c.next++ {
			c.rec.Parsed(c.out.events[c.next].end, c.out.events[c.next].e)
		}
		c.rec.Record(Event{Kind: agent.RunEnded, Text: "exit 0"}, Event{Kind: agent.RunEnded, Text: "exit 0"})
		c.Check(t)
		all := c.recorded(t)
		if got, want := fromParser(all), c.out.lines(); len(got) != len(want) {
			t.Fatalf("%d events of the agent are recorded at the end, and there are %d", len(got), len(want))
		}
		if all[len(all)-1].Kind != agent.RunEnded {
			t.Fatal("the end is not at the end")
		}
	})
}
