package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// claudeDialect reads claude -p --output-format stream-json --verbose, and
// what --output-format json prints, an object or an array; qwen writes the
// same. The result event is the ending; a run that waits for agents of its own
// has several.
type claudeDialect struct{}

type claudeEvent struct {
	typed
	Subtype   string
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // set on what a sub-agent does
	Message   struct {
		Model      string
		StopReason string          `json:"stop_reason"`
		Content    json.RawMessage // blocks, or a string
	}

	// user
	Meta []struct {
		ID         string
		Permission struct{ Decision string } `json:"permission_decision"`
	} `json:"tool_result_meta"`

	// system
	Content     string
	ToolUseID   string `json:"tool_use_id"`
	Attempt     int
	MaxRetries  int `json:"max_retries"`
	ErrorStatus int `json:"error_status"`

	// rate_limit_event
	RateLimit struct {
		Status   string
		ResetsAt int64
	} `json:"rate_limit_info"`

	// result
	IsError    bool `json:"is_error"`
	Result     string
	Errors     []string
	StopReason string  `json:"stop_reason"`
	Terminal   string  `json:"terminal_reason"`
	Turns      int     `json:"num_turns"`
	Status     int     `json:"api_error_status"`
	Cost       float64 `json:"total_cost_usd"`
	Usage      struct {
		Input   int64 `json:"input_tokens"`
		Written int64 `json:"cache_creation_input_tokens"`
		Cached  int64 `json:"cache_read_input_tokens"`
		Output  int64 `json:"output_tokens"`
	}
	Since map[string]claudeModelUsage `json:"model_usage_since_last_result"`
}

type claudeModelUsage struct {
	Input   int64   `json:"inputTokens"`
	Written int64   `json:"cacheCreationInputTokens"`
	Cached  int64   `json:"cacheReadInputTokens"`
	Output  int64   `json:"outputTokens"`
	Cost    float64 `json:"costUSD"`
}

type claudeBlock struct {
	Type      string
	Text      string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
	Content   json.RawMessage
}

func (claudeDialect) noise(kind string) bool {
	switch kind {
	case "stream_event", "tool_progress", "keep_alive", "auth_status", "prompt_suggestion", "tool_use_summary",
		"control_request", "control_response", "control_cancel_request", "command_lifecycle":
		return true
	}
	return false
}

func (d claudeDialect) event(r *reader, line []byte) error {
	var e claudeEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	// A session that could not be continued has an id in the result only, and
	// it is none that was ever saved.
	if e.Type != "result" {
		r.session(e.SessionID)
	}
	switch e.Type {
	case "system":
		claudeSystem(r, &e)
	case "assistant":
		claudeAssistant(r, &e)
	case "user":
		claudeResults(r, &e)
	case "rate_limit_event":
		if e.RateLimit.Status == "rejected" && e.RateLimit.ResetsAt > 0 {
			r.Reset = epoch(e.RateLimit.ResetsAt)
		}
	case "result":
		claudeResult(r, &e)
	default:
		if !d.noise(e.Type) {
			r.unknown(e.Type)
		}
	}
	return nil
}

func claudeSystem(r *reader, e *claudeEvent) {
	switch e.Subtype {
	case "api_retry":
		why := "a failure of the network"
		if e.ErrorStatus != 0 {
			why = fmt.Sprintf("HTTP %d", e.ErrorStatus)
		}
		r.note(fmt.Sprintf("tries again after %s (%d of %d)", why, e.Attempt, e.MaxRetries))
	case "permission_denied":
		r.ended(e.ToolUseID, "not allowed")
	case "informational":
		r.note(e.Content)
	case "compact_boundary":
		r.note("the conversation was compacted")
	case "init", "status", "thinking_tokens", "model_refusal_no_fallback", "model_refusal_fallback", "background_tasks_changed",
		"task_started", "task_progress", "task_updated", "task_notification", "hook_started", "hook_progress", "hook_response",
		"session_state_changed", "local_command_output", "files_persisted", "post_turn_summary":
	default:
		r.unknown("system: " + e.Subtype)
	}
}

// claudeAssistant reads the blocks of an answer. What a sub-agent says is not
// the agent's answer, and an answer of no model is an error that the result
// tells again.
func claudeAssistant(r *reader, e *claudeEvent) {
	if e.Message.StopReason == "refusal" {
		r.Refused = true
	}
	for _, b := range blocks(e.Message.Content) {
		switch {
		case b.Type == "tool_use":
			r.tool(b.ID, b.Name, b.Input)
		case b.Type == "text" && e.Parent == "" && e.Message.Model != "<synthetic>":
			r.message(b.Text)
		}
	}
}

var exitTold = regexp.MustCompile(`^(?:Error: )?Exit code (\d+)`)

// claudeResults ends the calls whose results came.
func claudeResults(r *reader, e *claudeEvent) {
	for _, b := range blocks(e.Message.Content) {
		if b.Type != "tool_result" {
			continue
		}
		how := ""
		if b.IsError {
			how = "failed"
			if m := exitTold.FindStringSubmatch(textOf(b.Content)); m != nil {
				how = "exit " + m[1]
			}
			for _, m := range e.Meta {
				if m.ID == b.ToolUseID && m.Permission.Decision == "reject" {
					how = "not allowed"
				}
			}
		}
		r.ended(b.ToolUseID, how)
	}
}

func claudeResult(r *reader, e *claudeEvent) {
	if e.Turns > 0 || !e.IsError {
		r.session(e.SessionID)
	}
	r.Done = true
	claudeUsage(r, e)
	failed := e.IsError || strings.HasPrefix(e.Subtype, "error")
	r.Refused, r.Failed = e.StopReason == "refusal", failed && e.StopReason != "refusal"
	switch {
	case r.Refused:
		r.because(e.Result)
	case !failed:
		r.Reason = ""
		r.reply(e.Result)
	case strings.HasPrefix(e.Terminal, "aborted"):
		r.fail("it was interrupted", 0)
	default:
		r.fail(first(append([]string{e.Result}, e.Errors...)...), e.Status)
		if r.Reason == "" {
			r.because(strings.ReplaceAll(e.Subtype, "_", " "))
		}
	}
}

// claudeUsage adds what a result tells. What was used since the last one
// includes sub-agents, and is not of earlier turns of the session, whose cost
// total_cost_usd may hold.
func claudeUsage(r *reader, e *claudeEvent) {
	if r.Usage == nil {
		r.Usage = &Usage{}
	}
	if e.Since == nil {
		r.Usage.InputTokens += e.Usage.Input + e.Usage.Written + e.Usage.Cached
		r.Usage.OutputTokens += e.Usage.Output
		r.Usage.CostUSD = max(r.Usage.CostUSD, e.Cost)
		return
	}
	for _, model := range slices.Sorted(maps.Keys(e.Since)) {
		u := e.Since[model]
		r.Usage.InputTokens += u.Input + u.Written + u.Cached
		r.Usage.OutputTokens += u.Output
		r.Usage.CostUSD += u.Cost
	}
}

// blocks returns the parts of a message; none for one that is a string.
func blocks(content json.RawMessage) []claudeBlock {
	var all []claudeBlock
	_ = json.Unmarshal(content, &all)
	return all
}

// textOf returns a tool result that is a string, or the first text of one that
// is a list.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	for _, b := range blocks(content) {
		if b.Type == "text" {
			return b.Text
		}
	}
	return ""
}

func (claudeDialect) settle(*turn, Exit) {}
