package workbench

import (
	"context"
	"sync"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// ChangeKind says what kind of thing changed.
type ChangeKind string

// The kinds of change.
const (
	SessionChanged  ChangeKind = "session" // made, closed, reopened, or an attribute of it changed
	SessionGone     ChangeKind = "session_gone"
	JobStarted      ChangeKind = "job_started"
	JobChanged      ChangeKind = "job"
	JobLinked       ChangeKind = "job_linked"       // another job continues it
	JobSettled      ChangeKind = "job_settled"      // its agent needs no telling any more how it ended; Detail says why
	TurnStarted     ChangeKind = "turn"             // the workbench started Job by itself, for Origin
	JobGone         ChangeKind = "job_gone"         // dismissed or forgotten
	TakeoverStarted ChangeKind = "takeover_started" // Detail names the conversation
	TakeoverEnded   ChangeKind = "takeover_ended"
	WorktreeGone    ChangeKind = "worktree_gone" // removed; Detail names it
	// An agent asks and waits, Detail says what for; and how a request was
	// decided, of those too that never waited.
	ApprovalRaised   ChangeKind = "approval"
	ApprovalResolved ChangeKind = "approval_resolved"
	ChangesLost      ChangeKind = "lost" // the reader was too slow; Lost says how many it missed
)

// Change is one line of /events: something that became visible.
type Change struct {
	Seq     uint64            `json:"seq"`
	Time    time.Time         `json:"time"`
	Kind    ChangeKind        `json:"kind"`
	Session string            `json:"session,omitempty"`
	Job     string            `json:"job,omitempty"`
	Run     string            `json:"run,omitempty"`
	Agent   string            `json:"agent,omitempty"`
	State   ledger.AgentState `json:"state,omitempty"`
	Status  ledger.JobStatus  `json:"status,omitempty"`
	Task    string            `json:"task,omitempty"`
	Detail  string            `json:"detail,omitempty"`
	Lost    uint64            `json:"lost,omitempty"`

	Approval uint64               `json:"approval,omitempty"` // its number
	Outcome  ledger.ApprovalState `json:"outcome,omitempty"`  // of that approval

	Conversation string      `json:"conversation,omitempty"` // of a TurnStarted
	Origin       *TurnOrigin `json:"origin,omitempty"`       // of a TurnStarted; shared and not to be changed
}

// changeRing is how many changes a slow reader may lag behind before it
// misses some. It bounds the memory of all readers together.
const changeRing = 8192

// changes is the one stream that tells of every change. Readers keep a cursor
// and no buffer, so a reader that never reads costs nothing.
//
// Its lock is a leaf: nothing is called under it.
type changes struct {
	mu   sync.Mutex
	ring [changeRing]Change
	next uint64        // sequence number of the next change, from 1
	wake chan struct{} // closed and replaced at each change
}

func newChanges() *changes {
	return &changes{next: 1, wake: make(chan struct{})}
}

// publish appends c, stamping its number.
func (s *changes) publish(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Seq = s.next
	s.ring[c.Seq%changeRing] = c
	s.next++
	close(s.wake)
	s.wake = make(chan struct{})
}

// last is the number of the last change.
func (s *changes) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next - 1
}

// Subscription reads the changes from the moment it was made.
type Subscription struct {
	s    *changes
	next uint64
}

// subscribe returns a reader of everything published from now on.
func (s *changes) subscribe() *Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Subscription{s: s, next: s.next}
}

// Next waits for changes and returns those that came, oldest first. A reader
// that fell too far behind gets one ChangesLost first. It ends with
// fault.Interrupted when ctx does.
func (u *Subscription) Next(ctx context.Context) ([]Change, error) {
	for {
		got, wake := u.poll()
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, fault.New(fault.Interrupted, "interrupted while waiting for changes")
		}
	}
}

// poll returns what is there now, and a channel that is closed at the next
// change.
func (u *Subscription) poll() ([]Change, <-chan struct{}) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []Change
	if oldest := s.next - min(s.next-1, changeRing); u.next < oldest {
		got = append(got, Change{Seq: oldest - 1, Time: s.ring[oldest%changeRing].Time, Kind: ChangesLost, Lost: oldest - u.next})
		u.next = oldest
	}
	for ; u.next < s.next; u.next++ {
		got = append(got, s.ring[u.next%changeRing])
	}
	return got, s.wake
}
