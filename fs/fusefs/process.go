package fusefs

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Flags of a task in /proc/PID/stat. A task that a signal kills has both while
// it closes its files.
const (
	taskExiting  = 0x004
	taskSignaled = 0x400
	taskKilled   = taskExiting | taskSignaled
)

// process is what /proc says of a client. The zero value is one that it does
// not show, such as that of another pid namespace.
//
// A process that executes a program, and in it closes descriptors that were
// not to be inherited, waits for us with a lock that much of /proc takes, stat
// above all: to read that would be to wait for each other for ever, and
// everybody who lists processes with us. Only status, fdinfo and children are
// safe, and stat of one that is on its way out.
type process struct {
	pid    int  // of the process, not of the thread that asks
	killed bool // the asking thread is dying of a signal
}

func (p process) known() bool { return p.pid != 0 }

// same tells whether both are one process. That the number was used again
// meanwhile, and by one that got the descriptor, is left out of account.
func (p process) same(q process) bool { return p.pid == q.pid }

// processOf looks up the process of a thread. What cannot be read is not
// known, and not killed.
func processOf(tid int) process {
	if tid <= 0 {
		return process{}
	}
	dir := "/proc/" + strconv.Itoa(tid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return process{}
	}
	pid, ok := parseGroup(string(status))
	if !ok {
		return process{}
	}
	p := process{pid: pid}
	if exiting(status) {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			return process{}
		}
		flags, _ := parseFlags(string(stat))
		p.killed = flags&taskKilled == taskKilled
	}
	return p
}

// exiting tells whether a task has given its memory back, which it does before
// it closes its files.
func exiting(status []byte) bool { return !bytes.Contains(status, []byte("\nVmSize:")) }

// parseGroup finds the process id in /proc/TID/status.
func parseGroup(status string) (int, bool) {
	for line := range strings.Lines(status) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
			return int(pid), err == nil && pid > 0
		}
	}
	return 0, false
}

// parseFlags finds the flags (field 9) in /proc/TID/stat. Field 2 is the
// program's name in parentheses, which can hold anything.
func parseFlags(stat string) (flags uint64, ok bool) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, false
	}
	fields := strings.Fields(stat[end+1:]) // from field 3 on
	if len(fields) <= 9-3 {
		return 0, false
	}
	flags, err := strconv.ParseUint(fields[9-3], 10, 64)
	return flags, err == nil
}
