package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const ownerName = "owner"

// Owner is the process that holds a ledger, as the file owner beside it tells.
type Owner struct {
	PID   int       `json:"pid"`
	Start uint64    `json:"start"` // field 22 of /proc/PID/stat: clock ticks since boot
	Since time.Time `json:"since"`
}

// ReadOwner returns the process that serves the state directory;
// fault.NotFound when there is none, though its file may have stayed behind.
func ReadOwner(dir string) (Owner, error) {
	f, err := os.OpenFile(filepath.Join(dir, ownerName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Owner{}, noOwner(dir, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return Owner{}, noOwner(dir, err)
	}
	o, err := parseOwner(text)
	if err != nil {
		return Owner{}, noOwner(dir, err)
	}
	if start, err := startTime(o.PID); err != nil || start != o.Start {
		return Owner{}, noOwner(dir, errors.New("the process that it names is gone"))
	}
	return o, nil
}

func noOwner(dir string, why error) error {
	return fault.New(fault.NotFound, "no scvfs serves %s (%w)", dir, why)
}

func parseOwner(text []byte) (o Owner, err error) {
	if err := json.Unmarshal(text, &o); err != nil {
		return Owner{}, err
	}
	if o.PID <= 0 {
		return Owner{}, errors.New("it names no process")
	}
	return o, nil
}

// writeOwner says that this process holds the ledger. The caller has the lock.
func writeOwner(dir string, now time.Time) error {
	start, err := startTime(os.Getpid())
	if err != nil {
		return fault.New(fault.Internal, "the start time of this process is not known: %w", err)
	}
	text, err := json.Marshal(Owner{PID: os.Getpid(), Start: start, Since: now.Round(0)})
	if err != nil {
		return err
	}
	path, temp := filepath.Join(dir, ownerName), filepath.Join(dir, ownerName+".new")
	os.Remove(temp) // of a daemon that died here
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return pathFault(temp, err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return diskFault(err)
	}
	return nil
}

func removeOwner(dir string) { os.Remove(filepath.Join(dir, ownerName)) }

// startTime returns when a process started, which together with its pid names
// it until the next boot.
func startTime(pid int) (uint64, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStart(line)
}

// parseStart returns field 22. Field 2, the command, may hold anything, and
// ends at the last parenthesis.
func parseStart(stat []byte) (uint64, error) {
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, fmt.Errorf("%.100q is no line of /proc/PID/stat", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// heldFault names the process that holds the lock on f.
func heldFault(f *os.File) error {
	if o, err := ReadOwner(filepath.Dir(f.Name())); err == nil {
		return fault.New(fault.Busy, "another scvfs (pid %d) serves this state directory; stop it or use --state", o.PID)
	}
	who := "another process"
	if pid, ok := lockHolder(f); ok {
		who = fmt.Sprintf("another process (pid %d)", pid)
	}
	return fault.New(fault.Busy, "%s holds the lock of this state directory; stop it or use --state", who)
}

// lockHolder asks the kernel who holds the lock on f, for holders that have
// not told it in the owner file: another program, or a daemon just starting.
func lockHolder(f *os.File) (pid int, ok bool) {
	info, err := os.Lstat(f.Name())
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0, false
	}
	defer locks.Close()
	return findLock(locks, fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// findLock reads lines like "1: FLOCK ADVISORY WRITE 4711 fe:00:131 0 EOF".
func findLock(locks io.Reader, file string) (pid int, ok bool) {
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != file {
			continue // also one that waits ("->" shifts the fields)
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			return pid, true
		}
	}
	return 0, false
}
