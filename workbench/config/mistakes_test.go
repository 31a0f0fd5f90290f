package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// However a key is written, the message names its line, and what was meant.
func TestMistakesAreFoundWhereverTheyAre(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"jobs = 3", "file:1: unknown key jobs; did you mean limits.jobs?"},
		{"\n[Limits]\njobs = 3", "file:3: unknown key Limits.jobs; did you mean limits.jobs?"},
		{"[limits]\nLIMITS = 1", "file:2: unknown key limits.LIMITS; the keys are in docs/configuration.md"},
		{"b = 1\na = 1", "file:1: unknown key b"},
		{"[extra]", "file:1: unknown key extra"},
		{"[extra.deep]\nx = 1", "file:1: unknown key extra.deep"},
		{"\"mo\\u001bunt\" = 3", "unknown key"},
		{"[[limits]]\njobs = 3", "file:1: unknown key limits; it is a section: write [limits]"},
		{"\nlimits.jobs = 0", "file:2: limits.jobs takes"},
		{"\nlimits = { jobs = 0 }", "file:2: limits.jobs takes"},
		{"[ limits ]\n\n\"jobs\" = 0", "file:3: limits.jobs takes"},
		{"[agents.x]\ncommand = 'x'\nargs = ['''\n[limits]\njobs = 7\n''']\n[limits]\njobs = 0", "file:8: limits.jobs takes"},
		{"[limits.jobs]\nx = 1", "file:1: limits.jobs takes a whole number"},
		{"\n[limits]\ntimeout_max = \"30m\"", "file:3: limits.timeout 1h is above limits.timeout_max 30m: lower the one or raise the other"},
		{"\n[limits]\ntimeout = \"30h\"", "file:3: limits.timeout 30h is above limits.timeout_max 24h"},
		{"mount = \"scv\"", `file:1: mount takes an absolute path, or one that begins with ~/, not "scv"`},
		{"mount = \"~other/scv\"", "file:1: mount takes an absolute path"},
		{"mount = \"/a\\u009bb\"", "file:1: mount takes a text on one line"},
		{"agents = 3", "file:1: agents takes sections such as [agents.codex], not 3"},
		{"[agents]\nx = 3", "file:2: agents.x takes a section [agents.x], not 3"},
		{"[agents.sh]\n\ncomand = \"x\"", "file:3: unknown key agents.sh.comand; did you mean command?"},
		{"[agents.sh]\nCommand = \"x\"", "file:2: unknown key agents.sh.Command; did you mean command?"},
		{"[agents.sh]\nwhatever = \"x\"", "file:2: unknown key agents.sh.whatever; an agent takes like command args"},
		{"[agents.sh]\ncommand = 3", "file:2: agents.sh.command takes a text, not 3"},
		{"[agents.sh]\nargs = [1]", `file:2: agents.sh.args takes a list of texts, such as ["-v"], not [1]`},
		{"[agents.sh]\nargs = \"-v\"", `file:2: agents.sh.args takes a list of texts`},
		{"[agents.sh]\nenv = { A = 3 }", "file:2: agents.sh.env takes a table of texts"},
		{"[agents.sh]\nmerge_stderr = \"yes\"", `file:2: agents.sh.merge_stderr takes true or false, not "yes"`},
		{"[agents.sh]\npermissions = \"some\"", "file:2: agents.sh.permissions"},
		{"[agents.\"Bad Name\"]\ncommand = \"x\"", "file:1: agents.Bad Name: an agent's name"},
	} {
		_, err := parse("file", []byte(c.text))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v\nwant a sentence with %q", c.text, err, c.says)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q: the sentence %q holds a control character", c.text, err)
		}
	}
}

// Each value that a key takes, and each agent's section, survives Render.
func TestRenderKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Defaults()
		for _, k := range c.keys() {
			var err error
			switch v := k.value.(type) {
			case *count:
				err = v.set(int64(rapid.IntRange(v.min, v.max).Draw(t, k.name)))
			case *span:
				*v.p = Duration(rapid.Int64Range(int64(v.min), int64(v.max)).Draw(t, k.name))
			case *volume:
				err = v.set(rapid.Int64Range(int64(v.min), int64(v.max)).Draw(t, k.name))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		c.Limits.Timeout = min(c.Limits.Timeout, c.Limits.TimeoutMax)
		c.Policy = rapid.SampledFrom([]string{"on-risk", "always", "never"}).Draw(t, "policy")
		any := rapid.StringMatching(`[a-zé "'\\#={}\t\n-]{1,20}`)
		texts := rapid.SliceOfN(any, 0, 3)
		merge := rapid.Bool().Draw(t, "merge")
		c.Agents = map[string]agent.Entry{
			"mine": {
				Command: any.Draw(t, "command"), Args: texts.Draw(t, "args"), Model: "m", MergeStderr: &merge,
				ModelArgs: []string{"{model}", any.Draw(t, "model")}, Env: map[string]string{"A": any.Draw(t, "a"), "B_2": any.Draw(t, "b")},
			},
			"codex": {Permissions: "full"},
		}
		if _, err := c.Table(); err != nil {
			t.Skip(err)
		}
		got, err := parse("file", c.Render())
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Render())
		}
		if got.Policy != c.Policy || !reflect.DeepEqual(got.Limits, c.Limits) || !reflect.DeepEqual(got.Agents, c.Agents) {
			t.Fatalf("got\n%+v\nwant\n%+v\nfrom\n%s", got, c, c.Render())
		}
	})
}

func TestFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file away")
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, false); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
	dir := filepath.Join(filepath.Dir(path), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if err := EnsureDir(dir); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
	env := map[string]string{"HOME": "/h", "XDG_RUNTIME_DIR": dir}
	if l, err := NewLayout(func(name string) string { return env[name] }); err != nil || l.Runtime != "/h/.local/state/scvfs/run" {
		t.Errorf("the runtime directory of another user gives %q, %v", l.Runtime, err)
	}
}

func TestRuntimeDirectoryMustBeThere(t *testing.T) {
	dir := t.TempDir()
	for runtime, want := range map[string]string{
		dir: dir + "/scvfs", dir + "/gone": "/h/.local/state/scvfs/run", "relative": "/h/.local/state/scvfs/run",
	} {
		env := map[string]string{"HOME": "/h", "XDG_RUNTIME_DIR": runtime}
		if l, err := NewLayout(func(name string) string { return env[name] }); err != nil || l.Runtime != want {
			t.Errorf("XDG_RUNTIME_DIR=%s gives %q, %v", runtime, l.Runtime, err)
		}
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, false); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}
