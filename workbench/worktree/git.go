package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// How long one git command may take.
const (
	quickLimit = 20 * time.Second // what reads a little
	longLimit  = 10 * time.Minute // what reads or writes a whole work tree, or the network
)

// killAfter is how long git has to put its lock files away once it is told to
// stop.
const killAfter = 2 * time.Second

// maxSaid is how much of git's standard error is kept: its end.
const maxSaid = 8 << 10

// Git versions below this one lack options that we use.
const oldestMajor, oldestMinor = 2, 31

// gitArgs keep git from running what a repository asks for, and from work
// that outlives the command.
var gitArgs = []string{
	"--no-pager", "--no-optional-locks", "--literal-pathspecs",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.untrackedCache=false",
	"-c", "core.alternateRefsCommand=:",
	"-c", "submodule.recurse=false",
	"-c", "worktree.useRelativePaths=false",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
}

// passed are the variables that git gets from the daemon's environment.
var passed = []string{"HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR"}

// environ is git's environment: no transport is allowed, nothing is asked for,
// and no variable of the daemon's that could redirect git is passed on. Of two
// values for one variable the later counts.
func environ(more ...string) []string {
	env := []string{
		"PATH=" + absolute(os.Getenv("PATH")), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_EDITOR=:",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TEMPLATE_DIR=", "GIT_PROXY_COMMAND=",
	}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// absolute drops what a search path names relative to the directory that git
// runs in.
func absolute(path string) string {
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, ":")
}

// command is one git command to run.
type command struct {
	dir   string
	args  []string
	env   []string // beyond the common environment
	in    io.Reader
	out   io.Writer
	limit time.Duration // quickLimit when 0
	held  []*lock       // locks that last as long as its processes
}

// result is how a command ended by itself.
type result struct {
	code int
	said string
}

// Git runs git in dir with fixed options that keep it from running anything
// which a repository asks for, in an environment of its own, for at most 20
// seconds, and writes its standard output to the writer. It does not keep the
// filters of a repository's configuration from running: a command that looks
// at a work tree's content should be one that a person might type there. Its
// processes end with ctx.
func Git(ctx context.Context, dir string, to io.Writer, args ...string) error {
	return command{dir: dir, out: to, args: args}.ok(ctx)
}

// Head is the commit that a directory's repository stands at; empty outside
// one, or before its first commit.
func Head(ctx context.Context, dir string) string {
	if !InRepository(dir) {
		return ""
	}
	head, _ := command{dir: dir, args: []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}}.line(ctx)
	return head
}

// InRepository tells without starting git whether an absolute path may lie in
// the work tree of a repository.
func InRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// find returns the git of the search path.
func find() (string, error) {
	for _, dir := range filepath.SplitList(absolute(os.Getenv("PATH"))) {
		if git, err := exec.LookPath(filepath.Join(dir, "git")); err == nil {
			return git, nil
		}
	}
	return "", fault.New(fault.Unsupported, "git is not installed, or not in PATH: install git %d.%d or later", oldestMajor, oldestMinor)
}

// verb is what git is asked to do, without the options before it.
func (c command) verb() string {
	for i := 0; i < len(c.args); i++ {
		if c.args[i] != "-c" {
			return c.args[i]
		}
		i++
	}
	return ""
}

// line runs a command whose output is one line, and returns it without its
// end. The line may itself hold newlines, as paths do.
func (c command) line(ctx context.Context) (string, error) {
	var out bytes.Buffer
	c.out = &out
	if err := c.ok(ctx); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// ok runs a command that must exit with 0.
func (c command) ok(ctx context.Context) error {
	res, err := c.run(ctx)
	if err != nil {
		return err
	}
	if res.code != 0 {
		return c.refused(res)
	}
	return nil
}

// run runs a command; the error is about git not running to its end. The
// goroutine keeps its thread, because a child is told of its parent's death by
// the death of the thread that started it.
func (c command) run(ctx context.Context) (result, error) {
	limit := c.limit
	if limit == 0 {
		limit = quickLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	said := &tail{}
	git, err := find()
	if err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, git, append(append([]string{}, gitArgs...), c.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.dir, environ(c.env...), c.in, c.out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = killAfter
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
	for _, l := range c.held {
		cmd.ExtraFiles = append(cmd.ExtraFiles, l.f)
	}
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // what of its group did not listen
	}
	return result{code: cmd.ProcessState.ExitCode(), said: said.String()}, c.ended(ctx, limit, cmd, err)
}

// ended tells why a command did not run to its end; nil when it did.
func (c command) ended(ctx context.Context, limit time.Duration, cmd *exec.Cmd, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Timeout, "git %s in %s took longer than %s and was stopped", c.verb(), c.dir, limit)
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "interrupted during git %s in %s", c.verb(), c.dir)
	case errors.As(err, &exit) && exit.Exited():
		return nil
	case errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil // a process that git left behind holds its standard error
	}
	return fault.New(fault.Internal, "git %s in %s: %w", c.verb(), c.dir, err)
}

// refused puts the exit of a command into a sentence.
func (c command) refused(res result) error {
	said := oneLine(res.said)
	has := func(s string) bool { return strings.Contains(said, s) }
	switch {
	case has("No space left on device"), has("Disk quota exceeded"):
		return fault.New(fault.NoSpace, "the disk is full: git %s in %s: %s", c.verb(), c.dir, said)
	case has("detected dubious ownership"):
		return fault.New(fault.Denied, "%s belongs to another user, so git refuses to work there: git config --global --add safe.directory DIR allows it", c.dir)
	case has("not a git repository"), has("must be run in a work tree"):
		return fault.New(fault.Invalid, "%s does not lie in a git checkout: run git init there, or ask for no worktree", c.dir)
	case has("Permission denied"), has("Read-only file system"):
		return fault.New(fault.Denied, "git %s in %s may not write there: %s", c.verb(), c.dir, said)
	case has("File exists") && (has(".lock'") || has("could not lock")):
		return fault.New(fault.Busy, "another git holds a lock of the repository of %s: try again when it is done (%s)", c.dir, said)
	}
	return fault.New(fault.Invalid, "git %s in %s exited with %d: %s", c.verb(), c.dir, res.code, said)
}

// versionKnown is set once git was found to be new enough.
var versionKnown atomic.Bool

// checkVersion refuses a git that lacks what we use.
func checkVersion(ctx context.Context) error {
	if versionKnown.Load() {
		return nil
	}
	said, err := command{dir: "/", args: []string{"version"}}.line(ctx)
	if err != nil {
		return err
	}
	if !recent(said) {
		return fault.New(fault.Unsupported, "worktrees need git %d.%d or later, and this is %q: install a newer one", oldestMajor, oldestMinor, said)
	}
	versionKnown.Store(true)
	return nil
}

// recent tells whether "git version 2.39.5" is one we can work with.
func recent(version string) bool {
	f := strings.SplitN(strings.TrimPrefix(version, "git version "), ".", 3)
	if len(f) < 2 {
		return false
	}
	major, err := strconv.Atoi(f[0])
	minor, err2 := strconv.Atoi(f[1])
	if err != nil || err2 != nil {
		return false
	}
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxSaid; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

// maxLine bounds what a sentence quotes of git.
const maxLine = 400

// oneLine puts what git said on one line without control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxLine {
		s = string(r[:maxLine-1]) + "…"
	}
	return s
}
