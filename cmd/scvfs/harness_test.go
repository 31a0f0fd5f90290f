package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scvfs/ledger"
)

// patience is how long a test waits for something that is sure to come. It is
// long because nothing depends on it but how a failure looks.
const patience = 60 * time.Second

// binary is the program under test, built once, with the race detector when
// the tests have it.
var binary string

func TestMain(m *testing.M) {
	if code, ok := intruder(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scvfs-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "scvfs")
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program under test: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// needFUSE skips a test where nothing can be mounted.
func needFUSE(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	f.Close()
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Getuid() != 0 {
		t.Skip("no FUSE here: fusermount3 is missing (apt-get install fuse3)")
	}
}

// world is a daemon with a state, a mount and a workspace of its own. At the
// end of its test the ledger is checked, and nothing may be left: no process,
// no mount.
type world struct {
	t                        testing.TB
	dir, mount, state, place string
	config                   string
	seen                     string // the mount that scripts see; empty: mount
	args                     []string
	space                    string // network namespace of the daemon; empty: the test's own

	// What the daemon held when it was ready.
	files, routines int

	mu     sync.Mutex
	daemon *exec.Cmd
	exited chan struct{}
	log    bytes.Buffer
}

// newWorld makes a world with its daemon running. config is the text of its
// configuration file.
func newWorld(t testing.TB, config string, args ...string) *world {
	t.Helper()
	w := emptyWorld(t, config, args...)
	w.start()
	return w
}

func emptyWorld(t testing.TB, config string, args ...string) *world {
	t.Helper()
	needFUSE(t)
	dir, err := os.MkdirTemp("", "scvfs-world-")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, dir: dir, mount: filepath.Join(dir, "scv"), state: filepath.Join(dir, "state"), place: filepath.Join(dir, "shop"),
		config: filepath.Join(dir, "config.toml"), args: args,
	}
	if err := errors.Join(os.Mkdir(w.place, 0o700), os.WriteFile(w.config, []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

// start starts the daemon and waits until it is ready.
func (w *world) start() {
	w.t.Helper()
	if err := w.tryStart(); err != nil {
		w.t.Fatalf("the daemon did not start: %v\n%s", err, w.logged())
	}
}

func (w *world) tryStart() error {
	args := append([]string{binary, "serve", "--mount", w.mount, "--state", w.state, "--config", w.config}, w.args...)
	if w.space != "" {
		args = append([]string{"nsenter", "--net=/var/run/netns/" + w.space}, args...) // which becomes the daemon
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = w.place
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "XDG_RUNTIME_DIR="+filepath.Join(w.dir, "run"), "GORACE=halt_on_error=0 exitcode=66")
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		return err
	}
	write.Close()
	ready := make(chan error, 1)
	go w.collect(read, ready)
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	w.mu.Lock()
	w.daemon, w.exited = cmd, exited
	w.mu.Unlock()
	select {
	case err := <-ready:
		if err == nil {
			w.files, w.routines = w.held()
		}
		return err
	case <-time.After(patience):
		return errors.New("no ready line")
	}
}

// collect keeps the daemon's log; ready is told of its ready line, or of its
// end before that.
func (w *world) collect(from *os.File, ready chan<- error) {
	defer from.Close()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		w.mu.Lock()
		w.log.WriteString(line)
		w.mu.Unlock()
		if strings.HasPrefix(line, "scvfs: ready") {
			ready <- nil
			ready = make(chan error, 1)
		}
		if err != nil {
			select {
			case ready <- errors.New("it ended before it was ready"):
			default:
			}
			return
		}
	}
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.daemon.Process.Pid
}

// signal sends the daemon a signal and waits until it has gone.
func (w *world) signal(sig syscall.Signal) {
	w.t.Helper()
	w.mu.Lock()
	cmd, exited := w.daemon, w.exited
	w.mu.Unlock()
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatal(err)
	}
	w.waitGone(exited)
}

func (w *world) waitGone(exited <-chan struct{}) {
	w.t.Helper()
	select {
	case <-exited:
	case <-time.After(patience):
		w.t.Fatalf("the daemon does not stop\n%s", w.logged())
	}
}

func (w *world) stop() { w.t.Helper(); w.signal(syscall.SIGTERM) }
func (w *world) kill() { w.t.Helper(); w.signal(syscall.SIGKILL) }

// command returns a shell command with what it sees of the tree in $M, the
// session's jobs in $J, the daemon's own mount in $MOUNT, and the workspace as
// its directory.
func (w *world) command(shell, script string) *exec.Cmd {
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = w.place
	m := w.mount
	if w.seen != "" {
		m = w.seen
	}
	cmd.Env = append(os.Environ(), "MOUNT="+w.mount, "M="+m, "S="+m+"/sessions/shop", "J="+m+"/sessions/shop/jobs", "HOME="+w.dir, "LC_ALL=C.UTF-8")
	return cmd
}

// try runs a bash script and returns its output of both kinds.
func (w *world) try(script string) (string, error) {
	w.t.Helper()
	cmd := w.command("bash", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return out.String(), err
	case <-time.After(patience):
		cmd.Process.Kill()
		w.t.Fatalf("hangs: %s\n%s", script, w.logged())
		return "", nil
	}
}

// sh runs a script that must succeed.
func (w *world) sh(script string) string {
	w.t.Helper()
	out, err := w.try(script)
	if err != nil {
		w.t.Fatalf("%s\n%v\n%s\ndaemon: %s", script, err, out, w.logged())
	}
	return out
}

// want runs a script that must succeed and print exactly this.
func (w *world) want(script, out string) {
	w.t.Helper()
	if got := w.sh(script); got != out {
		w.t.Fatalf("%s\n got %q\nwant %q", script, got, out)
	}
}

// refused runs a script that must fail and print something with each part.
func (w *world) refused(script string, parts ...string) {
	w.t.Helper()
	out, err := w.try(script)
	if err == nil {
		w.t.Fatalf("%s\nsucceeded: %s", script, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			w.t.Fatalf("%s\nsaid %q, not %q", script, out, part)
		}
	}
}

// session makes the session shop in the workspace.
func (w *world) session() *world {
	w.t.Helper()
	w.sh(`mkdir "$S"`)
	return w
}

// end stops the world and fails the test for anything that is left.
func (w *world) end() {
	w.endDaemon()
	if strings.Contains(w.logged(), "DATA RACE") || strings.Contains(w.logged(), "panic") {
		w.t.Errorf("the daemon says:\n%s", w.logged())
	}
	for _, line := range w.processes() {
		w.t.Errorf("left running: %s", line)
	}
	w.checkLedger()
	if mounts := w.mounts(); len(mounts) > 0 {
		w.t.Errorf("left mounted: %q", mounts)
		for range mounts {
			syscall.Unmount(w.mount, syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Error(err)
	}
	if w.t.Failed() {
		w.t.Logf("daemon:\n%s", w.logged())
	}
}

// endDaemon cancels what runs, so that the shims go too, and stops the daemon.
func (w *world) endDaemon() {
	w.mu.Lock()
	running := w.daemon != nil
	w.mu.Unlock()
	if !running {
		return
	}
	select {
	case <-w.exited:
		if err := w.tryStart(); err != nil {
			w.t.Errorf("the daemon does not start at the end: %v", err)
			return
		}
	default:
	}
	if out, err := w.try(`for j in "$M"/active/*; do j=$(readlink -f "$j"); [ ! -e "$j" ] || { echo cancel > "$j/ctl" || :; cat "$j/wait" >/dev/null; }; done 2>&1`); err != nil {
		w.t.Errorf("cancelling what is left: %v\n%s", err, out)
	}
	w.checkHeld()
	w.stop()
}

// held counts the daemon's open files and its goroutines.
func (w *world) held() (files, routines int) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.pid()))
	if err != nil {
		w.t.Error(err)
	}
	out, err := w.try(`sed -n 's/^scvfs_goroutines //p' "$M/metrics"`)
	if err == nil {
		routines, err = strconv.Atoi(strings.TrimSpace(out))
	}
	if err != nil {
		w.t.Errorf("scvfs_goroutines: %v, %s", err, out)
	}
	return len(entries), routines
}

// slack is what may come and go by itself: readers of /dev/fuse with their
// pipes, inotify, and timers.
const slack = 20

// checkHeld waits until the daemon, whose jobs have all ended, holds no more
// than it did when it was ready.
func (w *world) checkHeld() {
	for deadline := time.Now().Add(patience / 4); ; time.Sleep(20 * time.Millisecond) {
		files, routines := w.held()
		if w.t.Failed() || files <= w.files+slack && routines <= w.routines+slack {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("the daemon holds %d files and %d goroutines; when it was ready it was %d and %d", files, routines, w.files, w.routines)
			return
		}
	}
}

// processes returns what still runs of this world, by its directory in the
// command line or environment.
func (w *world) processes() []string {
	var left []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(args, []byte(w.dir)) || bytes.Contains(env, []byte("TMPDIR="+w.state)) {
			left = append(left, strings.ReplaceAll(e.Name()+" "+string(args), "\x00", " "))
		}
	}
	return left
}

func (w *world) mounts() []string {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	var left []string
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, " "+w.mount+" ") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left
}

// checkLedger verifies the ledger's invariants, the daemon being stopped.
func (w *world) checkLedger() {
	if _, err := os.Stat(filepath.Join(w.state, "ledger.db")); err != nil {
		return
	}
	led, err := ledger.Open(w.state, ledger.Options{})
	if err != nil {
		w.t.Errorf("the ledger does not open at the end: %v", err)
		return
	}
	defer led.Close()
	for _, err := range led.Check() {
		w.t.Errorf("ledger: %v", err)
	}
}
