// Package run owns agents' processes: run directories, the shim that holds a
// process and outlives the daemon, starting, stopping and adopting.
//
// A run's directory, runs/<run>/, holds spec.json (what to start), stdin,
// stdout, stderr, shim (who holds it: written once, by an exclusive link, so a
// run starts at most once whoever dies when), agent (the process that the shim
// started), exit (how it ended, written by the shim in one rename), and tmp
// (the run's TMPDIR). The daemon adds log, events and checkpoint (package
// activity and workbench). A run on a terminal has no stdin, stdout and stderr
// there: what a program writes to its terminal is never kept.
//
// # Who does what
//
// Shim is the whole life of a shim process; it shares nothing with the daemon
// but the run's directory. Manager is the daemon's side: it starts shims, and
// watches them by pidfd, its own children and adopted ones alike.
//
// A run on a terminal has the slave of a pseudo-terminal for its three standard
// files and its controlling terminal; the agent leads a session of its own.
// The master is the daemon's, and nobody else has the slave. Such a run does
// not outlive the daemon: the shim holds the end of a pipe, the line, whose
// other end the daemon has, and hangs up when the line breaks.
//
// # Lock order
//
// Manager.mu guards the tables of watched runs and lines, and is a leaf. follows.adding is
// held over calls into fsnotify; take it before follows.mu, which is a leaf and
// the only one that the goroutine that reads events takes.
//
// # Invariants
//
//   - Whoever links the file shim first decides: a shim starts the agent, or a
//     manager makes the run void. The other gives up.
//   - A run's tree is empty before exit is written, and before Done is closed.
//   - No signal goes to a bare number: each goes through a pidfd that was
//     checked against a start time, or to a child that is not reaped yet.
//   - A process counts as a run's only on evidence that a stranger cannot have
//     by chance (see relics).
package run

import (
	"context"
	"time"
)

// Stdin says what an agent reads.
type Stdin string

// The kinds of standard input.
const (
	StdinNull Stdin = "null" // /dev/null
	StdinFile Stdin = "file" // the file stdin of the run's directory
	StdinFIFO Stdin = "fifo" // a FIFO that the shim holds open
	StdinTTY  Stdin = "tty"  // a pseudo-terminal, which is standard output and error too
)

// Spec is what the shim starts. It is written once, before the shim. The bytes
// of Argv, Env and Dir reach the agent as they are, UTF-8 or not.
type Spec struct {
	Run         string        `json:"run"`
	Argv        []string      `json:"argv"`
	Env         []string      `json:"env"`
	Dir         string        `json:"dir"`
	Stdin       Stdin         `json:"stdin"`
	Cols        int           `json:"cols,omitempty"` // of the terminal, at the start
	Rows        int           `json:"rows,omitempty"`
	MergeStderr bool          `json:"merge_stderr,omitempty"` // stderr goes to stdout, in order
	Umask       *int          `json:"umask,omitempty"`        // of the agent; nil: the daemon's
	Timeout     time.Duration `json:"timeout,omitempty"`      // 0: none; the shim itself keeps it
	Grace       time.Duration `json:"grace"`                  // between TERM and KILL
}

// Exit is how a run ended, as its shim wrote it.
type Exit struct {
	Code       int           `json:"code"`             // -1 when a signal ended it
	Signal     string        `json:"signal,omitempty"` // "KILL", without SIG
	TimedOut   time.Duration `json:"timed_out,omitempty"`
	Stopped    bool          `json:"stopped,omitempty"` // somebody asked the shim to stop it, or to hang up
	StartError string        `json:"start_error,omitempty"`
	Leftovers  int           `json:"leftovers,omitempty"` // processes that outlived the agent and were stopped; after a stop, those that took KILL
	Ended      time.Time     `json:"ended"`
}

// Standing is what a run's directory and processes say of it.
type Standing uint8

// The standings.
const (
	Live  Standing = iota // its shim lives
	Ended                 // its exit is written and its shim is gone
	Dead                  // its shim is gone and wrote no exit
	Never                 // no shim ever took it, and none ever will: it is void now
)

// String returns the standing in a word.
func (s Standing) String() string {
	if names := [...]string{"live", "ended", "dead", "never"}; int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Process is a run that this daemon watches.
type Process interface {
	// PID is the agent's process id; 0 when it is not known yet.
	PID() int
	// Done is closed when the shim is gone. It stays open when the manager is
	// closed before that.
	Done() <-chan struct{}
	// Exit is asked for after Done: how it ended; ok is false when the shim
	// died without saying, whose leftovers are stopped by then.
	Exit() (e Exit, ok bool)
	// Stop empties the run's whole process tree: TERM to its group, the
	// grace, KILL to every descendant until none is left. It returns when the
	// tree is empty and Done is closed, or when ctx ends; the stopping goes on
	// in that case. fault.Timeout or fault.Interrupted as ctx ended,
	// fault.Gone when the manager is closed.
	Stop(ctx context.Context) error
}

// TerminalProcess is a run on a terminal. Adopt returns one too, for which
// only the type is to be asserted.
type TerminalProcess interface {
	Process
	// HangUp ends the run as a terminal that goes away does: HUP to the
	// agent's session, the grace, TERM to every descendant, the grace, KILL
	// until none is left. It waits as Stop does, with the same errors; Stop
	// cuts it short. A run on no terminal is stopped.
	HangUp(ctx context.Context) error
}
