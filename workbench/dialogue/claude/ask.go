package claude

import (
	"encoding/json"
	"strings"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// toolRequest is a can_use_tool request.
type toolRequest struct {
	Subtype string
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"input"`
}

// questions is the input of AskUserQuestion.
type questions struct {
	Raw       json.RawMessage `json:"-"`
	Questions []question
}

type question struct {
	Question string
	Multi    bool `json:"multiSelect"`
	Options  []struct{ Label string }
}

// asked takes a request of the program.
func (t *talk) asked(e *envelope) {
	var r toolRequest
	if !decode(e.Request, &r) || r.Subtype != "can_use_tool" {
		t.Send(controlResponse{"control_response", controlOutcome{
			Subtype: "error", ID: e.RequestID, Error: "scvfs does not answer requests of the kind " + agent.OneLine(r.Subtype, 64),
		}})
		return
	}
	switch {
	case !t.s.Busy:
		t.deny(e.RequestID, "there is no turn that this belongs to")
	case t.s.Stopping:
		t.deny(e.RequestID, "the turn is being stopped")
	case !t.Ask(e.RequestID, r.ask(e.Request)):
		t.deny(e.RequestID, "too much waits for an answer already")
	}
}

// ask says what is asked.
func (r *toolRequest) ask(request json.RawMessage) dialogue.Ask {
	q := dialogue.Ask{Kind: dialogue.Permission, Risk: r.risk(), Tool: r.Tool, Summary: agent.Summary(r.Tool, r.Input), Request: request}
	asked := r.questions()
	if asked == nil {
		return q
	}
	q.Kind, q.Risk = dialogue.Question, dialogue.Delegate
	for _, one := range asked.Questions {
		c := dialogue.Choice{Text: one.Question, Multi: one.Multi}
		for _, o := range one.Options {
			c.Options = append(c.Options, o.Label)
		}
		q.Questions = append(q.Questions, c)
	}
	q.Summary = wire.Questions(q.Questions)
	return q
}

// questions are those that the owner is asked; nil when it is about a tool.
func (r *toolRequest) questions() *questions {
	if r.Tool != "AskUserQuestion" {
		return nil
	}
	var raw struct{ Questions json.RawMessage }
	var all questions
	if !decode(r.Input, &raw) || !decode(r.Input, &all) || len(all.Questions) == 0 {
		return nil
	}
	all.Raw = raw.Questions
	return &all
}

// risk is by the tool, and what one that reads looks at.
func (r *toolRequest) risk() dialogue.Risk {
	switch r.Tool {
	case "Read", "Grep", "Glob", "LS", "NotebookRead", "TodoWrite":
		if r.secret() {
			return dialogue.Filesystem
		}
		return dialogue.ReadOnly
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return dialogue.Filesystem
	case "Bash", "PowerShell":
		return dialogue.Process
	case "WebFetch", "WebSearch":
		return dialogue.Network
	}
	return dialogue.Delegate
}

// secret tells whether it may read a secret.
func (r *toolRequest) secret() bool {
	var in map[string]any
	if !decode(r.Input, &in) {
		return true // it cannot be told
	}
	for key, value := range in {
		switch strings.ToLower(key) {
		case "content", "todos", "output_mode":
			continue
		}
		if s, ok := value.(string); ok && agent.SecretPath(s) {
			return true
		}
	}
	return false
}

func (t *talk) Answer(ask string, a dialogue.Answer, emit dialogue.Emit) error {
	id, q, err := t.Take(ask)
	if err != nil {
		return err
	}
	t.Do(emit, func() {
		var r toolRequest
		decode(q.Request, &r)
		switch {
		case !a.Allow:
			t.deny(id, a.Reason)
		case r.questions() != nil:
			t.allow(id, r.questions().answers(a.Words))
		default:
			t.allow(id, r.Input)
		}
	})
	return nil
}

// answers is the input of the tool with the answers in it. A question without
// one has none there.
func (q *questions) answers(words []string) []byte {
	b := append([]byte(`{"questions":`), q.Raw...)
	b = append(b, `,"answers":{`...)
	for i := range min(len(words), len(q.Questions)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, wire.JSON(q.Questions[i].Question)...), ':'), wire.JSON(words[i])...)
	}
	return append(b, "}}"...)
}

// allow lets the program use the tool with that input, byte for byte: an
// encoder would write it in its own way.
func (t *talk) allow(id string, input []byte) {
	if len(input) == 0 {
		input = []byte("{}")
	}
	b := append([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":`), wire.JSON(id)...)
	b = append(append(b, `,"response":{"behavior":"allow","updatedInput":`...), input...)
	t.SendRaw(append(b, "}}}"...))
}

func (t *talk) deny(id, why string) {
	if why == "" {
		why = "The owner did not allow this."
	}
	t.Send(controlResponse{"control_response", controlOutcome{Subtype: "success", ID: id, Response: map[string]string{"behavior": "deny", "message": why}}})
}
