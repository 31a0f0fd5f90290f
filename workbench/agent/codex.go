package agent

import "strings"

// codexDialect reads codex exec --json: a thread, its turn, and items that
// start and complete. Messages come whole. Its usage counts the whole thread.
type codexDialect struct{}

type codexEvent struct {
	typed
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Error    struct{ Message string }
	Item     codexItem `json:"item"`
	Usage    struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

type codexItem struct {
	ID       string
	Type     string
	Text     string
	Message  string
	Command  string
	ExitCode *int `json:"exit_code"`
	Status   string
	Server   string
	Tool     string
	Query    string
	Changes  []codexChange
	Items    []struct {
		Text      string
		Completed bool
	}
}

type codexChange struct{ Path, Kind string }

func (codexDialect) noise(string) bool { return false }

func (codexDialect) event(r *reader, line []byte) error {
	var e codexEvent
	if err := decode(line, &e, &e.Type); err != nil {
		return err
	}
	switch e.Type {
	case "thread.started":
		r.session(e.ThreadID)
	case "turn.started":
	case "item.started", "item.updated", "item.completed":
		codexItemEvent(r, e.Item, e.Type == "item.completed")
	case "turn.completed":
		r.Done = true
		r.Usage = &Usage{InputTokens: e.Usage.Input, OutputTokens: e.Usage.Output, Total: true}
	case "turn.failed":
		r.fail(e.Error.Message, 0)
	case "error":
		// Not the end: it also tells of each try to connect again.
		r.because(strings.TrimPrefix(e.Message, "Reconnecting... "))
		r.note(problem{reason: e.Message}.words())
	default:
		r.unknown(e.Type)
	}
	return nil
}

func codexItemEvent(r *reader, item codexItem, completed bool) {
	switch item.Type {
	case "agent_message":
		if completed {
			r.message(item.Text)
		}
		return
	case "reasoning":
		return
	case "error":
		r.note(item.Message)
		return
	case "todo_list":
		codexPlan(r, item)
		return
	}
	if item.Type == "web_search" && item.Query == "" && !completed {
		return // it is told when it is over
	}
	line := codexCall(item)
	if line == "" {
		r.unknown("item: " + item.Type)
		return
	}
	// An item without an id still shows its call, once, when it is complete.
	if !r.called(item.ID) && (completed || item.ID != "") {
		r.call(item.ID, line)
	}
	if completed {
		r.ended(item.ID, codexFailure(item))
	}
}

// codexCall says in a line what an item does; empty for an unknown one.
func codexCall(item codexItem) string {
	switch item.Type {
	case "command_execution":
		return shellLine(item.Command)
	case "file_change":
		return changesLine(len(item.Changes), func(i int) (string, string) { return item.Changes[i].Kind, item.Changes[i].Path })
	case "mcp_tool_call":
		return toolText(item.Server + "." + item.Tool)
	case "web_search":
		return searchLine(item.Query)
	case "collab_tool_call":
		return toolText("agent: " + item.Tool)
	case "dynamic_tool_call":
		return toolText(item.Tool)
	case "image_view":
		return fileLine("read", item.Query)
	}
	return ""
}

func codexFailure(item codexItem) string {
	if item.ExitCode != nil && *item.ExitCode != 0 {
		return exitText(*item.ExitCode)
	}
	switch item.Status {
	case "failed":
		return "failed"
	case "declined":
		return "not allowed"
	}
	return ""
}

func codexPlan(r *reader, item codexItem) {
	steps := make([]step, len(item.Items))
	for i, one := range item.Items {
		steps[i] = step{one.Text, one.Completed, false}
	}
	r.plan(steps)
}

// settle: a model that refuses leaves a turn without a message, and an exit
// of 0.
func (codexDialect) settle(t *turn, _ Exit) {
	t.Refused = t.Refused || t.Done && !t.Failed && len(t.Reply) == 0
	if t.Refused {
		t.Reason = ""
	}
}
