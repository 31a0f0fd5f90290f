package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

func TestEachMistakeIsNamed(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"jbos = 3", "file:1: unknown key jbos"},
		{"[limits]\njbos = 3", "file:2: unknown key limits.jbos; did you mean limits.jobs?"},
		{"\n[limits]\njobs = 0", "file:3: limits.jobs takes a whole number from 1 to 64, not 0"},
		{"[limits]\njobs = \"4\"", `takes a whole number from 1 to 64, not "4"`},
		{"[limits]\ntimeout = 60", `limits.timeout takes a duration from "1s"`},
		{"[limits]\ntimeout = \"2h\"\ntimeout_max = \"1h\"", "limits.timeout 2h is above limits.timeout_max 1h"},
		{"[limits]\nprompt_bytes = \"4 mb\"", `takes a size from "1KiB" to "64MiB"`},
		{"[limits]\nprompt_bytes = -1", "takes a size"},
		{"[limits]\nterminal = \"10x10\"", `takes a size from "20x5" to "500x200", not "10x10"`},
		{"policy = \"maybe\"", "policy takes one of on-risk, always, never"},
		{"mount = \"a\\nb\"", "mount takes a text on one line"},
		{"default_agent = \"nobody\"", "file:1: default_agent: no agent is called"},
		{"a = ", "file:1: "},
		{"[agents.mine]\ncomand = \"x\"", "file:2: unknown key agents.mine.comand"},
		{"[agents.mine]\nargs = []", "agents.mine.command"},
		{"[agents.sh]\nargs = 3", "args"},
		{"limits = 3", "unknown key limits"},
	} {
		_, err := parse("file", []byte(c.text))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v\nwant a sentence with %q", c.text, err, c.says)
		}
	}
}

func TestValuesAndTheirSources(t *testing.T) {
	c, err := parse("file", []byte("mount = \"/m\"\n[limits]\njobs = 7\nkeep = \"1h30m\"\nlog_bytes = \"1GiB\"\nraw_bytes = 2000000\nterminal = \"80x24\"\n[agents.codex]\npermissions = \"full\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := c.Limits
	if c.Mount != "/m" || l.Jobs != 7 || l.Keep != 90*minute || l.LogBytes != 1<<30 || l.RawBytes != 2_000_000 || l.Terminal != (Terminal{80, 24}) {
		t.Errorf("read %+v", c)
	}
	if l.Backlog != 1000 || c.Agents["codex"].Permissions != "full" {
		t.Errorf("read %+v", c)
	}
	c.SetMount("/n", "--mount")
	text := string(c.Render())
	for _, line := range []string{`mount = "/n"  # --mount`, `jobs = 7 # file:3`, `backlog = 1000 # default`, "[agents.codex] # file:8\npermissions = \"full\""} {
		if !strings.Contains(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " "), strings.Join(strings.Fields(strings.ReplaceAll(line, "\n", "\x00")), " ")) &&
			!strings.Contains(squeeze(text), squeeze(line)) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}

// squeeze makes one blank of several.
func squeeze(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}

func TestRenderReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Defaults()
		c.Mount = rapid.StringMatching(`/[a-zé "\\#']{0,20}`).Draw(t, "mount")
		c.Limits.Jobs = rapid.IntRange(1, 64).Draw(t, "jobs")
		c.Limits.DiskFloor = Size(rapid.Int64Range(0, 1<<40).Draw(t, "floor"))
		c.Limits.Keep = Duration(rapid.Int64Range(int64(minute), int64(100*hour)).Draw(t, "keep"))
		c.Limits.Terminal = Terminal{rapid.IntRange(MinCols, MaxCols).Draw(t, "cols"), rapid.IntRange(MinRows, MaxRows).Draw(t, "rows")}
		got, err := parse("file", c.Render())
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Render())
		}
		if got.Mount != c.Mount || !reflect.DeepEqual(got.Limits, c.Limits) {
			t.Fatalf("got %+v, want %+v", got, c)
		}
	})
}

func TestFileOfOthersIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if c, err := Load(path, false); err != nil || c.Limits.Jobs != 4 {
		t.Fatalf("a missing file: %v, %v", c, err)
	}
	if _, err := Load(path, true); err == nil {
		t.Fatal("a file that the user named and is missing was accepted")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, false); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Fatalf("a file that others can write: %v", err)
	}
	if _, err := Load(filepath.Dir(path), true); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Fatalf("a directory: %v", err)
	}
}

func TestEnsureDirTakesOnlyPrivateDirectories(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	if err := EnsureDir(at("a/b/c")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(at("a/b/c")); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info.Mode(), err)
	}
	if err := EnsureDir(at("a/b/c")); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := os.Chmod(at("a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("a"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"a/b/c": "chmod 700", "link": "symbolic link", "file": "no directory", "file/x": "made"} {
		if err := EnsureDir(at(name)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

func TestLayoutFollowsXDG(t *testing.T) {
	env := map[string]string{"HOME": "/h", "XDG_STATE_HOME": "relative", "XDG_CONFIG_HOME": "/c/"}
	l, err := NewLayout(func(name string) string { return env[name] })
	if err != nil || l != (Layout{State: "/h/.local/state/scvfs", Config: "/c/scvfs/config.toml", Runtime: "/h/.local/state/scvfs/run"}) {
		t.Fatalf("%+v, %v", l, err)
	}
	if _, err := NewLayout(func(string) string { return "" }); err == nil {
		t.Fatal("no HOME was accepted")
	}
	for path, want := range map[string]string{"~": "/h", "~/scv": "/h/scv", "~other/x": "~other/x", "/a/~": "/a/~"} {
		if got, err := Expand(path, "/h"); err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v", path, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[limits]\njobs = 3\n[agents.x]\ncommand = \"y\"\n"))
	f.Add(Defaults().Render())
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("file", data)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("kind %v: %v", fault.KindOf(err), err)
			}
			return
		}
		if _, err := parse("file", c.Render()); err != nil {
			t.Fatalf("what was rendered does not read back: %v\n%s", err, c.Render())
		}
	})
}

// The page that users copy from must be true: its blocks read, and the first
// says what the defaults are.
func TestDocumentedExamplesAreRight(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```")
	var found int
	for _, block := range blocks {
		text, ok := strings.CutPrefix(block, "toml\n")
		if !ok {
			continue
		}
		c, err := parse("docs/configuration.md", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if found++; found == 1 && (!reflect.DeepEqual(c.Limits, Defaults().Limits) || c.Mount != Defaults().Mount || c.Policy != Defaults().Policy) {
			t.Errorf("the first block says %+v, the defaults are %+v", c.Limits, Defaults().Limits)
		}
	}
	for _, k := range Defaults().keys() {
		name := k.name[strings.LastIndexByte(k.name, '.')+1:]
		if !strings.Contains(string(page), "\n"+name+" = ") {
			t.Errorf("%s is not documented", k.name)
		}
	}
	for _, key := range entryKeys() {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("agents.NAME.%s is not documented", key)
		}
	}
	if found < 2 {
		t.Errorf("%d blocks were found", found)
	}
}
