package agent

import (
	"encoding/json"
	"regexp"
	"strings"
)

// piDialect reads pi --mode json. It exits with 0 whatever happens; a failure
// stands in the last message of the assistant alone. After a failure it may
// start again, so the last ending counts.
type piDialect struct{}

type piEvent struct {
	typed
	ID       string
	Message  piMessage
	CallID   string `json:"toolCallId"`
	ToolName string
	Args     json.RawMessage
	IsError  bool
	Result   struct {
		Content    json.RawMessage
		Structured struct {
			ExitCode *int `json:"exit_code"`
		} `json:"structuredContent"`
	}
	Attempt      int
	MaxAttempts  int
	ErrorMessage string
}

type piMessage struct {
	Role    string
	Content json.RawMessage
	Usage   struct {
		Input, Output, CacheRead, CacheWrite int64
		Cost                                 struct{ Total float64 }
	}
	StopReason    string
	RawStopReason string
	ErrorMessage  string
}

// piEmpty marks that the last message of the assistant was empty.
const piEmpty = "empty"

func (piDialect) noise(kind string) bool {
	switch kind {
	case "message_update", "message_start", "tool_execution_update", "turn_start", "turn_end", "agent_settled", "entry_appended", "queue_update", "session_info_changed":
		return true
	}
	return false
}

func (d piDialect) event(r *reader, line []byte) error {
	var e piEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	switch e.Type {
	case "session":
		r.session(e.ID)
	case "agent_start":
		r.Done, r.Failed = false, false
	case "agent_end":
		r.Done = true
	case "message_end":
		piMessageEnd(r, &e.Message)
	case "tool_execution_start":
		r.tool(e.CallID, e.ToolName, e.Args)
	case "tool_execution_end":
		r.ended(e.CallID, piFailure(&e))
	case "auto_retry_start":
		r.Done = false
		r.note("tries again after " + problem{reason: e.ErrorMessage}.words())
	case "auto_retry_end":
	case "compaction_start", "auto_compaction_start":
		r.note("the conversation is compacted")
	case "compaction_end", "auto_compaction_end":
	default:
		if !d.noise(e.Type) {
			r.unknown(e.Type)
		}
	}
	return nil
}

func piMessageEnd(r *reader, m *piMessage) {
	if m.Role != "assistant" {
		return
	}
	if r.Usage == nil {
		r.Usage = &Usage{}
	}
	r.Usage.InputTokens += m.Usage.Input + m.Usage.CacheRead + m.Usage.CacheWrite
	r.Usage.OutputTokens += m.Usage.Output
	r.Usage.CostUSD += m.Usage.Cost.Total
	var text []string
	calls := false
	for _, b := range blocks(m.Content) {
		switch b.Type {
		case "text":
			text = append(text, b.Text)
		case "toolCall":
			calls = true
		}
	}
	said := strings.Join(text, "\n")
	r.message(said)
	r.Step = ""
	if strings.TrimSpace(said) == "" && !calls {
		r.Step = piEmpty
	}
	switch m.StopReason {
	case "error":
		r.fail(m.ErrorMessage, 0)
	case "aborted":
		r.fail(first(m.ErrorMessage, "it was interrupted"), 0)
	default:
		r.Failed, r.Refused, r.Reason = false, blocked(m.RawStopReason), ""
	}
}

var piExitTold = regexp.MustCompile(`Command exited with code (\d+)\s*$`)

// piFailure says how a tool failed. The text is the tool's own output, so only
// its very end, which pi writes, is looked at.
func piFailure(e *piEvent) string {
	if code := e.Result.Structured.ExitCode; code != nil && *code != 0 {
		return exitText(*code)
	}
	if !e.IsError {
		return ""
	}
	if m := piExitTold.FindStringSubmatch(textOf(e.Result.Content)); m != nil {
		return "exit " + m[1]
	}
	return "failed"
}

// settle: a model that refuses leaves an empty message that stops as any does.
func (piDialect) settle(t *turn, _ Exit) {
	t.Refused = t.Refused || t.Done && !t.Failed && t.Step == piEmpty
}
