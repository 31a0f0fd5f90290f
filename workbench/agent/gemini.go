package agent

import (
	"encoding/json"
	"strings"
)

// geminiDialect reads gemini -o stream-json. Its exit code is an HTTP status
// modulo 256; the result event is the ending. Answers come in pieces.
type geminiDialect struct{}

type geminiEvent struct {
	typed
	SessionID  string `json:"session_id"`
	Role       string
	Content    string
	Delta      bool
	ToolName   string `json:"tool_name"`
	ToolID     string `json:"tool_id"`
	Parameters json.RawMessage
	Status     string
	Error      struct{ Type, Message string }
	Severity   string
	Message    string
	Stats      struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
}

func (geminiDialect) noise(string) bool { return false }

func (geminiDialect) event(r *reader, line []byte) error {
	var e geminiEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	if e.Type != "message" {
		r.flushText()
	}
	switch e.Type {
	case "init":
		r.session(e.SessionID)
	case "message":
		switch {
		case e.Role != "assistant":
		case e.Delta:
			r.delta(e.Content)
		default:
			r.message(e.Content)
		}
	case "tool_use":
		r.tool(e.ToolID, e.ToolName, e.Parameters)
		r.Fresh = true
	case "tool_result":
		how := ""
		if e.Status == "error" {
			how = "failed"
		}
		r.ended(e.ToolID, how)
	case "error":
		r.because(e.Message)
		if blocked(e.Message) {
			r.Refused = true
			return nil
		}
		r.note(problem{reason: e.Message}.words())
	case "result":
		geminiResult(r, &e)
	default:
		r.unknown(e.Type)
	}
	return nil
}

func geminiResult(r *reader, e *geminiEvent) {
	r.Done = true
	r.Usage = &Usage{InputTokens: e.Stats.Input, OutputTokens: e.Stats.Output}
	switch {
	case e.Status == "error":
		r.fail(e.Error.Message, 0)
	case e.Stats.Input == 0 && len(r.Reply) == 0:
		// What would not fit into the model's context is dropped in silence.
		r.fail("it asked its model nothing, as it does when the prompt is too long for the context window", 0)
	default:
		r.Refused, r.Failed, r.Reason = false, false, ""
	}
	if strings.TrimSpace(string(r.Reply)) == "" {
		r.Reply = r.Reply[:0]
	}
}

func (geminiDialect) settle(*turn, Exit) {}
