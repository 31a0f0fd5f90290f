package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// JSON encodes a message of this program's own, in which nothing cannot be
// encoded. Its texts are UTF-8; what is not becomes U+FFFD.
func JSON(message any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		panic(err) // a message that cannot be encoded is a fault of the program
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// Clip cuts a text of the agent's to n bytes, at the end of a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Questions says in a line what the owner is asked.
func Questions(all []dialogue.Choice) string {
	if len(all) == 0 {
		return "asks a question"
	}
	s := "asks: " + agent.OneLine(agent.Redact(all[0].Text), 200)
	if n := len(all) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
