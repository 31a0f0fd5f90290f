package fs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

var update = flag.Bool("update", false, "write what came out into testdata/*.txt")

// TestTranscripts plays testdata/*.txt: lines that begin with "$ " are what a
// user or an agent does, the lines below each are what came of it, and ";"
// begins a comment.
func TestTranscripts(t *testing.T) {
	playAll(t, func(_ testing.TB, root Dir) Dir { return root }, func(got, want string) bool { return got == want })
}

// playAll plays the transcripts over what a transport makes of the tree.
func playAll(t *testing.T, over func(t testing.TB, root Dir) Dir, same func(got, want string) bool) {
	t.Helper()
	files := must(filepath.Glob("testdata/*.txt"))
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text := string(must(os.ReadFile(name)))
			got := play(t, text, over)
			if *update {
				write(name, got)
			} else if !same(got, text) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// play returns the transcript with what comes out now.
func play(t *testing.T, text string, over func(t testing.TB, root Dir) Dir) string {
	c, f := newClient(t)
	c.root = over(t, c.tree.Root())
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, ";"), line == "\n":
			out.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			out.WriteString(line)
			said, err := step(c, f, words(strings.TrimSuffix(line[2:], "\n")))
			out.WriteString(said)
			if err != nil {
				fmt.Fprintf(&out, "! %v: %v\n", fault.KindOf(err), err)
			}
		}
	}
	return out.String()
}

// words splits a step at blanks; its last word may be quoted as in Go.
func words(line string) []string {
	before, quoted, found := strings.Cut(line, ` "`)
	w := strings.Fields(before)
	if found {
		w = append(w, must(strconv.Unquote(`"`+quoted)))
	}
	return w
}

func step(c client, f *fake, w []string) (said string, err error) {
	text := func(i int) string {
		if len(w) <= i {
			return ""
		}
		return w[i]
	}
	switch w[0] {
	case "cat":
		return c.read(w[1])
	case "ls":
		d, err := c.at(w[1])
		if err != nil {
			return "", err
		}
		entries, err := d.(Dir).List(c.ctx)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		return string(oneLine(strings.Join(names, " "))), err
	case "write":
		return "", c.write(w[1], text(2))
	case "mkdir":
		return "", c.mkdir(w[1])
	case "rmdir":
		return "", c.rmdir(w[1])
	case "readlink":
		n, err := c.at(w[1])
		if err != nil {
			return "", err
		}
		target, err := n.(Link).Readlink(c.ctx)
		return target + "\n", err
	case "run":
		session, n := target(w[1])
		f.run(session, n)
	case "log":
		session, n := target(w[1])
		j, _ := f.Job(session, n)
		appendTo(f.RunFile(j.Run, "log"), text(2))
	case "ask":
		session, n := target(w[1])
		f.raise(session, n, w[2], text(3))
	case "question":
		session, n := target(w[1])
		f.question(session, n, text(2))
	case "withdraw":
		f.resolve(must(strconv.ParseUint(w[1], 10, 64)), ledger.ApprovalWithdrawn, ledger.DecidedByAgent, "the agent took it back")
	case "end":
		session, n := target(w[1])
		f.end(session, n, ledger.AgentState(w[2]), text(3))
	default:
		c.Fatalf("no step %q", w[0])
	}
	return "", nil
}

func target(address string) (string, uint64) {
	session, job, _ := strings.Cut(address, "/")
	n, ok := workbench.ParseJobName(job)
	if !ok {
		panic("no address: " + address)
	}
	return session, n
}
