package ninep

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const (
	// maxPath is how long the path of a socket can be.
	maxPath = len(unix.RawSockaddrUnix{}.Path) - 1
	// socketMode is for its owner alone.
	socketMode = 0o600
	backlog    = 128
)

// ListenUnix makes a socket at path, for its owner alone, and listens on it.
// Nobody else can connect at any moment. It makes the last directories of the
// path, mode 0700, where there are none. A socket that nobody listens on any
// more is replaced. Closing the listener removes the socket, if it is still
// the same.
//
// Errors are fault.Busy where another process listens, fault.Exists where path
// is something else, fault.TooLarge where it is too long for a socket,
// fault.Denied where it lies in a directory that others may change, and
// fault.Internal when the system refuses.
func ListenUnix(path string) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.New(fault.Internal, "the socket %s cannot be made: %w", path, err)
	}
	if len(path) > maxPath {
		return nil, fault.New(fault.TooLarge, "%s is %d bytes long, and the path of a socket has at most %d; choose a shorter one",
			path, len(path), maxPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault.New(fault.Internal, "the directory of the socket %s cannot be made: %w", path, err)
	}
	dir, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := clear(path); err != nil {
		return nil, err
	}
	return bind(path)
}

// lockDir opens the directory of a socket and takes it for itself among the
// processes that make or remove sockets there by this package.
func lockDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Internal, "the directory %s of a socket cannot be opened: %w", path, err)
	}
	if err := ownDir(dir); err != nil {
		dir.Close()
		return nil, err
	}
	if err := flock(dir); err != nil {
		dir.Close()
		return nil, fault.New(fault.Internal, "the directory %s of a socket cannot be locked: %w", path, err)
	}
	return dir, nil
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// ownDir refuses a directory in which another user could put something else in
// the socket's place.
func ownDir(dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fault.New(fault.Internal, "the directory %s of a socket cannot be looked at: %w", dir.Name(), err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fault.New(fault.Exists, "%s is no directory; choose another path for the socket", dir.Name())
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fault.New(fault.Denied, "%s belongs to user %d; put the socket into a directory of your own", dir.Name(), st.Uid)
	case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fault.New(fault.Denied, "others may change %s (mode %o); put the socket into a directory of your own, mode 0700",
			dir.Name(), st.Mode&0o7777)
	}
	return nil
}

// clear removes the socket of a process that is gone.
func clear(path string) error {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fault.New(fault.Internal, "%s cannot be looked at: %w", path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return fault.New(fault.Exists, "%s exists and is no socket; remove it, or choose another path", path)
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return fault.New(fault.Busy, "another process serves on %s; stop it, or choose another path", path)
	case !errors.Is(err, unix.ECONNREFUSED):
		return fault.New(fault.Internal, "whether another process serves on %s cannot be found out: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fault.New(fault.Internal, "the old socket %s cannot be removed: %w", path, err)
	}
	return nil
}

// bind makes the socket. Between bind, which makes it by the process's umask,
// and listen, nobody can connect; by then it is its owner's.
func bind(path string) (net.Listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fault.New(fault.Internal, "the socket %s cannot be made: %w", path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, fault.New(fault.Internal, "the socket %s cannot be made: %w", path, err)
	}
	l, err := listenOn(fd, file, path)
	if err != nil {
		os.Remove(path)
		return nil, fault.New(fault.Internal, "nobody can be listened to on %s: %w", path, err)
	}
	return l, nil
}

func listenOn(fd int, file *os.File, path string) (net.Listener, error) {
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, err
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	return &door{Listener: l, path: path, dev: st.Dev, ino: st.Ino}, nil
}

// door is a listener that takes its socket away with it.
type door struct {
	net.Listener
	path     string
	dev, ino uint64
	once     sync.Once
}

// Close implements net.Listener. The name goes first, so that nobody finds a
// socket that nobody listens on.
func (d *door) Close() error {
	d.once.Do(d.remove)
	return d.Listener.Close()
}

// remove takes the name away unless it is another's by now.
func (d *door) remove() {
	dir, err := lockDir(filepath.Dir(d.path))
	if err != nil {
		return // it is gone, or not ours any more
	}
	defer dir.Close()
	var st unix.Stat_t
	if unix.Lstat(d.path, &st) == nil && st.Dev == d.dev && st.Ino == d.ino {
		os.Remove(d.path)
	}
}

// ListenTCP listens on a TCP address, which must be one of this machine's own
// loopback unless allowRemote says otherwise: every user of the machine, and
// with a remote address everybody who reaches it, is taken for the owner.
//
// Errors are fault.Invalid where addr is no address, fault.Denied where it is
// not a loopback address, fault.Busy where it is in use, and fault.Internal
// when the system refuses.
func ListenTCP(addr string, allowRemote bool) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%q is no TCP address: %w; write HOST:PORT, such as 127.0.0.1:5640", addr, err)
	}
	if !allowRemote && !at.IP.IsLoopback() {
		return nil, fault.New(fault.Denied, "%q can be reached from other machines, and 9P knows no passwords; "+
			"use 127.0.0.1 and forward it with ssh, or say --9p-allow-remote", addr)
	}
	l, err := net.ListenTCP("tcp", at)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fault.New(fault.Busy, "another process uses the address %s; choose another port", addr)
	case err != nil:
		return nil, fault.New(fault.Internal, "nobody can be listened to on %s: %w", addr, err)
	}
	return l, nil
}
