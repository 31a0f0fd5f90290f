package fault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

func TestEveryKindHasItsOwnWords(t *testing.T) {
	seen := map[string]Kind{}
	for _, k := range Kinds() {
		words := k.String()
		if words == "" || words == "unknown kind" {
			t.Errorf("kind %d has no words", k)
		}
		if other, twice := seen[words]; twice {
			t.Errorf("kinds %d and %d are both %q", other, k, words)
		}
		seen[words] = k
	}
	if got := Kind(200).String(); got != "unknown kind" {
		t.Errorf("Kind(200) is %q", got)
	}
	if len(Kinds()) != int(NoSpace)+1 {
		t.Errorf("Kinds returns %d of %d kinds", len(Kinds()), NoSpace+1)
	}
}

func TestErrorTellsWhatItHas(t *testing.T) {
	cause := errors.New("no such file")
	for _, tt := range []struct {
		name string
		err  *Error
		want string
	}{
		{"only a sentence", &Error{Msg: "the disk is full"}, "the disk is full"},
		{"only a cause", &Error{Err: cause}, "no such file"},
		{"sentence and cause", &Error{Msg: "cannot be read", Err: cause}, "cannot be read: no such file"},
		{"path", &Error{Path: "shop/job-3", Msg: "already completed"}, "shop/job-3: already completed"},
		{"operation", &Error{Op: "cancel", Msg: "already completed"}, "cancel: already completed"},
		{"all", &Error{Op: "cancel", Path: "shop/job-3", Msg: "refused", Err: cause}, "cancel: shop/job-3: refused: no such file"},
		{"a cause that says nothing", &Error{Msg: "refused", Err: errors.New("")}, "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNewKeepsTheCauseAndSaysItOnce(t *testing.T) {
	err := New(NoSpace, "job %d cannot be recorded: %w", 3, io.ErrShortWrite)
	if want := "job 3 cannot be recorded: short write"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, io.ErrShortWrite) {
		t.Error("the cause is lost")
	}
	if errors.Is(err, io.EOF) {
		t.Error("it claims a cause that it does not have")
	}
	if err := New(Busy, "plain"); errors.Unwrap(err) != nil {
		t.Errorf("without %%w there is a cause: %v", errors.Unwrap(err))
	}
	var path *os.PathError
	if err := New(Denied, "%w", &os.PathError{Op: "open", Path: "/x", Err: os.ErrPermission}); !errors.As(err, &path) || path.Path != "/x" {
		t.Error("errors.As does not find the cause")
	}
}

func TestInKeepsTheKind(t *testing.T) {
	if In("cancel", "shop", nil) != nil {
		t.Error("In(nil) is an error")
	}
	err := In("cancel", "shop/job-3", New(Done, "already completed"))
	if KindOf(err) != Done {
		t.Errorf("kind %v, want %v", KindOf(err), Done)
	}
	if want := "cancel: shop/job-3: already completed"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if err := In("", "/state", io.EOF); KindOf(err) != Internal || !errors.Is(err, io.EOF) {
		t.Errorf("a foreign error became %v (%v)", KindOf(err), err)
	}
}

func TestKindOfTakesTheOutermost(t *testing.T) {
	inner := New(NotFound, "gone")
	outer := &Error{Kind: Denied, Err: inner}
	for _, tt := range []struct {
		err  error
		want Kind
	}{
		{inner, NotFound},
		{outer, Denied},
		{fmt.Errorf("wrapped: %w", inner), NotFound},
		{io.EOF, Internal},
		{New(Busy, "because %w", inner), Busy},
		{errors.Join(io.EOF, inner), NotFound},
	} {
		if got := KindOf(tt.err); got != tt.want {
			t.Errorf("KindOf(%v) is %v, want %v", tt.err, got, tt.want)
		}
		if !Is(tt.err, tt.want) {
			t.Errorf("Is(%v, %v) is false", tt.err, tt.want)
		}
	}
	if Is(nil, Internal) {
		t.Error("nil is of a kind")
	}
}
