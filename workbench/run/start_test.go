package run

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

func TestAgentsEndingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   Exit
	}{
		"success":  {"exit 0", Exit{}},
		"code":     {"exit 144", Exit{Code: 144}},
		"signal":   {"kill -9 $$", Exit{Code: -1, Signal: "KILL"}},
		"own term": {"kill -TERM $$", Exit{Code: -1, Signal: "TERM"}},
		"pipe":     {"kill -PIPE $$", Exit{Code: -1, Signal: "PIPE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			began := time.Now()
			x, ok := b.end(b.start(b.spec("r", "/bin/sh", "-c", c.script)))
			if x.Ended.Before(began.Add(-time.Second)) || x.Ended.After(time.Now().Add(time.Second)) {
				t.Errorf("it ended at %v", x.Ended)
			}
			if x.Ended = (time.Time{}); !ok || x != c.want {
				t.Errorf("got %+v, %v; want %+v", x, ok, c.want)
			}
			if s, err := b.Standing("r"); err != nil || s != Ended {
				t.Errorf("it stands as %v, %v", s, err)
			}
		})
	}
}

func TestOutputIsTheFiles(t *testing.T) {
	t.Parallel()
	script := "echo one; echo two >&2; echo three"
	b := newBench(t)
	b.end(b.start(b.spec("apart", "sh", "-c", script)))
	merged := b.spec("merged", "sh", "-c", script)
	merged.MergeStderr = true
	b.end(b.start(merged))
	for file, want := range map[string]string{
		b.Path("apart", "stdout"): "one\nthree\n", b.Path("apart", "stderr"): "two\n",
		b.Path("merged", "stdout"): "one\ntwo\nthree\n", b.Path("merged", "stderr"): "",
	} {
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
		}
	}
}

// dumped runs a dumping agent and returns what it was given.
func dumped(t *testing.T, b *bench, spec Spec, more ...string) givenTo {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump")
	spec.Argv = append(self("dump", file), more...)
	if x, ok := b.end(b.start(spec)); !ok || x.Code != 0 {
		t.Fatalf("it ended with %+v, %v", x, ok)
	}
	var g givenTo
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestArgumentsAndEnvironmentArriveByteForByte(t *testing.T) {
	t.Parallel()
	all := make([]byte, 0, 255)
	for i := 1; i < 256; i++ {
		all = append(all, byte(i))
	}
	args := []string{"", "-", "--help", "a b", "it's \"quoted\"\n", "\xff\xfe", string(all), "\ufffd", "<&>\u2028", strings.Repeat("x", 64<<10)}
	b := newBench(t)
	spec := b.spec("r", "replaced")
	spec.Env = append(spec.Env, "RAW="+string(all), "SCV_DEPTH=1")
	want := append(slices.Clone(spec.Env), "SCV_RUN=r", "SCV_RUN_DIR="+b.Path("r", ""))
	g := dumped(t, b, spec, args...)
	if len(g.Args) != len(args) {
		t.Fatalf("%d arguments arrived of %d", len(g.Args), len(args))
	}
	for i, a := range args {
		if string(g.Args[i]) != a {
			t.Errorf("argument %d arrived as %.80q, sent as %.80q", i, g.Args[i], a)
		}
	}
	if got := string(bytes.Join(g.Env, []byte{0})); got != strings.Join(want, "\x00") {
		t.Errorf("the environment is %q, not %q", got, want)
	}
}

func TestAgentBeginsClean(t *testing.T) {
	leak, err := unix.Open("/dev/zero", unix.O_RDONLY, 0) // what a careless library leaves inheritable
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	b := newBench(t)
	umask := 0o027
	spec := b.spec("r", "replaced")
	spec.Umask = &umask
	g := dumped(t, b, spec)
	if len(g.Open) != 0 {
		t.Errorf("it inherited %v", g.Open)
	}
	if dir, _ := filepath.EvalSymlinks(spec.Dir); g.Dir != dir {
		t.Errorf("it began in %s, not %s", g.Dir, dir)
	}
	if g.PGID != g.PID || g.SID != b.shimOf("r").PID || g.OwnTTY {
		t.Errorf("pid %d is in group %d and session %d, terminal %v", g.PID, g.PGID, g.SID, g.OwnTTY)
	}
	if g.Umask != umask || g.Ignored != 0 || strings.Trim(g.Blocked, "0") != "" {
		t.Errorf("umask %#o, ignored signals %#x, blocked %s", g.Umask, g.Ignored, g.Blocked)
	}
	if g.Flags[1]&unix.O_APPEND == 0 || g.Flags[2]&unix.O_APPEND == 0 {
		t.Errorf("its output does not append: %#x", g.Flags)
	}
	was := unix.Umask(0)
	unix.Umask(was)
	if g := dumped(t, b, b.spec("s", "replaced")); g.Umask != was {
		t.Errorf("without a umask of its own it has %#o, the daemon %#o", g.Umask, was)
	}
}

// A daemon under nohup, or started by a program that ignores or blocks
// signals, passes that on to its shims; its agents must not have it.
func TestAgentIgnoresAndBlocksNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "dump")
	if err := b.Create(b.spec("r", self("dump", file)...), nil); err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	script := fmt.Sprintf(`trap '' HUP INT TSTP TTIN TTOU PIPE USR2 CHLD; exec "%s" shim "%s"`, exe, b.Path("r", ""))
	c := exec.Command("/bin/sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := startBlocked(c, unix.SIGUSR2, unix.SIGTERM, unix.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	var g givenTo
	raw, _ := os.ReadFile(file)
	if err := json.Unmarshal(raw, &g); err != nil || g.Ignored != 0 || strings.Trim(g.Blocked, "0") != "" {
		t.Errorf("it ignores %#x and blocks %s, %v", g.Ignored, g.Blocked, err)
	}
	if x, ok := b.adopt("r", Ended).Exit(); !ok || x.Code != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}

// startBlocked starts a command with signals blocked.
func startBlocked(c *exec.Cmd, signals ...unix.Signal) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, was unix.Sigset_t
	for _, sig := range signals {
		set.Val[0] |= 1 << (sig - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &was); err != nil {
		return err
	}
	return errors.Join(c.Start(), unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil))
}

func TestShimIsCutOff(t *testing.T) {
	leak, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	b := newBench(t)
	p := b.start(b.spec("r", "sleep", "3600"))
	eventually(t, "the agent runs", func() bool { return p.PID() != 0 })
	pid := b.shimOf("r").PID
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		if link == "/dev/zero" || number(e.Name()) <= 2 && link != "/dev/null" {
			t.Errorf("descriptor %s of the shim is %s", e.Name(), link)
		}
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); cwd != "/" {
		t.Errorf("it is in %s", cwd)
	}
	if env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); bytes.Contains(env, []byte("PATH=")) {
		t.Errorf("it has the daemon's environment: %q", env)
	}
	if o := b.Origin(p.PID()); o.Run != "r" {
		t.Errorf("the agent is said to be %+v", o)
	}
	if o := b.Origin(os.Getpid()); o.Run != "" {
		t.Errorf("the test is said to be %+v", o)
	}
	b.stop(p)
}

func TestStdinArrivesByteForByte(t *testing.T) {
	t.Parallel()
	want := make([]byte, 1<<20)
	_, _ = rand.Read(want)
	b := newBench(t)
	spec := b.spec("r", "cat")
	spec.Stdin = StdinFile
	if err := b.Create(spec, bytes.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	p, err := b.Start("r")
	if err != nil {
		t.Fatal(err)
	}
	b.end(p)
	if got, _ := os.ReadFile(b.Path("r", "stdout")); !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, and not those %d", len(got), len(want))
	}
}

func TestFIFOOutlivesItsWritersUntilItIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec("r", "cat")
	spec.Stdin = StdinFIFO
	p := b.start(spec)
	f, err := b.Follow("r", "stdout")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, want := range []string{"one\n", "one\ntwo\n"} {
		in, err := b.Input("r")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, []string{"one\n", "two\n"}[i]); err != nil {
			t.Fatal(err)
		}
		for got := ""; got != want; {
			select {
			case <-f.C():
			case <-time.After(patience):
				t.Fatalf("the output is %q, not %q", got, want)
			}
			raw, _ := os.ReadFile(b.Path("r", "stdout"))
			got = string(raw)
		}
		in.Close()
	}
	if err := b.EndInput("r"); err != nil {
		t.Fatal(err)
	}
	if x, ok := b.end(p); !ok || x.Code != 0 || x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if _, err := b.Input("r"); !fault.Is(err, fault.Gone) {
		t.Errorf("input after the end: %v", err)
	}
}

func TestStartErrorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, plain := write("text", "no program\n", 0o755), write("plain", "#!/bin/sh\n", 0o644)
	orphan := write("orphan", "#!/no/such/interpreter\n", 0o755)
	for name, c := range map[string]struct {
		argv []string
		dir  string
		want string
	}{
		"no program":      {[]string{filepath.Join(dir, "none")}, dir, filepath.Join(dir, "none") + " does not exist"},
		"not in PATH":     {[]string{"no-such-program"}, dir, `"no-such-program" is in no directory`},
		"no directory":    {[]string{"/bin/true"}, filepath.Join(dir, "gone"), "the directory " + filepath.Join(dir, "gone") + " does not exist"},
		"no dir, no prog": {[]string{"/no/program"}, filepath.Join(dir, "gone"), "the directory " + filepath.Join(dir, "gone")},
		"file as dir":     {[]string{"/bin/true"}, text, text + " is no directory"},
		"format":          {[]string{text}, dir, "no program of this machine"},
		"not executable":  {[]string{plain}, dir, "permission denied"},
		"directory":       {[]string{dir}, "/", "permission denied"},
		"interpreter":     {[]string{orphan}, dir, "interpreter"},
		"too long":        {[]string{"/bin/true", strings.Repeat("x", 1<<20)}, dir, "more than the kernel takes"},
		"relative":        {[]string{"./none"}, dir, filepath.Join(dir, "none") + " does not exist"},
	} {
		run := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		spec := b.spec(run, c.argv...)
		spec.Dir = c.dir
		x, ok := b.end(b.start(spec))
		if !ok || x.Code != -1 || !strings.Contains(x.StartError, c.want) {
			t.Errorf("%s: got %+v, %v; want %q", name, x, ok, c.want)
		}
	}
}

func TestRunStartsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	if err := b.Create(b.spec("r", "sh", "-c", "echo ran >> "+file+"; sleep 0.1"), nil); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			p, err := b.Start("r")
			if err == nil {
				<-p.Done()
			}
			errs <- err
		}()
	}
	started := 0
	for range cap(errs) {
		switch err := <-errs; {
		case err == nil:
			started++
		case !fault.Is(err, fault.Done):
			t.Errorf("a second start: %v", err)
		}
	}
	if raw, _ := os.ReadFile(file); started != 1 || string(raw) != "ran\n" {
		t.Errorf("%d starts succeeded, and the agent wrote %q", started, raw)
	}
	if left, _ := filepath.Glob(b.Path("r", ".*")); len(left) != 0 {
		t.Errorf("the losers left %v", left)
	}
}

func TestShimThatNeverHasTheRunIsAnErrorAndTakesNothing(t *testing.T) {
	for _, kind := range []string{"dying-shim", "mute-shim", "no-shim"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "/proc/self/exe", kind)
			if err := b.Create(b.spec("r", "true"), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Start("r"); !fault.Is(err, fault.Internal) {
				t.Errorf("it started: %v", err)
			}
			if _, taken := b.holder("r"); taken {
				t.Error("the run is taken")
			}
			if _, err := b.Start("none"); !fault.Is(err, fault.NotFound) {
				t.Errorf("a run without directory: %v", err)
			}
		})
	}
}

func TestUpgradeUnderTheDaemonChangesNothing(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "scvfs")
	raw, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(exe, raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, exe, "shim")
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("#!/bin/false\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if x, ok := b.end(b.start(b.spec("r", "sh", "-c", "exit 5"))); !ok || x.Code != 5 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}
