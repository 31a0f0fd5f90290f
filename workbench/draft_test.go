package workbench

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

func TestParseDraft(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      Draft
		refused   string // part of the sentence
	}{
		{name: "plain prompt keeps its bytes", doc: "make test\n", want: Draft{Prompt: []byte("make test\n")}},
		{name: "leading dash", doc: "-n 'x\"y'\n\n", want: Draft{Prompt: []byte("-n 'x\"y'\n\n")}},
		{name: "shell group is no JSON", doc: "{ make; }", want: Draft{Prompt: []byte("{ make; }")}},
		{name: "JSON array is a prompt", doc: `["a"]`, want: Draft{Prompt: []byte(`["a"]`)}},
		{name: "two objects are a prompt", doc: "{}\n{}", want: Draft{Prompt: []byte("{}\n{}")}},
		{name: "bytes that are not UTF-8", doc: "echo \xff\xfe", want: Draft{Prompt: []byte("echo \xff\xfe")}},
		{
			name: "call", doc: `{"agent":"codex","prompt":"fix it","cwd":"src","timeout_seconds":60,"worktree":true}` + "\n",
			want: Draft{Prompt: []byte("fix it"), Call: ledger.Call{Agent: "codex", CWD: "src", Timeout: 60, Worktree: true}},
		},
		{name: "blank strings are absent", doc: `{"prompt":"x","agent":"  ","cwd":""}`, want: Draft{Prompt: []byte("x")}},
		{
			name: "header", doc: "#!scv agent=codex worktree effort=high\nfix it\n",
			want: Draft{Prompt: []byte("fix it\n"), Call: ledger.Call{Agent: "codex", Effort: "high", Worktree: true}},
		},
		{
			name: "header with blanks in a value", doc: "#!scv cwd=\"my dir\" timeout_seconds=5\nx",
			want: Draft{Prompt: []byte("x"), Call: ledger.Call{CWD: "my dir", Timeout: 5}},
		},
		{name: "another interpreter is a prompt", doc: "#!/bin/bash\nls", want: Draft{Prompt: []byte("#!/bin/bash\nls")}},
		{name: "a longer word is a prompt", doc: "#!scvx agent=y\nls", want: Draft{Prompt: []byte("#!scvx agent=y\nls")}},
		{name: "header alone", doc: "#!scv\nls\n", refused: "needs at least one option"},
		{name: "header without prompt", doc: "#!scv agent=sh\n", refused: "prompt is empty"},
		{name: "header with unknown key", doc: "#!scv agnet=sh\nls", refused: `unknown key "agnet"`},
		{name: "header cannot carry the prompt", doc: "#!scv prompt=x\nls", refused: `unknown key "prompt"`},
		{name: "header value missing", doc: "#!scv agent\nls", refused: "needs a value"},
		{name: "header quote open", doc: "#!scv cwd=\"a\nls", refused: "not closed"},
		{name: "unknown key", doc: `{"prompt":"x","modle":"y"}`, refused: `unknown key "modle"`},
		{name: "wrong type", doc: `{"prompt":"x","worktree":"yes"}`, refused: `"worktree"`},
		{name: "no prompt", doc: `{"agent":"sh"}`, refused: `no "prompt"`},
		{name: "blank prompt", doc: " \n", refused: "prompt is empty"},
		{name: "NUL", doc: "a\x00b", refused: "NUL"},
		{name: "NUL by an escape", doc: `{"prompt":"a\u0000b"}`, refused: "NUL"},
		{name: "busy policy", doc: `{"prompt":"x","on_busy":"never"}`, refused: "on_busy cannot be"},
		{name: "negative limit", doc: `{"prompt":"x","timeout_seconds":-1}`, refused: "timeout_seconds cannot be -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseDraft([]byte(c.doc))
			if c.refused != "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %v, want a refusal that says %q", err, c.refused)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// What opening refuses of a part, ParseDraft must refuse of every whole that
// begins with it, or the writer lost a good document.
func TestOpeningRefusesOnlyWhatNothingMends(t *testing.T) {
	for _, doc := range []string{
		"{ echo a; }\n", "#!scv agent=sh\nls\n", `{"agent":"sh","prompt":"x"}` + "\n", "#!scvx\nls", "plain\ntext\n", "{\"a\n",
	} {
		for i := range len(doc) + 1 {
			if _, err := opening([]byte(doc[:i])); err != nil {
				t.Errorf("opening(%q): %v, though %q is well formed", doc[:i], err, doc)
			}
		}
	}
	for _, doc := range []string{"#!scv\nls", "#!scv nope=1\nls", `{"prompt":"x","nope":1}`, "#!scv on_busy=x\nls"} {
		if _, err := opening([]byte(doc)); err == nil {
			t.Errorf("opening(%q) was not refused", doc)
		}
	}
}

func FuzzParseDraft(f *testing.F) {
	for _, s := range []string{"ls\n", `{"prompt":"x"}`, "#!scv agent=sh\nls", "#!scv cwd=\"a b\\\"\" x\n", "{}", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		draft, err := ParseDraft(doc)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("kind %v: %v", fault.KindOf(err), err)
			}
			return
		}
		if len(bytes.TrimSpace(draft.Prompt)) == 0 || bytes.IndexByte(draft.Prompt, 0) >= 0 {
			t.Fatalf("accepted the prompt %q", draft.Prompt)
		}
		if !json.Valid(doc) && !bytes.HasSuffix(doc, draft.Prompt) {
			t.Fatalf("prompt %q is not the end of %q", draft.Prompt, doc)
		}
		if _, err := opening(doc); err != nil {
			t.Fatalf("a part of a good document is refused: %v", err)
		}
	})
}

func TestFields(t *testing.T) {
	for line, want := range map[string][]string{
		"":                          nil,
		"  a  b ":                   {"a", "b"},
		`"a b" c`:                   {"a b", "c"},
		`a\ b`:                      {"a b"},
		`"a \"b\""`:                 {`a "b"`},
		`x="a b"`:                   {"x=a b"},
		`""`:                        {""},
		"shop /srv/My\\ Shop label": {"shop", "/srv/My Shop", "label"},
	} {
		if got, err := Fields(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Fields(%q) = %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`"a`, `a\`} {
		if _, err := Fields(line); err == nil {
			t.Errorf("Fields(%q) was not refused", line)
		}
	}
}
