package fs

import (
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

const shopCtl = "sessions/shop/ctl"

func TestLinesThatTookEffectAreCounted(t *testing.T) {
	for _, test := range []struct {
		text  string
		used  int // of the first write
		label string
		fails bool // the first write
	}{
		{"label a\nlabel b\n", 16, "b\n", false},
		{"label a\nlabel b", 15, "b\n", false},
		{"label a\r\n\n# b\n", 14, "a\n", false},
		{"label a\nbogus\nlabel b\n", 8, "a\n", false},
		{"label a\n# b\nbogus", 12, "a\n", false},
		{"# a\nbogus\nlabel b\n", 0, "", true},
		{"bogus\nlabel b\n", 0, "", true},
		{"label a\nlabel " + strings.Repeat("x", maxLine) + "\n", 8, "a\n", false},
		{"#" + strings.Repeat("x", maxLine) + "\nlabel b", 0, "", true},
		{"\n\n", 2, "", false},
	} {
		c, _ := newShop(t)
		h := must(c.open(shopCtl, Mode{Write: true}))
		n, err := h.Write(c.ctx, []byte(test.text))
		if n != test.used || (err != nil) != test.fails {
			t.Errorf("%.30q: wrote %d, %v; want %d", test.text, n, err, test.used)
		}
		if got := c.cat("sessions/shop/label"); got != test.label {
			t.Errorf("%.30q: label %q", test.text, got)
		}
	}
}

func TestALineThatComesAgainIsRecordedOnce(t *testing.T) {
	c, _ := newShop(t)
	h := must(c.open(shopCtl, Mode{Write: true}))
	if err := writeAll(c.ctx, h, "label a\nbogus\n"); err == nil {
		t.Fatal("no error")
	}
	if got := c.cat("errors"); strings.Count(got, "\n") != 1 {
		t.Errorf("errors:\n%s", got)
	}
	// The same mistake, made anew, is told anew.
	if err := writeAll(c.ctx, h, "bogus\n"); err == nil {
		t.Fatal("no error")
	}
	if got := c.cat("errors"); strings.Count(got, "\n") != 2 {
		t.Errorf("errors:\n%s", got)
	}
}

// What a command file shows does nothing when it is written back, refused or
// not.
func TestCopyingACommandFileOntoItselfDoesNothing(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("fix it")))
	for _, name := range []string{"ctl", "sessions/new", shopCtl, "sessions/shop/agent", "sessions/shop/jobs/job-1/ctl"} {
		for _, first := range []string{"", "bogus\n"} {
			if first != "" {
				isKind(t, c.write(name, first), fault.Invalid, "")
			}
			_, before := f.LastChange()
			if err := c.write(name, c.cat(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// An attribute is set to what it is.
			if _, after := f.LastChange(); after != before && name != "sessions/shop/agent" {
				t.Errorf("%s: something changed", name)
			}
		}
	}
}

func TestReadingAfterACommandSaysHowItWent(t *testing.T) {
	c, _ := newShop(t)
	h := must(c.open(shopCtl, Mode{Read: true, Write: true}))
	off := int64(must(h.Write(c.ctx, []byte("label x\n"))))
	if got := must(readAll(c.ctx, h, off)); got != "# last: label: ok\n" {
		t.Errorf("read %q", got)
	}
	_, err := h.Write(c.ctx, []byte("nonsense\n"))
	isKind(t, err, fault.Invalid, "nonsense")
	if got := must(readAll(c.ctx, h, 100)); got != "# last: ctl: refused: unknown verb nonsense; this file knows: close, label, workspace\n" {
		t.Errorf("read %q", got)
	}
	if got := must(readAll(c.ctx, h, 0)); got != c.cat(shopCtl) {
		t.Errorf("from the start: %q", got)
	}
}

func TestCommandsOfWhatIsGone(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("fix it")))
	const name = "sessions/shop/jobs/job-1/ctl"
	h := must(c.open(name, Mode{Read: true, Write: true}))
	f.end("shop", 1, ledger.Completed, "")
	if err := writeAll(c.ctx, h, "dismiss\n"); err != nil {
		t.Fatal(err)
	}
	if got := must(readAll(c.ctx, h, 8)); got != "# last: dismiss: ok\n" {
		t.Errorf("read %q", got)
	}
	isKind(t, writeAll(c.ctx, h, "cancel\n"), fault.Gone, "no longer there")
	if _, err := readAll(c.ctx, h, 0); err != nil {
		t.Errorf("what was open is not readable: %v", err)
	}
	_, err := c.open(name, Mode{Read: true})
	isKind(t, err, fault.NotFound, "job-1")
}

func TestASessionThatIsClosedUnderAnOpenFile(t *testing.T) {
	c, f := newShop(t)
	must(f.Start(c.ctx, "shop", draftOf("keep")))
	h := must(c.open(shopCtl, Mode{Write: true}))
	c.put(shopCtl, "close")
	for _, line := range []string{"label x\n", "bogus\n"} {
		isKind(t, writeAll(c.ctx, h, line), fault.Closed, "sessions/new")
	}
	if err := writeAll(c.ctx, h, "# nothing\n"); err != nil {
		t.Error(err)
	}
}

func TestModesAreCheckedAgain(t *testing.T) {
	c, _ := newShop(t)
	_, err := c.open("version", Mode{Read: true, Write: true})
	isKind(t, err, fault.Denied, "read-only")
	if got := c.cat("errors"); !strings.Contains(got, " 4242 /version /version is read-only") {
		t.Errorf("errors: %s", got)
	}
	h := must(c.open("version", Mode{Read: true}))
	_, err = h.Write(c.ctx, []byte("x"))
	isKind(t, err, fault.Denied, "reading only")
	h = must(c.open(shopCtl, Mode{Write: true}))
	_, err = h.Read(c.ctx, make([]byte, 1), 0)
	isKind(t, err, fault.Denied, "writing only")
	h = must(c.open(shopCtl, Mode{Read: true}))
	_, err = h.Write(c.ctx, []byte("label x"))
	isKind(t, err, fault.Denied, "reading only")
}

func TestErrorsKeepsTheLastHundred(t *testing.T) {
	c, _ := newShop(t)
	for range refusalsKept {
		isKind(t, c.mkdir("sessions/A"), fault.Invalid, "")
	}
	isKind(t, c.mkdir("sessions/last one\x1b[2J\n"), fault.Invalid, "")
	got := c.cat("errors")
	if strings.Count(got, "\n") != refusalsKept || !strings.HasSuffix(got, "begin with a letter or digit\n") || !strings.Contains(got, ` 4242 "/sessions/last one\x1b[2J\n" `) {
		t.Errorf("errors:\n%s", got)
	}
	if strings.Contains(got, "\x1b") {
		t.Error("a control character got through")
	}
	if a := c.attr("errors"); a.Size != int64(len(got)) || !a.Mtime.After(epoch) {
		t.Errorf("%+v of %d bytes", a, len(got))
	}
}

func TestTheDaemonsCommands(t *testing.T) {
	f := newFake(t.TempDir())
	var done []string
	tree := f.tree(Options{
		Shutdown: func() { done = append(done, "shutdown") },
		Maintain: func() error {
			done = append(done, "maintain")
			return fault.New(fault.NoSpace, "the disk is full")
		},
	})
	c := client{TB: t, tree: tree, ctx: t.Context()}
	c.put("ctl", "shutdown")
	isKind(t, c.write("ctl", "maintain"), fault.NoSpace, "")
	if got := strings.Join(done, " "); got != "shutdown maintain" {
		t.Errorf("did %s", got)
	}
	if got := c.cat("ctl"); !strings.HasSuffix(got, "# last: maintain: refused: the disk is full\n") {
		t.Errorf("ctl: %s", got)
	}
}

// The memory of outcomes is bounded, and forgets the oldest.
func TestOutcomesAreBounded(t *testing.T) {
	var o outcomes
	for i := range uint64(outcomesKept + 10) {
		o.set(i, outcome{line: "x"})
		o.set(i, outcome{line: "y"})
	}
	if _, ok := o.get(9); ok || len(o.last) != outcomesKept || len(o.order) != outcomesKept {
		t.Errorf("%d outcomes, %d in order", len(o.last), len(o.order))
	}
	if last, ok := o.get(10); !ok || last.line != "y" {
		t.Error("too many were forgotten")
	}
}

func TestReasonsSayThingsOnce(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fault.New(fault.Done, "refused: shop/job-3 already completed"), "shop/job-3 already completed"},
		{&fault.Error{Kind: fault.Done, Op: "cancel", Path: "shop/job-3", Msg: "already completed"}, "shop/job-3: already completed"},
		{&fault.Error{Kind: fault.Done, Op: "stop", Msg: "two\nlines\x1b"}, "stop: two lines"},
	} {
		if got := reason("cancel", test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
