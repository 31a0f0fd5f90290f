package pty

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

func open(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, slave, err := Open(97, 31)
	if err != nil {
		t.Skipf("skipped: there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() {
		master.Close()
		slave.Close()
	})
	return master, slave
}

func TestTerminalIsReadyForAProgram(t *testing.T) {
	t.Parallel()
	master, slave := open(t)
	info, err := slave.Stat()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	for _, f := range []*os.File{master, slave} {
		err := control(f, func(fd int) error {
			size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
			if err == nil && (size.Col != 97 || size.Row != 31) {
				t.Errorf("its size is %dx%d", size.Col, size.Row)
			}
			mode, err2 := unix.IoctlGetTermios(fd, unix.TCGETS)
			if err2 == nil && mode.Iflag&unix.IUTF8 == 0 {
				t.Error("it does not know UTF-8")
			}
			flags, err3 := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err3 == nil && flags&unix.FD_CLOEXEC == 0 {
				t.Error("it would be inherited")
			}
			return errors.Join(err, err2, err3)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReadOfAMasterEndsWhenItIsClosed(t *testing.T) {
	t.Parallel()
	master, _ := open(t)
	ended := make(chan error)
	go func() {
		_, err := master.Read(make([]byte, 1))
		ended <- err
	}()
	master.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestMasterIsOverWithItsSlave(t *testing.T) {
	t.Parallel()
	master, slave := open(t)
	if _, err := slave.WriteString("last\n"); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	buf := make([]byte, 10)
	if n, err := master.Read(buf); err != nil || string(buf[:n]) != "last\r\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if _, err := master.Read(buf); !errors.Is(err, unix.EIO) {
		t.Errorf("reading it: %v", err)
	}
}

func TestLinewiseIsTheProgramsToSay(t *testing.T) {
	t.Parallel()
	master, slave := open(t)
	if !Linewise(master) || !Linewise(slave) {
		t.Error("a new terminal hands keys over")
	}
	err := control(slave, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		mode.Lflag &^= unix.ICANON
		return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	})
	if err != nil || Linewise(master) {
		t.Errorf("the terminal still edits lines: %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for cause, kind := range map[error]fault.Kind{unix.ENOSPC: fault.Limit, unix.EMFILE: fault.Limit, unix.ENOENT: fault.Unsupported, unix.EPERM: fault.Internal} {
		if err := openError(&os.PathError{Op: "open", Path: "/dev/ptmx", Err: cause}); !fault.Is(err, kind) || !errors.Is(err, cause) {
			t.Errorf("%v becomes %v", cause, err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := SetSize(r, 80, 24); !errors.Is(err, unix.ENOTTY) || Linewise(r) {
		t.Errorf("a pipe has a size: %v", err)
	}
}
