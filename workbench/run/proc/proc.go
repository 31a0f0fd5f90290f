// Package proc knows the processes of this machine: who one is, whether it
// lives, who descends from whom, and how to signal one without ever hitting a
// stranger that was given its number.
//
// A process id alone says nothing: the kernel hands it out again. An ID is the
// number with the start time and the boot, and nobody else ever has the same.
// Every signal goes through a pidfd that was checked against such an ID after
// it was opened, so it reaches that process or nobody.
//
// The package holds no lock and no state but the boot id, and only reads
// /proc. What it reads there is a moment's truth; a caller that needs more
// holds a Handle.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"

	"scvfs/ledger/fault"
)

// ID names one process for ever.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot: /proc/PID/stat, field 22
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// bootID is read once: it cannot change under a running program.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.New(fault.Internal, "the boot id of this machine cannot be read, so no process can be told from a later one: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
})

// Boot returns the id of this boot of the machine.
func Boot() (string, error) { return bootID() }

// Of returns the identity of the process that has the number now;
// fault.NotFound when there is none. A zombie still has its number.
func Of(pid int) (ID, error) {
	s, err := ReadStat(pid)
	if err != nil {
		return ID{}, err
	}
	boot, err := bootID()
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: s.Start, Boot: boot}, nil
}

// SameBoot tells whether the process ran since this machine was booted; one
// that did not is gone, whatever has its number now.
func (id ID) SameBoot() bool {
	boot, err := bootID()
	return err == nil && id.Boot == boot
}

// Is tells whether s, read since this boot, is that process, dead or alive.
func (id ID) Is(s Stat) bool {
	return s.PID == id.PID && s.Start == id.Start && id.SameBoot()
}

// Alive tells whether the process still runs: it has its number, its start
// time is the same, and it is no zombie.
func (id ID) Alive() bool {
	if !id.SameBoot() {
		return false
	}
	s, err := ReadStat(id.PID)
	return err == nil && id.Is(s) && !s.Ended()
}

// String returns the number, as people know a process.
func (id ID) String() string { return strconv.Itoa(id.PID) }

// ReadStat reads /proc/PID/stat of a process or a thread; fault.NotFound when
// there is none.
func ReadStat(pid int) (Stat, error) {
	var buf [1024]byte
	b, err := slurp(pid, "stat", buf[:])
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

// ReadStatus reads /proc/PID/status of a process or a thread; fault.NotFound
// when there is none.
func ReadStatus(pid int) (Status, error) {
	b, err := os.ReadFile(path(pid, "status"))
	if err != nil {
		return Status{}, gone(pid, err)
	}
	return ParseStatus(b)
}

// TGID returns the process that a thread belongs to; fault.NotFound when the
// thread is gone.
func TGID(tid int) (int, error) {
	s, err := ReadStatus(tid)
	return s.TGID, err
}

// Killed tells whether a process or thread is dying of a signal right now. One
// that ends by itself, lives, or is gone already is not.
func Killed(pid int) bool {
	s, err := ReadStat(pid)
	return err == nil && s.Killed()
}

// Tagged tells whether the environment that a process was started with has
// this entry, such as "NAME=value". It is false for a process that is gone or
// whose environment is not ours to read.
func Tagged(pid int, entry string) bool {
	env, err := os.ReadFile(path(pid, "environ"))
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if len(e) > 0 && string(e) == entry {
			return true
		}
	}
	return false
}

// Owner returns the user that a process runs as.
func Owner(pid int) (uid int, err error) {
	s, err := ReadStatus(pid)
	return s.UID, err
}

// path returns the path of a process's file in /proc.
func path(pid int, file string) string {
	return fmt.Sprintf("/proc/%d/%s", pid, file)
}

// slurp reads a short file of a process in one read into buf. It goes past
// os.File, which would offer each of the hundreds of files of a walk to the
// poller.
func slurp(pid int, file string, buf []byte) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return syscall.Open(path(pid, file), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, gone(pid, err)
	}
	defer syscall.Close(fd)
	n, err := ignoringEINTR(func() (int, error) { return syscall.Read(fd, buf) })
	if err != nil {
		return nil, gone(pid, err)
	}
	return buf[:n], nil
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// gone makes an error of /proc into ours: a process that has left is NotFound.
func gone(pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return fault.New(fault.NotFound, "there is no process %d", pid)
	}
	return fault.New(fault.Internal, "process %d cannot be looked at: %w", pid, err)
}
