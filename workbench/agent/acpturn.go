package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// FormatACP is what an ACP server tells of a turn: the updates of its session,
// its requests for permission, and the answer to the prompt. It is no output of
// a program that is run for one turn, so Formats has it not.
const FormatACP = "acp"

// Lines that the dialogue adds to those of the server.
const (
	acpDenied  = "_scvfs/denied"
	acpCommand = "_scvfs/command"
)

// ACPDenied is a line for the parser of FormatACP: the call of that id was
// denied.
func ACPDenied(call string) []byte {
	line, err := json.Marshal(map[string]any{"method": acpDenied, "params": map[string]string{"toolCallId": call}})
	if err != nil {
		panic(err) // a text can always be encoded
	}
	return line
}

// ACPCommand is a line for the parser of FormatACP: the prompt is a command of
// the server's own, to which a model may have nothing to say.
func ACPCommand() []byte { return []byte(`{"method":"` + acpCommand + `"}`) }

// acpDialect reads those lines. The dialogue leaves out what is of another
// session or turn.
type acpDialect struct{}

// acpTurn is the part of a turn's state that only ACP needs.
type acpTurn struct {
	Message string    `json:"message,omitempty"` // the id of the message at hand
	Tools   []ACPTool `json:"tools,omitempty"`   // calls that were announced, but not said to do what
	Notice  string    `json:"notice,omitempty"`  // a text that may be no message but a notice
	Active  bool      `json:"active,omitempty"`  // it said or did something
	Denied  string    `json:"denied,omitempty"`  // what was denied, when nothing came after it
}

type acpEvent struct {
	Method string
	Params struct {
		Update acpUpdate
		Tool   acpUpdate `json:"toolCall"` // that a permission is asked for
		CallID string    `json:"toolCallId"`
	}
	Result *struct {
		Stop  string `json:"stopReason"`
		Usage *struct {
			Input   int64 `json:"inputTokens"`
			Output  int64 `json:"outputTokens"`
			Read    int64 `json:"cachedReadTokens"`
			Written int64 `json:"cachedWriteTokens"`
		}
		Meta struct {
			Quota struct {
				Tokens *struct {
					Input  int64 `json:"input_tokens"`
					Output int64 `json:"output_tokens"`
				} `json:"token_count"`
			}
		} `json:"_meta"`
	}
	Error *acpError
}

type acpUpdate struct {
	ACPTool
	Kind    string `json:"sessionUpdate"`
	Content json.RawMessage
	Message string `json:"messageId"`
	Status  string
	Output  json.RawMessage `json:"rawOutput"`
	Entries []struct{ Content, Status string }
	Meta    struct {
		Claude struct {
			Tool   string `json:"toolName"`
			Parent string `json:"parentToolUseId"` // set on what a sub-agent does
		} `json:"claudeCode"`
		Exit struct {
			Code *int `json:"exit_code"`
		} `json:"terminal_exit"`
	} `json:"_meta"`
}

func (acpDialect) noise(string) bool { return false }

func (acpDialect) event(r *reader, line []byte) error {
	var e acpEvent
	kind := "answer"
	if err := decode(line, &e, &kind); err != nil {
		return err
	}
	if u := &e.Params.Update; u.Kind != "agent_message_chunk" {
		r.acpNotice()
	}
	switch e.Method {
	case "session/update":
		r.acpUpdate(&e.Params.Update)
	case "session/request_permission":
		r.acpCall(&e.Params.Tool, true)
	case acpDenied:
		r.ACP.Denied = strings.TrimPrefix(first(r.Calls[e.Params.CallID], "a call"), "$ ")
		r.ended(e.Params.CallID, "not allowed")
	case acpCommand:
		r.ACP.Active = true
	case "":
		return r.acpAnswer(&e)
	default:
		r.unknown(e.Method)
	}
	return nil
}

func (r *reader) acpUpdate(u *acpUpdate) {
	switch u.Kind {
	case "agent_message_chunk":
		r.acpText(u)
	case "tool_call", "tool_call_update":
		r.acpCall(u, u.Status != "" && u.Status != "pending")
	case "plan":
		r.flushText()
		steps := make([]step, len(u.Entries))
		for i, e := range u.Entries {
			steps[i] = step{e.Content, e.Status == "completed", e.Status == "in_progress"}
		}
		r.plan(steps)
	case "user_message_chunk", "agent_thought_chunk", "available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update":
	default:
		r.unknown("update: " + u.Kind)
	}
}

// acpText takes a piece of a message. What a sub-agent says is not the agent's
// answer.
func (r *reader) acpText(u *acpUpdate) {
	var block struct{ Type, Text string }
	_ = json.Unmarshal(u.Content, &block)
	if block.Type != "text" || u.Meta.Claude.Parent != "" {
		return
	}
	r.acpTell()
	if u.Message != "" {
		if r.ACP.Message != "" && u.Message != r.ACP.Message {
			r.Fresh = true
		}
		r.ACP.Message = u.Message[:min(len(u.Message), maxSession)]
	}
	text := block.Text
	if r.ACP.Notice != "" { // it was the beginning of a message
		text, r.ACP.Notice = r.ACP.Notice+text, ""
	} else if r.a.acp().Notices && len(r.Partial) == 0 && (r.Fresh || len(r.Reply) == 0) && isNotice(text) {
		r.ACP.Notice = text
		return
	}
	if isWarning(text) {
		r.note(text)
		return
	}
	if strings.TrimSpace(text) != "" {
		r.acpActive()
	}
	r.delta(text)
}

// isWarning tells what codex's server says in each turn with a model that it
// does not know, without a sign that it is no message.
func isWarning(text string) bool {
	return strings.HasPrefix(text, "Model metadata for `") && strings.Contains(text, "` not found. Defaulting to fallback metadata")
}

func isNotice(text string) bool {
	return len(text) <= maxInput && (strings.HasPrefix(text, "Error: ") || strings.HasPrefix(text, "Info: "))
}

// acpNotice logs a text that stood alone as the notice that it is. An error is
// how the turn failed unless it goes on.
func (r *reader) acpNotice() {
	text := r.ACP.Notice
	if text == "" {
		return
	}
	r.ACP.Notice = ""
	reason, failed := strings.CutPrefix(text, "Error: ")
	r.note(strings.TrimPrefix(reason, "Info: "))
	if failed {
		r.fail(reason, 0)
		r.Refused = r.Refused || strings.HasPrefix(reason, "No response was returned")
	}
}

// acpActive takes note that the turn goes on, whatever was before.
func (r *reader) acpActive() {
	r.ACP.Active, r.ACP.Denied = true, ""
	r.Failed, r.Refused = false, false
}

// acpAnswer takes the answer to a prompt, or to what had to come before it.
func (r *reader) acpAnswer(e *acpEvent) error {
	switch {
	case e.Error != nil:
		r.Done = true
		reason, http := e.Error.reason()
		r.fail(reason, http)
		if strings.TrimSpace(string(r.Reply)) == reason {
			r.Reply = r.Reply[:0] // claude's server says it as a message too
		}
	case e.Result != nil:
		r.acpResult(e)
	default:
		return errNoType
	}
	r.acpTell()
	r.flushText()
	return nil
}

func (r *reader) acpResult(e *acpEvent) {
	r.acpUsage(e)
	r.Done = true
	switch stop := e.Result.Stop; stop {
	case "end_turn", "":
		r.acpEndTurn()
		return
	case "refusal":
		r.because(string(r.Reply[:min(len(r.Reply), maxInput)]))
		r.Refused, r.Failed = true, false
		return
	case "cancelled":
		if r.ACP.Denied != "" {
			r.acpStopped()
			return
		}
		r.fail("it was interrupted", 0)
		return
	case "max_tokens":
		r.note("(stopped early: the answer is as long as it may be)")
	case "max_turn_requests":
		r.note("(stopped early: it has asked its model as often as it may)")
	default:
		r.note("(stopped early: " + stop + ")")
	}
	r.Failed, r.Refused = false, false
}

// acpEndTurn judges a turn that ended well by its own word. Servers say that of
// refusals and failures too.
func (r *reader) acpEndTurn() {
	switch {
	case r.Failed || r.Refused: // by a notice, after which nothing came
	case r.ACP.Denied != "":
		r.acpStopped()
	case r.ACP.Active:
	case r.a.acp().Mute:
		r.fail("it gave no answer: its model declined, or its model service failed, which it does not tell", 0)
	default:
		r.Refused, r.Reason = true, ""
	}
}

func (r *reader) acpStopped() {
	r.fail("it stopped at what was denied ("+r.ACP.Denied+"): ask again and allow it, or ask for something else", 0)
}

// acpUsage adds what an answer tells of tokens; a turn into which more prompts
// were put has several.
func (r *reader) acpUsage(e *acpEvent) {
	var u Usage
	switch tokens := e.Result.Meta.Quota.Tokens; {
	case e.Result.Usage != nil:
		told := e.Result.Usage
		u = Usage{InputTokens: told.Input + told.Read + told.Written, OutputTokens: told.Output}
	case tokens != nil:
		u = Usage{InputTokens: tokens.Input, OutputTokens: tokens.Output}
	default:
		return
	}
	if u.Total = r.a.acp().Counts; r.Usage != nil && !u.Total {
		u.InputTokens += r.Usage.InputTokens
		u.OutputTokens += r.Usage.OutputTokens
	}
	r.Usage = &u
}

// acpError is an error of JSON-RPC.
type acpError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// reason is what an error says, without what it says of JSON-RPC. Some servers
// put the words into the data, in one way or another, and some the HTTP status
// into the code.
func (e *acpError) reason() (reason string, http int) {
	var data struct {
		Message, Details string
		Error            json.RawMessage
	}
	var words string
	if json.Unmarshal(e.Data, &words) != nil {
		_ = json.Unmarshal(e.Data, &data)
		words = first(data.Message, data.Details, message(string(e.Data)))
		_ = json.Unmarshal(data.Error, &words)
	}
	reason = e.Message
	for _, empty := range []string{"Internal error", "Invalid params"} {
		if rest, ok := strings.CutPrefix(reason, empty); ok {
			reason = strings.TrimPrefix(rest, ": ")
		}
	}
	switch {
	case reason == "":
		reason = words
	case words != "" && !strings.Contains(reason, words):
		reason += ": " + words
	}
	if reason = first(strings.TrimSpace(reason), e.Message); reason == "" {
		reason = fmt.Sprintf("it answered with error %d", e.Code)
	}
	if e.Code >= 400 && e.Code < 600 {
		http = e.Code
	}
	return reason, http
}

// settle: the answer to the prompt has said it all.
func (acpDialect) settle(*turn, Exit) {}

// held returns the call of that id that was announced only, and where it is.
func (t *acpTurn) held(id string) int {
	return slices.IndexFunc(t.Tools, func(c ACPTool) bool { return c.ID == id })
}
