package fusefs

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// serveUntilKilled is the daemon that recovery tests kill.
func serveUntilKilled(dir string) error {
	root := newFolder().add("f", newText("of the first server\n")).hide("wait", newStream())
	root.add("sub", newFolder())
	if _, err := Mount(dir, root, Options{}); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// deadServer mounts in another process, runs client scripts against it, each
// of which says "in", and kills it while they go on.
func deadServer(t *testing.T, point string, sig syscall.Signal, scripts ...string) (*background, []*background) {
	t.Helper()
	server := launch(t, self("serve", point))
	server.says("ready")
	var clients []*background
	for _, script := range scripts {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env, cmd.Dir = append(os.Environ(), "M="+point), "/"
		c := launch(t, cmd)
		c.says("in")
		clients = append(clients, c)
	}
	server.signal(sig)
	if sig == syscall.SIGKILL {
		server.wait()
	}
	return server, clients
}

func TestAMountOfAKilledServerIsRecovered(t *testing.T) {
	needFUSE(t)
	for name, script := range map[string]string{
		"unused":             `echo in`,
		"a file is open":     `exec 3<$M/f; echo in; read x`,
		"a directory is cwd": `cd $M/sub; echo in; read x`,
		"a reader waits":     `echo in; cat $M/wait`,
	} {
		t.Run(name, func(t *testing.T) {
			point := mountPoint(t)
			deadServer(t, point, syscall.SIGKILL, script)
			s, err := Mount(point, newFolder().add("f", newText("of the second\n")), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Unmount()
			sh(t, s, `cat $M/f`).want(t, "of the second\n")
			if at, _ := mountsAt(s.Dir()); len(at) != 1 {
				t.Errorf("%d mounts are stacked", len(at))
			}
		})
	}
}

// A stopped server answers nothing: whoever looks hangs, and only breaking the
// connection frees them.
func TestAMountOfAStoppedServerIsRecovered(t *testing.T) {
	needFUSE(t)
	needControl(t)
	point := mountPoint(t)
	_, clients := deadServer(t, point, syscall.SIGSTOP, `echo in; cat $M/wait; echo freed`, `echo in; read x; ls $M; echo freed`)
	fmt.Fprintln(clients[1].stdin, "look now")
	n, err := Recover(point)
	if n != 1 || err != nil {
		t.Fatalf("Recover = %d, %v", n, err)
	}
	for _, c := range clients {
		c.says("freed")
	}
}

func TestStackedMountsAreRecovered(t *testing.T) {
	needFUSE(t)
	if !privileged() {
		t.Skip("only root can mount over a mount")
	}
	point := mountPoint(t)
	s, err := Mount(point, newFolder().add("f", newText("x")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unmount()
	var other []*Server
	for range 2 { // as a second daemon that ignores the lock would
		second := newServer(point, 1, Options{})
		fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Geteuid(), os.Getegid())
		if err := unix.Mount(source, point, fsType, 0, data); err != nil {
			t.Fatal(err)
		}
		if err := second.start(fd, newFolder()); err != nil {
			t.Fatal(err)
		}
		other = append(other, second)
	}
	if err := s.Unmount(); !fault.Is(err, fault.Busy) {
		t.Errorf("Unmount below another mount = %v, want busy", err)
	}
	if n, err := Recover(point); n != 3 || err != nil {
		t.Errorf("Recover = %d, %v; want 3", n, err)
	}
	for _, o := range append(other, s) {
		o.Wait()
	}
}

func TestRecoverLeavesForeignMountsAlone(t *testing.T) {
	if !privileged() {
		t.Skip("only root can mount something else")
	}
	point := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("foreign", point, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer unix.Unmount(point, unix.MNT_DETACH)
	n, err := Recover(point)
	if n != 0 || !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "foreign") {
		t.Errorf("Recover = %d, %v; want a refusal that names it", n, err)
	}
	if _, err := Mount(point, newFolder(), Options{}); !fault.Is(err, fault.Busy) {
		t.Errorf("Mount = %v, want a refusal", err)
	}
	if at, _ := mountsAt(point); len(at) != 1 {
		t.Errorf("mounts on it: %v", at)
	}
}

func TestRecoverWhereNothingIsMounted(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if n, err := Recover(path); n != 0 || err != nil {
			t.Errorf("Recover(%s) = %d, %v", path, n, err)
		}
	}
}

func TestAMountOfAnotherUserIsNotTaken(t *testing.T) {
	m := mounted{point: "/mnt/x", kind: fsType, source: source, uid: os.Geteuid() + 1}
	if err := mayTake("/mnt/x", m); !fault.Is(err, fault.Denied) {
		t.Errorf("mayTake = %v", err)
	}
	m.uid = os.Geteuid()
	if err := mayTake("/mnt/x", m); err != nil {
		t.Errorf("mayTake = %v", err)
	}
}

func TestPrepare(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"real/deep", "full/file"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"alias": "real", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, want, refusal string
	}{
		{"real/deep", "real/deep", ""},
		{"new", "new", ""},
		{"new", "new", ""}, // again
		{"a/b/c", "a/b/c", ""},
		{"alias/deep", "real/deep", ""},
		{"real/../real/deep/", "real/deep", ""},
		{"alias", "", "symbolic link"},
		{"dangling", "", "symbolic link"},
		{"file", "", "no directory"},
		{"file/x", "", "cannot be made"},
		{"full", "", "not empty"},
	} {
		got, err := Prepare(filepath.Join(dir, c.path))
		if c.refusal != "" {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%s: %v, want a refusal that says %q", c.path, err, c.refusal)
			}
			continue
		}
		if err != nil || got != filepath.Join(dir, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.path, got, err, c.want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a new mount point is %v, %v", info, err)
	}
	if _, err := Prepare(""); !fault.Is(err, fault.Invalid) {
		t.Errorf("an empty path: %v", err)
	}
}

func TestAMountInsideAMountIsRefused(t *testing.T) {
	s := mountTree(t, workshop{newFolder().add("sub", newFolder())}, Options{})
	for _, path := range []string{s.Dir() + "/sub", s.Dir() + "/new", s.Dir() + "/sub/deep/er"} {
		if _, err := Mount(path, newFolder(), Options{}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "inside") {
			t.Errorf("Mount(%s) = %v", path, err)
		}
		if _, err := Recover(path); !fault.Is(err, fault.Invalid) {
			t.Errorf("Recover(%s) = %v", path, err)
		}
	}
}

func TestChildrenDoNotInheritTheConnection(t *testing.T) {
	s := mountTree(t, newFolder(), Options{})
	got := sh(t, s, `for f in /proc/self/fd/*; do readlink $f; done`)
	if strings.Contains(got.stdout, device) {
		t.Errorf("a child has %q", got.stdout)
	}
	open := 0
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); to == device {
			open++
		}
	}
	if open == 0 {
		t.Error("this process has no connection open, so the test shows nothing")
	}
}

func TestWhatIsMissingIsExplained(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind fault.Kind
		says string
	}{
		{unusable(unix.ENOENT), fault.Unsupported, "modprobe fuse"},
		{unusable(unix.ENODEV), fault.Unsupported, "modprobe fuse"},
		{unusable(unix.EACCES), fault.Denied, "chmod 666 /dev/fuse"},
		{unusable(unix.EPERM), fault.Denied, "--device /dev/fuse"},
		{unusable(unix.EMFILE), fault.Internal, "cannot be opened"},
		{unmountable("/m", unix.EPERM), fault.Denied, "apt-get install fuse3"},
		{unmountable("/m", unix.ENODEV), fault.Unsupported, "modprobe fuse"},
		{unmountable("/m", unix.ENOMEM), fault.Internal, "/m"},
	} {
		if !fault.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v: want %v and %q", c.err, c.kind, c.says)
		}
	}
}

func TestALimitOnRequestsIsWarnedOf(t *testing.T) {
	for _, c := range []struct{ text, warning string }{{"0\n", ""}, {"60\n", "seconds=60"}} {
		dir, out := t.TempDir(), &lines{}
		if err := os.WriteFile(filepath.Join(dir, "max_request_timeout"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newServer("/mnt", 1, Options{Log: slog.New(slog.NewTextHandler(out, nil))})
		s.warnOfTimeouts(dir)
		if got := out.String(); (got != "") != (c.warning != "") || !strings.Contains(got, c.warning) {
			t.Errorf("%q gives %q", c.text, got)
		}
	}
}

func TestFusermountIsFoundInThePath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", "relative:"+dir)
	if err := os.WriteFile(filepath.Join(dir, fusermount), []byte("#!/bin/sh\necho no luck >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := findFusermount()
	if err != nil || got != filepath.Join(dir, fusermount) {
		t.Errorf("findFusermount = %q, %v", got, err)
	}
	if err := runFusermount("-u", "--", "/nowhere"); err == nil || err.Error() != "no luck" {
		t.Errorf("its complaint comes as %v", err)
	}
}
