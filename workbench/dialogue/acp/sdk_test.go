package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"scvfs/workbench/dialogue"
)

// library is an agent on the library's own connection, which checks what it
// gets against the protocol's schema.
type library struct {
	conn   *sdk.AgentSideConnection
	cancel chan struct{}
	hello  sdk.InitializeRequest
	set    []string
}

var _ sdk.Agent = (*library)(nil)

func (*library) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, errors.New("nobody asked for that")
}

func (l *library) Initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	l.hello = p
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession: true, SessionCapabilities: sdk.SessionCapabilities{Resume: &sdk.SessionResumeCapabilities{}},
		},
	}, nil
}

func (l *library) Cancel(context.Context, sdk.CancelNotification) error {
	close(l.cancel)
	return nil
}

func (*library) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, nil
}

func (*library) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{}, nil
}

func modes() *sdk.SessionModeState {
	return &sdk.SessionModeState{CurrentModeId: "ask", AvailableModes: []sdk.SessionMode{{Id: "ask", Name: "Ask"}, {Id: "plan", Name: "Plan"}}}
}

func models() []sdk.SessionConfigOption {
	category, values := sdk.SessionConfigOptionCategoryModel, sdk.SessionConfigSelectOptionsUngrouped{{Name: "One", Value: "m1"}, {Name: "Two", Value: "m2"}}
	return []sdk.SessionConfigOption{{Select: &sdk.SessionConfigOptionSelect{
		Id: "model", Name: "Model", Category: &category, CurrentValue: "m1", Type: "select", Options: sdk.SessionConfigSelectOptions{Ungrouped: &values},
	}}}
}

func (l *library) NewSession(_ context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	l.set = append(l.set, "new "+p.Cwd)
	return sdk.NewSessionResponse{SessionId: "s-1", Modes: modes(), ConfigOptions: models()}, nil
}

func (l *library) ResumeSession(_ context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	l.set = append(l.set, "resume "+string(p.SessionId))
	return sdk.ResumeSessionResponse{Modes: modes(), ConfigOptions: models()}, nil
}

func (l *library) SetSessionMode(_ context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	l.set = append(l.set, "mode "+string(p.ModeId))
	return sdk.SetSessionModeResponse{}, nil
}

func (l *library) SetSessionConfigOption(_ context.Context, p sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	l.set = append(l.set, string(p.ValueId.ConfigId)+" "+string(p.ValueId.Value))
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: models()}, nil
}

func (l *library) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	say := func(u sdk.SessionUpdate) {
		_ = l.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: p.SessionId, Update: u}) // a lost one fails the test by what is missing
	}
	say(sdk.UpdateAgentMessageText("You said: " + p.Prompt[0].Text.Text))
	if p.Prompt[0].Text.Text == "hang" {
		<-l.cancel
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	}
	say(sdk.StartEditToolCall("call-1", "Edit it", "/w/config.json", "x"))
	if _, err := l.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: p.SessionId, Path: "/w/x"}); err == nil {
		return sdk.PromptResponse{}, errors.New("a file was read that the client has not")
	}
	answer, err := l.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: p.SessionId, ToolCall: sdk.ToolCallUpdate{ToolCallId: "call-1", Title: sdk.Ptr("Edit it")},
		Options: []sdk.PermissionOption{{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"}, {Kind: sdk.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"}},
	})
	if err != nil || answer.Outcome.Selected == nil {
		return sdk.PromptResponse{}, err
	}
	say(sdk.UpdateToolCall("call-1", sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted)))
	say(sdk.UpdatePlan(sdk.PlanEntry{Content: "only step", Priority: sdk.PlanEntryPriorityHigh, Status: sdk.PlanEntryStatusInProgress}))
	say(sdk.UpdateAgentMessageText("It was " + string(answer.Outcome.Selected.OptionId)))
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn, Usage: &sdk.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}}, nil
}

// withLibrary is a dialogue with the library's connection.
func withLibrary(t *testing.T, o dialogue.Options) (*driver, *library) {
	ours, theirs := io.Pipe()
	theirOut, ourIn := io.Pipe()
	l := &library{cancel: make(chan struct{})}
	l.conn = sdk.NewAgentSideConnection(l, ourIn, ours)
	l.conn.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { theirs.Close(); ourIn.Close(); <-l.conn.Done() })
	return newDriver(t, o, theirs, theirOut), l
}

func TestTheLibraryUnderstandsTheDialogue(t *testing.T) {
	o := claude(t)
	o.Mode, o.Model = "plan", "m2"
	d, l := withLibrary(t, o)
	d.prompt("hello <&>")
	if q := d.asked(); q.Summary != "edit w/config.json" || q.Risk != dialogue.Filesystem {
		t.Errorf("%+v", q)
	}
	d.answer(dialogue.Answer{Allow: true})
	status, said := d.end(0)
	for _, want := range []string{`text "You said: hello <&>"`, `tool "edit w/config.json"`, `plan "1/1 only step"`, `text "It was yes"`, "InputTokens:3 OutputTokens:4"} {
		if !strings.Contains(said, want) {
			t.Errorf("without %s:\n%s", want, said)
		}
	}
	if got := strings.Join(l.set, ", "); status != "completed" || got != "new /w, mode plan, model m2" || l.hello.ClientInfo.Version != "1.2" {
		t.Error(status, got, l.hello.ClientInfo)
	}
	d.prompt("hang")
	d.until("what it says", func() bool { return len(d.sent) > 0 && strings.Contains(string(d.sent[len(d.sent)-1].Params), "hang") })
	d.d.Interrupt(d.emit)
	if status, said := d.end(0); status != "failed" || !strings.Contains(said, "it was interrupted") {
		t.Error(said)
	}
}

func TestTheLibraryResumesASession(t *testing.T) {
	o := claude(t)
	o.Session = "s-1"
	d, l := withLibrary(t, o)
	d.prompt("hello")
	d.asked()
	d.answer(dialogue.Answer{})
	if status, said := d.end(0); status != "completed" || !strings.Contains(said, "It was no") || strings.Join(l.set, ", ") != "resume s-1" {
		t.Error(status, said, l.set)
	}
}
