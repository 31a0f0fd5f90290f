package workbench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// ParseAnswer reads an answer to a request. Blank lines and those that begin
// with # say nothing. It is
//
//	yes                to allow what is asked
//	no [WHY…]          not to; WHY is for the agent
//
// and for questions
//
//	no                 to answer none of them
//	ANSWER             a line for each question, in their order; or
//	N: ANSWER          a line for each, by its number
//
// where ANSWER is an option, an option's number, several of them with commas
// where more than one may be chosen, or words. Behind "N:" nothing but options
// and their numbers has a meaning of its own. Errors are fault.Invalid.
func ParseAnswer(rec *ledger.Approval, text string) (dialogue.Answer, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return dialogue.Answer{}, fault.New(fault.Invalid, "the answer is no text")
	}
	lines := answerLines(text)
	if rec.Kind != string(dialogue.Question) || len(rec.Questions) == 0 {
		return yesOrNoAnswer(lines)
	}
	if len(lines) == 1 && isWord(lines[0], "no") && !isOption(rec.Questions, "no") {
		return dialogue.Answer{Reason: "the owner answers none of it"}, nil
	}
	words, err := answerWords(rec.Questions, lines)
	if err != nil {
		return dialogue.Answer{}, err
	}
	return dialogue.Answer{Allow: true, Words: words}, nil
}

func answerLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func isWord(s, word string) bool { return strings.EqualFold(s, word) }

// yesOrNoAnswer reads the answer to a request for permission.
func yesOrNoAnswer(lines []string) (dialogue.Answer, error) {
	switch {
	case len(lines) == 0:
		return dialogue.Answer{}, fault.New(fault.Invalid, "nothing is answered: write yes or no")
	case len(lines) > 1:
		return dialogue.Answer{}, fault.New(fault.Invalid, "%d lines are more than one answer: write yes or no", len(lines))
	}
	word, rest := lines[0], ""
	if i := strings.IndexAny(word, " \t"); i > 0 {
		word, rest = word[:i], word[i:]
	}
	switch rest = strings.TrimSpace(rest); {
	case isWord(word, "yes") && rest == "":
		return dialogue.Answer{Allow: true}, nil
	case isWord(word, "yes"):
		return dialogue.Answer{}, fault.New(fault.Invalid, "yes takes no words, but %q follows: write yes, or no and why", agent.OneLine(rest, 80))
	case isWord(word, "no"):
		return dialogue.Answer{Reason: rest}, nil
	}
	return dialogue.Answer{}, fault.New(fault.Invalid, "%q is no answer: write yes or no", agent.OneLine(lines[0], 80))
}

// numberedLine is a line that names its question.
var numberedLine = regexp.MustCompile(`^([0-9]{1,4}):\s*(\S.*)$`)

// answerWords reads the answers to questions, one for each.
func answerWords(qs []ledger.Question, lines []string) ([]string, error) {
	if words, ok, err := numberedWords(qs, lines); ok || err != nil {
		return words, err
	}
	if len(lines) != len(qs) {
		return nil, fault.New(fault.Invalid, "it asks %s, and the text answers %d: write a line for each, all in one write, or no",
			countOf(len(qs), "question"), len(lines))
	}
	words := make([]string, len(qs))
	for i, line := range lines {
		word, sure := choose(qs[i], line)
		if !sure && len(qs[i].Options) > 0 && (isNumber(line) || isWord(line, "yes") || isWord(line, "no")) {
			return nil, fault.New(fault.Invalid, "%q is none of the options: %s; for words of your own write %d: WORDS",
				agent.OneLine(line, 80), optionsOf(qs[i]), i+1)
		}
		words[i] = word
	}
	return words, nil
}

// numberedWords reads lines that all name their questions; ok is false when
// they do not.
func numberedWords(qs []ledger.Question, lines []string) (words []string, ok bool, err error) {
	words = make([]string, len(qs))
	for _, line := range lines {
		m := numberedLine.FindStringSubmatch(line)
		if m == nil {
			return nil, false, nil
		}
		n, _ := strconv.Atoi(m[1])
		if n < 1 || n > len(qs) {
			return nil, false, nil
		}
		if words[n-1] != "" {
			return nil, false, fault.New(fault.Invalid, "question %d is answered twice", n)
		}
		words[n-1], _ = choose(qs[n-1], strings.TrimSpace(m[2]))
	}
	for i, word := range words {
		if word == "" && len(lines) > 0 {
			return nil, false, fault.New(fault.Invalid, "question %d is not answered: write a line for each, all in one write, or no", i+1)
		}
	}
	return words, len(lines) > 0, nil
}

// choose returns what a line answers a question with: the text of an option,
// or, when it is none, which sure tells, the line as it is.
func choose(q ledger.Question, line string) (word string, sure bool) {
	if option, ok := option(q, line); ok {
		return option, true
	}
	if !q.Multi || !strings.Contains(line, ",") {
		return line, false
	}
	var chosen []string
	for part := range strings.SplitSeq(line, ",") {
		option, ok := option(q, strings.TrimSpace(part))
		if !ok {
			return line, false
		}
		chosen = append(chosen, option)
	}
	return strings.Join(chosen, ", "), true
}

// option finds an option by its text, as it is shown, or else by its number.
func option(q ledger.Question, word string) (string, bool) {
	for _, o := range q.Options {
		if shown := agent.OneLine(o, 0); shown != "" && strings.EqualFold(shown, agent.OneLine(word, 0)) {
			return o, true
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1], q.Options[n-1] != ""
	}
	return "", false
}

func isOption(qs []ledger.Question, word string) bool {
	for _, q := range qs {
		if _, ok := option(q, word); ok {
			return true
		}
	}
	return false
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// optionsListed bounds how many options a sentence names.
const optionsListed = 12

// optionsOf lists a question's options with their numbers.
func optionsOf(q ledger.Question) string {
	var all []string
	for i, o := range q.Options[:min(len(q.Options), optionsListed)] {
		all = append(all, fmt.Sprintf("%d %s", i+1, agent.OneLine(o, 80)))
	}
	if n := len(q.Options) - len(all); n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, ", ")
}

// countOf is a number and what it counts: "1 question", "2 questions".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
