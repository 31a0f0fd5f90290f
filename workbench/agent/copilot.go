package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// copilotDialect reads copilot --output-format json. Events marked ephemeral
// are for screens; of them only retries count. Its session id comes at the
// very end, in the result. It tells no tokens.
type copilotDialect struct{}

type copilotEvent struct {
	typed
	Ephemeral bool
	SessionID string `json:"sessionId"`
	ExitCode  int    `json:"exitCode"`
	Data      struct {
		Content      string
		ToolRequests []json.RawMessage
		CallID       string `json:"toolCallId"`
		ToolName     string
		Arguments    json.RawMessage
		Success      *bool
		Shell        struct{ ExitCode int } `json:"shellExecution"`
		Error        struct{ Code string }
		Message      string
		Status       int `json:"statusCode"`
		InfoType     string
		Parent       string `json:"parentToolCallId"`
	}
}

// copilotEmpty marks that the last message of the assistant was empty.
const copilotEmpty = "empty"

func (copilotDialect) noise(kind string) bool {
	switch kind {
	case "session.background_tasks_changed", "assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta",
		"tool.shell_output", "tool.execution_partial_result":
		return true
	}
	return false
}

func (d copilotDialect) event(r *reader, line []byte) error {
	var e copilotEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	switch e.Type {
	case "assistant.turn_start":
		r.Failed = false
	case "assistant.message":
		copilotMessage(r, &e)
	case "tool.execution_start":
		r.tool(e.Data.CallID, e.Data.ToolName, e.Data.Arguments)
	case "tool.execution_complete":
		r.ended(e.Data.CallID, copilotFailure(&e))
	case "session.info":
		if e.Data.InfoType == "model_retry" {
			r.note(e.Data.Message)
		}
	case "session.warning":
		r.note(e.Data.Message)
	case "session.error":
		r.fail(e.Data.Message, e.Data.Status)
	case "abort":
		r.fail("it was interrupted", 0)
	case "result":
		r.session(e.SessionID)
		r.Done = true
		if e.ExitCode != 0 && !r.Failed {
			r.fail(fmt.Sprintf("it gave up with code %d", e.ExitCode), 0)
		}
	case "user.message", "assistant.turn_end", "assistant.reasoning", "session.start", "session.resume", "session.idle", "system.message":
	default:
		if !e.Ephemeral && !d.noise(e.Type) {
			r.unknown(e.Type)
		}
	}
	return nil
}

func copilotMessage(r *reader, e *copilotEvent) {
	if e.Data.Parent != "" {
		return // a sub-agent's
	}
	r.message(e.Data.Content)
	r.Step = ""
	if strings.TrimSpace(e.Data.Content) == "" && len(e.Data.ToolRequests) == 0 {
		r.Step = copilotEmpty
	}
}

func copilotFailure(e *copilotEvent) string {
	switch {
	case e.Data.Error.Code == "denied":
		return "not allowed"
	case e.Data.Shell.ExitCode != 0:
		return exitText(e.Data.Shell.ExitCode)
	case e.Data.Success != nil && !*e.Data.Success:
		return "failed"
	}
	return ""
}

// settle: a model that refuses leaves an empty message, and an error that says
// no more than that.
func (copilotDialect) settle(t *turn, _ Exit) {
	if t.Step == copilotEmpty && t.HTTP == 0 && (!t.Failed || strings.HasPrefix(t.Reason, "No response was returned")) {
		t.Refused, t.Reason = t.Done, ""
	}
}
