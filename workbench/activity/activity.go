// Package activity is a run's activity log: what its agent did, one event a
// line, as JSON for programs and as text for people.
//
// A run's directory holds two files of it. events is the log itself: one JSON
// object a line. log is the same for people: line n of log is the event on line
// n of events, which is the one with seq n, rendered by Render. Page pages
// through events; both can be read as plain files by path, up to the sizes
// that Recorder.Size returns.
//
// # Restarts
//
// Both files are append-only and events is written first, so a daemon that is
// killed leaves at most a torn line at an end and a log that is some lines
// short. Open cuts the one and writes the other. An event that a parser read
// out of the agent's output carries its place there (Src, N), so feeding the
// same output to the same kind of parser again adds only what is missing. A
// checkpoint says where in the output to begin; it is believed only as long as
// the files hold all that it counted on.
//
// # A full disk
//
// A write that fails is reported once and stops nothing. Events wait in memory
// up to a bound; what comes on top is counted, and a note says so when there is
// room again. No line that a reader could have seen is ever taken back.
//
// # Locks
//
// Recorder.saving is held over a checkpoint's way to the disk and comes before
// Recorder.mu, which guards all else and is held over writes, but over no
// fsync. Callbacks are called with neither.
//
// # Invariants
//
//   - An event of the agent is in the files at most once, in the order of the
//     output.
//   - seq counts the lines of events from 1 without a gap.
//   - run_ended is the last line: nothing is recorded after it.
//   - No control character, no escape sequence and no invalid UTF-8 is in log.
package activity

import (
	"bytes"
	"encoding/json"
	"time"

	"scvfs/workbench/agent"
)

// The names of the files in a run's directory.
const (
	EventsFile     = "events"
	LogFile        = "log"
	CheckpointFile = "checkpoint"
)

// Event is one line of a run's log.
type Event struct {
	Seq    uint64          `json:"seq"`   // from 1; also the number of its line
	TsMs   int64           `json:"ts_ms"` // when it was recorded, in milliseconds since 1970
	Kind   agent.EventKind `json:"kind"`
	Text   string          `json:"text"`
	Turn   int             `json:"turn,omitempty"`
	Status string          `json:"status,omitempty"` // how a turn or run ended; "approved" or "denied"
	Job    string          `json:"job,omitempty"`
	Risk   string          `json:"risk,omitempty"` // of an approval
	By     string          `json:"by,omitempty"`   // who prompted, answered or stopped

	// Src is set on what a parser read: the count of bytes of the agent's
	// output after which it was known. N is its number among the events with
	// the same Src, from 0.
	Src *int64 `json:"src,omitempty"`
	N   int    `json:"n,omitempty"`
}

// Options says how a Recorder works. The zero value of each field means its
// default.
type Options struct {
	// MaxBytes is how long events may grow before it is truncated to what
	// alwaysKept names (limits.log_bytes). Default 64 MiB.
	MaxBytes int64
	// MaxText is the longest text of an event in bytes; a longer one is cut
	// and says how much is missing. Default 64 KiB, at most 256 KiB.
	MaxText int
	// Clock stamps events. Default time.Now.
	Clock func() time.Time
	// Failed is told of a write that failed, once until one succeeds again.
	Failed func(error)
	// Changed is called after each change of the files' sizes.
	Changed func()
}

const (
	defaultMaxBytes = 64 << 20
	defaultMaxText  = 64 << 10
	largestMaxText  = 256 << 10

	// maxPending is how many bytes of events wait for a full disk.
	maxPending = 1 << 20
	// maxLine bounds what a reader takes for a line; six bytes can stand for
	// one of a text.
	maxLine = 6*largestMaxText + 64<<10
)

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.MaxText <= 0 {
		o.MaxText = defaultMaxText
	}
	o.MaxText = min(o.MaxText, largestMaxText)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// alwaysKept tells whether a log that has reached its length still takes
// events of a kind.
func alwaysKept(kind agent.EventKind) bool {
	switch kind {
	case agent.RunStarted, agent.TurnStarted, agent.Steered, agent.ApprovalRequested, agent.ApprovalResolved,
		agent.Note, agent.TurnEnded, agent.RunEnded, agent.Truncated:
		return true
	}
	return false
}

// encode returns an event's line with its newline.
func encode(e Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("activity: an event of strings and numbers did not marshal: " + err.Error())
	}
	return b.Bytes()
}

// decode reads a line of events. ok is false for anything but an event.
func decode(line []byte) (e Event, ok bool) {
	if json.Unmarshal(line, &e) != nil || e.Seq == 0 || e.Kind == "" {
		return Event{}, false
	}
	return e, true
}

// unreadable stands for a whole line of events that is none, so that damage in
// the middle of a file hides nothing but itself.
var unreadable = Event{Kind: agent.UnknownEvent, Text: "unreadable event"}
