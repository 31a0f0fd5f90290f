package activity

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPagesByPosition(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sh-0a1b2c")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if p, err := Page(dir, 0, 0); err != nil || p.More || p.Ended || p.Next != 0 || p.Events == nil || p.Handle != "sh-0a1b2c" {
		t.Errorf("a run without a log: %+v, %v", p, err)
	}
	r := open(t, dir, Options{})
	for i := range 5 {
		r.Parsed(int64(i+1), text(strings.Repeat("x", i)))
	}
	r.Flush()
	p, err := Page(dir, 0, 3)
	if err != nil || len(p.Events) != 3 || !p.More || p.Ended {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = Page(dir, p.Next, 3); err != nil || len(p.Events) != 2 || p.More || p.Ended || p.Events[1].Text != "xxxx" {
		t.Fatalf("%+v, %v", p, err)
	}
	if q, err := Page(dir, p.Next, 3); err != nil || len(q.Events) != 0 || q.Next != p.Next || q.More {
		t.Errorf("nothing new: %+v, %v", q, err)
	}
	r.Record(Event{Kind: agent.RunEnded, Text: "exit 0"})
	if q, err := Page(dir, 0, 1); err != nil || !q.Ended || !q.More {
		t.Errorf("an ended run's first page: %+v, %v", q, err)
	}
	if q, err := Page(dir, p.Next, 1); err != nil || !q.Ended || q.More || q.Events[0].Kind != agent.RunEnded {
		t.Errorf("an ended run's last page: %+v, %v", q, err)
	}
}

func TestPageRefusesWhereNoEventBegins(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, EventsFile, `{"seq":1,"ts_ms":1,"kind":"text","text":""}`+"\n")
	for _, after := range []int64{-1, 1, 43, 45, 1 << 40} {
		if _, err := Page(dir, after, 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("position %d: %v", after, err)
		}
	}
	if _, err := Page(dir, 44, 1); err != nil {
		t.Error(err)
	}
	if _, err := Page(filepath.Join(dir, "gone"), 0, 1); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := Page(t.TempDir(), 7, 1); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestPageNeitherReturnsNorPassesAnUnfinishedLine(t *testing.T) {
	dir := t.TempDir()
	one, two := `{"seq":1,"ts_ms":1,"kind":"text","text":"a"}`+"\n", `{"seq":2,"ts_ms":1,"kind":"run_ended","text":""}`+"\n"
	for n := range len(two) {
		write(t, dir, EventsFile, one+two[:n])
		if p, err := Page(dir, 0, 9); err != nil || len(p.Events) != 1 || p.More || p.Ended || p.Next != int64(len(one)) {
			t.Fatalf("%d bytes of the second line: %+v, %v", n, p, err)
		}
	}
}

func TestDamageHidesOnlyItself(t *testing.T) {
	dir := t.TempDir()
	good := `{"seq":1,"ts_ms":1,"kind":"text","text":"a"}` + "\n"
	late := `{"seq":4,"ts_ms":1,"kind":"telepathy","text":"b"}` + "\n"
	write(t, dir, EventsFile, good+"{}\n"+strings.Repeat("z", maxLine+9)+"\n"+late+"junk\n{\"seq\":6")
	r := open(t, dir, Options{})
	r.Record(Event{Kind: agent.Note, Text: "on"})
	p, err := Page(dir, 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	want := "text:a\nunknown:unreadable event\nunknown:unreadable event\nunknown:b\nnote:on\n"
	if got := brief(p.Events); got != want || p.Events[4].Seq != 5 {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := read(t, dir, LogFile); got != "a\nunknown: unreadable event\nunknown: unreadable event\ntelepathy: b\nnote: on\n" {
		t.Errorf("log says\n%s", got)
	}
}

func TestAFollowerSeesAllOnceWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, Options{Clock: time.Now})
	const n = 2000
	go func() {
		for i := range n {
			r.Parsed(int64(i), text(strings.Repeat("y", i%50)))
			if i%7 == 0 {
				r.Flush()
			}
		}
		r.Record(Event{Kind: agent.RunEnded})
	}()
	deadline := time.Now().Add(time.Minute)
	var p RunLogPage
	for seq := uint64(0); !p.Ended || p.More; {
		var err error
		if p, err = Page(dir, p.Next, 100); err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Events {
			if seq++; e.Seq != seq {
				t.Fatalf("event %d has seq %d", seq, e.Seq)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d events came", seq)
		}
	}
	if got := recorded(t, dir); len(got) != n+1 {
		t.Errorf("%d events", len(got))
	}
}

// Whatever the files hold, a reader gets on, gives each whole line once, and
// Open makes of them a log whose files agree and that takes events.
func FuzzFiles(f *testing.F) {
	ev := `{"seq":1,"ts_ms":1,"kind":"text","text":"a","src":5}` + "\n"
	f.Add([]byte(ev), []byte("a\n"), []byte(`{"v":1,"offset":3,"mark":{"seq":1,"events":49,"log":2}}`), 1)
	f.Add([]byte(ev+ev+"\x00\x00"), []byte("a\x00\n\n\n"), []byte(`{"v":1,"mark":{"seq":1,"events":-49}}`), 2)
	f.Add([]byte("\n\nnull\n[]\n{"), []byte{}, []byte("{"), 0)
	f.Fuzz(func(t *testing.T, events, log, checkpoint []byte, limit int) {
		dir := t.TempDir()
		write(t, dir, EventsFile, string(events))
		write(t, dir, LogFile, string(log))
		write(t, dir, CheckpointFile, string(checkpoint))
		if got, want := follow(t, dir, limit), bytes.Count(events, []byte("\n")); got != want {
			t.Fatalf("%d events of %d lines", got, want)
		}
		r, err := Open(dir, Options{Clock: fixed})
		if err != nil {
			t.Fatal(err)
		}
		r.Record(Event{Kind: agent.Note, Text: "x"})
		r.ParsedAs(1<<40, Event{Kind: agent.Text, Text: "y"})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(read(t, dir, LogFile), "\n"), follow(t, dir, limit); got != want && r.resume.Mark == (Mark{}) {
			t.Fatalf("%d lines of log, %d events", got, want)
		}
	})
}

func follow(t *testing.T, dir string, limit int) (n int) {
	for p := (RunLogPage{More: true}); p.More; {
		before := p.Next
		var err error
		if p, err = Page(dir, p.Next, limit); err != nil {
			t.Fatal(err)
		}
		if n += len(p.Events); p.More && p.Next <= before {
			t.Fatalf("no way past position %d", before)
		}
	}
	return n
}

func TestCheckpointIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	if _, ok, err := LoadCheckpoint(dir); ok || err != nil {
		t.Errorf("a checkpoint from nowhere: %v", err)
	}
	want := Checkpoint{Offset: 7, Parser: []byte(`{"a":1}`), Fed: Position{3, 1}}
	for range 2 {
		if err := SaveCheckpoint(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := LoadCheckpoint(dir)
	if err != nil || !ok || got.Offset != 7 || string(got.Parser) != `{"a":1}` || got.Fed != want.Fed {
		t.Errorf("%+v, %v", got, err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%d files are left", len(names))
	}
	if err := SaveCheckpoint(filepath.Join(dir, "gone"), want); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := SaveCheckpoint(dir, Checkpoint{Parser: []byte("{")}); err == nil {
		t.Error("a parser's state that is no JSON was saved")
	}
	for _, bad := range []string{"", "{", `{"v":99}`, `{"v":1,"mark":{"seq":1,"events":9}}`} {
		write(t, dir, CheckpointFile, bad)
		if _, ok, err := LoadCheckpoint(dir); ok == (err != nil) {
			t.Errorf("checkpoint %q: %v, %v", bad, ok, err)
		}
		r := open(t, dir, Options{})
		if cp := r.Resume(); cp.Offset != 0 {
			t.Errorf("resumed from %+v", cp)
		}
		if _, err := os.Stat(filepath.Join(dir, CheckpointFile)); !errors.Is(err, os.ErrNotExist) {
			t.Error("a checkpoint of no use is kept")
		}
	}
	write(t, dir, CheckpointFile, "")
	if err := os.Truncate(filepath.Join(dir, CheckpointFile), maxCheckpoint+1); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := LoadCheckpoint(dir); ok || err == nil {
		t.Error("a checkpoint without end was taken")
	}
}
