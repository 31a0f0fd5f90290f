package dialoguetest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// agentsDir names an installation of the real agents, as scripts/test-agents
// makes it: their programs are in its bin.
const agentsDir = "SCVFS_AGENTS_DIR"

// patience is how long a real agent may say nothing before the test fails.
const patience = 60 * time.Second

// Live is a dialogue with a real agent over pipes.
type Live struct {
	D       dialogue.Dialogue
	t       *testing.T
	fresh   func() dialogue.Dialogue
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     chan []byte
	errs    *os.File
	outputs []dialogue.Output
	seen    int    // how many of them were looked at
	held    []byte // what the agent said that was not fed yet
}

// installed returns the path of a real agent, or skips the test.
func installed(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(agentsDir)
	if dir == "" {
		t.Skip(agentsDir + " names no installation of the agents: scripts/test-agents makes one")
	}
	path := filepath.Join(dir, "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip(name + " is not installed in " + dir)
	}
	return path
}

// startLive starts a process and the dialogue with it.
func startLive(t *testing.T, l agent.Launch, env []string, dir string, fresh func() dialogue.Dialogue) *Live {
	t.Helper()
	v := &Live{D: fresh(), t: t, fresh: fresh, cmd: exec.Command(l.Argv[0], l.Argv[1:]...), out: make(chan []byte)}
	v.cmd.Dir, v.cmd.Env = dir, env
	var err error
	if v.errs, err = os.CreateTemp(t.TempDir(), "stderr"); err != nil {
		t.Fatal(err)
	}
	v.cmd.Stderr = v.errs
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(v.out)
		r := bufio.NewReader(out)
		for {
			p := make([]byte, 4096)
			n, err := r.Read(p)
			v.out <- p[:n]
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(v.kill)
	v.D.Open(v.emit)
	return v
}

// kill ends a process that a failed test left.
func (v *Live) kill() {
	if v.cmd.ProcessState == nil {
		_ = v.cmd.Process.Kill()
		for range v.out {
		}
		_ = v.cmd.Wait()
	}
	v.errs.Close()
}

// emit takes an output; a message is written at once.
func (v *Live) emit(_ int64, o dialogue.Output) {
	v.outputs = append(v.outputs, o)
	if o.Send != nil {
		if _, err := v.in.Write(o.Send); err != nil {
			v.t.Logf("a message was not taken: %v", err)
		}
	}
}

// read feeds what the agent says next; false when its output is over.
func (v *Live) read() bool {
	v.t.Helper()
	if p := v.held; p != nil {
		v.held = nil
		v.D.Feed(p, v.emit)
		return true
	}
	p, ok := v.next()
	if ok {
		v.D.Feed(p, v.emit)
	}
	return ok
}

func (v *Live) next() ([]byte, bool) {
	v.t.Helper()
	select {
	case p, ok := <-v.out:
		return p, ok
	case <-time.After(patience):
		v.fail("the agent says nothing")
		return nil, false
	}
}

// Hold waits until the agent has said a text, and keeps all of that from the
// dialogue until it is read.
func (v *Live) Hold(text string) {
	v.t.Helper()
	for !bytes.Contains(v.held, []byte(text)) {
		p, ok := v.next()
		if !ok {
			v.fail("it never says " + text)
		}
		v.held = append(v.held, p...)
	}
}

// Until reads until an output is as is wants, and returns it.
func (v *Live) Until(what string, is func(dialogue.Output) bool) dialogue.Output {
	v.t.Helper()
	for {
		for v.seen < len(v.outputs) {
			o := v.outputs[v.seen]
			v.seen++
			if is(o) {
				return o
			}
		}
		if !v.read() {
			v.fail("there is no " + what)
		}
	}
}

// fail ends the test, with all that was said.
func (v *Live) fail(why string) {
	v.t.Helper()
	v.t.Fatalf("%s:\n%s\nand on standard error:\n%s", why, v.Transcript(), v.stderr())
}

// Transcript is all that was put out.
func (v *Live) Transcript() string {
	var b strings.Builder
	for _, o := range v.outputs {
		b.WriteString(Describe(o) + "\n")
	}
	return b.String()
}

func (v *Live) stderr() string {
	text, _ := os.ReadFile(v.errs.Name())
	return string(text)
}

// Prompt begins a turn.
func (v *Live) Prompt(text string) {
	v.t.Helper()
	v.must(v.D.Prompt([]byte(text), v.emit))
}

// Steer puts a text into the turn.
func (v *Live) Steer(text string) {
	v.t.Helper()
	v.must(v.D.Steer([]byte(text), v.emit))
}

// Answer answers an ask.
func (v *Live) Answer(q dialogue.Ask, a dialogue.Answer) {
	v.t.Helper()
	v.must(v.D.Answer(q.ID, a, v.emit))
}

// Interrupt interrupts the turn.
func (v *Live) Interrupt() { v.D.Interrupt(v.emit) }

func (v *Live) must(err error) {
	v.t.Helper()
	if err != nil {
		v.fail(err.Error())
	}
}

// Asked waits for the next ask.
func (v *Live) Asked() dialogue.Ask {
	v.t.Helper()
	return *v.Until("ask", func(o dialogue.Output) bool { return o.Ask != nil }).Ask
}

// Did waits for an event that has the text in it.
func (v *Live) Did(kind agent.EventKind, text string) {
	v.t.Helper()
	v.Until(string(kind)+" "+text, func(o dialogue.Output) bool {
		return o.Event != nil && o.Event.Kind == kind && strings.Contains(o.Event.Text, text)
	})
}

// Ended waits for the end of the turn, which must be this one and have the
// text in its reply or error.
func (v *Live) Ended(status agent.Status, text string) agent.Outcome {
	v.t.Helper()
	o := *v.Until("end of the turn", func(o dialogue.Output) bool { return o.Ended != nil }).Ended
	if o.Status != status || !strings.Contains(string(o.Reply)+o.Error, text) {
		v.fail("it " + DescribeOutcome(o) + ", not " + string(status) + " with " + text)
	}
	if len(o.Unknown) > 0 {
		v.t.Errorf("the agent says what nobody knows: %v", o.Unknown)
	}
	return o
}

// Again lets another dialogue go on from the state of this one.
func (v *Live) Again() {
	v.t.Helper()
	state, err := v.D.State()
	v.must(err)
	v.D = v.fresh()
	v.must(v.D.Restore(state))
}

// Close ends the agent's input, reads its output to the end, and wants that it
// exits with one of the codes.
func (v *Live) Close(codes ...int) {
	v.t.Helper()
	v.in.Close()
	for v.read() {
	}
	v.D.Finish(v.emit)
	if err := v.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		v.t.Fatal(err)
	}
	code := v.cmd.ProcessState.ExitCode()
	for _, want := range codes {
		if code == want {
			return
		}
	}
	v.fail("it exits with " + v.cmd.ProcessState.String())
}

// Steerable reads until the turn takes a text.
func (v *Live) Steerable() {
	v.t.Helper()
	for !v.D.Steerable() {
		if !v.read() || !v.D.Busy() {
			v.fail("it cannot be steered")
		}
	}
}
