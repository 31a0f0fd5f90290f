package fusefs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

func TestAPanicIsOneFailedRequest(t *testing.T) {
	boom := func() (int, error) { panic("boom") }
	commands := map[string]string{
		"attr": `cat $M/bomb`, "open": `cat $M/bomb`, "read": `cat $M/bomb`,
		"write": `echo x | tee $M/bomb`, "flush": `echo x | tee $M/bomb`,
	}
	for where, command := range commands {
		t.Run(where, func(t *testing.T) {
			var panics atomic.Int32
			var stack atomic.Value
			opt := Options{OnPanic: func(value any, trace []byte) {
				stack.Store(fmt.Sprint(value, "\n", string(trace)))
				panics.Add(1)
			}}
			root := newFolder().add("f", newText("fine\n"))
			root.hide("bomb", bomb{newIno(), where, boom})
			s := mountTree(t, root, opt)
			for range 3 {
				sh(t, s, command).wantRefused(t, "Input/output error")
				sh(t, s, `cat $M/f`).want(t, "fine\n")
			}
			if panics.Load() < 3 {
				t.Errorf("%d panics were reported", panics.Load())
			}
			if trace, _ := stack.Load().(string); !strings.HasPrefix(trace, "boom") || !strings.Contains(trace, "broken_test.go") {
				t.Errorf("the report does not show where it was: %s", trace)
			}
		})
	}
}

func TestAPanicAtTheLastCloseIsReported(t *testing.T) {
	out := &lines{}
	root := newFolder().add("f", newText("fine\n"))
	root.hide("bomb", bomb{newIno(), "release", func() (int, error) { panic("late boom") }})
	s := mountTree(t, root, Options{Log: slog.New(slog.NewTextHandler(out, nil))})
	sh(t, s, `cat $M/bomb; cat $M/f`).want(t, "fine\n")
	eventually(t, "the report", func() bool { return strings.Contains(out.String(), "late boom") })
	sh(t, s, `cat $M/f`).want(t, "fine\n")
}

// What a tree must never answer reaches the client as EIO, and the log as
// what it is.
func TestATreeThatBreaksItsContractHarmsNobody(t *testing.T) {
	answer := func(n int, err error) func() (int, error) { return func() (int, error) { return n, err } }
	for _, c := range []struct {
		name, where, command string
		action               func() (int, error)
	}{
		{"read too long", "read", `cat $M/bomb`, answer(math.MaxInt32, nil)},
		{"read negative", "read", `cat $M/bomb`, answer(-1, nil)},
		{"write too long", "write", `echo x | tee $M/bomb`, answer(1000, nil)},
		{"write negative", "write", `echo x | tee $M/bomb`, answer(-1, nil)},
		{"write of nothing", "write", `echo x | tee $M/bomb`, answer(0, nil)},
		{"no handle", "open", `cat $M/bomb`, answer(1, nil)},
		{"interrupted without an interrupt", "read", `cat $M/bomb`, answer(0, fault.New(fault.Interrupted, "why?"))},
		{"interrupted open", "open", `cat $M/bomb`, answer(0, fault.New(fault.Interrupted, "why?"))},
		{"unknown kind", "read", `cat $M/bomb`, answer(0, fault.New(fault.Kind(200), "what?"))},
		{"no kind", "attr", `cat $M/bomb`, answer(0, errors.New("plain"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := &lines{}
			root := newFolder().add("f", newText("fine\n")).hide("bomb", bomb{newIno(), c.where, c.action})
			s := mountTree(t, root, Options{Log: slog.New(slog.NewTextHandler(out, nil))})
			sh(t, s, c.command).wantRefused(t, "Input/output error")
			sh(t, s, `cat $M/f`).want(t, "fine\n")
			if !strings.Contains(out.String(), "level=ERROR") {
				t.Errorf("the log says only %q", out)
			}
		})
	}
}

// misfit claims a type or number that it cannot have.
type misfit struct{ attr fs.Attr }

func (m misfit) Attr(context.Context) (fs.Attr, error) { return m.attr, nil }

func TestAMisfitNodeIsRefused(t *testing.T) {
	out := &lines{}
	root := newFolder().add("f", newText("fine\n"))
	bad := map[string]fs.Attr{
		"dir": {Ino: newIno(), Type: fs.Directory}, "file": {Ino: newIno(), Type: fs.Regular},
		"link": {Ino: newIno(), Type: fs.Symlink}, "odd": {Ino: newIno(), Type: 9},
		"zero": {Ino: 0}, "one": {Ino: 1}, "last": {Ino: math.MaxUint64},
	}
	for name, attr := range bad {
		root.hide(name, misfit{attr})
	}
	s := mountTree(t, root, Options{Log: slog.New(slog.NewTextHandler(out, nil))})
	for name := range bad {
		sh(t, s, `stat $M/`+name).wantRefused(t, "Input/output error")
	}
	sh(t, s, `cat $M/f`).want(t, "fine\n")
	if got := strings.Count(out.String(), "broke its contract"); got < len(bad) {
		t.Errorf("%d of %d were logged", got, len(bad))
	}
}

func TestALinkWithoutAPathIsRefused(t *testing.T) {
	root := newFolder()
	for name, target := range map[string]string{"empty": "", "long": strings.Repeat("x", 5000), "nul": "a\x00b"} {
		root.hide(name, link{newIno(), target})
	}
	s := mountTree(t, root, Options{Log: slog.New(slog.DiscardHandler)})
	for name := range root.hidden {
		if got := sh(t, s, `readlink $M/`+name); got.code == 0 {
			t.Errorf("%s leads to %q", name, got.stdout)
		}
	}
}

func TestARootThatIsNoneIsNotMounted(t *testing.T) {
	needFUSE(t)
	for name, root := range map[string]fs.Dir{
		"no number": &folder{}, "fails": failing{newFolder()},
	} {
		point := mountPoint(t)
		if s, err := Mount(point, root, Options{}); err == nil {
			t.Errorf("%s: mounted", name)
			s.Unmount()
		}
	}
}

type failing struct{ *folder }

func (failing) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{}, fault.New(fault.Timeout, "nobody answers")
}
