package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const (
	// source and fsType are what the mount table shows.
	source  = "scvfs"
	subtype = "scvfs"
	fsType  = "fuse." + subtype

	device     = "/dev/fuse"
	fusermount = "fusermount3"

	// maxWrite is the most that one request reads or writes. The kernel cuts
	// longer ones. It is the size of the buffer that each waiting read costs.
	maxWrite = 128 << 10
)

// privileged tells whether mount(2) is ours to call; others need fusermount3.
func privileged() bool { return os.Geteuid() == 0 }

// attach mounts on path and returns the connection, /dev/fuse opened with
// close-on-exec. From here on, whoever looks at path waits for us.
func attach(path string) (int, error) {
	point, err := openPoint(path)
	if err != nil {
		return -1, err
	}
	defer point.Close()
	if privileged() {
		return attachDirect(path, int(point.Fd()))
	}
	return attachThrough(path)
}

// attachDirect mounts by itself.
func attachDirect(path string, point int) (int, error) {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unusable(err)
	}
	data := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,default_permissions,max_read=%d",
		fd, unix.S_IFDIR, os.Geteuid(), os.Getegid(), maxWrite)
	err = unix.Mount(source, fmt.Sprintf("/proc/self/fd/%d", point), fsType,
		unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data)
	if err != nil {
		unix.Close(fd)
		return -1, unmountable(path, err)
	}
	return fd, nil
}

// unusable explains why /dev/fuse cannot be opened.
func unusable(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fault.New(fault.Unsupported, "this machine offers no FUSE (%s: %w); load it with 'modprobe fuse', "+
			"or start the container with '--device %s', or serve the tree over 9P alone", device, err, device)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fault.New(fault.Denied, "%s may not be opened by this user (%w); allow it with 'chmod 666 %s' as root, "+
			"or start the container with '--device %s', or serve the tree over 9P alone", device, err, device, device)
	}
	return fault.New(fault.Internal, "%s cannot be opened: %w", device, err)
}

// unmountable explains why mount(2) failed.
func unmountable(path string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fault.New(fault.Denied, "this process may not mount on %s (%w); in a container add '--cap-add SYS_ADMIN', "+
			"else run it as an ordinary user with %s installed ('apt-get install fuse3')", path, err, fusermount)
	case errors.Is(err, unix.ENODEV):
		return fault.New(fault.Unsupported, "this kernel has no FUSE (%w); load it with 'modprobe fuse', "+
			"or serve the tree over 9P alone", err)
	}
	return fault.New(fault.Internal, "%s cannot be mounted on: %w", path, err)
}

// attachThrough lets fusermount3 mount, which is set-user-id and sends the
// connection back over a socket.
func attachThrough(path string) (int, error) {
	if err := unix.Access(device, unix.R_OK|unix.W_OK); err != nil {
		return -1, unusable(err)
	}
	program, err := findFusermount()
	if err != nil {
		return -1, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fault.New(fault.Internal, "%s cannot be called: %w", fusermount, err)
	}
	local, remote := pair[0], os.NewFile(uintptr(pair[1]), "fusermount")
	defer unix.Close(local)
	err = callFusermount(program, path, remote)
	remote.Close() // else one that sent nothing would be waited for
	if err != nil {
		return -1, fault.New(fault.Denied, "%s refused to mount on %s: %w", fusermount, path, err)
	}
	fd, err := receive(local)
	if err != nil {
		return -1, fault.New(fault.Internal, "%s sent no connection: %w", fusermount, err)
	}
	return fd, nil
}

func callFusermount(program, path string, remote *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), fusermountTimeout)
	defer cancel()
	options := fmt.Sprintf("fsname=%s,subtype=%s,default_permissions,max_read=%d,nosuid,nodev,noexec", source, subtype, maxWrite)
	cmd := exec.CommandContext(ctx, program, "-o", options, "--", path)
	cmd.ExtraFiles = []*os.File{remote} // becomes descriptor 3
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	return complaint(cmd)
}

// receive takes one descriptor out of a message.
func receive(socket int) (int, error) {
	var data [16]byte
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data[:], control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return -1, err
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("the message holds no descriptor")
}

// findFusermount returns where fusermount3 is, also with an empty PATH.
func findFusermount() (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/bin", "/usr/local/bin") {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, fusermount)); err == nil {
			return path, nil
		}
	}
	return "", fault.New(fault.Unsupported, "%s is not installed, and only root mounts without it; "+
		"install it with 'apt-get install fuse3', or serve the tree over 9P alone", fusermount)
}
