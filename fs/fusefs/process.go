package fusefs

import (
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
type process struct {
	pid    int    // of the process, not of the thread that asks
	start  uint64 // when it started, in clock ticks after boot
	killed bool   // the asking thread is dying of a signal
}

func (p process) known() bool { return p.pid != 0 }

// same tells whether both are one process; a pid that was used again is not.
func (p process) same(q process) bool { return p.pid == q.pid && p.start == q.start }

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
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return process{}
	}
	pid, ok := parseGroup(string(status))
	flags, start, statOK := parseStat(string(stat))
	if !ok || !statOK {
		return process{}
	}
	p := process{pid: pid, start: start, killed: flags&taskKilled == taskKilled}
	if pid != tid {
		leader, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return process{killed: p.killed}
		}
		if _, p.start, ok = parseStat(string(leader)); !ok {
			return process{killed: p.killed}
		}
	}
	return p
}

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

// parseStat finds flags (field 9) and start time (field 22) in /proc/TID/stat.
// Field 2 is the program's name in parentheses, which can hold anything.
func parseStat(stat string) (flags, start uint64, ok bool) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	fields := strings.Fields(stat[end+1:]) // from field 3 on
	if len(fields) < 20 {
		return 0, 0, false
	}
	flags, err1 := strconv.ParseUint(fields[9-3], 10, 64)
	start, err2 := strconv.ParseUint(fields[22-3], 10, 64)
	return flags, start, err1 == nil && err2 == nil
}
