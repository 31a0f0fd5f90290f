package agent

import (
	"encoding/json"
	"strings"
)

// FormatAppServer is what codex's app-server tells of a thread: the
// notifications of its JSON-RPC, and answers that are errors. It is no output
// of a program that is run for one turn, so Formats has it not.
const FormatAppServer = "app-server"

// appServerDialect says of a turn what codexDialect says of the same one. The
// dialogue leaves out what is of another thread or turn.
type appServerDialect struct{}

type appServerEvent struct {
	Method string
	Error  *struct{ Message string } // of an answer
	Params struct {
		Message   string
		Error     appServerError
		WillRetry bool `json:"willRetry"`
		Item      appServerItem
		Turn      struct {
			Status string
			Error  appServerError
		}
		Plan  []struct{ Step, Status string }
		Usage struct {
			Total, Last struct {
				Input  int64 `json:"inputTokens"`
				Output int64 `json:"outputTokens"`
			}
		} `json:"tokenUsage"`
		FromModel, ToModel string
	}
}

type appServerError struct {
	Message string
	Details string          `json:"additionalDetails"`
	Info    json.RawMessage `json:"codexErrorInfo"` // a word, or an object of one key
}

type appServerItem struct {
	ID       string
	Type     string
	Text     string
	Command  string
	ExitCode *int `json:"exitCode"`
	Status   string
	Server   string
	Tool     string
	Query    string
	Path     string
	Changes  []struct {
		Path string
		Kind struct{ Type string }
	}
}

func (appServerDialect) noise(string) bool { return false }

func (appServerDialect) event(r *reader, line []byte) error {
	var e appServerEvent
	kind := "answer"
	if err := decode(line, &e, &kind); err != nil {
		return err
	}
	if e.Method == "" {
		if e.Error == nil {
			return errNoType
		}
		r.Done = true
		r.fail(e.Error.Message, 0)
		return nil
	}
	p := &e.Params
	switch e.Method {
	case "item/started", "item/completed":
		appServerItemEvent(r, &p.Item, e.Method == "item/completed")
	case "turn/completed":
		r.Done = true
		appServerEnd(r, p.Turn.Status, &p.Turn.Error)
	case "turn/plan/updated":
		steps := make([]step, len(p.Plan))
		for i, s := range p.Plan {
			steps[i] = step{s.Step, s.Status == "completed", s.Status == "inProgress"}
		}
		r.plan(steps)
	case "thread/tokenUsage/updated":
		appServerUsage(r, &e)
	case "error":
		// Not the end: it also tells of each try to connect again.
		words := p.Error.Message
		if p.Error.Details != "" {
			words += " (" + p.Error.Details + ")"
		}
		r.because(strings.TrimPrefix(words, "Reconnecting... "))
		r.note(problem{reason: words}.words())
	case "warning", "guardianWarning":
		r.note(p.Message)
	case "model/rerouted":
		r.note("the model " + p.ToModel + " answers instead of " + p.FromModel)
	default:
		if !appServerNoise(e.Method) {
			r.unknown(e.Method)
		}
	}
	return nil
}

// appServerNoise tells the notifications that say nothing of a turn.
func appServerNoise(method string) bool {
	switch method {
	case "turn/started", "turn/diff/updated", "turn/moderationMetadata", "serverRequest/resolved", "skills/changed", "configWarning", "deprecationNotice", "project/changed":
		return true
	}
	area, _, _ := strings.Cut(method, "/")
	switch area {
	case "thread", "account", "item", "hook", "model", "modelProvider", "mcpServer", "remoteControl", "app", "fs", "command", "process", "rawResponse",
		"rawResponseItem", "autoApprovalReview", "externalAgentConfig", "fuzzyFileSearch", "windows", "windowsSandbox":
		return true
	}
	return false
}

func appServerEnd(r *reader, status string, failure *appServerError) {
	switch status {
	case "failed":
		r.fail(failure.Message, failure.http())
		switch failure.word() {
		case "cyberPolicy", "bioPolicy", "misalignmentPolicyViolation":
			r.Refused = true
		}
	case "interrupted":
		r.fail("it was interrupted", 0)
	}
}

// word is the kind of an error that has no more to say.
func (e *appServerError) word() string {
	var word string
	_ = json.Unmarshal(e.Info, &word)
	return word
}

// http is the status that the model service answered with, where it is told.
func (e *appServerError) http() int {
	var kinds map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	_ = json.Unmarshal(e.Info, &kinds)
	for _, kind := range kinds {
		return kind.Status
	}
	return 0
}

// appServerUsage counts the turn alone: what the thread has consumed without
// what it had before the turn's first answer.
func appServerUsage(r *reader, e *appServerEvent) {
	total, last := e.Params.Usage.Total, e.Params.Usage.Last
	if r.Before == nil {
		r.Before = &Usage{InputTokens: total.Input - last.Input, OutputTokens: total.Output - last.Output}
	}
	r.Usage = &Usage{InputTokens: max(total.Input-r.Before.InputTokens, 0), OutputTokens: max(total.Output-r.Before.OutputTokens, 0)}
}

func appServerItemEvent(r *reader, item *appServerItem, completed bool) {
	like := codexItem{
		ID: item.ID, Text: item.Text, Command: item.Command, ExitCode: item.ExitCode, Status: item.Status, Server: item.Server, Tool: item.Tool, Query: item.Query,
	}
	switch item.Type {
	case "agentMessage", "plan":
		like.Type = "agent_message"
	case "commandExecution":
		like.Type = "command_execution"
	case "fileChange":
		like.Type = "file_change"
		for _, c := range item.Changes {
			like.Changes = append(like.Changes, codexChange{c.Path, c.Kind.Type})
		}
	case "mcpToolCall":
		like.Type = "mcp_tool_call"
	case "webSearch":
		like.Type = "web_search"
	case "collabAgentToolCall":
		like.Type = "collab_tool_call"
	case "dynamicToolCall":
		like.Type = "dynamic_tool_call"
	case "imageView":
		like.Type, like.Query = "image_view", item.Path
	case "contextCompaction":
		if completed {
			r.note("the conversation was compacted")
		}
		return
	case "userMessage", "hookPrompt", "functionCallOutput", "reasoning", "subAgentActivity", "sleep", "imageGeneration", "enteredReviewMode", "exitedReviewMode":
		return
	default:
		like.Type = item.Type
	}
	codexItemEvent(r, like, completed)
}

// settle: a refusal looks as it does to codexDialect.
func (appServerDialect) settle(t *turn, exit Exit) { codexDialect{}.settle(t, exit) }
