package workbench

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestJobNamesHaveOneForm(t *testing.T) {
	for name, want := range map[string]uint64{"job-1": 1, "job-18446744073709551615": 1<<64 - 1} {
		if n, ok := ParseJobName(name); !ok || n != want || JobName(n) != name {
			t.Errorf("ParseJobName(%q) = %d, %v", name, n, ok)
		}
	}
	for _, name := range []string{"", "job-", "job-0", "job-01", "job-+1", "job--1", "job-1 ", "Job-1", "job-18446744073709551616", "job-1/", "job-½"} {
		if _, ok := ParseJobName(name); ok {
			t.Errorf("ParseJobName(%q) was accepted", name)
		}
	}
}

func TestSessionNames(t *testing.T) {
	for _, id := range []string{"a", "shop", "0", "a.b_c-d", strings.Repeat("x", 64)} {
		if err := CheckSessionID(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", ".", "..", ".a", "-a", "A", "a/b", "a b", "ä", "new\n", strings.Repeat("x", 65)} {
		if CheckSessionID(id) == nil {
			t.Errorf("%q can name a session", id)
		}
	}
}

func TestTaskLineIsOneSafeLine(t *testing.T) {
	for prompt, want := range map[string]string{
		"make test\n":            "make test",
		"\n\n  \tfirst\nsecond":  "first",
		"a\x1b[31mred\x07":       "ared",
		"tab\there":              "tab here",
		"\xff\xfe\nnext":         "\ufffd\ufffd",
		strings.Repeat("é", 100): strings.Repeat("é", 79) + "…",
		"":                       "",
	} {
		if got := taskLine([]byte(prompt)); got != want {
			t.Errorf("taskLine(%q) = %q, want %q", prompt, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		line := taskLine(rapid.SliceOf(rapid.Byte()).Draw(t, "prompt"))
		if utf8.RuneCountInString(line) > taskRunes || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("unsafe task line %q", line)
		}
	})
}
