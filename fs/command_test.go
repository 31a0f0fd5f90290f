package fs

import (
	"slices"
	"strings"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

var grammar = []syntax{
	{"cancel", "", ""},
	{"label", "[TEXT…]", ""},
	{"workspace", "DIR", ""},
	{"resume", "[SESSION]", ""},
	{"new", "ID WORKSPACE [LABEL…]", ""},
}

func TestCommands(t *testing.T) {
	for line, want := range map[string][]string{
		"cancel":                     {"cancel"},
		"  cancel\t ":                {"cancel"},
		"label":                      {"label"},
		"label the  \"shop\" \\":     {"label", `the  "shop" \`},
		"workspace /a":               {"workspace", "/a"},
		`workspace "/a b"/c\ "d"\"`:  {"workspace", `/a b/c d"`},
		`workspace "/a\"b"`:          {"workspace", `/a"b`},
		`workspace ""`:               {"workspace", ""},
		"workspace /ä'b":             {"workspace", "/ä'b"},
		"resume":                     {"resume"},
		"resume shop":                {"resume", "shop"},
		"new a /b":                   {"new", "a", "/b"},
		"new a \"/b c\" Bob's  shop": {"new", "a", "/b c", "Bob's  shop"},
	} {
		which, args, err := parseCommand(line, grammar, false)
		if got := append([]string{grammar[which].name}, args...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
	which, args, err := parseCommand(` a  "/b c" d e `, grammar[4:], true)
	if want := []string{"a", "/b c", "d e"}; which != 0 || err != nil || !slices.Equal(args, want) {
		t.Errorf("bare: %d %q %v", which, args, err)
	}
}

func TestMalformedCommands(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                       "unknown verb bogus; this file knows: cancel, label, workspace, resume, new",
		"Cancel":                      "unknown verb Cancel",
		"can\x1bcel":                  "control character 0x1b",
		"label a\x00":                 "control character 0x00",
		"label a\x7f":                 "control character 0x7f",
		"cancel now":                  "cancel takes no arguments, but now follows",
		"workspace":                   "too few arguments; write: workspace DIR",
		"workspace /a b":              "too many arguments from b on; put one with blanks in double quotes",
		`workspace "/a b`:             "a double quote is not closed",
		`workspace /a\`:               "ends in a backslash",
		"resume a b":                  "too many arguments",
		"new a":                       "too few arguments; write: new ID WORKSPACE [LABEL…]",
		"\u202ecancel":                `unknown verb "\u202ecancel"`,
		strings.Repeat("x", 4097):     "4097 bytes; at most 4096",
		"# " + strings.Repeat("x", 2): "unknown verb #",
	} {
		_, args, err := parseCommand(line, grammar, false)
		kind := fault.Invalid
		if len(line) > maxLine {
			kind = fault.TooLarge
		}
		if args != nil {
			t.Errorf("%.20q: arguments %q with an error", line, args)
		}
		isKind(t, err, kind, want)
	}
}

// quote writes an argument so that it is read as it is.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func FuzzCommand(f *testing.F) {
	for _, line := range []string{
		"cancel", "label a b", `workspace "/a b"`, "new a /b c d", `resume \`, `new "a" \  "`, "#", "\x00", "new\ta\t/b\t", `workspace a""`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		which, args, err := parseCommand(line, grammar, false)
		if err != nil {
			if args != nil || !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) || cleanLine(err.Error()) != err.Error() {
				t.Fatalf("%q: %q with %v", line, args, err)
			}
			return
		}
		x := grammar[which]
		least, most, rest := x.arity()
		if len(args) < least || len(args) > most || len(line) > maxLine {
			t.Fatalf("%q: %d arguments of %s", line, len(args), x)
		}
		again := []string{x.name}
		for i, a := range args {
			if rest && i == most-1 {
				again = append(again, a)
			} else {
				again = append(again, quote(a))
			}
		}
		if len(strings.Join(again, " ")) > maxLine {
			return
		}
		which2, args2, err := parseCommand(strings.Join(again, " "), grammar, false)
		if err != nil || which2 != which || !slices.Equal(args, args2) {
			t.Fatalf("%q is %q, but %q is %q: %v", line, args, again, args2, err)
		}
		// The one quoting rule of all lines that users write.
		words, err := workbench.Fields(line)
		if !rest && (err != nil || !slices.Equal(words[1:], args)) {
			t.Fatalf("%q is %q here and %q, %v there", line, args, words, err)
		}
	})
}

func FuzzNewSession(f *testing.F) {
	for _, line := range []string{"shop /src", `shop "/a b" label`, "new /src", "Shop /src", "shop src", "a /b\nc /d", "# x\n\na /b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, bench := newClient(t)
		err := c.write("sessions/new", text)
		sessions := bench.Sessions()
		if err == nil && len(sessions) == 0 && slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return !idle(strings.TrimSuffix(l, "\r")) }) {
			t.Fatalf("%q did nothing and said so to nobody", text)
		}
		for _, s := range sessions {
			if s.ID == newName || !strings.HasPrefix(s.Workspace, "/") {
				t.Fatalf("%q made %+v", text, s)
			}
		}
		if err != nil && c.cat("errors") == "" {
			t.Fatalf("%q was refused without a word: %v", text, err)
		}
		if got, size := c.cat("sessions/new"), c.attr("sessions/new").Size; int64(len(got)) != size {
			t.Fatalf("%d bytes of %d", len(got), size)
		}
	})
}
