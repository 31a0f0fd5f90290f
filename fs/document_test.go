package fs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

const start = "sessions/shop/start"

// newShop is a tree with one live session.
func newShop(t testing.TB) (client, *fake) {
	c, f := newClient(t)
	must(f.RegisterSession("shop", "/src", ""))
	return c, f
}

// draft is what a document is by the rules, beside the one that is tested.
type draft struct {
	h       Handle
	buf     string
	dead    bool // a part was refused or the writer was killed
	refused bool // by the last close
	whole   bool // the opener closed it, and nobody wrote since
}

// model says what happens to documents, and which jobs there must be.
type model struct {
	full bool
	sent []string
}

func (m *model) sends(d *draft) (ok bool) {
	text := d.buf
	d.buf, d.whole = "", false
	if m.full || empty(text) {
		return false
	}
	m.sent = append(m.sent, text)
	return true
}

func (m *model) write(d *draft, text string) (ok bool) {
	if d.dead {
		return false
	}
	d.refused, d.whole = false, false
	if d.buf += text; strings.Contains(d.buf, "REFUSE") {
		d.dead, d.buf = true, ""
		return false
	}
	return true
}

func (m *model) flush(d *draft, by Closer) (ok bool) {
	switch {
	case d.buf == "":
		return true
	case by.Killed && (by.Opener || !d.whole):
		d.dead, d.buf = true, ""
		return true
	case !by.Opener:
		return true
	case d.refused:
		return false
	}
	d.refused = m.full || empty(d.buf)
	if d.whole = !d.refused; d.refused {
		return false
	}
	return by.Last == nil || m.sends(d)
}

// TestDocumentsBecomeJobsExactlyOnce writes, closes, kills, reads and releases
// two documents in any order.
func TestDocumentsBecomeJobsExactlyOnce(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		f := newFake(dir)
		must(f.RegisterSession("shop", "/src", ""))
		tree, ctx := f.tree(Options{}), t.Context()
		m := &model{}
		open := func() *draft {
			n := must(lookup(ctx, tree, start))
			return &draft{h: must(n.(File).Open(ctx, Mode{Read: true, Write: true}))}
		}
		docs := []*draft{open(), open()}
		agree := func(what string, ok bool, err error) {
			if ok != (err == nil) {
				r.Fatalf("%s: %v, want success %v", what, err, ok)
			}
		}
		pick := rapid.IntRange(0, len(docs)-1)
		texts := rapid.SampledFrom([]string{"fix it\n", " ", "and test", "\n", "REFUSE", "#!scv effort=high\n", "{ ls; }"})
		last := func() bool { return true }
		closers := rapid.SampledFrom([]Closer{{Opener: true}, {}, {Killed: true}, {Opener: true, Killed: true}, {Opener: true, Last: last}})
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				d, text := docs[pick.Draw(r, "doc")], texts.Draw(r, "text")
				_, err := d.h.Write(ctx, []byte(text))
				agree("write", m.write(d, text), err)
			},
			"flush": func(r *rapid.T) {
				d, by := docs[pick.Draw(r, "doc")], closers.Draw(r, "by")
				agree("flush", m.flush(d, by), d.h.Flush(ctx, by))
			},
			"read": func(r *rapid.T) {
				d, had := docs[pick.Draw(r, "doc")], false
				had, d.refused = d.buf != "", false
				_, err := d.h.Read(ctx, make([]byte, 100), int64(rapid.IntRange(0, 20).Draw(r, "off")))
				agree("read", !had || m.sends(d), err)
			},
			"release": func(r *rapid.T) {
				i := pick.Draw(r, "doc")
				docs[i].h.Release(ctx)
				if !docs[i].refused {
					m.sends(docs[i])
				}
				docs[i] = open()
			},
			"limit": func(*rapid.T) {
				m.full = !m.full
				f.set(func(f *fake) { f.full = m.full })
			},
			"": func(r *rapid.T) {
				// A #!scv line is no part of the prompt that an agent gets.
				want := slices.Clone(m.sent)
				for i := range want {
					want[i] = prompt(want[i])
				}
				if got := f.started(); !slices.Equal(got, want) {
					r.Fatalf("jobs %q, want %q", got, want)
				}
			},
		})
	})
}

func empty(text string) bool { return strings.TrimSpace(prompt(text)) == "" }

// prompt is what is left of a document without its #!scv line.
func prompt(text string) string {
	if strings.HasPrefix(text, "#!scv ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

func TestADocumentTakesAnyNumberOfWrites(t *testing.T) {
	c, f := newShop(t)
	long := strings.Repeat("0123456789abcde\n", 1<<16)
	h := must(c.open(start, Mode{Write: true}))
	for piece := range slices.Chunk([]byte(long), 131072) {
		must(h.Write(c.ctx, piece))
	}
	if err := h.Flush(c.ctx, Closer{}); err != nil {
		t.Fatal(err)
	}
	if n := len(f.started()); n != 0 {
		t.Fatalf("%d jobs before the release", n)
	}
	h.Release(c.ctx)
	h.Release(c.ctx)
	if got := f.started(); len(got) != 1 || got[0] != long {
		t.Errorf("%d jobs", len(got))
	}
	if got := c.cat("sessions/shop/jobs/job-1/prompt"); got != long {
		t.Error("the prompt is another one")
	}
}

// A writer that gives up waiting must not leave it open whether there is a job.
func TestSendingIsNotInterrupted(t *testing.T) {
	c, f := newShop(t)
	ctx, cancel := context.WithCancel(c.ctx)
	h := must(c.open(start, Mode{Read: true, Write: true}))
	must(h.Write(c.ctx, []byte("one")))
	cancel()
	if n, err := h.Read(ctx, make([]byte, 100), 3); n == 0 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	must(h.Write(c.ctx, []byte("two")))
	h.Release(ctx)
	if got := f.started(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("jobs: %q", got)
	}
}

func TestADocumentIsRefusedAboveItsLimit(t *testing.T) {
	c, f := newShop(t)
	f.limit = 10
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("0123456789")))
	for range 3 {
		_, err := h.Write(c.ctx, []byte("x"))
		isKind(t, err, fault.TooLarge, "10 bytes")
	}
	if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
		t.Error("a write that was refused is refused again by the close:", err)
	}
	h.Release(c.ctx)
	if n := len(f.started()); n != 0 {
		t.Errorf("%d jobs", n)
	}
	if n := strings.Count(c.cat("errors"), "\n"); n != 1 {
		t.Errorf("%d lines in errors:\n%s", n, c.cat("errors"))
	}
}

func TestAKilledWriterSendsNothing(t *testing.T) {
	c, f := newShop(t)
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("half a prom")))
	if err := h.Flush(c.ctx, Closer{Opener: true, Killed: true}); err != nil {
		t.Fatal(err)
	}
	// The rest of a group does not send the other half.
	_, err := h.Write(c.ctx, []byte("pt\n"))
	isKind(t, err, fault.Gone, "was killed")
	h.Release(c.ctx)
	if n := len(f.started()); n != 0 {
		t.Errorf("%d jobs", n)
	}
	if got := c.cat("errors"); !strings.Contains(got, "/"+start+" start: its writer was killed, so nothing of its 11 bytes was sent") {
		t.Errorf("errors: %s", got)
	}
	if got := c.cat(start); !strings.HasPrefix(got, "# last: start: refused: its writer was killed") {
		t.Errorf("start: %s", got)
	}
}

func TestWhatFailsAtTheReleaseIsRecorded(t *testing.T) {
	c, f := newShop(t)
	f.failing = true
	if err := c.write(start, "fix it"); err != nil {
		t.Fatal("the close knew:", err)
	}
	if got := c.cat(start); got != "# last: start: refused: the disk is full\n" {
		t.Errorf("start: %s", got)
	}
	if got := c.cat("errors"); !strings.HasSuffix(got, " 4242 /"+start+" start: the disk is full\n") {
		t.Errorf("errors: %s", got)
	}
}

func TestARefusedCloseIsMendedByAnotherWrite(t *testing.T) {
	c, f := newShop(t)
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("#!scv effort=high\n")))
	for range 2 {
		isKind(t, h.Flush(c.ctx, Closer{Opener: true}), fault.Invalid, "empty")
	}
	must(h.Write(c.ctx, []byte("fix it")))
	if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
		t.Fatal(err)
	}
	h.Release(c.ctx)
	if got := f.started(); !slices.Equal(got, []string{"fix it"}) {
		t.Errorf("jobs: %q", got)
	}
}

func TestReadingAfterWritingSendsAtOnce(t *testing.T) {
	c, f := newShop(t)
	h := must(c.open(start, Mode{Read: true, Write: true}))
	defer h.Release(c.ctx)
	off := int64(0)
	for i, want := range []string{"shop/job-1\n", "shop/job-2\n"} {
		off += int64(must(h.Write(c.ctx, []byte("fix it\n"))))
		got := must(readAll(c.ctx, h, off))
		if off += int64(len(got)); got != want || len(f.started()) != i+1 {
			t.Errorf("read %q of %d jobs, want %q", got, len(f.started()), want)
		}
	}
	// Python seeks back to read.
	if got := must(readAll(c.ctx, h, 0)); got != "shop/job-2\n" {
		t.Errorf("from the start: %q", got)
	}
	c.put(start, "another's")
	if got := must(readAll(c.ctx, h, 0)); got != "shop/job-2\n" {
		t.Errorf("reads another's job: %q", got)
	}
	if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
		t.Error(err)
	}
}

func TestReadingAfterARefusalSaysWhy(t *testing.T) {
	c, f := newShop(t)
	h := must(c.open(start, Mode{Read: true, Write: true}))
	defer h.Release(c.ctx)
	_, err := h.Write(c.ctx, []byte("REFUSE"))
	isKind(t, err, fault.Invalid, "REFUSE")
	if got := must(readAll(c.ctx, h, 6)); got != "# last: start: refused: the document says REFUSE\n" {
		t.Errorf("read %q", got)
	}

	f.full = true
	h2 := must(c.open(start, Mode{Read: true, Write: true}))
	defer h2.Release(c.ctx)
	must(h2.Write(c.ctx, []byte("fix it")))
	_, err = h2.Read(c.ctx, make([]byte, 100), 6)
	isKind(t, err, fault.Limit, "limits.jobs")
	if got := must(readAll(c.ctx, h2, 6)); got != "# last: start: refused: as many jobs as limits.jobs allows\n" {
		t.Errorf("read %q", got)
	}
	if n := len(f.started()); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

func TestAFreshDescriptorReadsTheLastOutcome(t *testing.T) {
	c, _ := newShop(t)
	h := must(c.open(start, Mode{Read: true}))
	if got := must(readAll(c.ctx, h, 0)); !strings.HasPrefix(got, "# write a prompt") {
		t.Errorf("at first: %q", got)
	}
	c.put(start, "fix it")
	if got := must(h.Read(c.ctx, make([]byte, 9), 3)); got != 9 {
		t.Error("a read that goes on changed its version")
	}
	if got := must(readAll(c.ctx, h, 0)); got != "shop/job-1\n" {
		t.Errorf("later: %q", got)
	}
	_, err := h.Write(c.ctx, []byte("x"))
	isKind(t, err, fault.Denied, "reading only")
}

func TestAClosedSessionTakesNoDocument(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("keep")))
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("fix")))
	c.put("sessions/shop/ctl", "close")
	_, err := h.Write(c.ctx, []byte(" it"))
	isKind(t, err, fault.Closed, "session shop is closed")
	h.Release(c.ctx)
	_, err = c.open(start, Mode{Write: true})
	isKind(t, err, fault.Closed, "sessions/new")
	if got := f.started(); len(got) != 1 {
		t.Errorf("jobs: %q", got)
	}
}

// A session's name can be given again; what was open for the one before is not
// for the new one.
func TestADocumentStaysWithItsSession(t *testing.T) {
	c, f := newShop(t)
	h := must(c.open(start, Mode{Write: true}))
	must(h.Write(c.ctx, []byte("fix")))
	f.forget("shop")
	must(f.RegisterSession("shop", "/other", ""))
	_, err := h.Write(c.ctx, []byte(" it"))
	isKind(t, err, fault.Gone, "no longer there")
	h.Release(c.ctx)
	if got := f.started(); len(got) != 0 {
		t.Errorf("jobs: %q", got)
	}
}

func TestConversationsTakeDocuments(t *testing.T) {
	c, f := newShop(t)
	c.put(start, "fix it")
	f.converse("shop", 1, "sh-1")
	c.put("sessions/shop/conversations/sh-1/queue", "and test it")
	if got := f.started(); !slices.Equal(got, []string{"fix it", "and test it"}) {
		t.Errorf("jobs: %q", got)
	}
	if got := c.cat("sessions/shop/conversations/sh-1/queue"); got != "shop/job-2\n" {
		t.Errorf("queue: %q", got)
	}
	isKind(t, c.write("sessions/shop/conversations/sh-1/steer", "x"), fault.Unsupported, "running turn")
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte("fix it\n"), 3)
	f.Add([]byte("#!scv agent=codex\nfix it"), 1)
	f.Add([]byte(`{"agent":"sh","prompt":"ls"}`), 7)
	f.Add([]byte("a\x00b"), 2)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		c, bench := newShop(t)
		h := must(c.open(start, Mode{Write: true}))
		cut = min(max(cut, 0), len(text))
		refused := false
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			n, err := h.Write(c.ctx, part)
			refused = refused || err != nil
			if err == nil && n != len(part) {
				t.Fatalf("took %d of %d bytes", n, len(part))
			}
		}
		refused = h.Flush(c.ctx, Closer{Opener: true}) != nil || refused
		h.Release(c.ctx)
		want := 1
		if refused || len(text) == 0 {
			want = 0
		}
		if got := bench.started(); len(got) != want || want == 1 && !strings.Contains(string(text), "{") && prompt(got[0]) != prompt(string(text)) {
			t.Fatalf("refused %v, jobs %q of %q", refused, got, text)
		}
	})
}
