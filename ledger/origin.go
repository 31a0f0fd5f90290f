package ledger

// OriginKind says what a turn is for that the workbench started by itself. The
// words are the seed's.
type OriginKind string

// The kinds. A word that this program does not know reads as OriginUnknown.
const (
	OriginBackground OriginKind = "background" // it reports background jobs that ended
	OriginUnknown    OriginKind = "unknown"
)

// UnmarshalText decodes a kind; an unknown word becomes OriginUnknown.
func (k *OriginKind) UnmarshalText(b []byte) error {
	if *k = OriginKind(b); *k != OriginBackground {
		*k = OriginUnknown
	}
	return nil
}

// TurnOrigin is why the workbench started a turn by itself.
type TurnOrigin struct {
	Kind OriginKind `json:"kind"`
	// Jobs are the names, such as job-3, of the jobs that the turn reports.
	// Once it is there, the agent counts as told of them.
	Jobs []string `json:"jobs,omitempty"`
}

// UnmarshalText decodes a status; an unknown word becomes StatusUnknown.
func (s *JobStatus) UnmarshalText(b []byte) error {
	*s = JobStatus(b)
	if *s != StatusRunning && !AgentState(*s).Terminal() {
		*s = StatusUnknown
	}
	return nil
}
