package screen

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the program status protocol.
const (
	maxStatus  = 4096 // bytes of a sequence, with its introducer and terminator
	maxMessage = 2048 // bytes of a decoded text
	maxWord    = 64   // bytes of a name
	frameOfOSC = 4    // ESC ] and ESC \
)

// Program is what a program said of itself through OSC 7501: data from the
// program, for people to read, never a reason to act. The zero Program has said
// nothing, or took it back.
type Program struct {
	State    string `json:"state,omitempty"`    // idle, working, blocked, done or error
	Kind     string `json:"kind,omitempty"`     // what blocks it: permission, question or auth
	App      string `json:"app,omitempty"`      // its own name
	Message  string `json:"message,omitempty"`  // one line of text
	Title    string `json:"title,omitempty"`    // of its task
	Progress int    `json:"progress,omitempty"` // per cent; 0: not said
}

// String returns the state, what blocks it, and the message.
func (p Program) String() string {
	words := []string{p.State}
	for _, w := range []string{p.Kind, p.Message} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// update takes one record, "7501;state=idle:app=codex". A record that is not
// well formed changes nothing, and so does one of a part of the program (with
// an id): only the whole program's is kept.
func (p *Program) update(osc []byte) {
	if len(osc)+frameOfOSC > maxStatus {
		return
	}
	_, record, _ := bytes.Cut(osc, []byte{';'})
	var n Program
	for field := range strings.SplitSeq(string(record), ":") {
		key, value, ok := strings.Cut(field, "=")
		if !ok || key == "id" || !n.set(key, value) {
			return
		}
	}
	switch n.State {
	case "idle", "working", "blocked", "done", "error":
		*p = n
	case "clear":
		*p = Program{}
	}
}

// set takes one field and tells whether its value is one. Fields that are not
// known are left out, as the protocol wants.
func (p *Program) set(key, value string) bool {
	switch key {
	case "state":
		p.State = value
		return word(value)
	case "kind":
		p.Kind = value
		return word(value)
	case "app":
		p.App = value
		return word(value)
	case "msg":
		return text(&p.Message, value)
	case "title":
		return text(&p.Title, value)
	case "progress":
		n, err := strconv.Atoi(value)
		p.Progress = n
		return err == nil && n >= 0 && n <= 100
	}
	return true
}

// word tells whether s is a short name of letters, digits, dot, dash and
// underscore.
func word(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return s != "" && len(s) <= maxWord && strings.Trim(s, letters) == ""
}

// text decodes base64 text, which must be UTF-8 without control characters.
func text(to *string, encoded string) bool {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(b) > maxMessage || !utf8.Valid(b) {
		return false
	}
	*to = string(b)
	return strings.IndexFunc(*to, func(r rune) bool { return !printable(r) }) < 0
}
