package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// blanks turns the white space that agent.Printable leaves into blanks.
var blanks = strings.NewReplacer("\n", " ", "\t", " ")

// cleanLine makes one line of s that is safe to show. Unlike agent.OneLine it
// keeps runs of blanks, which a path may hold.
func cleanLine(s string) string {
	return blanks.Replace(agent.Printable(strings.TrimRight(s, "\r\n")))
}

// oneLine is the content of a file of one line: clean, and empty only when s
// is.
func oneLine(s string) []byte {
	if s = cleanLine(s); s == "" {
		return nil
	}
	return append([]byte(s), '\n')
}

// block is the content of a file of several lines, each of them clean.
func block(s string) []byte {
	if s = strings.TrimRight(agent.Printable(s), "\n"); s == "" {
		return nil
	}
	return append([]byte(s), '\n')
}

// shown is how a name that somebody gave appears in a sentence or a line of
// words: quoted where it would be misread.
func shown(name string) string {
	const most = 200
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if name == "" || strings.ContainsAny(name, " \"\t\n\ufffd") || agent.Printable(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// moment is a time as the tree shows it; empty when it has not come.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// jsonText returns v as JSON in which every control character of a string is
// escaped, also those that JSON would let pass.
func jsonText(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, fault.New(fault.Internal, "cannot be written as JSON: %w", err)
	}
	plain := b.Bytes()
	if bytes.IndexFunc(plain, escaped) < 0 {
		return plain, nil
	}
	var out bytes.Buffer
	for _, r := range string(plain) {
		if escaped(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes(), nil
}

// escaped tells whether r, which is part of a JSON text, stands in a string
// and is not to be seen as it is.
func escaped(r rune) bool { return r >= 0x7f && agent.Printable(string(r)) == "" }

// tilde writes a path below the owner's home as a shell would read it.
func (t *Tree) tilde(dir string) string {
	if rest, ok := strings.CutPrefix(dir, t.home); ok && t.home != "" && t.home != "/" && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return dir
}

// stateLine is a state and our words for it, as one line.
func stateLine(state ledger.AgentState, detail string) string {
	return strings.TrimSpace(string(state) + " " + detail)
}
