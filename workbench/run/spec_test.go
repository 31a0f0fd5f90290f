package run

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyText draws texts that a program can be given, UTF-8 or not.
var anyText = rapid.OneOf(
	rapid.String(),
	rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	rapid.SampledFrom([]string{"", "\ufffd", "\xff", `{"base64":"eA=="}`, "<>&\u2028", `\u0000`}),
).Filter(func(s string) bool { return strings.IndexByte(s, 0) < 0 })

func TestSpecKeepsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		umask := rapid.IntRange(0, 0o777).Draw(t, "umask")
		spec := Spec{
			Run:  rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Draw(t, "run"),
			Argv: append([]string{"x"}, rapid.SliceOf(anyText).Draw(t, "argv")...),
			Dir:  "/" + anyText.Draw(t, "dir"), Stdin: rapid.SampledFrom([]Stdin{StdinNull, StdinFile, StdinFIFO}).Draw(t, "stdin"),
			MergeStderr: rapid.Bool().Draw(t, "merge"), Umask: &umask, Env: []string{},
			Timeout: time.Duration(rapid.Int64Min(0).Draw(t, "timeout")), Grace: time.Duration(rapid.Int64Min(0).Draw(t, "grace")),
		}
		if rapid.Bool().Draw(t, "terminal") {
			spec.Stdin, spec.Cols, spec.Rows = StdinTTY, rapid.IntRange(1, maxSide).Draw(t, "cols"), rapid.IntRange(1, maxSide).Draw(t, "rows")
		}
		for _, v := range rapid.SliceOf(anyText).Draw(t, "env") {
			spec.Env = append(spec.Env, "V="+v)
		}
		if err := spec.check(); err != nil {
			t.Fatal(err)
		}
		raw, err := encodeSpec(spec, "boot")
		if err != nil {
			t.Fatal(err)
		}
		got, boot, err := decodeSpec(raw)
		if err != nil || boot != "boot" || !reflect.DeepEqual(got, spec) {
			t.Fatalf("got %+v, %q, %v; want %+v", got, boot, err, spec)
		}
	})
}

func TestNamesOfRuns(t *testing.T) {
	t.Parallel()
	like := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	for _, name := range []string{"", ".", "..", "-a", "_", "a/b", "a\n", "a\x00", "é", "a b", "@", "[", "{", strings.Repeat("a", 128), strings.Repeat("a", 129)} {
		if isRun(name) != like.MatchString(name) {
			t.Errorf("%q: %v", name, isRun(name))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(anyText, rapid.StringMatching(`[A-Za-z0-9._/-]{0,5}`)).Draw(t, "name")
		if isRun(name) != (like.MatchString(name) && !strings.HasSuffix(name, "\n")) {
			t.Fatalf("%q: %v", name, isRun(name))
		}
	})
}

func FuzzDecodeSpec(f *testing.F) {
	raw, _ := encodeSpec(Spec{Run: "r", Argv: []string{"a", "\xff"}, Env: []string{"SCV_RUN=r"}, Dir: "/", Stdin: StdinNull}, "boot")
	f.Add(raw)
	f.Add([]byte(`{"run":"r","argv":[{"base64":"!"}],"dir":"/"}`))
	f.Add([]byte(`{"run":"r","argv":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, boot, err := decodeSpec(raw)
		if err != nil {
			return
		}
		again, err := encodeSpec(spec, boot)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := decodeSpec(again); err != nil || !reflect.DeepEqual(got, spec) {
			t.Fatalf("%+v became %+v, %v", spec, got, err)
		}
	})
}
