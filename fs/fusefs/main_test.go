package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// A test never looks into its own mount: its clients are other processes, and
// some are this program again, told by this variable what to be.
const roleVar = "FUSEFS_TEST_ROLE"

// patience is how long anything may take before a test gives up. No test
// passes or fails by being faster than it.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// play is this program as a client or as a server to be killed.
func play(role string, args []string) int {
	var err error
	switch role {
	case "serve":
		err = serveUntilKilled(args[0])
	case "read":
		err = workAtReading(args[0])
	case "list":
		err = workAtListing(args[0])
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// self returns a command that runs this program in a role.
func self(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	return cmd
}

// usable is whether anything can be mounted here; it is tried once.
var usable = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "fusefs-test-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	s, err := Mount(dir, newFolder(), Options{})
	if err != nil {
		return err
	}
	return s.Unmount()
})

// needFUSE skips a test where nothing can be mounted. Failures of another kind
// are for the test to find.
func needFUSE(t testing.TB) {
	t.Helper()
	if err := usable(); fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Denied) {
		t.Skipf("FUSE cannot be used here: %v", err)
	}
}

// needControl skips a test where FUSE connections cannot be broken: by others
// than root, where the file system that controls them is not mounted.
func needControl(t testing.TB) {
	t.Helper()
	const magic = 0x65735543
	var st unix.Statfs_t
	if err := unix.Statfs(connections, &st); !privileged() && (err != nil || st.Type != magic) {
		t.Skipf("no control file system is mounted on %s", connections)
	}
}

// need skips a test where a program is missing.
func need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// mountPoint returns a directory to mount on. It is not a t.TempDir, whose
// removal would go through a mount that a failed test left.
func mountPoint(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fusefs-test-")
	if err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(dir, "mnt")
	t.Cleanup(func() {
		if _, err := Recover(point); err != nil {
			t.Errorf("what is left on %s: %v", point, err)
			return
		}
		os.Remove(point)
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return point
}

// mountTree serves root until the test ends.
func mountTree(t testing.TB, root fs.Dir, opt Options) *Server {
	t.Helper()
	needFUSE(t)
	if opt.Log == nil {
		opt.Log = testLog(t, slog.LevelWarn)
	}
	s, err := Mount(mountPoint(t), root, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lines is a log that a test can look at.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testLog shows the log only if the test fails.
func testLog(t testing.TB, level slog.Level) *slog.Logger {
	out := &lines{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", out)
		}
	})
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// outcome is how a client ended.
type outcome struct {
	stdout, stderr string
	code           int // -1 by a signal
}

// client runs a program with the mount point in $M. One that does not end is
// killed, and the test fails.
func client(t testing.TB, s *Server, program string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "M="+s.Dir(), "LC_ALL=C")
	cmd.Dir = "/"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: %v", program, err)
		return outcome{code: -1}
	}
	if ctx.Err() != nil {
		t.Errorf("%s %q did not end; it said %q and %q", program, args, &stdout, &stderr)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// sh runs a script of the standard shell.
func sh(t testing.TB, s *Server, script string) outcome {
	t.Helper()
	return client(t, s, "sh", "-c", script)
}

// want fails the test unless a client succeeded, quietly, with this output.
func (o outcome) want(t testing.TB, stdout string) {
	t.Helper()
	if o.code != 0 || o.stderr != "" || o.stdout != stdout {
		t.Errorf("got status %d, stdout %q, stderr %q; want 0, %q and nothing", o.code, o.stdout, o.stderr, stdout)
	}
}

// wantRefused fails the test unless a client failed and said why.
func (o outcome) wantRefused(t testing.TB, why string) {
	t.Helper()
	if o.code == 0 || !strings.Contains(o.stderr, why) {
		t.Errorf("got status %d, stdout %q, stderr %q; want a failure that says %q", o.code, o.stdout, o.stderr, why)
	}
}

// background is a client that goes on while the test does other things.
type background struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    lines
	ended  chan struct{}
	stdin  *os.File
	status error
}

// start runs a program in the background; it is killed at the end of the test.
func start(t testing.TB, s *Server, program string, args ...string) *background {
	t.Helper()
	cmd := exec.Command(program, args...)
	if s != nil {
		cmd.Env = append(os.Environ(), "M="+s.Dir(), "LC_ALL=C")
	}
	cmd.Dir = "/"
	return launch(t, cmd)
}

func launch(t testing.TB, cmd *exec.Cmd) *background {
	t.Helper()
	b := &background{t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &b.out, &b.out
	cmd.WaitDelay = time.Second
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, b.stdin = r, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	go func() { b.status = cmd.Wait(); close(b.ended) }()
	t.Cleanup(func() {
		b.stdin.Close()
		cmd.Process.Kill()
		b.wait()
	})
	return b
}

func (b *background) signal(sig syscall.Signal) {
	b.t.Helper()
	if err := b.cmd.Process.Signal(sig); err != nil {
		b.t.Fatal(err)
	}
}

// wait fails the test if the client does not end.
func (b *background) wait() {
	b.t.Helper()
	select {
	case <-b.ended:
	case <-time.After(patience):
		b.t.Errorf("%v does not end; it said %q", b.cmd.Args, &b.out)
	}
}

// says waits until the client has written something. One that ends without
// saying it fails the test.
func (b *background) says(part string) {
	b.t.Helper()
	over := false
	eventually(b.t, fmt.Sprintf("%v to say %.60q", b.cmd.Args, part), func() bool {
		select {
		case <-b.ended:
			over = true
		default:
		}
		return strings.Contains(b.out.String(), part) || over
	})
	if said := b.out.String(); !strings.Contains(said, part) {
		b.t.Fatalf("%v said only %.200q", b.cmd.Args, said)
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}
