package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxReason is how many characters of a program's own words a sentence quotes.
const maxReason = 300

// problem is why a turn failed, as far as the agent told.
type problem struct {
	reason string // in the agent's words, or a body of JSON that holds them
	http   int    // status that the model service answered with; 0: not told
	reset  string // when a limit ends, in words
}

// A cause is a class of problems that asks for the same way out.
type cause uint8

const (
	causeUnknown cause = iota
	causeSignin
	causeLimit
	causeModel
	causeSession
	causeLength
	causeNetwork
	causeService
	causeRequest
)

// signs are words that tell a cause, in lower case, by which is tried first.
var signs = []struct {
	cause cause
	words []string
}{
	{causeSession, []string{
		"no conversation found", "no rollout found", "session not found", "no session found", "invalid session identifier", "no session, task, or name matched",
		"requires a valid session",
	}},
	{causeLimit, []string{
		"rate limit", "rate_limit", "usage limit", "too many requests", "quota", "resource_exhausted", "limit reached", "hit your limit", "out of credits", "credit balance", "insufficient_quota",
	}},
	{causeModel, []string{
		"model_not_found", "unknown model", "model not found", "issue with the selected model", "model is not supported", "invalid model", "not a valid model", "may not exist or you may not have access",
	}},
	{causeLength, []string{"prompt is too long", "context_length", "context length", "context window", "maximum context", "exceeds the maximum length", "too many tokens"}},
	{causeSignin, []string{
		"not logged in", "please log in", "please run /login", "unauthorized", "unauthenticated", "authentication", "failed to authenticate", "invalid api key", "invalid auth method",
		"api key not valid", "no api key", "missing api key", "api_key_invalid", "sign in", "signin", "oauth token", "not authenticated",
		"missing environment variable", "api_key environment variable",
	}},
	{causeNetwork, []string{
		"waiting for network", "econnrefused", "econnreset", "enotfound", "etimedout", "connection refused", "connection failed", "connection error", "network error", "fetch failed", "dns error",
		"error sending request", "could not resolve", "stream disconnected", "socket hang up", "terminated unexpectedly",
	}},
	{causeRequest, []string{"invalid_request_error", "invalid_argument", "bad request"}},
	{causeService, []string{"overloaded", "high demand", "internal server error", "service unavailable", "bad gateway"}},
}

var (
	modelUnknown = regexp.MustCompile(`(?i)\bmodel\b.{0,80}\b(not found|does not exist|is not available)`)
	statusTold   = regexp.MustCompile(`(?i)(?:^|\bstatus:? |\bhttp |\berror: ?|\bcode"?: ?|\()([45]\d\d)\b`)
	epochTold    = regexp.MustCompile(`\|(1\d{9})\b`)
)

// cause classifies a problem, by what the service answered before what the
// words say.
func (p problem) cause() cause {
	words := strings.ToLower(p.reason)
	said := func(c cause) bool {
		for _, s := range signs {
			if s.cause != c {
				continue
			}
			for _, w := range s.words {
				if strings.Contains(words, w) {
					return true
				}
			}
		}
		return false
	}
	switch status := p.status(); {
	case said(causeSession):
		return causeSession
	case status == 401 || status == 403:
		return causeSignin
	case status == 429:
		return causeLimit
	case said(causeModel) || modelUnknown.MatchString(p.reason):
		return causeModel
	case status == 413 || said(causeLength):
		return causeLength
	case status >= 500:
		return causeService
	case status >= 400 && !said(causeLimit) && !said(causeSignin):
		return causeRequest
	}
	for _, s := range signs {
		if said(s.cause) {
			return s.cause
		}
	}
	return causeUnknown
}

// status is the HTTP status that was told, in a field or in words.
func (p problem) status() int {
	if p.http >= 400 && p.http < 600 {
		return p.http
	}
	if m := statusTold.FindStringSubmatch(p.reason); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// sentence says what is wrong and what helps.
func (p problem) sentence(a *Agent) string {
	why := p.words()
	if why == "" {
		why = "it gave no reason"
	}
	if status := p.status(); status != 0 && !strings.Contains(why, strconv.Itoa(status)) {
		why = fmt.Sprintf("HTTP %d: %s", status, why)
	}
	switch p.cause() {
	case causeSignin:
		return fmt.Sprintf("%s is not signed in, or its key was refused (%s): %s", a.Name, why, a.signin())
	case causeLimit:
		when := later(why)
		if p.reset != "" {
			when = ": the limit ends " + OneLine(Redact(p.reset), 80)
		}
		return fmt.Sprintf("%s reached a rate or usage limit (%s)%s", a.Name, why, when)
	case causeModel:
		return fmt.Sprintf("%s does not know the model, or may not use it (%s): name another one, or none for its default", a.Name, why)
	case causeSession:
		return fmt.Sprintf("%s does not know the session that was to be continued (%s): start a new conversation", a.Name, why)
	case causeLength:
		return fmt.Sprintf("%s cannot take this much text (%s): shorten the prompt, or start a new conversation", a.Name, why)
	case causeNetwork:
		return fmt.Sprintf("%s cannot reach its model service (%s): check the network and the address that it is set to", a.Name, why)
	case causeService:
		return fmt.Sprintf("%s's model service failed (%s)%s", a.Name, why, later(why))
	case causeRequest:
		return fmt.Sprintf("%s's model service refused the request (%s)", a.Name, why)
	}
	return fmt.Sprintf("%s failed: %s", a.Name, why)
}

var againTold = regexp.MustCompile(`(?i)\b(try again|resets?|retry) (at|in|after|on)\b`)

// later ends a sentence with when to try again, unless the agent said when.
func later(why string) string {
	if againTold.MatchString(why) {
		return ""
	}
	return ": try again later"
}

// words are the agent's own, on one line, with JSON around them taken off.
func (p problem) words() string {
	s := p.reason
	if i := strings.IndexByte(s, '{'); i >= 0 {
		if inner := message(s[i:]); inner != "" {
			s = strings.Trim(s[:i], "[( ") + " " + inner
		}
	}
	return strings.TrimSuffix(OneLine(Redact(epochTold.ReplaceAllString(s, "")), maxReason), ".")
}

// message finds the message in a JSON body of an error.
func message(s string) string {
	var body struct {
		Message string
		Error   json.RawMessage
	}
	if json.NewDecoder(strings.NewReader(s)).Decode(&body) != nil {
		return ""
	}
	if body.Message != "" {
		return body.Message
	}
	var inner struct{ Message string }
	if json.Unmarshal(body.Error, &inner) == nil {
		return inner.Message
	}
	return ""
}

// resetTold finds a time in Unix seconds that an agent put after its words.
func resetTold(reason string) string {
	if m := epochTold.FindStringSubmatch(reason); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return epoch(n)
	}
	return ""
}

// epoch is a time in Unix seconds in words.
func epoch(seconds int64) string { return "at " + time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

var (
	troubleLine = regexp.MustCompile(`(?i)^\W*(\w*error\b|fatal\b|panic\b|failed\b|not inside a trusted)`)
	noiseLine   = regexp.MustCompile(`(?i)^(at .*:\d+:\d+\)?$|\^|warning\b|node\.js v|reading .* from stdin|\[startup\]|yolo mode|ripgrep is not|\d{4}-\d\d-\d\dT\S+ +(warn|info|debug)\b)`)
	codeLine    = regexp.MustCompile(`(;|\{|\()\s*$`)
)

// complaint finds the line of standard error that says what went wrong: the
// first that says so, or else the first whose cause is known, or else the last
// that is no noise.
func complaint(stderr []byte) string {
	known, last := "", ""
	for line := range strings.Lines(Printable(string(stderr))) {
		line = strings.TrimSpace(line)
		if line == "" || noiseLine.MatchString(line) || codeLine.MatchString(line) {
			continue
		}
		if troubleLine.MatchString(line) {
			return line
		}
		if known == "" && (problem{reason: line}).cause() != causeUnknown {
			known = line
		}
		last = line
	}
	return first(known, last)
}

var blockedTold = regexp.MustCompile(`(?i)(\brefusal\b|content[_ -]?filter|blocked due to safety|safety settings|\bsafeguards\b|usage polic|prohibited_content)`)

// blocked tells whether words say that a model refused.
func blocked(words string) bool { return blockedTold.MatchString(words) }
