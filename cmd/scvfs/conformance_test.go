package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scvfs/fs/ninep/wire"
)

// errnoWords are the C library's words for an errno.
func errnoWords(no syscall.Errno) string { return wire.Ename(no) }

// unplayed are the files of testdata/rules that 9P clients do not play.
var unplayed = map[string]string{
	"documents.txt": "it is about processes and their descriptors; the rows below have what is left of that",
}

// TestRulesOver9P plays the rules over clients that know nothing of ours, with
// no mount between.
func TestRulesOver9P(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no rules", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if unplayed[name] != "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := parseRules(string(text))
		for dialect, dial := range peers {
			t.Run(fmt.Sprintf("%s by %s", strings.TrimSuffix(name, ".txt"), dialect), func(t *testing.T) {
				w := ninepWorld(t, r.config)
				s := newShell(t, w, dial(t, w.socket()))
				s.play(`mkdir "$S"`)
				for _, step := range r.steps {
					if got := s.play(step.command); got != step.out {
						t.Errorf("$ %s\n got %q\nwant %q", step.command, got, step.out)
					}
				}
			})
		}
	}
}

// difference is a row of the table of docs/9p.md: what a FUSE mount of the tree
// shows, and what plain 9P clients see instead. A mount by mount-9p is as FUSE
// in all of them.
type difference struct {
	what, fuse, linux, plan9 string // as the document has them
	check                    func(c *comparison)
}

// comparison is a world in which job-1 has ended, seen by one client.
type comparison struct {
	*testing.T
	w       *world
	p       peer
	dialect string
	job     []string
}

var differences = []difference{
	{
		"size of what changes", "what a read returns now", "0; reads go to the end all the same", "0", func(c *comparison) {
			for _, name := range []string{"status", "result", "ctl"} {
				if n, err := c.p.size(append(c.job, name)); n != 0 || err != nil {
					c.Errorf("%s has size %d, %v", name, n, err)
				}
				if c.read(append(c.job, name)...) == "" {
					c.Errorf("%s is empty", name)
				}
			}
		},
	},
	{
		"size of a log", "the true size", "the true size", "the true size", func(c *comparison) {
			if n, err := c.p.size(append(c.job, "log")); err != nil || n != int64(len(c.read(append(c.job, "log")...))) {
				c.Errorf("log has size %d, %v", n, err)
			}
		},
	},
	{
		"symbolic links", "links", "links", "what they lead to in the tree", func(c *comparison) {
			want := ""
			if c.dialect == "9P2000" {
				want = "shop/job-1\n"
			}
			if got := c.read(append(c.job, "run", "job")...); got != want {
				c.Errorf("run/job is %q, want %q", got, want)
			}
		},
	},
	{
		"refusal of a finished document", "by `close`", "by Tclunk", "by Tclunk", func(c *comparison) {
			f, err := c.p.open([]string{"sessions", "shop", "start"}, false, true)
			if err != nil {
				c.Fatal(err)
			}
			if _, err := f.Write([]byte(" \n")); err != nil {
				c.Errorf("a blank text: %v", err)
			}
			f.Close() // these clients do not tell what it says
			if got := c.read("sessions", "shop", "start"); !strings.Contains(got, "the prompt is empty") {
				c.Errorf("start says %q", got)
			}
		},
	},
	{
		"last descriptor of a document", "the last of all processes", "Tclunk of its fid", "Tclunk of its fid", func(c *comparison) {
			before := c.jobs()
			f, err := c.p.open([]string{"sessions", "shop", "start"}, false, true)
			if err != nil {
				c.Fatal(err)
			}
			for _, part := range []string{"echo ", "sent"} {
				if _, err := f.Write([]byte(part)); err != nil {
					c.Error(err)
				}
			}
			if n := c.jobs(); n != before {
				c.Errorf("%d jobs before the close, %d before it was opened", n, before)
			}
			f.Close()
			if n := c.jobs(); n != before+1 {
				c.Errorf("%d jobs after the close, %d before", n, before)
			}
		},
	},
	{
		"writer that is killed", "sends nothing", "sends nothing, if its connection ends with it", "sends nothing, if its connection ends with it", func(c *comparison) {
			before := c.jobs()
			c.Run("its connection", func(t *testing.T) {
				f, err := peers[c.dialect](t, c.w.socket()).open([]string{"sessions", "shop", "start"}, false, true)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Write([]byte("echo half")); err != nil {
					t.Error(err)
				}
			}) // its clean-up hangs up
			c.until("sessions", "shop", "start", "its writer was killed")
			if n := c.jobs(); n != before {
				c.Errorf("%d jobs, %d before", n, before)
			}
		},
	},
	{
		"a refusal", "an errno", "the same errno", "the C library's words for it", func(c *comparison) {
			f, err := c.p.open(append(c.job, "ctl"), false, true)
			if err != nil {
				c.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write([]byte("cancel")); err != syscall.EALREADY {
				c.Errorf("cancel: %v", err)
			}
		},
	},
	{
		"who asks, in `errors` and to the rules", "the process", "the process that connected; of TCP nobody", "the process that connected; of TCP nobody", func(c *comparison) {
			c.p.rmdir([]string{"sessions", "nobody"})
			if lines := strings.Split(strings.TrimSpace(c.read("errors")), "\n"); !strings.Contains(lines[len(lines)-1], fmt.Sprintf(" %d /", os.Getpid())) {
				c.Errorf("errors says %q", lines)
			}
		},
	},
}

func (c *comparison) read(path ...string) string {
	f, err := c.p.open(path, true, false)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		c.Errorf("%s: %v", strings.Join(path, "/"), err)
	}
	return string(data)
}

func (c *comparison) jobs() int {
	names, err := c.p.list([]string{"sessions", "shop", "jobs"})
	if err != nil {
		c.Error(err)
	}
	return len(names)
}

// until waits for a file, all but the last of at, to hold a text, the last.
func (c *comparison) until(at ...string) {
	path, want := at[:len(at)-1], at[len(at)-1]
	for deadline := time.Now().Add(patience); !strings.Contains(c.read(path...), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("%s is %q", strings.Join(path, "/"), c.read(path...))
		}
	}
}

func TestDifferencesBetweenTransports(t *testing.T) {
	for dialect, dial := range peers {
		t.Run(dialect, func(t *testing.T) {
			w := ninepWorld(t, "").session()
			w.sh(`echo 'echo x' > "$S/start"; cat "$J/job-1/wait"`)
			p := dial(t, w.socket())
			for _, d := range differences {
				t.Run(d.what, func(t *testing.T) {
					d.check(&comparison{t, w, p, dialect, slices.Clip([]string{"sessions", "shop", "jobs", "job-1"})})
				})
			}
		})
	}
}

// The document's table is this table, so that no row is without a test.
func TestNinePDocumentIsWhatIsTested(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "9p.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range differences {
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s |", d.what, d.fuse, d.linux, d.plan9))
	}
	_, table, found := strings.Cut(string(text), "| what | FUSE, mount-9p | 9P2000.L | 9P2000 |\n| --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if got := strings.Split(strings.TrimSpace(table), "\n"); !found || !slices.Equal(got, want) {
		t.Errorf("docs/9p.md differs from the table in this file. Its table should be:\n%s", strings.Join(want, "\n"))
	}
}
