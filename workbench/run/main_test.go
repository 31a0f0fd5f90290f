package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// TestMain lets the test binary be its own shim, and the agents that the tests
// need.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "shim":
			syscall.Exit(Shim(os.Args[2])) // os.Exit sleeps a second under the race detector
		case "deaf-shim":
			deafShim(os.Args[2])
		case "dying-shim":
			os.Exit(9)
		case "mute-shim":
			os.Stdout.Close()
			time.Sleep(time.Hour)
		case "no-shim":
			fmt.Println("hello")
			os.Stdout.Close()
			time.Sleep(time.Hour)
		case "daemon":
			daemon(os.Args[2], os.Args[3], len(os.Args) > 4)
		case "terminal-daemon":
			terminalDaemon(os.Args[2], os.Args[3])
		case "agent":
			syscall.Exit(agent(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// deafShim takes a run and starts its agent as any shim, and does nothing
// from then on.
func deafShim(dir string) {
	s := &shim{told: map[proc.ID]bool{}}
	s.greet(s.take(dir))
	s.launch()
	time.Sleep(time.Hour)
}

// daemon starts a run that was created and stays until it is killed. One that
// takes orphans looks after them.
func daemon(root, run string, takes bool) {
	m, err := New(root, "/proc/self/exe", "shim")
	if err == nil && takes {
		err = m.TakeOrphans()
		go func() {
			for ; ; time.Sleep(10 * time.Millisecond) {
				m.Tidy()
			}
		}()
	}
	if err == nil {
		_, err = m.Start(run)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	time.Sleep(time.Hour)
}

// agent is what the test binary does as an agent; its exit code.
func agent(what string, args []string) int {
	switch what {
	case "dump": // say what it was given
		dump(args[0])
	case "deaf": // ignore TERM and tell the file its pid
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		tell(args[0])
		time.Sleep(time.Hour)
	case "signals": // write down which come, and end at the named one
		signals(args[0], args[1])
	case "stopped":
		tell(args[0])
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		time.Sleep(time.Hour)
	case "away": // start a deaf one in a session of its own, with this environment or that, and leave it
		start(&syscall.SysProcAttr{Setsid: true}, args[1:], "deaf", args[0])
	case "nasty": // all of these
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		litter(args[0], 4, args[1:]...)
		tell(args[0])
		time.Sleep(time.Hour)
	case "litter": // leave all of these
		litter(args[0], 4, "PATH=/bin")
	case "bomb":
		for {
			start(nil, nil, "deaf", args[0])
			start(nil, nil, "bomb", args[0])
			tell(args[0])
			time.Sleep(50 * time.Millisecond)
		}
	}
	return 0
}

// litter starts children of every bad kind, and waits until n pids are told.
func litter(file string, n int, env ...string) {
	start(nil, nil, "deaf", file)
	start(&syscall.SysProcAttr{Setpgid: true}, nil, "deaf", file)
	start(nil, nil, "stopped", file)
	_ = start(&syscall.SysProcAttr{Setsid: true}, nil, append([]string{"away", file}, env...)...).Wait()
	for len(told(file)) < n {
		time.Sleep(5 * time.Millisecond)
	}
}

func start(attr *syscall.SysProcAttr, env []string, args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", append([]string{"agent"}, args...)...)
	if c.SysProcAttr = attr; len(env) > 0 {
		c.Env = env
	}
	if err := c.Start(); err != nil {
		fmt.Println(err)
	}
	return c
}

// tell appends this process's identity to the file.
func tell(file string) {
	id, err := proc.Of(os.Getpid())
	if err != nil {
		panic(err)
	}
	b, _ := json.Marshal(id)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		panic(err)
	}
}

// told returns the identities in the file.
func told(file string) (ids []proc.ID) {
	b, _ := os.ReadFile(file)
	for line := range bytes.Lines(b) {
		var id proc.ID
		if json.Unmarshal(line, &id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// givenTo is what a dumping agent was given.
type givenTo struct {
	Args    [][]byte
	Env     [][]byte
	Dir     string
	Open    []string // its descriptors beyond the standard ones
	Flags   []int    // of the standard ones
	Umask   int
	Ignored uint64
	Blocked string
	PID     int
	PGID    int
	SID     int
	OwnTTY  bool
}

func dump(file string) {
	g := givenTo{Env: zeroed("environ"), PID: os.Getpid(), PGID: unix.Getpgrp(), Umask: unix.Umask(0)}
	unix.Umask(g.Umask)
	g.SID, _ = unix.Getsid(0)
	g.Dir, _ = os.Getwd()
	g.Args = zeroed("cmdline")[4:]
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd := number(e.Name())
		// The runtime's own are marked close-on-exec, so they were not inherited.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); fd > 2 && err == nil && flags&unix.FD_CLOEXEC == 0 {
			link, _ := os.Readlink("/proc/self/fd/" + e.Name())
			g.Open = append(g.Open, link)
		}
	}
	for fd := range uintptr(3) {
		flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		g.Flags = append(g.Flags, flags)
	}
	if tty, err := os.Open("/dev/tty"); err == nil {
		g.OwnTTY = true
		tty.Close()
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "SigBlk:"); ok {
			g.Blocked = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			g.Ignored, _ = strconv.ParseUint(strings.TrimSpace(v), 16, 64)
		}
	}
	b, err := json.Marshal(g)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// zeroed reads a list of texts from a file of /proc/self.
func zeroed(file string) [][]byte {
	raw, _ := os.ReadFile("/proc/self/" + file)
	return bytes.Split(bytes.TrimSuffix(raw, []byte{0}), []byte{0})
}

// bench is a manager with what its tests need.
type bench struct {
	*Manager
	t testing.TB

	mu       sync.Mutex
	warnings []string
}

// newBench makes a manager of an empty directory. Whatever runs in it at the
// test's end is stopped.
func newBench(t testing.TB, argv ...string) *bench {
	t.Helper()
	return benchAt(t, filepath.Join(t.TempDir(), "runs"), argv...)
}

func benchAt(t testing.TB, root string, argv ...string) *bench {
	t.Helper()
	if argv == nil {
		argv = []string{"/proc/self/exe", "shim"}
	}
	m, err := New(root, argv...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Manager: m, t: t}
	m.OnWarning = func(s string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.warnings = append(b.warnings, s)
	}
	t.Cleanup(func() {
		runs, _ := m.List()
		for _, r := range runs {
			if p, s, err := m.Adopt(r); err == nil && s == Live {
				b.stop(p)
			}
		}
		m.Close()
	})
	return b
}

// said returns the warnings so far.
func (b *bench) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.warnings, "\n")
}

// spec returns what starts argv in a new directory.
func (b *bench) spec(run string, argv ...string) Spec {
	return Spec{
		Run: run, Argv: argv, Dir: b.t.TempDir(), Grace: 200 * time.Millisecond,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + b.Path(run, tmpName)},
	}
}

// self returns the command line of the test binary as an agent.
func self(args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe, "agent"}, args...)
}

// start creates and starts a run.
func (b *bench) start(spec Spec) Process {
	b.t.Helper()
	if err := b.Create(spec, nil); err != nil {
		b.t.Fatal(err)
	}
	p, err := b.Start(spec.Run)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// end waits for the run's end.
func (b *bench) end(p Process) (Exit, bool) {
	b.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		b.t.Fatal("the run does not end")
	}
	return p.Exit()
}

// stop stops the run.
func (b *bench) stop(p Process) (Exit, bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		b.t.Fatal(err)
	}
	return p.Exit()
}

// adopt adopts a run and checks how it stands.
func (b *bench) adopt(run string, want Standing) Process {
	b.t.Helper()
	p, s, err := b.Adopt(run)
	if err != nil {
		b.t.Fatal(err)
	}
	if s != want {
		b.t.Fatalf("the run is %v, not %v", s, want)
	}
	return p
}

// shimOf returns who holds the run.
func (b *bench) shimOf(run string) proc.ID {
	b.t.Helper()
	h, ok := b.holder(run)
	if !ok {
		b.t.Fatal("nobody holds the run")
	}
	return h.ID
}

func (b *bench) holder(run string) (holder, bool) {
	b.t.Helper()
	dir, err := b.open(run)
	if err != nil {
		b.t.Fatal(err)
	}
	defer dir.Close()
	h, ok, err := readHolder(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return h, ok
}

// eventually waits until it holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// tells waits until n pids are in the file, and returns them.
func tells(t testing.TB, file string, n int) []proc.ID {
	t.Helper()
	eventually(t, fmt.Sprintf("%d processes told who they are", n), func() bool { return len(told(file)) >= n })
	return told(file)
}

// allGone checks that none of the processes lives.
func allGone(t testing.TB, ids []proc.ID) {
	t.Helper()
	for _, id := range ids {
		if id.Alive() {
			s, _ := proc.ReadStat(id.PID)
			t.Errorf("process %d (%s, state %c) still lives", id.PID, s.Comm, s.State)
		}
	}
}

// bystander starts a process that no manager may touch.
func bystander(t testing.TB) proc.ID {
	t.Helper()
	c := exec.Command("/bin/sleep", "3600")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	id, err := proc.Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
