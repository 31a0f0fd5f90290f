package agent

import (
	"strings"
)

// mask stands for a credential.
const mask = "***"

// secretNames are parts of names whose values are masked; secretPrefixes begin
// tokens that are recognised by themselves. All are in lower case; only the
// prefixes are compared with their case.
var (
	secretNames    = []string{"key", "token", "secret", "password", "passwd", "authorization", "credential", "cookie"}
	secretPrefixes = []string{
		"sk-", "sk_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "AKIA", "AIza", "hf_", "npm_", "pypi-",
	}
	schemes = []string{"bearer", "basic"}
)

const (
	tokenTail = 8   // how much longer than its prefix a token must be
	maxName   = 128 // a longer word is no name
)

// Redact masks what looks like a credential: the value after a name that
// speaks of keys, tokens, secrets, passwords, authorization, credentials or
// cookies ("name=value", "name: value", "--name value"), the word after Bearer
// or Basic, a password within a URL, a private key, and tokens that begin as
// those of well-known services do. It is a help, not a guarantee. Redact of its
// own result changes nothing.
func Redact(s string) string {
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); i++ {
		from, to := secret(s, i)
		if to <= from {
			continue
		}
		i = to - 1
		if s[from:to] != mask {
			b.WriteString(s[last:from])
			b.WriteString(mask)
			last = to
		}
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// secret returns the bounds of the credential that what stands at i gives
// away; equal ones when it gives none away.
func secret(s string, i int) (from, to int) {
	switch s[i] | 0x20 {
	case 'k', 't', 's', 'p', 'a', 'c', 'b', 'g', 'x', 'h', 'n':
	case ':':
		return urlPassword(s, i)
	case '-' | 0x20:
		return privateKey(s, i)
	default:
		return i, i
	}
	if from, to := knownToken(s, i); to > from {
		return from, to
	}
	for _, scheme := range schemes {
		if hasFold(s[i:], scheme) && !wordBefore(s, i) {
			return schemeValue(s, i+len(scheme), scheme)
		}
	}
	for _, name := range secretNames {
		if hasFold(s[i:], name) {
			return namedValue(s, i, i+len(name))
		}
	}
	return i, i
}

// knownToken finds a token that begins at i as those of a service do.
func knownToken(s string, i int) (from, to int) {
	if wordBefore(s, i) {
		return i, i
	}
	for _, prefix := range secretPrefixes {
		if !strings.HasPrefix(s[i:], prefix) {
			continue
		}
		end := i + len(prefix)
		for end < len(s) && nameByte(s[end]) {
			end++
		}
		if end-i-len(prefix) >= tokenTail {
			return i, end
		}
	}
	return i, i
}

// schemeValue finds the word after Bearer or Basic, which ends at i. Basic is
// a word of every day's language, so what follows it must look encoded.
func schemeValue(s string, i int, scheme string) (from, to int) {
	from = i
	for from < len(s) && s[from] == ' ' {
		from++
	}
	if from == i {
		return i, i
	}
	for to = from; to < len(s) && tokenByte(s[to]); to++ {
	}
	word := s[from:to]
	if scheme == "basic" && !strings.ContainsAny(word, "0123456789=") && word[min(1, len(word)):] == strings.ToLower(word[min(1, len(word)):]) {
		return i, i
	}
	return from, to
}

// namedValue finds the value that belongs to the name around s[i:j].
func namedValue(s string, i, j int) (from, to int) {
	start, end := i, j
	for start > 0 && nameByte(s[start-1]) && i-start < maxName {
		start--
	}
	for end < len(s) && nameByte(s[end]) && end-j < maxName {
		end++
	}
	at := skipQuote(s, end)
	sign := skipBlanks(s, at)
	switch {
	case sign < len(s) && (s[sign] == '=' || s[sign] == ':') && !strings.HasPrefix(s[sign:], "://"):
		from = skipBlanks(s, sign+1)
	case strings.HasPrefix(s[start:end], "--") && end < len(s) && s[end] == ' ':
		if from = skipBlanks(s, end); from < len(s) && s[from] == '-' {
			return i, i
		}
	default:
		return i, i
	}
	name := strings.ToLower(s[start:end])
	from, to = value(s, from, strings.Contains(name, "authorization") || strings.Contains(name, "cookie"))
	if strings.HasSuffix(name, "tokens") && digits(s[from:to]) {
		return i, i // a count
	}
	return from, to
}

// value returns the bounds of the value at i: what is within its quotes, or
// else one word, or with line set the rest of the line.
func value(s string, i int, line bool) (from, to int) {
	from = skipQuote(s, i)
	if strings.HasPrefix(s[from:], mask+" ") {
		return from, from + len(mask) // by an earlier pass
	}
	quote := byte(0)
	if from > i {
		quote = s[from-1]
	}
	for to = from; to < len(s) && s[to] != '\n' && s[to] != '\r'; to++ {
		c := s[to]
		if quote != 0 {
			if c == quote || c == '\\' && to+1 < len(s) && s[to+1] == quote {
				break
			}
			continue
		}
		if c == '"' || c == '\'' || !line && strings.IndexByte(" \t;&|,)}]", c) >= 0 {
			break
		}
	}
	return from, to
}

// urlPassword finds the password of "scheme://user:password@host" for the
// colon before it.
func urlPassword(s string, i int) (from, to int) {
	start := i
	for start > 0 && tokenByte(s[start-1]) && s[start-1] != '/' && i-start < maxName {
		start--
	}
	if !strings.HasSuffix(s[:start], "://") {
		return i, i
	}
	for to = i + 1; to < len(s) && s[to] > ' ' && s[to] != '/' && s[to] != '"' && s[to] != '\''; to++ {
		if s[to] == '@' {
			return i + 1, to
		}
	}
	return i, i
}

// privateKey finds the body of a PEM block of a private key.
func privateKey(s string, i int) (from, to int) {
	label, ok := strings.CutPrefix(s[i:], "-----BEGIN ")
	if !ok {
		return i, i
	}
	for _, kind := range []string{"", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "} {
		body, ok := strings.CutPrefix(label, kind+"PRIVATE KEY-----")
		if !ok {
			continue
		}
		from = len(s) - len(body)
		if n := strings.Index(body, "-----END"); n >= 0 {
			return from, from + n
		}
		return from, len(s)
	}
	return i, i
}

func skipBlanks(s string, i int) int {
	for n := 0; i < len(s) && (s[i] == ' ' || s[i] == '\t') && n < 4; n++ {
		i++
	}
	return i
}

// skipQuote passes a quote, which within a quoted string has a backslash
// before it.
func skipQuote(s string, i int) int {
	at := i
	for at < len(s) && s[at] == '\\' && at-i < 3 {
		at++
	}
	if at < len(s) && (s[at] == '"' || s[at] == '\'') {
		return at + 1
	}
	return i
}

func hasFold(s, lower string) bool {
	return len(s) >= len(lower) && strings.EqualFold(s[:len(lower)], lower)
}

func wordBefore(s string, i int) bool { return i > 0 && alphanumeric(s[i-1]) }

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func nameByte(c byte) bool { return alphanumeric(c) || c == '_' || c == '-' || c == '.' }

func tokenByte(c byte) bool {
	return nameByte(c) || c == '+' || c == '/' || c == '=' || c == '~' || c == '%'
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
