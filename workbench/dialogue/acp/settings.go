package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"scvfs/workbench/agent"
)

// setting is what of the session is set next.
type setting int

// The settings, in their order: the efforts that there are may follow from the
// model.
const (
	setMode setting = iota
	setPermissions
	setModel
	setEffort
	allSet
)

// offers are what the server says can be set. It is kept until all is.
type offers struct {
	Modes   menu     `json:"modes,omitzero"`
	Models  menu     `json:"models,omitzero"`
	Options []option `json:"options,omitempty"`
}

// menu is a setting with its values.
type menu struct {
	Current string   `json:"current,omitempty"`
	Values  []string `json:"values,omitempty"`
}

// option is a setting that the server names itself.
type option struct {
	ID       string `json:"id"`
	Category string `json:"category,omitempty"`
	menu
}

// offered reads what the answer to the opening of a session offers.
func offered(result json.RawMessage) offers {
	var told struct {
		Modes struct {
			Current string                `json:"currentModeId"`
			All     []struct{ ID string } `json:"availableModes"`
		}
		Models struct {
			Current string `json:"currentModelId"`
			All     []struct {
				ID string `json:"modelId"`
			} `json:"availableModels"`
		}
	}
	decode(result, &told)
	o := offers{Options: options(result)}
	o.Modes.Current, o.Models.Current = told.Modes.Current, told.Models.Current
	for _, m := range told.Modes.All {
		o.Modes.Values = append(o.Modes.Values, m.ID)
	}
	for _, m := range told.Models.All {
		o.Models.Values = append(o.Models.Values, m.ID)
	}
	return o
}

// options reads the options of a session that have values to choose from.
func options(result json.RawMessage) []option {
	type value struct {
		Value   string
		Options []struct{ Value string } // of a group
	}
	var told struct {
		Options []struct {
			ID, Type, Category string
			Current            json.RawMessage `json:"currentValue"`
			Options            []value
		} `json:"configOptions"`
	}
	decode(result, &told)
	var all []option
	for _, o := range told.Options {
		if o.Type != "select" && o.Type != "" {
			continue
		}
		one := option{ID: o.ID, Category: o.Category}
		decode(o.Current, &one.Current)
		for _, v := range o.Options {
			for _, inner := range v.Options {
				one.Values = append(one.Values, inner.Value)
			}
			if v.Options == nil {
				one.Values = append(one.Values, v.Value)
			}
		}
		all = append(all, one)
	}
	return all
}

// option returns the one of a category, or with one of the ids.
func (o *offers) option(category string, ids ...string) *option {
	for i := range o.Options {
		if o.Options[i].Category == category {
			return &o.Options[i]
		}
	}
	for i := range o.Options {
		if slices.Contains(ids, o.Options[i].ID) {
			return &o.Options[i]
		}
	}
	return nil
}

// set sets what is still to be set, one after the other, from s on. Then the
// prompt goes that waits.
func (t *talk) set(s setting) {
	t.s.Step = setting_
	for ; s < allSet; s++ {
		t.s.Setting = s
		waits, why := t.setOne(s)
		if why != "" {
			t.s.Step = shut
			t.refuse(refusal{Why: why})
			return
		}
		if waits {
			return
		}
	}
	t.s.Step, t.s.Setting, t.s.Offers = ready, 0, offers{}
	if t.s.Busy {
		t.prompt(t.s.Prompt)
	}
}

// setOne sends the request for one setting, if there is need for one. why is
// what is wrong with it.
func (t *talk) setOne(s setting) (waits bool, why string) {
	o := &t.s.Offers
	switch s {
	case setMode:
		if t.s.Wants.Mode == "" {
			return t.setFull()
		}
		return t.setTo("mode", t.s.Wants.Mode, &o.Modes, sdk.AgentMethodSessionSetMode, o.option("mode", "mode"))
	case setPermissions:
		all := o.option("permissions", "allow_all")
		if !t.s.Wants.Full || all == nil || all.Current == "on" || !slices.Contains(all.Values, "on") {
			return false, ""
		}
		t.setOption(all.ID, "on")
		return true, ""
	case setModel:
		return t.setTo("model", t.s.Wants.Model, &o.Models, sdk.AgentMethodSessionSetModel, o.option("model", "model"))
	case setEffort:
		return t.setTo("effort", t.s.Wants.Effort, &menu{}, "", o.option("thought_level", "effort", "reasoning_effort", "thought_level"))
	}
	return false, ""
}

// fullModes are what servers call their mode of full permissions, for one of
// which that is not known.
var fullModes = []string{"bypassPermissions", "agent-full-access", "full-access", "yolo"}

// setFull chooses the mode of full permissions. Without one, what the server
// asks is allowed all the same, so it fails only where one was to be expected.
func (t *talk) setFull() (waits bool, why string) {
	if !t.s.Wants.Full {
		return false, ""
	}
	o := &t.s.Offers
	byOption := o.option("mode", "mode")
	values := o.Modes.Values
	if byOption != nil {
		values = slices.Concat(values, byOption.Values)
	}
	known := t.o.Agent.ACPFullModes()
	for _, mode := range slices.Concat(known, fullModes) {
		if slices.Contains(values, mode) {
			return t.setTo("mode", mode, &o.Modes, sdk.AgentMethodSessionSetMode, byOption)
		}
	}
	if known == nil {
		return false, ""
	}
	return false, fmt.Sprintf("%s offers no mode of full permissions (%s), but %s: set permissions = \"default\", or find out why it does not (claude has none for root)",
		t.o.Agent.Name, strings.Join(known, " or "), list(values))
}

// setTo sets a value by the setting's own method, or else by an option. One
// that offers no values takes any.
func (t *talk) setTo(what, value string, own *menu, method string, by *option) (waits bool, why string) {
	switch {
	case value == "":
		return false, ""
	case own.Current == value, by != nil && by.Current == value:
		return false, ""
	case slices.Contains(own.Values, value):
		t.setOwn(method, value)
		return true, ""
	case by != nil && (len(by.Values) == 0 || slices.Contains(by.Values, value)):
		t.setOption(by.ID, value)
		return true, ""
	case by == nil && len(own.Values) == 0:
		return false, fmt.Sprintf("%s's ACP server has no %s to set: leave %q away", t.o.Agent.Name, what, agent.OneLine(value, 128))
	}
	values := own.Values
	if by != nil {
		values = by.Values
	}
	return false, fmt.Sprintf("%s's ACP server does not offer the %s %q: it offers %s", t.o.Agent.Name, what, agent.OneLine(value, 128), list(values))
}

func (t *talk) setOwn(method, value string) {
	session := sdk.SessionId(t.s.Server)
	if method == sdk.AgentMethodSessionSetMode {
		t.request(method, sdk.SetSessionModeRequest{SessionId: session, ModeId: sdk.SessionModeId(value)})
		return
	}
	t.request(method, sdk.UnstableSetSessionModelRequest{SessionId: session, ModelId: sdk.UnstableModelId(value)})
}

func (t *talk) setOption(id, value string) {
	t.request(sdk.AgentMethodSessionSetConfigOption, sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{
		SessionId: sdk.SessionId(t.s.Server), ConfigId: sdk.SessionConfigId(id), Value: sdk.SessionConfigValueId(value),
	}})
}

// wasSet takes the answer to that, which may change what else is offered.
func (t *talk) wasSet(failed bool, m *incoming, text []byte) {
	if t.s.Step != setting_ {
		return
	}
	if failed {
		t.s.Step = shut
		t.refuse(refusal{Answer: text})
		return
	}
	if all := options(m.Result); all != nil {
		t.s.Offers.Options = all
	}
	t.set(t.s.Setting + 1)
}

// list names values, as many as a reader can bear.
func list(values []string) string {
	const most = 30
	if len(values) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, v := range values[:min(len(values), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(agent.OneLine(v, 128))
	}
	if n := len(values) - most; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}
