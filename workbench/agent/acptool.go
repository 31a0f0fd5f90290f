package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ACPTool is what an ACP server tells of a call of a tool.
type ACPTool struct {
	ID     string          `json:"toolCallId"`
	Title  string          `json:"title,omitempty"`
	Does   string          `json:"kind,omitempty"` // a tool kind of the protocol
	Input  json.RawMessage `json:"rawInput,omitempty"`
	Places []ACPPlace      `json:"locations,omitempty"`
	Name   string          `json:"name,omitempty"` // of the tool, where the server tells it
}

// ACPPlace is a file or directory that a call works on.
type ACPPlace struct {
	Path string `json:"path"`
}

// maxPlaces is how many paths of a call are kept.
const maxPlaces = 16

// Add takes what an update says of a call.
func (c *ACPTool) Add(u *ACPTool) {
	c.Title, c.Does, c.Name = first(clip(u.Title), c.Title), first(clip(u.Does), c.Does), first(clip(u.Name), c.Name)
	if len(bytes.Trim(u.Input, "{} ")) > 0 && !bytes.Equal(u.Input, []byte("null")) {
		c.Input = u.Input
	}
	if len(u.Places) > 0 {
		c.Places = u.Places[:min(len(u.Places), maxPlaces)]
	}
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxInput)], "") }

// acpCall takes what is told of a call. It is logged once, when it is said
// what it does, or begins, or needs a permission.
func (r *reader) acpCall(u *acpUpdate, begins bool) {
	u.Name = first(u.Name, u.Meta.Claude.Tool)
	if !r.called(u.ID) {
		at := r.ACP.held(u.ID)
		if at < 0 && u.Kind == "tool_call_update" {
			return // of one that has ended, or was never begun
		}
		var call ACPTool
		if at >= 0 {
			call = r.ACP.Tools[at]
			r.ACP.Tools = slices.Delete(r.ACP.Tools, at, at+1)
		}
		call.ID = u.ID
		call.Add(&u.ACPTool)
		line, clear := call.line()
		if !begins && !clear {
			r.acpHold(call)
			return
		}
		r.acpActive()
		if tools[toolName(call.Name)] != verbPlan {
			r.call(u.ID, line)
		}
	}
	switch u.Status {
	case "completed", "failed":
		r.ended(u.ID, u.failure())
	}
}

// acpHold keeps a call until more is said of it.
func (r *reader) acpHold(call ACPTool) {
	r.flushText()
	r.Fresh = true
	if len(call.Input) > maxInput {
		call.Input = nil
	}
	if len(r.ACP.Tools) < maxCalls && len(call.ID) <= maxInput {
		r.ACP.Tools = append(r.ACP.Tools, call)
	}
}

// acpTell logs the calls of which no more was said.
func (r *reader) acpTell() {
	held := r.ACP.Tools
	if len(held) == 0 {
		return
	}
	r.ACP.Tools = nil
	r.acpActive()
	for _, call := range held {
		line, _ := call.line()
		r.call(call.ID, line)
	}
}

// line says in a line what a call does; clear tells whether that is more than
// the tool's name.
func (c *ACPTool) line() (line string, clear bool) {
	var in input
	_ = json.Unmarshal(c.Input, &in) // what does not fit is not shown
	file := first(in.FilePath, in.FilePath2, in.AbsPath, in.Path, in.Notebook, in.DirPath)
	if file == "" && len(c.Places) > 0 && c.Does != "execute" {
		file = c.Places[0].Path
	}
	command := first(words(in.Command), words(in.Cmd), in.Script)
	query := first(in.Query, in.Pattern)
	if v := tools[toolName(c.Name)]; v != 0 && v != verbShell {
		in.Path = first(in.Path, file)
		return first(toolLine(c.Name, &in), toolText(c.Title)), file != "" || query != "" || in.URL != "" || in.Description != ""
	}
	switch c.Does {
	case "execute":
		title := strings.Trim(c.Title, "`")
		return first(shellLine(first(command, title)), toolText(c.Title)), command != ""
	case "read", "delete", "move":
		return fileLine(c.Does, first(file, c.Title)), file != ""
	case "edit":
		what := "edit"
		if tools[toolName(c.Title)] == verbWrite {
			what = "write"
		}
		return fileLine(what, first(file, c.Title)), file != ""
	case "search":
		return searchLine(first(query, c.Title)), query != ""
	case "fetch":
		return fetchLine(first(in.URL, c.Title)), in.URL != ""
	}
	return first(toolText(c.Title), toolText(c.Name), "a tool"), len(c.Input) > 0
}

// failure says how a call that has ended failed; empty when it went well.
// Servers tell the code that a command exited with in many ways.
func (u *acpUpdate) failure() string {
	var out struct {
		Code     *int `json:"exit_code"`
		Metadata struct{ Exit *int }
		Contents []struct {
			Code *int `json:"exitCode"`
		}
	}
	_ = json.Unmarshal(u.Output, &out)
	codes := []*int{out.Code, out.Metadata.Exit, u.Meta.Exit.Code}
	for _, c := range out.Contents {
		codes = append(codes, c.Code)
	}
	for _, code := range codes {
		if code != nil && *code != 0 {
			return exitText(*code)
		}
	}
	var text string
	if u.Status != "failed" {
		return ""
	}
	if json.Unmarshal(u.Output, &text) == nil {
		if m := exitTold.FindStringSubmatch(text[:min(len(text), maxInput)]); m != nil {
			return "exit " + m[1]
		}
	}
	return "failed"
}

// DecodeACPTool reads the toolCall of a message, or an update of a call. What
// does not fit is left out.
func DecodeACPTool(raw json.RawMessage) ACPTool {
	var u acpUpdate
	_ = json.Unmarshal(raw, &u)
	var c ACPTool
	c.ID = u.ID
	u.Name = first(u.Name, u.Meta.Claude.Tool)
	c.Add(&u.ACPTool)
	return c
}

// Summary says in a line what the call would do, for who is asked whether it
// may, as the Summary of other tools does.
func (c *ACPTool) Summary() string {
	line, _ := c.line()
	if n := len(c.Places) - 1; n > 0 && c.Does != "execute" {
		line += fmt.Sprintf(" and %d more", n)
	}
	return summary(line)
}

// Secret tells whether a path that the call names looks as if what is there is
// secret, by SecretPath.
func (c *ACPTool) Secret() bool {
	for _, place := range c.Places {
		if SecretPath(place.Path) {
			return true
		}
	}
	if slices.ContainsFunc(strings.Fields(c.Title), func(word string) bool { return SecretPath(strings.Trim(word, "`'\"()")) }) {
		return true
	}
	return secretWithin(c.Input)
}

// secretWithin looks for such a path among all texts of a tool's arguments.
func secretWithin(arguments json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(arguments))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if text, ok := token.(string); ok && len(text) <= maxInput && SecretPath(text) {
			return true
		}
	}
}
