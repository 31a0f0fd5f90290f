package workbench

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// sessionID is the form of a session's name: one path component that needs no
// quoting in a shell.
var sessionID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckSessionID refuses a name that no session can have.
func CheckSessionID(id string) error {
	if !sessionID.MatchString(id) {
		return fault.New(fault.Invalid, "%q cannot name a session: use 1 to 64 of a-z 0-9 . _ - and begin with a letter or digit", id)
	}
	return nil
}

const jobPrefix = "job-"

// JobName returns the name of job number n: job-<n>.
func JobName(n uint64) string { return jobPrefix + strconv.FormatUint(n, 10) }

// ParseJobName returns the number in a job's name; ok is false for anything
// but the exact form that JobName makes.
func ParseJobName(name string) (n uint64, ok bool) {
	digits, found := strings.CutPrefix(name, jobPrefix)
	if !found {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && JobName(n) == name
}

// address is how a job is named across sessions.
func address(session string, n uint64) string { return session + "/" + JobName(n) }

// newRunID makes the name of a run of an agent that taken does not know yet.
func newRunID(agent string, taken func(string) bool) string {
	for {
		var b [3]byte
		rand.Read(b[:]) // never fails, by its documentation
		if id := agent + "-" + hex.EncodeToString(b[:]); !taken(id) {
			return id
		}
	}
}

// newUUID makes a random UUID for an agent that lets us choose the id of its
// session.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// taskRunes is the longest task line, in characters.
const taskRunes = 80

// taskLine is the first line of a prompt that says something, shortened and
// safe to show on one line.
func taskLine(prompt []byte) string {
	for line := range strings.Lines(string(prompt[:min(len(prompt), 64<<10)])) {
		if line = agent.OneLine(line, taskRunes); line != "" {
			return line
		}
	}
	return ""
}
