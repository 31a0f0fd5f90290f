package dialoguetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// Real is a real agent that is to be spoken with.
type Real struct {
	Name      string
	Transport string
	New       func(dialogue.Options) dialogue.Dialogue
	Needs     string                      // the step of a script whose command needs a permission
	Two       string                      // a script that asks for two permissions at once, for touching "one" and "two"
	Questions string                      // the mode in which it asks questions
	Files     map[string]string           // its settings, below its home; MODEL stands for the server's address
	Env       func(model string) []string // its environment
	Exits     map[agent.Status]int        // with what it exits after a turn that ended so
	More      map[string]func(*Rehearsal) // cases of its own
}

// Rehearsal is one case: a real agent in a home and a workspace of its own.
type Rehearsal struct {
	T     *testing.T
	Real  Real
	Dir   string // the workspace
	home  string
	model string
	path  string
}

// Run runs all cases.
func (r Real) Run(t *testing.T) {
	path := installed(t, r.Name)
	address := model(t)
	cases := map[string]func(*Rehearsal){
		"allowed": allowed, "denied": denied, "two at once": twoAtOnce, "question": asksBack, "interrupt": interrupted, "interrupt while asking": interruptedAsking,
		"interrupt at once": interruptedAtOnce, "interrupt again": interruptedWarm, "steer": steered, "steer at the end": steeredLate, "second turn": secondTurn,
		"resume": resumed, "unknown session": unknown, "refusal": refused, "broken": broken, "adoption": adopted, "full": full, "killed": killed,
	}
	for name, f := range r.More {
		cases[name] = f
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Rehearsal{T: t, Real: r, Dir: t.TempDir(), home: t.TempDir(), model: address, path: path}
			for name, text := range r.Files {
				file := filepath.Join(c.home, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "MODEL", address)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f(c)
		})
	}
}

// Start starts the agent. change changes how; nil for nothing.
func (c *Rehearsal) Start(change func(*dialogue.Options)) *Live {
	c.T.Helper()
	o := dialogue.Options{CWD: c.Dir, Version: "test"}
	if change != nil {
		change(&o)
	}
	entry := agent.Entry{PassEnv: []string{"*_API_KEY"}}
	if o.Full {
		entry.Permissions = agent.PermissionsFull
	}
	table, err := agent.Builtin().With(map[string]agent.Entry{c.Real.Name: entry})
	if err != nil {
		c.T.Fatal(err)
	}
	o.Agent, _ = table.Lookup(c.Real.Name)
	launch, err := o.Agent.LaunchOver(c.Real.Transport, agent.Request{Path: c.path, Session: o.Session, Model: o.Model, Effort: o.Effort})
	if err != nil {
		c.T.Fatal(err)
	}
	base := append(c.Real.Env(c.model), "HOME="+c.home, "TMPDIR="+c.T.TempDir(), "LANG=C.UTF-8", "PATH="+filepath.Dir(c.path)+":/usr/local/bin:/usr/bin:/bin")
	return startLive(c.T, launch, agent.Environ(base, o.Agent, launch.Env...), c.Dir, func() dialogue.Dialogue { return c.Real.New(o) })
}

// Needing is a script with one command that needs a permission.
func (c *Rehearsal) Needing(command string, more ...string) string {
	return strings.Join(append([]string{c.Real.Needs + ": " + command}, more...), "\n")
}

// Touched tells whether a file of the workspace is there.
func (c *Rehearsal) Touched(name string) bool {
	_, err := os.Stat(filepath.Join(c.Dir, name))
	return err == nil
}

func (c *Rehearsal) touched(name string, want bool) {
	c.T.Helper()
	if c.Touched(name) != want {
		c.T.Errorf("that %s is there is %v", name, !want)
	}
}

// until waits for a file of the workspace.
func (c *Rehearsal) until(v *Live, name string) {
	c.T.Helper()
	for deadline := time.Now().Add(patience); !c.Touched(name); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			v.fail(name + " does not appear")
		}
	}
}

func (c *Rehearsal) close(v *Live, last agent.Status) {
	c.T.Helper()
	v.Close(c.Real.Exits[last])
}

func (c *Rehearsal) touch(name string) string { return "touch " + filepath.Join(c.Dir, name) }

// long is a command that makes a file and then works for as long as nobody
// stops it.
func (c *Rehearsal) long() string {
	return "touch " + filepath.Join(c.Dir, "begun") + " && python3 -c 'import time; time.sleep(100)'"
}
