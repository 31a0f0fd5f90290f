package ledger

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

var update = flag.Bool("update", false, "write testdata anew")

// asProcess makes this test program run one of the processes below instead of
// the tests; its value is "name directory".
const asProcess = "LEDGER_TEST_PROCESS"

var processes = map[string]func(dir string) error{"hold": holdProcess, "commit": commitProcess, "flock": flockProcess}

func TestMain(m *testing.M) {
	name, dir, ok := strings.Cut(os.Getenv(asProcess), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := processes[name](dir); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is another process that works on a ledger and prints lines.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, name, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), asProcess+"="+name+" "+dir)
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // which ends with this program
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as a power cut would, and reaps it.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

// expect reads a line.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("the process says %q (%v), want %q", p.lines.Text(), p.lines.Err(), want)
	}
}

// open opens a ledger that the test's end checks and closes.
func open(t testing.TB, dir string) *Ledger {
	t.Helper()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-l.idle: // the test has closed it
		default:
			for _, err := range l.Check() {
				t.Error("ledger check:", err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func reopen(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, l.dir)
}

func commit(t testing.TB, l *Ledger, fill func(*Batch)) {
	t.Helper()
	if err := tryCommit(l, fill); err != nil {
		t.Fatal(err)
	}
}

func tryCommit(l *Ledger, fill func(*Batch)) error {
	var b Batch
	fill(&b)
	return l.Commit(&b)
}

func load(t testing.TB, l *Ledger) Contents {
	t.Helper()
	c, bad, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	for key, err := range bad {
		t.Errorf("%s: %v", key, err)
	}
	return c
}

func dump(t testing.TB, l *Ledger) string {
	t.Helper()
	var out bytes.Buffer
	if err := l.Dump(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// raw changes the stored bytes behind the ledger's back.
func raw(t testing.TB, l *Ledger, fn func(*bolt.Tx) error) {
	t.Helper()
	if err := l.db.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func putRaw(t testing.TB, l *Ledger, k *kind, key, value string) {
	t.Helper()
	raw(t, l, func(tx *bolt.Tx) error { return tx.Bucket([]byte(k.bucket)).Put([]byte(key), []byte(value)) })
}

func rawBytes(t testing.TB, l *Ledger, k *kind, key string) string {
	t.Helper()
	var value string
	if err := l.db.View(func(tx *bolt.Tx) error { value = string(get(tx, k, key)); return nil }); err != nil {
		t.Fatal(err)
	}
	return value
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.FixedZone("", 3600))

func aSession(id string, serial, nextJob uint64) *Session {
	return &Session{ID: id, Serial: serial, Workspace: "/src/" + id, NextJob: nextJob, Created: noon, Updated: noon}
}

func aJob(session string, number, serial uint64) *Job {
	return &Job{
		Session: session, Number: number, Serial: serial, Agent: "sh", Task: "echo hello", Workspace: "/src/" + session,
		CWD: "/src/" + session, Timeout: time.Hour, StartedBy: ByOwner, State: Completed, Exit: "exit 0",
		Created: noon, Updated: noon, Ended: noon,
	}
}

// anApproval is one that the owner has given.
func anApproval(n uint64, session string, job uint64) *Approval {
	return &Approval{
		Number: n, Session: session, Job: job, Run: "codex-ab12cd", Agent: "codex", Ask: "call_1", Kind: "permission", Risk: "process",
		Summary: "run `make`", State: ApprovalApproved, By: DecidedByOwner, How: "pid 4242, /approvals/17/answer",
		Created: noon, Deadline: noon.Add(time.Minute), Decided: noon,
	}
}

func fileOf(l *Ledger) string { return filepath.Join(l.dir, fileName) }
