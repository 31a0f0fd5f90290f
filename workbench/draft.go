package workbench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// Draft is a parsed document that was written to start (DESIGN 5).
type Draft struct {
	Call   ledger.Call
	Prompt []byte
	By     Caller // who asks; an agent's job is one delegation deeper than its own

	steerOnly bool // into the running turn, or not at all
}

// header begins the first line of a plain prompt that carries options.
const header = "#!scv"

// callKeys are the keys of an agent call, in the order that messages list
// them.
var callKeys = []string{
	"agent", "prompt", "cwd", "session", "model", "effort", "timeout_seconds", "worktree", "on_busy", "steer_fallback", "review",
}

// ParseDraft reads a document: a JSON agent call, a prompt after a #!scv line,
// or a plain prompt. The prompt keeps its bytes.
func ParseDraft(doc []byte) (Draft, error) {
	if bytes.IndexByte(doc, 0) >= 0 {
		return Draft{}, checkPrompt(doc)
	}
	draft, err := splitDraft(doc)
	if err == nil {
		err = checkPrompt(draft.Prompt)
	}
	if err != nil {
		return Draft{}, err
	}
	return draft, checkChoices(&draft.Call)
}

// checkPrompt refuses what no agent can be given.
func checkPrompt(prompt []byte) error {
	switch {
	case bytes.IndexByte(prompt, 0) >= 0:
		return fault.New(fault.Invalid, "the prompt holds a NUL byte, which no agent can take: remove it")
	case len(bytes.TrimSpace(prompt)) == 0:
		return fault.New(fault.Invalid, "the prompt is empty: write what the agent is to do")
	}
	return nil
}

func splitDraft(doc []byte) (Draft, error) {
	if isObject(doc) {
		return parseCall(doc)
	}
	if line, rest, _ := bytes.Cut(doc, []byte("\n")); isHeader(line) {
		call, err := parseHeader(string(line))
		return Draft{Call: call, Prompt: rest}, err
	}
	return Draft{Prompt: doc}, nil
}

// opening reads the part of a document that has come so far as far as it can
// be judged: a complete JSON object, a complete #!scv line, or the beginning of
// a plain prompt. It is nil when there is nothing to judge yet. What it returns
// is for checks, its prompt is not complete.
func opening(doc []byte) (*Draft, error) {
	line, _, complete := bytes.Cut(doc, []byte("\n"))
	switch {
	case isObject(doc):
		draft, err := ParseDraft(doc)
		return &draft, err
	case complete && isHeader(line):
		call, err := parseHeader(string(line))
		if err == nil {
			err = checkChoices(&call)
		}
		return &Draft{Call: call}, err
	case bytes.HasPrefix(bytes.TrimSpace(doc), []byte("{")), !complete && bytes.HasPrefix([]byte(header), doc[:min(len(doc), len(header))]):
		return nil, nil
	}
	return &Draft{Prompt: wholeRunes(doc)}, nil
}

// wholeRunes cuts off a character that a write ended inside of: the rest of it
// is still to come.
func wholeRunes(part []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(part); n++ {
		if tail := part[len(part)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return part[:len(part)-n]
			}
			break
		}
	}
	return part
}

// isObject tells whether the whole document is one JSON object. A shell group
// such as "{ make; }" is not.
func isObject(doc []byte) bool {
	doc = bytes.TrimSpace(doc)
	n := len(doc)
	return n > 1 && doc[0] == '{' && doc[n-1] == '}' && json.Valid(doc)
}

func isHeader(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte(header))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r')
}

// jsonCall is a call as JSON spells it. The pointers tell absent from empty.
type jsonCall struct {
	ledger.Call
	Prompt *string `json:"prompt"`
}

func parseCall(doc []byte) (Draft, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(doc, &keys); err != nil {
		return Draft{}, fault.New(fault.Invalid, "the agent call is not a JSON object: %w", err)
	}
	for key := range keys {
		if !slices.Contains(callKeys, key) {
			return Draft{}, unknownKey(key)
		}
	}
	var call jsonCall
	if err := json.Unmarshal(doc, &call); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Draft{}, fault.New(fault.Invalid, "key %q of the agent call takes %s, not a %s", strings.TrimPrefix(wrong.Field, "Call."), kindWords(wrong.Type), wrong.Value)
		}
		return Draft{}, fault.New(fault.Invalid, "the agent call cannot be read: %w", err)
	}
	if call.Prompt == nil {
		return Draft{}, fault.New(fault.Invalid, `the agent call has no "prompt"`)
	}
	trimBlank(&call.Call)
	return Draft{Call: call.Call, Prompt: []byte(*call.Prompt)}, nil
}

// kindWords names what a key takes, for people.
func kindWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	}
	return "a text"
}

func unknownKey(key string) error {
	return fault.New(fault.Invalid, "unknown key %q; an agent call takes %s", key, strings.Join(callKeys, " "))
}

// trimBlank makes blank strings absent ones (DESIGN 5).
func trimBlank(c *ledger.Call) {
	for _, s := range []*string{&c.Agent, &c.CWD, &c.Session, &c.Model, &c.Effort, &c.OnBusy, &c.SteerFallback} {
		if strings.TrimSpace(*s) == "" {
			*s = ""
		}
	}
	if bytes.Equal(bytes.TrimSpace(c.Review), []byte("null")) {
		c.Review = nil
	}
}

// parseHeader reads "#!scv agent=codex worktree effort=high".
func parseHeader(line string) (ledger.Call, error) {
	words, err := Fields(strings.TrimPrefix(line, header))
	if err != nil {
		return ledger.Call{}, fault.In(header, "", err)
	}
	if len(words) == 0 {
		return ledger.Call{}, fault.New(fault.Invalid, "%s needs at least one option, such as agent=codex; remove the line to send a plain prompt", header)
	}
	var call ledger.Call
	for _, word := range words {
		key, value, valued := strings.Cut(word, "=")
		if err := setOption(&call, key, value, valued); err != nil {
			return ledger.Call{}, err
		}
	}
	trimBlank(&call)
	return call, nil
}

func setOption(c *ledger.Call, key, value string, valued bool) error {
	text := map[string]*string{
		"agent": &c.Agent, "cwd": &c.CWD, "session": &c.Session, "model": &c.Model, "effort": &c.Effort,
		"on_busy": &c.OnBusy, "steer_fallback": &c.SteerFallback,
	}[key]
	var err error
	switch {
	case key == "worktree":
		c.Worktree = true
		if valued {
			c.Worktree, err = strconv.ParseBool(value)
		}
	case key == "prompt" || !slices.Contains(callKeys, key):
		return unknownKey(key)
	case !valued:
		return fault.New(fault.Invalid, "option %s of the %s line needs a value: %s=…", key, header, key)
	case text != nil:
		*text = value
	case key == "timeout_seconds":
		c.Timeout, err = strconv.ParseInt(value, 10, 64)
	case key == "review":
		return fault.New(fault.Invalid, `review is for calls in JSON: write {"agent":…,"prompt":…,"review":{…}}`)
	}
	if err != nil {
		return fault.New(fault.Invalid, "option %s of the %s line cannot be %q", key, header, value)
	}
	return nil
}

// checkChoices refuses values outside the few words that a key takes.
func checkChoices(c *ledger.Call) error {
	for _, choice := range []struct {
		key, value string
		words      []string
	}{
		{"on_busy", c.OnBusy, []string{"queue", "wait", "fail", "steer"}},
		{"steer_fallback", c.SteerFallback, []string{"queue", "wait", "fail"}},
	} {
		if choice.value != "" && !slices.Contains(choice.words, choice.value) {
			return fault.New(fault.Invalid, "%s cannot be %q; it takes %s", choice.key, choice.value, strings.Join(choice.words, ", "))
		}
	}
	if c.Timeout < 0 {
		return fault.New(fault.Invalid, "timeout_seconds cannot be %d; leave it out for the default", c.Timeout)
	}
	return nil
}

// Fields splits a line into words at blanks. Double quotes keep blanks
// together, a backslash keeps the next character, in quotes too.
func Fields(line string) ([]string, error) {
	var words []string
	in := strings.NewReader(line)
	for {
		word, err := field(in)
		if err == io.EOF {
			return words, nil
		}
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
}

// field reads the next word; io.EOF when there is none.
func field(in *strings.Reader) (string, error) {
	var word strings.Builder
	started, quoted := false, false
	for {
		c, err := in.ReadByte()
		if err != nil {
			break
		}
		blank := c == ' ' || c == '\t' || c == '\r' || c == '\n'
		switch {
		case c == '"':
			started, quoted = true, !quoted
		case c == '\\':
			if c, err = in.ReadByte(); err != nil {
				return "", fault.New(fault.Invalid, "the line ends in a backslash: write two for one")
			}
			started = true
			word.WriteByte(c)
		case blank && !quoted && started:
			return word.String(), nil
		case blank && !quoted:
		default:
			started = true
			word.WriteByte(c)
		}
	}
	switch {
	case quoted:
		return "", fault.New(fault.Invalid, `a double quote is not closed: write \" for the character itself`)
	case !started:
		return "", io.EOF
	}
	return word.String(), nil
}
