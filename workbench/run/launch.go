package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// launch starts the agent and publishes who it is. It returns one sentence
// when it cannot.
func (s *shim) launch() (sentence string) {
	path, sentence := findProgram(s.spec)
	if sentence != "" {
		return sentence
	}
	defer closeAll(s.files)
	pidfd := -1
	var err error
	if s.pid, err = s.fork(path, s.files, &pidfd); err != nil {
		return startSentence(s.spec, path, err)
	}
	if s.agent, err = hold(s.pid, pidfd); err != nil {
		// Without a handle its group cannot be signalled as one, but each of it can.
		s.agent = nil
	}
	s.publish()
	return ""
}

// hold makes a handle of a child just started, of the pidfd it came with or,
// on a kernel that gave none, of a new one.
func hold(pid, pidfd int) (*proc.Handle, error) {
	if pidfd >= 0 {
		return proc.FromChild(pid, pidfd)
	}
	id, err := proc.Of(pid)
	if err != nil {
		return nil, err
	}
	return proc.Open(id)
}

// publish writes the agent's identity into the run's directory. A run whose
// disk is full goes on without: it is told by its session and its tag then.
func (s *shim) publish() {
	if id, err := proc.Of(s.pid); err == nil {
		b, _ := json.Marshal(id)
		_ = writeFile(s.dir, agentName, b)
	}
}

// open opens the agent's standard input, output and error. The kernel appends
// to the last two, so nothing of ours stands between the agent and the files.
// A terminal is all three.
func (s *shim) open() (files []*os.File, err error) {
	if s.tty != nil {
		return []*os.File{s.tty, s.tty, s.tty}, nil
	}
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	in, err := s.openStdin()
	if err != nil {
		return nil, fileError("open", at(s.dir, stdinName), err)
	}
	files = append(files, in)
	for _, name := range []string{stdoutName, stderrName} {
		if name == stderrName && s.spec.MergeStderr {
			name = stdoutName
		}
		out, err := s.dir.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return files, fileError("open", at(s.dir, name), err)
		}
		files = append(files, out)
	}
	return files, nil
}

// openStdin opens what the agent reads. Of a FIFO this process keeps an end
// for itself, so that the agent meets no end of file when a daemon leaves.
func (s *shim) openStdin() (*os.File, error) {
	switch s.spec.Stdin {
	case StdinFile:
		return s.dir.OpenFile(stdinName, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	case StdinFIFO:
		both, err := s.dir.OpenFile(stdinName, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		s.stdin = both
		return s.dir.OpenFile(stdinName, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	}
	return os.Open(os.DevNull)
}

// fork starts the agent as leader of a group of its own, on a terminal of a
// session too, with nothing blocked, the user's umask, and no descriptor but
// its three.
func (s *shim) fork(path string, files []*os.File, pidfd *int) (pid int, err error) {
	// The child's mask is that of the thread it is forked from.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, was unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &was); err == nil {
		defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil) }()
	}
	umask := s.umask
	if s.spec.Umask != nil {
		umask = *s.spec.Umask
	}
	defer unix.Umask(unix.Umask(umask))
	attr := &syscall.ProcAttr{Dir: s.spec.Dir, Env: s.spec.Env, Sys: &syscall.SysProcAttr{Setpgid: true, PidFD: pidfd}}
	if s.tty != nil {
		attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0, PidFD: pidfd}
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	return syscall.ForkExec(path, s.spec.Argv, attr)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// findProgram returns the path of what to execute, or a sentence. The
// directory is looked at first, so that it is not the program that gets the
// blame for it.
func findProgram(s Spec) (path, sentence string) {
	if sentence := checkDir(s.Dir); sentence != "" {
		return "", sentence
	}
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Dir, name)
		}
		return name, ""
	}
	for _, dir := range filepath.SplitList(lookup(s.Env, "PATH")) {
		candidate := filepath.Join(dir, name)
		if info, err := os.Stat(candidate); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && unix.Access(candidate, unix.X_OK) == nil {
			return candidate, ""
		}
	}
	return "", fmt.Sprintf("the program %q is in no directory of the run's PATH; install it, or give its full path", name)
}

// checkDir says what keeps a process from beginning in dir.
func checkDir(dir string) (sentence string) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("the directory %s does not exist any more", dir)
	case err != nil:
		return fmt.Sprintf("the directory %s cannot be used: %v", dir, errnoOf(err))
	case !info.IsDir():
		return fmt.Sprintf("%s is no directory", dir)
	case unix.Access(dir, unix.X_OK) != nil:
		return fmt.Sprintf("the directory %s cannot be entered: permission denied", dir)
	}
	return ""
}

// startSentence says why the kernel did not start the program.
func startSentence(s Spec, path string, err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		if _, err := os.Stat(path); err == nil {
			return fmt.Sprintf("the program %s cannot be started: the interpreter that its first line or its header names does not exist", path)
		}
		return fmt.Sprintf("the program %s does not exist", path)
	case errors.Is(err, unix.EACCES):
		return fmt.Sprintf("the program %s cannot be started: permission denied (is it a file, and executable?)", path)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Sprintf("the program %s cannot be started: it is no program of this machine, and has no #! line", path)
	case errors.Is(err, unix.E2BIG):
		return fmt.Sprintf("the program %s cannot be started: its arguments and environment, %d bytes, are more than the kernel takes", path, size(s.Argv)+size(s.Env))
	case errors.Is(err, unix.ETXTBSY):
		return fmt.Sprintf("the program %s cannot be started: it is being written", path)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Sprintf("the program %s cannot be started: there are too many processes", path)
	}
	return fmt.Sprintf("the program %s cannot be started in %s: %v", path, s.Dir, err)
}

// errnoOf returns an error without the path that is named beside it.
func errnoOf(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// lookup returns a variable of an environment; the last entry counts.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// size is what texts take on a new process's stack.
func size(texts []string) int {
	n := 0
	for _, t := range texts {
		n += len(t) + 1
	}
	return n
}

// number parses the name of a descriptor; -1 when it is none.
func number(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil {
		return -1
	}
	return n
}

// signalName returns a signal as people write it: "KILL"; a number for one
// without a name.
func signalName(sig syscall.Signal) string {
	if name, ok := strings.CutPrefix(unix.SignalName(sig), "SIG"); ok {
		return name
	}
	return strconv.Itoa(int(sig))
}
