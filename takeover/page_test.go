package takeover

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

func TestPagesHaveTheNamesThatClientsKnow(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{Size: Size{20, 5}, Subject: Subject{Session: "shop", Conversation: "codex-1", Agent: "codex", Run: "codex-3f9a2c"}})
	write(t, slave, "\x1b[?1h\x1b[?2004h\x1b[1;31mred\x1b[0m!")
	shows(t, term, "red!")
	b, err := json.Marshal(term.Page(term.State().Generation))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"session":"shop","conversation":"codex-1","agent":"codex","run":"codex-3f9a2c","generation":` + decimal(int(term.State().Generation)) +
		`,"cols":20,"rows":5,"lines":[],"full":false,"cursor":[0,4],"application_cursor":true,"bracketed_paste":true,"ended":false}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	page := term.Page(0)
	if b, err = json.Marshal(page.Lines[0]); err != nil {
		t.Fatal(err)
	}
	if want := `{"row":0,"spans":[{"text":"red","fg":{"Index":1},"bold":true,"italic":false,"underline":false,"inverse":false},{"text":"!","bold":false,"italic":false,"underline":false,"inverse":false}]}`; string(b) != want || !page.Full {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	term.End(Ending{Exit: "signal HUP", Note: "ended by the owner"})
	b, err = json.Marshal(term.Page(term.State().Generation))
	if err != nil || !strings.HasSuffix(string(b), `"ended":true,"exit":"signal HUP","note":"ended by the owner"}`) {
		t.Errorf("the last page is %s, %v", b, err)
	}
}

// drawn is a reader that draws the pages it gets, and nothing else.
type drawn struct {
	gen  uint64
	rows []string
}

func (d *drawn) draw(t testing.TB, p Page) {
	t.Helper()
	if p.Full {
		d.rows = make([]string, p.Rows)
	}
	for _, l := range p.Lines {
		var b strings.Builder
		for _, s := range l.Spans {
			b.WriteString(s.Text)
		}
		if l.Row >= len(d.rows) {
			t.Fatalf("row %d of %d", l.Row, len(d.rows))
		}
		d.rows[l.Row] = strings.TrimRight(b.String(), " ")
	}
	d.gen = p.Generation
}

// A reader that comes rarely is given one page of all it missed, and one that
// follows sees the same in the end.
func TestReadersDrawWhatIsThere(t *testing.T) {
	t.Parallel()
	p := sh(t, "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '\\033[%d;%dHrow %d\\033[K' $((i%24+1)) $((i%40+1)) $i; done; printf '\\033[1;1Hfinished'; read x")
	var fast, slow drawn
	pages := 0
	for !slices.ContainsFunc(fast.rows, func(r string) bool { return strings.HasPrefix(r, "finished") }) {
		page, err := p.Wait(t.Context(), fast.gen)
		if err != nil {
			t.Fatal(err)
		}
		if page.Generation == fast.gen {
			t.Fatal("a page that changes nothing")
		}
		if first := pages == 0; page.Full != first {
			t.Errorf("page %d is full: %v", pages, page.Full)
		}
		if fast.draw(t, page); pages == 0 {
			slow.draw(t, page)
		}
		pages++
	}
	slow.draw(t, p.Page(slow.gen))
	want := strings.Split(strings.TrimSuffix(p.Text(), "\n"), "\n")
	if !slices.Equal(fast.rows, want) || !slices.Equal(slow.rows, want) {
		t.Errorf("after %d pages one reader has\n%s\nand one\n%s\nof\n%s", pages, strings.Join(fast.rows, "\n"), strings.Join(slow.rows, "\n"), p.Text())
	}
	p.key("enter")
	p.ends()
	waiting := make(chan Page)
	go func() {
		page, _ := p.Wait(context.Background(), p.State().Generation)
		for !page.Ended { // the Enter key changed something first
			page, _ = p.Wait(context.Background(), page.Generation)
		}
		waiting <- page
	}()
	p.End(Ending{Exit: "exit 0"})
	if page := <-waiting; page.Exit != "exit 0" {
		t.Errorf("the last page is %+v", page)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	term, _ := open(t, Options{})
	gen := term.State().Generation
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := term.Wait(ctx, gen); !fault.Is(err, fault.Timeout) {
		t.Errorf("in its time: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := term.Wait(ctx, gen); !fault.Is(err, fault.Interrupted) {
		t.Errorf("interrupted: %v", err)
	}
	if page, err := term.Wait(ctx, 0); err != nil || !page.Full || page.Cols != DefaultSize.Cols {
		t.Errorf("the first page waited: %v", err)
	}
}

// A program that begins an update and never ends it is seen all the same.
func TestUpdateHidesOnlyForASecond(t *testing.T) {
	t.Parallel()
	term, slave := rawOpen(t, Options{})
	began := time.Now()
	write(t, slave, "before\x1b[?2026h\x1b[2J\x1b[Hhalf drawn")
	shows(t, term, "before")
	shows(t, term, "half drawn")
	if took := time.Since(began); took < screen.HoldLimit {
		t.Errorf("it was seen after %v", took)
	}
	write(t, slave, "\x1b[?2026l\x1b[?2026hnever ended")
	slave.Close()
	closes(t, term.Gone(), "the program is gone")
	term.End(Ending{})
	if !strings.Contains(term.Text(), "never ended") {
		t.Errorf("the final screen is\n%s", term.Text())
	}
}

// The questions that agents' terminals ask are answered through the terminal,
// all and in their order.
func TestRecordedQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(shared(t, "fixtures"), "*", "tui-*.raw"))
	if err != nil || len(files) == 0 {
		t.Skipf("skipped: shared/fixtures has no recordings (%v)", err)
	}
	for _, file := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
		t.Run(name, func(t *testing.T) {
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			model := screen.New(screen.Options{Cols: 120, Rows: 40})
			_, _ = model.Write(recorded)
			want := string(model.Replies())
			term, slave := rawOpen(t, Options{})
			go func() { _, _ = slave.Write(recorded) }()
			if got := read(t, slave, len(want)); got != want {
				t.Errorf("the program was answered %q, not %q", got, want)
			}
			closesWith(t, term, model.Text())
		})
	}
}

// closesWith waits until the terminal shows the same as the model.
func closesWith(t *testing.T, term *Terminal, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for gen := uint64(0); term.Text() != want; {
		page, err := term.Wait(ctx, gen)
		if err != nil {
			t.Fatalf("%v; the screen is\n%s", err, term.Text())
		}
		gen = page.Generation
	}
}
