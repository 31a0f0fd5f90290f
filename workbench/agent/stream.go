package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"scvfs/ledger/fault"
)

// Bounds of what a parser keeps.
const (
	maxReply   = 16 << 20 // bytes of an answer
	maxStray   = 200      // bytes of output that is no event
	maxKinds   = 64       // unknown kinds told apart
	maxCalls   = 256      // tool calls that have not ended
	maxSession = 128      // characters of a session id
)

// A dialect is how one program writes events, one JSON object a line.
type dialect interface {
	// noise tells the kinds that say nothing, which are not even decoded.
	noise(kind string) bool
	// event reads one event into r. An error means that it is none.
	event(r *reader, line []byte) error
	// settle judges t once all is over, where the stream has no event that
	// says so.
	settle(t *turn, exit Exit)
}

// turn is what the output told until now; it is the state of a parser.
type turn struct {
	Format  string            `json:"format"`
	Lines   Lines             `json:"lines"`
	ID      string            `json:"session,omitempty"` // the agent's session id
	Events  int64             `json:"events,omitempty"`  // lines that were events, of whatever kind
	Stray   []byte            `json:"stray,omitempty"`   // the start of what was none
	Unknown map[string]int    `json:"unknown,omitempty"` // kinds that this version does not know
	Calls   map[string]string `json:"calls,omitempty"`   // tool calls that have not ended, as they were logged
	Said    string            `json:"said,omitempty"`    // last note or plan, so that none comes twice in a row

	Reply   []byte `json:"reply,omitempty"`   // the last message
	Partial []byte `json:"partial,omitempty"` // the part of it that was not logged yet
	Fresh   bool   `json:"fresh,omitempty"`   // the next piece of text begins a new message

	Done    bool    `json:"done,omitempty"`    // the stream said that the turn is over
	Refused bool    `json:"refused,omitempty"` // by the model
	Failed  bool    `json:"failed,omitempty"`
	Reason  string  `json:"reason,omitempty"` // of the failure, in the agent's words
	HTTP    int     `json:"http,omitempty"`
	Reset   string  `json:"reset,omitempty"` // when a limit ends
	Usage   *Usage  `json:"usage,omitempty"`
	Before  *Usage  `json:"before,omitempty"` // what the conversation had consumed until the turn
	Step    string  `json:"step,omitempty"`   // a dialect's own mark of where it is
	ACP     acpTurn `json:"acp,omitzero"`
}

// reader is the parser of all JSON-lines formats.
type reader struct {
	a *Agent
	d dialect
	turn

	emit    func(int64, Event)
	end     int64
	strange bool // the event at hand is of an unknown kind
}

var _ Parser = (*reader)(nil)

func (r *reader) Parse(p []byte, emit func(int64, Event)) {
	r.emit = emit
	r.Lines.Feed(p, r.line)
	r.emit = nil
}

func (r *reader) Finish(emit func(int64, Event)) {
	r.emit = emit
	r.Lines.Flush(r.line)
	r.end = r.Lines.Offset
	r.flushText()
	r.emit = nil
}

// line takes one line: an event, an array of them, or neither.
func (r *reader) line(end int64, text []byte, skipped int64) {
	r.end = end
	if skipped > 0 {
		r.note(fmt.Sprintf("a line of %d bytes was skipped: at most %d are read", skipped, MaxLine))
		return
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return
	case text[0] == '{' && r.event(text):
		return
	case text[0] == '[':
		var all []json.RawMessage
		if json.Unmarshal(text, &all) == nil && len(all) > 0 {
			known := false
			for _, one := range all {
				known = r.event(one) || known
			}
			if known {
				return
			}
		}
	}
	r.unknown("(no event)")
	r.stray(text)
}

// stray keeps the start of what nobody recognises, to be quoted.
func (r *reader) stray(text []byte) {
	if room := maxStray - len(r.Stray); room > 0 {
		r.Stray = append(append(r.Stray, text[:min(room, len(text))]...), '\n')
	}
}

func (r *reader) event(text []byte) bool {
	if kind := kindOf(text); kind != "" && r.d.noise(kind) {
		r.Events++
		return true
	}
	r.strange = false
	switch err := r.d.event(r, text); {
	case err != nil:
		return false
	case r.strange:
		r.stray(text)
	default:
		r.Events++
	}
	return true
}

// kindOf reads the type of an event that begins with it, without decoding it.
func kindOf(text []byte) string {
	rest, ok := bytes.CutPrefix(text, []byte(`{"type":"`))
	if !ok {
		return ""
	}
	end := bytes.IndexAny(rest[:min(len(rest), 64)], `"\`)
	if end <= 0 || rest[end] != '"' {
		return ""
	}
	return string(rest[:end])
}

// typed is what all events have.
type typed struct {
	Type string `json:"type"`
}

// errNoType says that an object is no event.
var errNoType = fault.New(fault.Invalid, "an event without a type")

// decode reads an event into e; kind points at its type. A field that changed
// its shape is left out, and the rest counts.
func decode(text []byte, e any, kind *string) error {
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(text, e); err != nil && !errors.As(err, &mismatch) {
		return err
	}
	if *kind == "" {
		return errNoType
	}
	return nil
}

// unknown counts a kind that the dialect does not know.
func (r *reader) unknown(kind string) {
	if r.Unknown == nil {
		r.Unknown = map[string]int{}
	}
	kind = OneLine(kind, 64)
	if _, ok := r.Unknown[kind]; !ok && len(r.Unknown) >= maxKinds {
		kind = "(other)"
	}
	r.Unknown[kind]++
	r.strange = true
}

// session takes the agent's session id when it is one.
func (r *reader) session(id string) {
	if validSession(id) {
		r.ID = id
	}
}

// validSession tells whether id is of the form that is taken for a session id.
func validSession(id string) bool {
	if id == "" || len(id) > maxSession || id[0] == '-' {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !alphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// say logs an event. Texts are as the agent wrote them.
func (r *reader) say(kind EventKind, text string) { r.emit(r.end, Event{Kind: kind, Text: text}) }

// note logs a remark, unless it was the last one too.
func (r *reader) note(text string) { r.once(Note, text) }

func (r *reader) once(kind EventKind, text string) {
	text = OneLine(Redact(text), maxReason)
	if text == "" || text == r.Said {
		return
	}
	r.Said = text
	r.say(kind, text)
}

// message takes a whole message of the agent: it is logged, and it is the
// reply until another one comes.
func (r *reader) message(text string) {
	r.flushText()
	if strings.TrimSpace(text) == "" {
		return
	}
	r.reply(text)
	r.Fresh = true
	r.sayAll(text)
}

// sayAll logs text as one event, or as several when it is long.
func (r *reader) sayAll(text string) {
	for _, piece := range pieces(text) {
		if strings.TrimSpace(piece) != "" {
			r.say(Text, piece)
		}
	}
}

func (r *reader) reply(text string) {
	r.Reply = append(r.Reply[:0], text[:min(len(text), maxReply)]...)
}

// delta takes the next piece of a message that comes in pieces.
func (r *reader) delta(text string) {
	if r.Fresh {
		r.flushText()
		r.Reply, r.Fresh = r.Reply[:0], false
	}
	r.Reply = append(r.Reply, text[:min(len(text), maxReply-min(len(r.Reply), maxReply))]...)
	r.Partial = append(r.Partial, text...)
	for {
		n := bytes.LastIndexByte(r.Partial, '\n')
		if n < 0 {
			if len(r.Partial) <= maxText {
				return
			}
			n = wholeRunes(r.Partial[:maxText])
			r.say(Text, string(r.Partial[:n]))
			r.Partial = append(r.Partial[:0], r.Partial[n:]...)
			continue
		}
		r.sayAll(string(r.Partial[:n]))
		r.Partial = append(r.Partial[:0], r.Partial[n+1:]...)
	}
}

// flushText logs the rest of a message that came in pieces.
func (r *reader) flushText() {
	r.sayAll(string(r.Partial))
	r.Partial = r.Partial[:0]
}

// call logs a tool call and remembers it until it ends.
func (r *reader) call(id, line string) {
	r.flushText()
	r.Fresh = true
	if line == "" {
		return
	}
	if r.Calls == nil {
		r.Calls = map[string]string{}
	}
	if id != "" && len(r.Calls) < maxCalls {
		r.Calls[id] = line
	}
	r.say(Tool, line)
}

// called tells whether a call with that id was logged and has not ended.
func (r *reader) called(id string) bool { _, ok := r.Calls[id]; return ok }

// ended takes the end of a call. how is empty when it went well, or else says
// how it failed: "exit 2", "failed", "not allowed".
func (r *reader) ended(id, how string) {
	line, ok := r.Calls[id]
	if !ok {
		return
	}
	delete(r.Calls, id)
	if how != "" {
		r.say(ToolFailed, how+": "+strings.TrimPrefix(line, "$ "))
	}
}

// fail takes a failure as the agent tells it; an empty reason keeps the last.
// One that tells of a refusal is none.
func (r *reader) fail(reason string, http int) {
	if reason != "" {
		r.because(reason)
		r.Refused = blocked(reason)
	}
	if http != 0 {
		r.HTTP = http
	}
	r.Failed = true
}

// because keeps a reason, which may be quoted if the turn fails.
func (r *reader) because(reason string) {
	if reset := resetTold(reason); reset != "" {
		r.Reset = reset
	}
	r.Reason = strings.ToValidUTF8(reason[:min(len(reason), 4<<10)], "")
}

func (r *reader) Session() string { return r.ID }

func (r *reader) State() (json.RawMessage, error) { return json.Marshal(&r.turn) }

func (r *reader) Restore(state json.RawMessage) error {
	var t turn
	if err := json.Unmarshal(state, &t); err != nil || t.Format != r.Format || len(t.Lines.Part) > MaxLine {
		return unusable(r.Format, err)
	}
	r.turn = t
	return nil
}

func unusable(format string, err error) error {
	if err != nil {
		return fault.New(fault.Invalid, "the saved state is none of a %s parser: read the output from its beginning: %w", format, err)
	}
	return fault.New(fault.Invalid, "the saved state is none of a %s parser: read the output from its beginning", format)
}
