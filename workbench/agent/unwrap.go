package agent

import (
	"path"
	"strings"
)

// unwrap takes the wrapping off a command line that only hands a script to a
// shell, as in bash -lc 'make test', and returns any other as it is.
func unwrap(command string) string {
	program, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
	if !isShell(program) {
		return command
	}
	option, script, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if !isRun(option) {
		return command
	}
	if script, ok := unquote(strings.TrimSpace(script)); ok {
		return script
	}
	return command
}

func isShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish":
		return true
	}
	return false
}

// isRun tells whether an option makes a shell run the next word: -c, -lc …
func isRun(option string) bool {
	return len(option) >= 2 && len(option) <= 4 && option[0] == '-' && option[1] != '-' && strings.HasSuffix(option, "c")
}

// unquote reads s as one word of a shell; ok is false when it is none or more.
// A word that was cut within its last quotes is read up to there.
func unquote(s string) (word string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				end = len(s) - i - 1
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '"':
			i++
			for ; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0 {
					i++
				}
				b.WriteByte(s[i])
			}
		case '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case ' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')', '$', '`':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), s != ""
}
