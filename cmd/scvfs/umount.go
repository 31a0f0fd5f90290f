package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/fs/fusefs"
	"scvfs/ledger/fault"
)

// umount takes a tree away. A living daemon notices and stops, its jobs go on.
func umount(args []string, stderr io.Writer) error {
	set := flag.NewFlagSet("scvfs umount", flag.ContinueOnError)
	set.SetOutput(stderr)
	force := set.Bool("force", false, "also when it is in use or its daemon hangs; whoever uses it gets errors")
	if err := set.Parse(args); err != nil {
		return flagError(err)
	}
	if set.NArg() != 1 {
		return usageError("umount takes one mount point: scvfs umount ~/scv")
	}
	dir, err := filepath.Abs(set.Arg(0))
	if err != nil {
		return err
	}
	dir = mountPath(dir)
	if *force {
		n, err := fusefs.Recover(dir)
		if err == nil && n == 0 {
			err = fault.New(fault.Invalid, "no tree of scvfs is mounted on %s", dir)
		}
		return err
	}
	if !ours(dir) {
		return fault.New(fault.Invalid, "no tree of scvfs is mounted on %s", dir)
	}
	return leave(dir)
}

// mountPath is a mount point as the mount table has it: absolute, and with the
// links above it resolved. The point itself is not looked at.
func mountPath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	return dir
}

// ours tells by the mount table alone, since a dead mount hangs whoever looks
// at it, whether a tree of this program is mounted on dir.
func ours(dir string) bool {
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false
	}
	point := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(dir)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == point && f[2] == "fuse.scvfs" {
			return true
		}
	}
	return false
}

// leave unmounts as the user that mounted it may: root by itself, others
// through fusermount3.
func leave(dir string) error {
	if os.Getuid() != 0 {
		out, err := exec.Command("fusermount3", "-u", "--", dir).CombinedOutput()
		if err != nil {
			return fault.New(fault.Busy, "%s: %s", dir, strings.TrimSpace(string(out)+" "+err.Error()))
		}
		return nil
	}
	switch err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); {
	case errors.Is(err, unix.EBUSY):
		return fault.New(fault.Busy, "%s is in use: leave it (cd away, close its files), or use --force", dir)
	case errors.Is(err, unix.EINVAL):
		return fault.New(fault.Invalid, "nothing is mounted on %s", dir)
	case err != nil:
		return fmt.Errorf("unmounting %s: %w", dir, err)
	}
	return nil
}
