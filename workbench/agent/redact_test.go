package agent

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRedactMasksCredentials(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"make test":                     "make test",
		"API_KEY=abc make":              "API_KEY=*** make",
		"export GH_TOKEN='a b c' && ls": "export GH_TOKEN='***' && ls",
		`export X_SECRET="a b"; x`:      `export X_SECRET="***"; x`,
		"password: hunter2":             "password: ***",
		"passwd=x,user=y":               "passwd=***,user=y",
		"curl --api-key abc http":       "curl --api-key *** http",
		"x --token=abc":                 "x --token=***",
		"x --token --verbose":           "x --token --verbose",
		"curl -H 'Authorization: Bearer abc.def-123' https://x/y":             "curl -H 'Authorization: ***' https://x/y",
		`curl -H "Cookie: a=b; c=d" x`:                                        `curl -H "Cookie: ***" x`,
		"Bearer abcdefgh":                                                     "Bearer ***",
		"Basic dXNlcjpwYXNz":                                                  "Basic ***",
		"Basic functionality works":                                           "Basic functionality works",
		"sk-12345678abc and sk-short":                                         "*** and sk-short",
		"ask-questions-politely":                                              "ask-questions-politely",
		"ghp_0123456789 gho_0123456789 ghs_0123456789":                        "*** *** ***",
		"github_pat_0123456789 xoxb-0123456789 xoxp-01234567":                 "*** *** ***",
		"AKIAIOSFODNN7EXAMPLE akia":                                           "*** akia",
		`{"api_key":"abc","n":1}`:                                             `{"api_key":"***","n":1}`,
		`{\"api_key\": \"abc\",\"n\":1}`:                                      `{\"api_key\": \"***\",\"n\":1}`,
		"token://not-a-value":                                                 "token://not-a-value",
		"git clone https://alice:secret@host/repo":                            "git clone https://alice:***@host/repo",
		"http://host:8080/path@x":                                             "http://host:8080/path@x",
		"input_tokens=10318 output_tokens: 6":                                 "input_tokens=10318 output_tokens: 6",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----": "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
		"key=\nnext line":                                                     "key=\nnext line",
		"authorization: a b c\nnext":                                          "authorization: ***\nnext",
		"credentials = x":                                                     "credentials = ***",
		"\xff key=\xfe":                                                       "\xff key=***",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestPrintableLeavesNothingThatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                "plain\ttext\n",
		"\x1b[31mred\x1b[0m":           "red",
		"\x1b]0;title\a.":              ".",
		"\x1b]8;;http://x\x1b\\link":   "link",
		"\x1b]52;c;never ended":        "52;c;never ended",
		"\x1bPq#0\x1b\\after":          "after",
		"\x1b(Bx\x1b7\x1b8":            "x",
		"\x1b":                         "",
		"\x1b[":                        "",
		"\x1b[12;3":                    "",
		"a\x1b\nb":                     "a\nb",
		"\u009b31mx":                   "x",
		"50%\r100%\r\ndone\r":          "50% 100%\ndone",
		"a\x00b\x07c\x7fd":             "abcd",
		"caf\xc3\xa9 \xff\xfe":         "café \ufffd\ufffd",
		"abc\u202edef\u2066\u200f":     "abcdef",
		"zero\u200dwidth joiner stays": "zero\u200dwidth joiner stays",
		"\xc3\x1b[m\xa9":               "\ufffd\ufffd",
		"line\u2028separator":          "lineseparator",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"  a \n\t b\r\n", 0, "a b"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"éèêëēė", 4, "éèê…"},
		{"ab cd ef", 4, "ab…"},
		{"", 5, ""},
		{"\n\n", 5, ""},
		{"abc", 1, "…"},
		{"a", 1, "a"},
		{"abc   ", 3, "abc"},
	} {
		if got := OneLine(c.in, c.limit); got != c.want {
			t.Errorf("%q within %d became %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// checkSafe looks that what the three functions return keeps their promises.
func checkSafe(t rapid.TB, s string) {
	t.Helper()
	p := Printable(s)
	if !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
		t.Fatalf("%q became %q", s, p)
	}
	if again := Printable(p); again != p {
		t.Fatalf("Printable: %q became %q, and that %q", s, p, again)
	}
	r := Redact(s)
	if again := Redact(r); again != r {
		t.Fatalf("Redact: %q became %q, and that %q", s, r, again)
	}
	o := OneLine(s, 20)
	if n := utf8.RuneCountInString(o); n > 20 || strings.ContainsAny(o, "\n\r\t") || strings.TrimSpace(o) != o {
		t.Fatalf("%q became %q of %d characters", s, o, n)
	}
	if again := OneLine(o, 20); again != o {
		t.Fatalf("OneLine: %q became %q, and that %q", s, o, again)
	}
}

func TestWhatIsMadeSafeIsSafe(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"key", "token", "Bearer ", "Basic ", "--", "=", ":", "://", "\"", "'", "\\", " ", "\n", "\r", "\x1b", "[", "]", "31m", "\a", "***", "sk-", "12345678", "@", "/", "é", "\xff", "a",
		"authorization", "cookie", ";", "tokens", "-----BEGIN ", "PRIVATE KEY-----", "-----END", "…",
	})
	rapid.Check(t, func(r *rapid.T) {
		checkSafe(r, strings.Join(rapid.SliceOfN(parts, 0, 24).Draw(r, "parts"), ""))
	})
}

// Each of these would take many minutes if it took quadratic time.
func TestHostileTextTakesLinearTime(t *testing.T) {
	const n = 1 << 20
	start := time.Now()
	for _, s := range []string{"key", "\x1b]", "\x1b[", "\x1b]0;", "key=", "sk-", "://", ":", "a:", "token\\", "--key ", "-----BEGIN ", "Bearer ", "\\\"", "authorization: \"", "\r"} {
		s = strings.Repeat(s, n/len(s))
		Redact(s)
		Printable(s)
		OneLine(s, 200)
	}
	if spent := time.Since(start); spent > time.Minute {
		t.Errorf("it took %v", spent)
	}
}
