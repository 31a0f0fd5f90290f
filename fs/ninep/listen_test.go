package ninep

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// listenAt listens, and closes at the end of the test.
func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestASocketIsItsOwnersAlone(t *testing.T) {
	old := syscall.Umask(0) // which must not matter
	defer syscall.Umask(old)
	path := filepath.Join(socketDir(t), "new", "9p")
	l := listenAt(t, path)
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", fi.Mode(), err)
	}
	if fi, err := os.Stat(filepath.Dir(path)); err != nil || fi.Mode() != os.ModeDir|0o700 {
		t.Errorf("its directory: %v, %v", fi.Mode(), err)
	}
	if got := l.Addr().String(); got != path {
		t.Errorf("it listens on %q", got)
	}
	l.Close()
	l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after its end: %v", err)
	}
}

func TestALiveSocketIsNotTaken(t *testing.T) {
	path := filepath.Join(socketDir(t), "9p")
	listenAt(t, path)
	if _, err := ListenUnix(path); !fault.Is(err, fault.Busy) {
		t.Errorf("a second: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestADeadSocketIsReplaced(t *testing.T) {
	path := filepath.Join(socketDir(t), "9p")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	listenAt(t, path)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A socket that took the name meanwhile is not taken away.
func TestAnotherSocketOfTheNameStays(t *testing.T) {
	path := filepath.Join(socketDir(t), "9p")
	first := listenAt(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listenAt(t, path)
	first.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func TestWhereNoSocketCanBe(t *testing.T) {
	dir := socketDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	toFile := filepath.Join(dir, "link")
	if err := os.Symlink(file, toFile); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fault.Kind{
		file: fault.Exists, toFile: fault.Exists, dir: fault.Exists,
		filepath.Join(open, "9p"):                     fault.Denied,
		filepath.Join(file, "9p"):                     fault.Internal,
		filepath.Join(dir, "x", "..", "file"):         fault.Exists,
		filepath.Join(dir, string(make([]byte, 200))): fault.TooLarge,
	} {
		l, err := ListenUnix(path)
		if !fault.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", path, err, want)
		}
		if err == nil {
			l.Close()
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file: %q, %v", b, err)
	}
	// In a directory like /tmp, where others can add but not replace, it can be.
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	listenAt(t, filepath.Join(open, "9p"))
}

func TestTCPKeepsToTheLoopback(t *testing.T) {
	for addr, want := range map[string]fault.Kind{
		":0": fault.Denied, "0.0.0.0:0": fault.Denied, "[::]:0": fault.Denied, "192.0.2.1:564": fault.Denied,
		"nonsense": fault.Invalid, "127.0.0.1": fault.Invalid, "127.0.0.1:99999": fault.Invalid,
	} {
		if l, err := ListenTCP(addr, false); !fault.Is(err, want) {
			t.Errorf("%s: %v", addr, err)
			if err == nil {
				l.Close()
			}
		}
	}
	l, err := ListenTCP("0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l, err = ListenTCP("localhost:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := ListenTCP(l.Addr().String(), false); !fault.Is(err, fault.Busy) {
		t.Errorf("an address in use: %v", err)
	}
}

// dialAs connects as another user, which takes a thread of its own.
func dialAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this
		var r result
		defer func() { done <- r }()
		if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); no != 0 {
			r.err = no
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if r.err = err; err != nil {
			return
		}
		file := os.NewFile(uintptr(fd), path)
		defer file.Close()
		if r.err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); r.err == nil {
			r.conn, r.err = net.FileConn(file)
		}
	}()
	r := <-done
	return r.conn, r.err
}

func TestAnotherUserIsTurnedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	s := serve(t, newFolder(), Options{})
	if err := os.Chmod(filepath.Dir(s.path), 0o711); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(s.path); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			t.Skipf("another user cannot come to the socket anyway: %s is closed to others", dir)
		}
	}
	const nobody = 65534
	if nc, err := dialAs(nobody, s.path); err == nil {
		nc.Close()
		t.Error("the socket lets others in")
	}
	if err := os.Chmod(s.path, 0o666); err != nil { // by some accident
		t.Fatal(err)
	}
	nc, err := dialAs(nobody, s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	newRawClient(t, nc).gone()
	if !strings.Contains(s.log.String(), "user 65534 may not use the tree of user 0") {
		t.Error("nobody was told")
	}
	if nc, err = dialAs(0, s.path); err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	newRawClient(t, nc).version(wire.Linux, 8192)
}

// The server of another user than root lets root in, and checks modes itself.
func TestModesAreCheckedForAllButRoot(t *testing.T) {
	root, _ := attrTree()
	s := serve(t, root, Options{})
	s.uid = 12345
	near, far := net.Pipe()
	defer near.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c := newConn(context.Background(), s.Server, far, callerWithUID(12345))
		if err := s.enter(c); err != nil {
			t.Error(err)
			return
		}
		defer s.leave(c)
		c.run()
	}()
	c := newRawClient(t, near)
	c.version(wire.Linux, 8192)
	c.attach(0)
	c.walk(1, "text")
	c.refused(&wire.Tlopen{Fid: 1, Flags: wire.LWriteOnly}, syscall.EACCES)
	c.refused(&wire.Tlopen{Fid: 1, Flags: wire.LReadWrite}, syscall.EACCES)
	c.want(&wire.Tlopen{Fid: 1})
	near.Close()
	await(t, "the end", ended)
	if os.Geteuid() == 0 {
		s.client(t, wire.Linux).want(&wire.Tgetattr{Fid: 0})
	}
}
