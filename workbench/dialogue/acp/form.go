package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/internal/wire"
)

// maxFields is how many fields of a form are shown.
const maxFields = 64

// form is what is read of a request for an elicitation: a message, and a
// schema of JSON whose properties are the fields to fill in.
type form struct {
	Mode    string
	Message string
	Schema  struct {
		Properties json.RawMessage
	} `json:"requestedSchema"`
}

// formAnswer is what a form is answered with.
type formAnswer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// field is one property of a form.
type field struct {
	name string
	schema
	free string // the field for words of one's own beside this one; empty for none
}

type schema struct {
	Type        string
	Title       string
	Description string
	Enum        []string
	EnumNames   []string
	OneOf       []titled
	Items       struct {
		Enum  []string
		AnyOf []titled
		OneOf []titled
	}
}

type titled struct{ Const, Title string }

// askedForm takes a question. Pages to open are not shown.
func (t *talk) askedForm(id string, m *incoming) {
	asked := whole(m)
	var f form
	decode(m.Params, &f)
	fields := f.fields()
	switch {
	case !t.listens():
		t.answerNobody(id, asked)
		return
	case len(fields) == 0 || f.Mode != "" && f.Mode != "form":
		t.reply(id, formAnswer{Action: "decline"})
		return
	}
	q := dialogue.Ask{Kind: dialogue.Question, Risk: dialogue.Delegate, Tool: "question", Request: asked}
	for i := range fields {
		q.Questions = append(q.Questions, fields[i].choice(f.Message, len(fields)))
	}
	q.Summary = wire.Questions(q.Questions)
	if !t.Ask(id, q) {
		t.reply(id, formAnswer{Action: "decline"})
	}
}

// fields returns the fields of a form in their order. One for words of one's
// own that goes with a choice is part of it: claude's server calls it as the
// choice with _custom behind.
func (f *form) fields() []field {
	var all []field
	for name, raw := range members(f.Schema.Properties) {
		one := field{name: name}
		decode(raw, &one.schema)
		if before, ok := strings.CutSuffix(name, "_custom"); ok && one.Type == "string" && len(one.values()) == 0 {
			if i := slices.IndexFunc(all, func(f field) bool { return f.name == before }); i >= 0 {
				all[i].free = name
				continue
			}
		}
		if len(all) < maxFields {
			all = append(all, one)
		}
	}
	return all
}

// members goes through the members of a JSON object in their order.
func members(object json.RawMessage) func(yield func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(bytes.NewReader(object))
		if start, err := d.Token(); err != nil || start != json.Delim('{') {
			return
		}
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil {
				return
			}
			if s, ok := name.(string); !ok || !yield(s, value) {
				return
			}
		}
	}
}

// values are what can be chosen.
func (s *schema) values() []titled {
	all := slices.Concat(s.OneOf, s.Items.AnyOf, s.Items.OneOf)
	for i, v := range slices.Concat(s.Enum, s.Items.Enum) {
		one := titled{Const: v}
		if i < len(s.EnumNames) {
			one.Title = s.EnumNames[i]
		}
		all = append(all, one)
	}
	if s.Type == "boolean" {
		all = append(all, titled{Const: "yes"}, titled{Const: "no"})
	}
	return all
}

// shown is a value's text: its title, unless that is the value with more
// behind.
func (v *titled) shown() string {
	if v.Title == "" || strings.HasPrefix(v.Title, v.Const) {
		return v.Const
	}
	return v.Title
}

// choice is the field as a question. The message of a form with one field is
// its question.
func (f *field) choice(message string, of int) dialogue.Choice {
	c := dialogue.Choice{Multi: f.Type == "array"}
	texts := []string{f.Description, f.Title, message, f.name}
	if of == 1 {
		texts = []string{message, f.Description, f.Title, f.name}
	}
	for _, text := range texts {
		if c.Text = text; strings.TrimSpace(text) != "" {
			break
		}
	}
	for _, v := range f.values() {
		c.Options = append(c.Options, v.shown())
	}
	return c
}

func (t *talk) answerForm(id string, m *incoming, a dialogue.Answer) {
	if !a.Allow {
		t.reply(id, formAnswer{Action: "decline"})
		return
	}
	var f form
	decode(m.Params, &f)
	content := map[string]any{}
	for i, one := range f.fields() {
		if i < len(a.Words) && strings.TrimSpace(a.Words[i]) != "" {
			one.fill(content, a.Words[i])
		}
	}
	t.reply(id, formAnswer{Action: "accept", Content: content})
}

// fill puts words into a form. What a field cannot take is left out.
func (f *field) fill(content map[string]any, words string) {
	word := strings.TrimSpace(words)
	switch f.Type {
	case "boolean":
		if yes, ok := f.value(word); ok {
			content[f.name] = yes == "yes"
		} else if is, err := strconv.ParseBool(strings.ToLower(word)); err == nil {
			content[f.name] = is
		}
	case "integer", "number":
		if n := json.Number(word); json.Valid([]byte(word)) && isNumber(n, f.Type == "integer") {
			content[f.name] = n
		}
	case "array":
		f.fillList(content, words)
	default:
		value, ok := f.value(word)
		switch {
		case ok:
			content[f.name] = value
		case f.free != "":
			content[f.free] = words
		case len(f.values()) == 0:
			content[f.name] = words
		}
	}
}

func isNumber(n json.Number, whole bool) bool {
	if whole {
		_, err := n.Int64()
		return err == nil
	}
	_, err := n.Float64()
	return err == nil
}

// fillList takes several values: one a line, or else between commas.
func (f *field) fillList(content map[string]any, words string) {
	parts := strings.FieldsFunc(words, func(r rune) bool { return r == '\n' })
	if len(parts) == 1 {
		if _, ok := f.value(strings.TrimSpace(parts[0])); !ok {
			parts = strings.Split(parts[0], ",")
		}
	}
	chosen := []string{}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		value, ok := f.value(part)
		switch {
		case ok:
			chosen = append(chosen, value)
		case f.free != "":
			content[f.free] = words
			return
		case part != "" && len(f.values()) == 0:
			chosen = append(chosen, part)
		}
	}
	content[f.name] = chosen
}

// value is the value that a word chooses: by itself, or by its title.
func (f *field) value(word string) (string, bool) {
	all := f.values()
	same := []func(v *titled) bool{
		func(v *titled) bool { return v.Const == word || v.shown() == word },
		func(v *titled) bool { return strings.EqualFold(v.Const, word) || strings.EqualFold(v.Title, word) },
	}
	for _, is := range same {
		for i := range all {
			if is(&all[i]) {
				return all[i].Const, true
			}
		}
	}
	return "", false
}
