package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRepliesWaitInOrderUntilTaken(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	if r := s.Replies(); r != nil {
		t.Fatalf("a new screen has replies: %q", r)
	}
	mustWrite(t, s, []byte("\x1b]7501;?\x1b\\ab\x1b[6n"))
	mustWrite(t, s, []byte("c\x1b[6n\x1b[c"))
	select {
	case <-s.ReplyReady():
	case <-time.After(10 * time.Second):
		t.Fatal("ReplyReady was not signalled")
	}
	want := "\x1b]7501;?\x1b\\\x1b[1;3R\x1b[1;4R\x1b[?62;22c"
	if got := string(s.Replies()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r := s.Replies(); r != nil {
		t.Errorf("replies were not taken: %q", r)
	}
}

func TestRepliesAreBoundedAndNeverHalf(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	mustWrite(t, s, bytes.Repeat([]byte("\x1b[c"), 100_000))
	got := s.Replies()
	if len(got) > maxReplies || len(got) < maxReplies-len(primaryAttributes) {
		t.Errorf("%d bytes wait, want about %d", len(got), maxReplies)
	}
	if n := strings.Count(string(got), primaryAttributes); n*len(primaryAttributes) != len(got) {
		t.Errorf("an answer was cut: %d of %d bytes are whole", n*len(primaryAttributes), len(got))
	}
	if d, n := s.State().DroppedReplies, uint64(len(got)/len(primaryAttributes)); d+n != 100_000 {
		t.Errorf("%d answers and %d dropped, want 100000 together", n, d)
	}
	mustWrite(t, s, []byte("\x1b[c"))
	if got := string(s.Replies()); got != primaryAttributes {
		t.Errorf("after the queue was taken: got %q", got)
	}
}

func TestKittyKeysAreAnsweredOnlyWhereTheOwnerSendsThem(t *testing.T) {
	for kitty, want := range map[bool]string{false: "", true: "\x1b[?0u\x1b[?7u\x1b[?5u\x1b[?0u\x1b[?7u"} {
		s := New(Options{Cols: 20, Rows: 6, KittyKeys: kitty})
		mustWrite(t, s, []byte("\x1b[?u\x1b[>7u\x1b[?u\x1b[>1u\x1b[=4;2u\x1b[?u\x1b[<u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u"))
		if got := string(s.Replies()); got != want {
			t.Errorf("kitty %v: got %q, want %q", kitty, got, want)
		}
		if f := s.Modes().KittyKeys; f != 7 {
			t.Errorf("flags are %d, want 7", f)
		}
	}
}

func TestNoAnswerHoldsWhatAProgramCouldHaveTyped(t *testing.T) {
	s := New(Options{Cols: 20, Rows: 6})
	mustWrite(t, s, []byte("\x1b]2;rm -rf /\r\x07\x1b[21t\x1b[20t\x1bP+q;rm\n\x1b\\\x1bP$q;rm\n\x1b\\\x1b]10;rm\x07\x1b]52;c;?\x07\x05\x1b]4;rm;?\x07"))
	if got := string(s.Replies()); strings.ContainsAny(got, "\r\n") || strings.Contains(got, "rm") {
		t.Errorf("got %q", got)
	}
}

func TestProgramStatus(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        Program
	}{
		{"nothing", "", Program{}},
		{"idle", "\x1b]7501;state=idle\x1b\\", Program{State: "idle"}},
		{"bell", "\x1b]7501;state=working\x07", Program{State: "working"}},
		{
			"blocked", "\x1b]7501;state=blocked:kind=permission:app=codex:msg=ZGlhbG9nIG9wZW4=\x1b\\",
			Program{State: "blocked", Kind: "permission", App: "codex", Message: "dialog open"},
		},
		{
			"unpadded text and progress", "\x1b]7501;state=working:msg=ZGlhbG9nIG9wZW4:progress=40:title=YQ:new=1\x1b\\",
			Program{State: "working", Message: "dialog open", Progress: 40, Title: "a"},
		},
		{"latest wins, whole", "\x1b]7501;state=blocked:kind=auth\x1b\\\x1b]7501;state=done\x1b\\", Program{State: "done"}},
		{"clear", "\x1b]7501;state=idle\x1b\\\x1b]7501;state=clear\x1b\\", Program{}},
		{"parts are not the whole", "\x1b]7501;state=idle\x1b\\\x1b]7501;state=error:id=task1\x1b\\", Program{State: "idle"}},
		{"unknown state", "\x1b]7501;state=idle\x1b\\\x1b]7501;state=dreaming\x1b\\", Program{State: "idle"}},
		{"no state", "\x1b]7501;state=idle\x1b\\\x1b]7501;kind=auth\x1b\\", Program{State: "idle"}},
		{"control in text", "\x1b]7501;state=idle:msg=YRtb\x1b\\", Program{}},
		{"newline in text", "\x1b]7501;state=idle:msg=YQpi\x1b\\", Program{}},
		{"no base64", "\x1b]7501;state=idle:msg=**\x1b\\", Program{}},
		{"word with space", "\x1b]7501;state=idle:app=a b\x1b\\", Program{}},
		{"progress over 100", "\x1b]7501;state=working:progress=101\x1b\\", Program{}},
		{"too long", "\x1b]7501;state=idle:x=" + strings.Repeat("a", maxStatus) + "\x1b\\", Program{}},
		{"text too long", "\x1b]7501;state=idle:msg=" + strings.Repeat("YWFh", maxMessage/3+1) + "\x1b\\", Program{}},
		{"cut by CAN", "\x1b]7501;state=idle\x18", Program{}},
		{"survives a reset", "\x1b]7501;state=idle\x1b\\\x1bc", Program{State: "idle"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{Cols: 20, Rows: 6})
			mustWrite(t, s, []byte(c.input))
			if got := s.Program(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if strings.TrimSpace(s.Text()) != "" {
				t.Errorf("the screen shows %q", s.Text())
			}
		})
	}
	p := Program{State: "blocked", Kind: "permission", Message: "run ls"}
	if got := p.String(); got != "blocked permission run ls" {
		t.Errorf("String: got %q", got)
	}
}

func FuzzProgram(f *testing.F) {
	f.Add([]byte("7501;state=blocked:kind=permission:app=codex:msg=ZGlhbG9n"))
	f.Add([]byte("7501;state=idle:msg=YRtb:progress=100"))
	f.Fuzz(func(t *testing.T, osc []byte) {
		p := Program{State: "idle"}
		p.update(osc)
		if s := p.String(); clean(s, len(s)) != s {
			t.Errorf("unprintable: %q", s)
		}
		if len(p.Message) > maxMessage || len(p.App) > maxWord || p.Progress > 100 || p.Progress < 0 {
			t.Errorf("past a limit: %+v", p)
		}
	})
}
