package codex

import "encoding/json"

// Messages to the server.
type (
	request struct {
		ID     uint64 `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}
	notification struct {
		Method string `json:"method"`
	}

	initialize struct {
		Client       clientInfo   `json:"clientInfo"`
		Capabilities capabilities `json:"capabilities"`
	}
	clientInfo struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	capabilities struct {
		Experimental bool     `json:"experimentalApi"`
		Unwanted     []string `json:"optOutNotificationMethods"`
	}

	threadStart struct {
		Thread    string `json:"threadId,omitempty"` // to continue
		CWD       string `json:"cwd,omitempty"`
		Model     string `json:"model,omitempty"`
		Policy    string `json:"approvalPolicy"`
		Sandbox   string `json:"sandbox,omitempty"`
		Ephemeral bool   `json:"ephemeral,omitempty"`
		NoTurns   bool   `json:"excludeTurns,omitempty"`
	}
	turnStart struct {
		Thread  string          `json:"threadId"`
		Input   []inputText     `json:"input"`
		Effort  string          `json:"effort,omitempty"`
		Sandbox json.RawMessage `json:"sandboxPolicy,omitempty"`
		Mode    *mode           `json:"collaborationMode,omitempty"`
	}
	inputText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	mode struct {
		Mode     string       `json:"mode"`
		Settings modeSettings `json:"settings"`
	}
	modeSettings struct {
		Model        string  `json:"model"`
		Effort       *string `json:"reasoning_effort"`
		Instructions *string `json:"developer_instructions"`
	}
	turnSteer struct {
		Thread string      `json:"threadId"`
		Turn   string      `json:"expectedTurnId"`
		Input  []inputText `json:"input"`
	}
	turnInterrupt struct {
		Thread string `json:"threadId"`
		Turn   string `json:"turnId"`
	}
	threadRef struct {
		Thread string `json:"threadId"`
	}
)

func input(text []byte) []inputText { return []inputText{{"text", string(text)}} }
