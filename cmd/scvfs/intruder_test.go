package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also what agents are given to try everything on a mounted
// tree: "intrude WHAT FILE", with what to do and what came of it in files.

// target is one path of a mounted tree, as the owner sees it.
type target struct {
	Path  string
	Dir   bool
	Link  bool
	Write bool     // it can be written to
	Acts  []string // texts that it takes, as it says itself
}

// attempt is one thing that an intruder tried.
type attempt struct {
	Path, What string
	Errno      syscall.Errno // 0: it was let
	Text       string        // that was read
}

// intruder does what the command line says and returns the exit code; ok is
// false for other command lines.
func intruder(args []string) (code int, ok bool) {
	if len(args) < 4 || args[1] != "intrude" {
		return 0, false
	}
	var err error
	switch args[2] {
	case "walk":
		err = intrudeByPath(args[3])
	case "take":
		err = intrudeByDescriptor(args[3])
	case "exec":
		err = execWith(args[3])
	default:
		err = errors.New("intrude walk or take")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// intrudeByPath reads targets from a file, tries everything on each, and writes
// the attempts to another one.
func intrudeByPath(file string) error {
	var targets []target
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &targets)
	}
	if err != nil {
		return err
	}
	var all []attempt
	for _, t := range targets {
		all = append(all, t.try()...)
	}
	return tell(file+".tried", all)
}

// tell writes attempts to a file, which is whole when it is there.
func tell(file string, all []attempt) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	return err
}

// try does everything to a path that could change something.
func (t target) try() (all []attempt) {
	did := func(what string, err error) {
		a := attempt{Path: t.Path, What: what}
		if err != nil && !errors.As(err, &a.Errno) {
			a.Errno = syscall.EIO
		}
		all = append(all, a)
	}
	evil := filepath.Join(filepath.Dir(t.Path), "evil")
	switch {
	case t.Link:
		did("unlink", syscall.Unlink(t.Path))
	case t.Dir:
		inside := filepath.Join(t.Path, "evil")
		did("mkdir", os.Mkdir(inside, 0o700))
		did("create", makeFile(inside))
		did("symlink", os.Symlink("/", inside))
		did("mknod", syscall.Mknod(inside, syscall.S_IFIFO|0o600, 0))
		did("rmdir", syscall.Rmdir(t.Path))
	default:
		ways := []int{os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC | os.O_APPEND}
		for i := range max(len(ways), len(t.Acts)) {
			act := t.Acts[i%len(t.Acts)]
			did("write "+act, write(t.Path, ways[i%len(ways)], act))
		}
		did("unlink", syscall.Unlink(t.Path))
		did("read", look(t.Path))
	}
	did("rename", os.Rename(t.Path, evil))
	did("link", os.Link(t.Path, evil))
	did("chmod", os.Chmod(t.Path, 0o777))
	did("chown", os.Lchown(t.Path, 1, 1))
	did("setxattr", unix.Setxattr(t.Path, "user.evil", []byte("x"), 0))
	_ = os.Truncate(t.Path, 0) // is let, where writing is, and means nothing
	_ = os.Chtimes(t.Path, time.Unix(1, 0), time.Unix(1, 0))
	return all
}

func makeFile(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

// look opens a file, and reads what is there.
func look(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err = unix.Read(fd, make([]byte, 1<<20)); err == unix.EAGAIN {
		return nil // it waits for what comes
	}
	return err
}

// put writes a text in one write, and closes.
func write(name string, flags int, text string) error {
	f, err := os.OpenFile(name, flags|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// intrudeByDescriptor takes the descriptors that somebody sends it over a
// socket, tries them, and says what came of it.
func intrudeByDescriptor(socket string) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		act, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
		n, oob, _, _, err := conn.ReadMsgUnix(act, control)
		if n == 0 || err != nil {
			return nil // no more come
		}
		messages, err := unix.ParseSocketControlMessage(control[:oob])
		if err != nil || len(messages) != 1 {
			return fmt.Errorf("no descriptor came: %w", err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return err
		}
		text, err := json.Marshal(use(fds[0], string(act[:n])))
		if err != nil {
			return err
		}
		if _, err := conn.Write(text); err != nil {
			return err
		}
	}
}

// use tries one descriptor: of a directory, to open the path below it; of a
// file, to write the text, and to read, which sends a document.
func use(fd int, act string) attempt {
	a := attempt{What: act}
	var err error
	if path, ok := strings.CutPrefix(act, "open "); ok {
		var sub int
		if sub, err = unix.Openat(fd, path, unix.O_RDONLY, 0); err == nil {
			unix.Close(sub)
		}
	} else if _, err = unix.Write(fd, []byte(act)); err == nil || errors.Is(err, unix.EPERM) {
		buf := make([]byte, 4096)
		n, _ := unix.Read(fd, buf)
		a.Text = string(buf[:max(n, 0)])
	}
	errors.As(err, &a.Errno)
	unix.Close(fd)
	return a
}

// execWith writes to a document and executes another program, in a child and
// then here, which closes the descriptor: Go marks all of its for that.
func execWith(document string) error {
	f, err := os.OpenFile(document, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("echo executed")
	}
	if err == nil {
		err = exec.Command("/bin/true").Run()
	}
	if err != nil {
		return err
	}
	return syscall.Exec("/bin/true", []string{"true"}, nil)
}
