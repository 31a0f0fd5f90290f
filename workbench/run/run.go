// Package run owns agents' processes: run directories, the shim that holds a
// process and outlives the daemon, starting, stopping and adopting.
//
// A run's directory, runs/<run>/, holds spec.json (what to start), stdin,
// stdout, stderr, shim (who holds it: written once, by an exclusive link, so a
// run starts at most once whoever dies when), and exit (how it ended, written
// by the shim in one rename). The daemon adds log, events and checkpoint
// (package activity and workbench).
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
)

// Spec is what the shim starts. It is written once, before the shim.
type Spec struct {
	Run         string        `json:"run"`
	Argv        []string      `json:"argv"`
	Env         []string      `json:"env"`
	Dir         string        `json:"dir"`
	Stdin       Stdin         `json:"stdin"`
	MergeStderr bool          `json:"merge_stderr,omitempty"` // stderr goes to stdout, in order
	Timeout     time.Duration `json:"timeout,omitempty"`      // 0: none; the shim itself keeps it
	Grace       time.Duration `json:"grace"`                  // between TERM and KILL
}

// Exit is how a run ended, as its shim wrote it.
type Exit struct {
	Code       int           `json:"code"`             // -1 when a signal ended it
	Signal     string        `json:"signal,omitempty"` // "KILL", without SIG
	TimedOut   time.Duration `json:"timed_out,omitempty"`
	Stopped    bool          `json:"stopped,omitempty"` // somebody asked the shim to stop it
	StartError string        `json:"start_error,omitempty"`
	Leftovers  int           `json:"leftovers,omitempty"` // descendants that had to be killed after the agent had ended
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

// Process is a run that this daemon watches.
type Process interface {
	// PID is the agent's process id; 0 when it is not known yet.
	PID() int
	// Done is closed when the shim is gone.
	Done() <-chan struct{}
	// Exit is asked for after Done: how it ended; ok is false when the shim
	// died without saying, whose leftovers are stopped by then.
	Exit() (e Exit, ok bool)
	// Stop empties the run's whole process tree: TERM to its group, the
	// grace, KILL to every descendant until none is left. It returns when the
	// tree is empty and Done is closed, or when ctx ends.
	Stop(ctx context.Context) error
}
