package ledger

import (
	"encoding/json"
	"testing"
)

// The words of the seed's enumerations, and what an unknown one reads as.
func TestWordsOfTheSeed(t *testing.T) {
	for _, c := range []struct{ text, status, kind string }{
		{"running", "running", "unknown"},
		{"completed", "completed", "unknown"},
		{"failed", "failed", "unknown"},
		{"declined", "declined", "unknown"},
		{"timeout", "timeout", "unknown"},
		{"cancelled", "cancelled", "unknown"},
		{"interrupted", "interrupted", "unknown"},
		{"background", "unknown", "background"},
		{"unknown", "unknown", "unknown"},
		{"queued", "unknown", "unknown"}, // a state, and no status
		{"Running", "unknown", "unknown"},
		{"", "unknown", "unknown"},
	} {
		var status JobStatus
		var kind OriginKind
		text := []byte(toJSON(c.text))
		if err := json.Unmarshal(text, &status); err != nil || string(status) != c.status {
			t.Errorf("status %s reads %q, %v", text, status, err)
		}
		if err := json.Unmarshal(text, &kind); err != nil || string(kind) != c.kind {
			t.Errorf("kind %s reads %q, %v", text, kind, err)
		}
	}
	if err := json.Unmarshal([]byte("5"), new(JobStatus)); err == nil {
		t.Error("a number was taken for a status")
	}
	if got := toJSON(JobStatus("comet")); got != `"comet"` {
		t.Errorf("a status is not written as it is: %s", got)
	}
}
