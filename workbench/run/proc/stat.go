package proc

import (
	"bytes"
	"strconv"
	"strings"

	"scvfs/ledger/fault"
)

// Stat is what /proc/PID/stat says of a process or a thread, as far as anybody
// here asks.
type Stat struct {
	PID     int
	Comm    string
	State   byte // one letter: R S D T t Z X …
	PPID    int
	PGID    int
	SID     int
	Flags   uint64
	Threads int
	Start   uint64 // clock ticks since boot
}

// The kernel's PF_EXITING and PF_SIGNALED: on its way out, and by a signal.
const killedFlags = 0x4 | 0x400

// The places of the fields after the command, counted from the state.
const (
	fieldPPID    = 1
	fieldPGID    = 2
	fieldSID     = 3
	fieldFlags   = 6
	fieldThreads = 17
	fieldStart   = 19
)

// ParseStat parses one line of /proc/PID/stat. The command may hold any bytes,
// spaces and parentheses too: it ends at the last ')'.
func ParseStat(line []byte) (Stat, error) {
	open, shut := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || shut < open {
		return Stat{}, badStat(line)
	}
	s := Stat{Comm: string(line[open+1 : shut])}
	fields := bytes.Fields(line[shut+1:])
	if len(fields) <= fieldStart || len(fields[0]) != 1 {
		return Stat{}, badStat(line)
	}
	if s.State = fields[0][0]; s.State|0x20 < 'a' || s.State|0x20 > 'z' {
		return Stat{}, badStat(line)
	}
	ok := true
	number := func(b []byte) int {
		n, err := strconv.Atoi(string(b))
		ok = ok && err == nil
		return n
	}
	unsigned := func(b []byte) uint64 {
		n, err := strconv.ParseUint(string(b), 10, 64)
		ok = ok && err == nil
		return n
	}
	s.PID = number(bytes.TrimSpace(line[:open]))
	s.PPID, s.PGID, s.SID = number(fields[fieldPPID]), number(fields[fieldPGID]), number(fields[fieldSID])
	s.Flags, s.Threads, s.Start = unsigned(fields[fieldFlags]), number(fields[fieldThreads]), unsigned(fields[fieldStart])
	if !ok || s.PID <= 0 {
		return Stat{}, badStat(line)
	}
	return s, nil
}

func badStat(line []byte) error {
	return fault.New(fault.Internal, "%.200q is no line of /proc/PID/stat", line)
}

// Ended tells whether the process runs no more: it is a zombie or less. A
// leader that ended before its threads has not ended as a process.
func (s Stat) Ended() bool {
	switch s.State {
	case 'Z':
		return s.Threads <= 1
	case 'X', 'x':
		return true
	}
	return false
}

// Killed tells whether the process is on its way out because of a signal.
func (s Stat) Killed() bool { return s.Flags&killedFlags == killedFlags }

// ID returns the identity of the process that s was read of, since this boot.
func (s Stat) ID() ID {
	boot, _ := bootID()
	return ID{PID: s.PID, Start: s.Start, Boot: boot}
}

// Status is what /proc/PID/status says of a process or a thread, as far as
// anybody here asks.
type Status struct {
	TGID    int
	UID     int    // effective
	Ignored uint64 // the signals that it ignores: bit n-1 is signal n
}

// ParseStatus parses /proc/PID/status.
func ParseStatus(text []byte) (Status, error) {
	s := Status{TGID: -1, UID: -1}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		var err error
		switch {
		case key == "Tgid" && len(fields) == 1:
			s.TGID, err = strconv.Atoi(fields[0])
		case key == "Uid" && len(fields) == 4:
			s.UID, err = strconv.Atoi(fields[1])
		case key == "SigIgn" && len(fields) == 1:
			s.Ignored, err = strconv.ParseUint(fields[0], 16, 64)
		}
		if err != nil {
			return Status{}, fault.New(fault.Internal, "%.100q is no line of /proc/PID/status", line)
		}
	}
	if s.TGID <= 0 || s.UID < 0 {
		return Status{}, fault.New(fault.Internal, "%.100q is no /proc/PID/status: it names no process or no user", text)
	}
	return s, nil
}

// Ignores tells whether the signal is ignored.
func (s Status) Ignores(signal int) bool {
	return signal > 0 && signal <= 64 && s.Ignored&(1<<(signal-1)) != 0
}
