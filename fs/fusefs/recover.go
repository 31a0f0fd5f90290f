package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const (
	// connections is where administrators mount the file system that controls
	// FUSE connections.
	connections = "/sys/fs/fuse/connections"
	// maxStacked bounds how many mounts on one directory are taken away.
	maxStacked = 64
	// fusermountTimeout bounds a run of fusermount3.
	fusermountTimeout = 10 * time.Second
)

// Recover takes away what earlier runs of this program left mounted on dir and
// returns how many mounts those were. It breaks their connections first, which
// frees every process that hangs on them, whether their daemon is gone, stopped
// or stuck. It never looks at dir itself.
//
// It cannot tell a dead daemon's mount from a living one's: call it only while
// holding the lock that makes this process the only daemon. Nothing but
// Recover, Prepare, Mount and Server.Unmount touches mounts.
//
// Errors are fault.Busy for a mount of another program, fault.Denied for one
// of another user, and fault.Internal when the kernel refuses.
func Recover(dir string) (int, error) {
	path, err := resolve(dir)
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		at, err := mountsAt(path)
		if err != nil {
			return n, err
		}
		if len(at) == 0 {
			return n, nil
		}
		top := at[len(at)-1]
		if err := mayTake(path, top); err != nil {
			return n, err
		}
		if n == maxStacked {
			return n, fault.New(fault.Internal, "%s is still mounted after %d unmounts; unmount it with 'umount -l %s'", path, n, path)
		}
		abortErr := abort(top.device)
		if err := detach(path); err != nil {
			return n, fault.New(fault.Internal, "the old mount on %s cannot be taken away: %w; unmount it with 'umount -l %s'",
				path, errors.Join(err, abortErr), path)
		}
	}
}

// mayTake refuses a mount that is not ours to take away.
func mayTake(path string, m mounted) error {
	if !m.ours() {
		return fault.New(fault.Busy, "%s is the mount point of %s (type %s); unmount that, or choose another directory",
			path, m.source, m.kind)
	}
	if m.uid != os.Geteuid() {
		return fault.New(fault.Denied, "%s is the mount of user %d; choose a directory of your own", path, m.uid)
	}
	return nil
}

// abort breaks a FUSE connection: all its requests fail at once, and all later
// ones. Without the control file system, and without the right to open it
// unmounted, there is nothing to do it with.
func abort(device uint32) error {
	name := strconv.FormatUint(uint64(device), 10) + "/abort"
	fd, err := unix.Open(connections+"/"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		root, rootErr := openControl()
		if rootErr != nil {
			return fmt.Errorf("the FUSE connection cannot be aborted: %w", rootErr)
		}
		defer unix.Close(root)
		fd, err = unix.Openat(root, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil // it is gone already
		}
	}
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte("1"))
	}
	if err != nil {
		return fmt.Errorf("the FUSE connection cannot be aborted: %w", err)
	}
	return nil
}

// openControl returns the root of the control file system without mounting it
// anywhere, so that nothing is left behind.
func openControl() (int, error) {
	config, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(config)
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, err
	}
	return unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, 0)
}

// unmount takes the visible mount off path; EBUSY when it is in use.
func unmount(path string) error {
	if privileged() {
		return unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	}
	return runFusermount("-u", "--", path)
}

// detach takes the visible mount off path. Who uses it keeps it until the last
// of them leaves.
func detach(path string) error {
	if privileged() {
		return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return runFusermount("-u", "-z", "--", path)
}

// runFusermount runs fusermount3 and turns its complaint into an error.
func runFusermount(args ...string) error {
	program, err := findFusermount()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fusermountTimeout)
	defer cancel()
	return complaint(exec.CommandContext(ctx, program, args...))
}

// complaint runs cmd and returns what it wrote to stderr as its error.
func complaint(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Dir = "/"
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if text := bytes.TrimSpace(stderr.Bytes()); len(text) > 0 {
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("%s: %w", fusermount, err)
}
