package ledger

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ApprovalState is where a request of an agent stands.
type ApprovalState string

// The states. A value that this program does not know reads as
// ApprovalUnknown, which is no longer waiting.
const (
	ApprovalWaiting   ApprovalState = "waiting"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalWithdrawn ApprovalState = "withdrawn"
	ApprovalUnknown   ApprovalState = "unknown"
)

// UnmarshalText decodes a state; an unknown word becomes ApprovalUnknown.
func (s *ApprovalState) UnmarshalText(b []byte) error {
	switch *s = ApprovalState(b); *s {
	case ApprovalWaiting, ApprovalApproved, ApprovalDenied, ApprovalWithdrawn:
	default:
		*s = ApprovalUnknown
	}
	return nil
}

// Who decides about a request.
const (
	DecidedByOwner = "owner" // How names the process and the file that it wrote to
	DecidedByGate  = "gate"  // How names the policy, or the deadline
	DecidedByAgent = "agent" // it took the request back
	DecidedByEnd   = "end"   // of its turn or job; How says which
)

// Question is one question of an approval that asks for more than yes or no.
// Its texts are the agent's own and may hold any characters.
type Question struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"` // what may be chosen; empty: words only
	Multi   bool     `json:"multi,omitempty"`   // more than one may be chosen
}

// Approval is a request of an agent that waits for an answer, or waited. Key:
// Number.
type Approval struct {
	V            int             `json:"v"`
	Number       uint64          `json:"number"` // unique for ever
	Session      string          `json:"session"`
	Job          uint64          `json:"job"`
	Run          string          `json:"run"`
	Conversation string          `json:"conversation,omitempty"`
	Agent        string          `json:"agent"`
	Ask          string          `json:"ask"` // the run's own name for the request
	Kind         string          `json:"kind"`
	Risk         string          `json:"risk"`
	Tool         string          `json:"tool,omitempty"`
	Summary      string          `json:"summary"` // one line, safe to show
	CWD          string          `json:"cwd,omitempty"`
	Request      json.RawMessage `json:"request,omitempty"`
	RequestBytes int             `json:"request_bytes,omitempty"` // its whole length, when Request is only a text of its beginning
	Questions    []Question      `json:"questions,omitempty"`
	State        ApprovalState   `json:"state"`
	Words        []string        `json:"words,omitempty"`  // the answers to the questions, when approved
	Reason       string          `json:"reason,omitempty"` // why not, for the agent
	By           string          `json:"by,omitempty"`     // who decided
	How          string          `json:"how,omitempty"`    // by what way
	Created      time.Time       `json:"created"`
	Deadline     time.Time       `json:"deadline,omitzero"` // none when it never waited
	Decided      time.Time       `json:"decided,omitzero"`
}

var (
	approvals        = &kind{"approvals", approvalText, readable[Approval]}
	_         record = (*Approval)(nil)
)

func (a *Approval) key() (string, error) { return approvalNumberKey(a.Number) }
func (a *Approval) version() *int        { return &a.V }

// paths is empty: a directory that an agent names is shown, never entered.
func (a *Approval) paths() []string { return nil }

// approvalNumberKey is the number, the most significant byte first.
func approvalNumberKey(n uint64) (string, error) {
	if n == 0 {
		return "", invalid("an approval has no number")
	}
	return string(binary.BigEndian.AppendUint64(nil, n)), nil
}

func approvalText(key []byte) string {
	if len(key) != 8 {
		return strconv.Quote(string(key))
	}
	return strconv.FormatUint(binary.BigEndian.Uint64(key), 10)
}

// PutApproval adds or replaces an approval, and raises the counter of the
// approvals to its number.
func (b *Batch) PutApproval(a *Approval) {
	b.put(approvals, a)
	b.RaiseApproval(a.Number)
}

// DeleteApproval removes an approval, if it is there.
func (b *Batch) DeleteApproval(n uint64) {
	key, err := approvalNumberKey(n)
	b.add(approvals, key, nil, err)
}

// approval checks one approval.
func (k *checker) approval(a *Approval) {
	path := fmt.Sprintf("%s/%d", approvals.bucket, a.Number)
	if a.Number > k.contents.Approval && k.bad[counterPath(approvalKey)] == nil {
		k.say(path, "has a number above the counter, %d", k.contents.Approval)
	}
	if a.State != ApprovalUnknown && (a.State == ApprovalWaiting) != a.Decided.IsZero() {
		k.say(path, "is %s, but the time of its decision is %q", a.State, timeText(a.Decided))
	}
	j := k.jobs[address(a.Session, a.Job)]
	switch {
	case j == nil && k.bad[jobs.bucket+"/"+address(a.Session, a.Job)] == nil:
		k.say(path, "is of job %s, which does not exist", address(a.Session, a.Job))
	case j != nil && a.State == ApprovalWaiting && j.State != AwaitingInput && j.State != StateUnknown:
		k.say(path, "waits, but its job %s is %s", address(a.Session, a.Job), j.State)
	case j != nil && a.State == ApprovalWaiting && a.Run != j.Run:
		k.say(path, "waits in run %s, but its job %s is served by %q", a.Run, address(a.Session, a.Job), j.Run)
	}
}

// awaited checks that a job which waits for an answer has a request that does.
func (k *checker) awaited(path string, j *Job) {
	if j.State != AwaitingInput {
		return
	}
	for key := range k.bad {
		if strings.HasPrefix(key, approvals.bucket+"/") {
			return // it may be that one
		}
	}
	if !slices.ContainsFunc(k.contents.Approvals, func(a *Approval) bool {
		return a.State == ApprovalWaiting && a.Session == j.Session && a.Job == j.Number
	}) {
		k.say(path, "is %s, but nothing of it waits for an answer", j.State)
	}
}
