package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	dir, mounted, err := fusefs.Mounted(set.Arg(0))
	switch {
	case err != nil:
		return err
	case !mounted:
		return fault.New(fault.Invalid, "no tree of scvfs is mounted on %s", dir)
	case *force:
		_, err := fusefs.Recover(dir)
		return err
	}
	return leave(dir)
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
