package agent

import (
	"encoding/json"
	"strings"
)

// opencodeDialect reads opencode run --format json: steps with their texts and
// tools, each told when it is over. There is no last event, so the end of the
// last step and the exit together are the ending.
type opencodeDialect struct{}

type opencodeEvent struct {
	typed
	SessionID string `json:"sessionID"`
	Part      struct {
		Text   string
		Tool   string
		CallID string `json:"callID"`
		State  struct {
			Status   string
			Input    json.RawMessage
			Error    string
			Metadata struct{ Exit *int }
		}
		Reason string
		Cost   float64
		Tokens struct {
			Input, Output, Reasoning int64
			Cache                    struct{ Read, Write int64 }
		}
	}
	Error struct {
		Name string
		Data struct {
			Message string
			Status  int               `json:"statusCode"`
			Headers map[string]string `json:"responseHeaders"`
		}
	}
}

// The marks of where a run of opencode is.
const (
	stepOpen     = "open"     // a step has not ended
	stepSpoke    = "spoke"    // the same, and its last part is text
	stepRejected = "rejected" // a step ended with a call that was not allowed
	stepCalls    = "calls"    // a step ended with calls, so another must follow
	stepAnswered = "answered" // a step ended for good, with text
	stepSilent   = "silent"   // a step ended for good, without
)

func (opencodeDialect) noise(kind string) bool { return kind == "reasoning" }

func (opencodeDialect) event(r *reader, line []byte) error {
	var e opencodeEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	r.session(e.SessionID)
	switch e.Type {
	case "step_start":
		r.Step = stepOpen
	case "text":
		if strings.TrimSpace(e.Part.Text) != "" {
			r.message(e.Part.Text)
			r.Step = stepSpoke
		}
	case "tool_use":
		opencodeTool(r, &e)
	case "step_finish":
		opencodeStep(r, &e)
	case "reasoning":
	case "error":
		r.fail(first(e.Error.Data.Message, e.Error.Name), e.Error.Data.Status)
		if after := e.Error.Data.Headers["retry-after"]; after != "" {
			r.Reset = "after " + OneLine(after, 40)
			if digits(after) {
				r.Reset = "in " + OneLine(after, 40) + " s"
			}
		}
	default:
		r.unknown(e.Type)
	}
	return nil
}

// opencodeTool takes a call and its end at once.
func opencodeTool(r *reader, e *opencodeEvent) {
	state := &e.Part.State
	how, name := "", e.Part.Tool
	if name == "invalid" { // stands for one that it does not have
		var in struct{ Tool string }
		_ = json.Unmarshal(state.Input, &in)
		how, name = "failed", first(in.Tool, name)
	}
	r.tool(e.Part.CallID, name, state.Input)
	r.Step = stepOpen
	switch code := state.Metadata.Exit; {
	case strings.Contains(state.Error, "rejected permission"):
		how = "not allowed"
		r.because(r.Calls[e.Part.CallID])
		r.Step = stepRejected
	case state.Status == "error":
		how = "failed"
	case code != nil && *code != 0:
		how = exitText(*code)
	}
	r.ended(e.Part.CallID, how)
}

func opencodeStep(r *reader, e *opencodeEvent) {
	if r.Usage == nil {
		r.Usage = &Usage{}
	}
	tokens := &e.Part.Tokens
	r.Usage.InputTokens += tokens.Input + tokens.Cache.Read + tokens.Cache.Write
	r.Usage.OutputTokens += tokens.Output + tokens.Reasoning
	r.Usage.CostUSD += e.Part.Cost
	switch {
	case blocked(e.Part.Reason):
		r.Refused = true
	case e.Part.Reason == "tool-calls":
		if r.Step != stepRejected {
			r.Step = stepCalls
		}
	case r.Step == stepSpoke:
		r.Step = stepAnswered
	default:
		r.Step = stepSilent
	}
}

// settle: an exit without an error event after the last step is an ending.
func (opencodeDialect) settle(t *turn, exit Exit) {
	if t.Failed || t.Refused || exit.Signal != "" && t.Step != stepAnswered {
		return
	}
	switch t.Step {
	case stepAnswered:
		t.Done = true
	case stepSilent:
		t.Refused, t.Reason = exit.Code == 0, ""
	case stepRejected:
		t.Failed = true
		t.Reason = "it stopped at a call that its permissions do not allow (" + t.Reason + "): allow it in its configuration, or set permissions to full"
	}
}
