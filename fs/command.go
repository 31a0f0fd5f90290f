package fs

import (
	"bytes"
	"strings"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// maxLine is the length of the longest line that a command file takes.
const maxLine = 4 << 10

// maxWhole is the length of the longest command that is a whole write.
const maxWhole = 64 << 10

// syntax is how one command is written.
//
// A command is a verb and its arguments, separated by blanks and quoted as
// workbench.Fields reads them. A last argument whose name ends in … is the
// rest of the line, exactly as written but for blanks around it.
type syntax struct {
	name string
	args string // "DIR [LABEL…]": names, optional ones in brackets
	help string
}

// String returns the verb with its arguments.
func (x syntax) String() string { return strings.TrimSpace(x.name + " " + x.args) }

// arity returns how many arguments there must and may be, and whether the
// last one is the rest of the line.
func (x syntax) arity() (least, most int, rest bool) {
	for _, a := range strings.Fields(x.args) {
		most++
		if !strings.HasPrefix(a, "[") {
			least++
		}
		rest = strings.HasSuffix(strings.TrimSuffix(a, "]"), "…")
	}
	return least, most, rest
}

// nextLine cuts the first line off p. The last one needs no newline.
func nextLine(p []byte) (line string, size int) {
	text, _, found := bytes.Cut(p, []byte("\n"))
	size = len(text)
	if found {
		size++
	}
	return strings.TrimSuffix(string(text), "\r"), size
}

// idle tells whether a line asks for nothing: it is blank or a comment, so
// that what a command file shows can be written back to it.
func idle(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// next cuts the first command off p.
func (f lineFile) next(p []byte) (line string, size int) {
	if f.whole {
		return string(p), len(p)
	}
	return nextLine(p)
}

// idle tells whether a command asks for nothing.
func (f lineFile) idle(text string) bool {
	if !f.whole {
		return idle(text)
	}
	for line := range strings.Lines(text) {
		if !idle(strings.TrimRight(line, "\r\n")) {
			return false
		}
	}
	return true
}

// parse reads one command. One that is a whole write is its own argument.
func (f lineFile) parse(text string) (which int, args []string, err error) {
	if !f.whole {
		return parseCommand(text, f.known, f.bare)
	}
	if len(text) > maxWhole {
		return 0, nil, fault.New(fault.TooLarge, "the text has %d bytes; at most %d are taken", len(text), maxWhole)
	}
	for line := range strings.Lines(text) {
		if err := checkLine(strings.TrimRight(line, "\r\n")); err != nil {
			return 0, nil, err
		}
	}
	return 0, []string{text}, nil
}

// parseCommand reads one line. With bare, lines consist of the arguments of
// the only command; otherwise the first word chooses it. It returns the
// command's position in known.
func parseCommand(line string, known []syntax, bare bool) (which int, args []string, err error) {
	if err := checkLine(line); err != nil {
		return 0, nil, err
	}
	rest := strings.Trim(line, " \t")
	if !bare {
		verb := rest
		if i := strings.IndexAny(rest, " \t"); i >= 0 {
			verb, rest = rest[:i], strings.TrimLeft(rest[i:], " \t")
		} else {
			rest = ""
		}
		if which = find(known, verb); which < 0 {
			return 0, nil, fault.New(fault.Invalid, "unknown verb %s; this file knows: %s", shown(verb), names(known))
		}
	}
	x := known[which]
	args, err = split(rest, x)
	if err != nil {
		return 0, nil, err
	}
	if least, _, _ := x.arity(); len(args) < least {
		return 0, nil, fault.New(fault.Invalid, "too few arguments; write: %s", x.form(bare))
	}
	return which, args, nil
}

// form is how the command is written in a file.
func (x syntax) form(bare bool) string {
	if bare {
		return x.args
	}
	return x.String()
}

func checkLine(line string) error {
	if len(line) > maxLine {
		return fault.New(fault.TooLarge, "the line has %d bytes; at most %d are taken", len(line), maxLine)
	}
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fault.New(fault.Invalid, "the line holds the control character 0x%02x", c)
		}
	}
	return nil
}

// findVerb returns which command a line is meant to be, well formed or not; -1
// for none.
func findVerb(line string, known []syntax, bare bool) int {
	if bare {
		return 0
	}
	verb, _, _ := strings.Cut(strings.ReplaceAll(strings.Trim(line, " \t"), "\t", " "), " ")
	return find(known, verb)
}

func find(known []syntax, verb string) int {
	for i, x := range known {
		if x.name == verb {
			return i
		}
	}
	return -1
}

func names(known []syntax) string {
	all := make([]string, len(known))
	for i, x := range known {
		all[i] = x.name
	}
	return strings.Join(all, ", ")
}

// split cuts s, which begins with no blank, into the arguments of x.
func split(s string, x syntax) ([]string, error) {
	var args []string
	_, most, rest := x.arity()
	for s != "" {
		if len(args) == most {
			if most == 0 {
				return nil, fault.New(fault.Invalid, "%s takes no arguments, but %s follows", x.name, shown(s))
			}
			return nil, fault.New(fault.Invalid, "too many arguments from %s on; put one with blanks in double quotes", shown(s))
		}
		if rest && len(args) == most-1 {
			return append(args, s), nil
		}
		word, after, err := cutWord(s)
		if err != nil {
			return nil, err
		}
		args, s = append(args, word), strings.TrimLeft(after, " \t")
	}
	return args, nil
}

// cutWord takes the first argument off s, which does not begin with a blank:
// the shortest part before a blank that is a whole word.
func cutWord(s string) (word, rest string, err error) {
	for end := 0; ; end++ {
		if i := strings.IndexAny(s[end:], " \t"); i >= 0 {
			end += i
		} else {
			end = len(s)
		}
		words, err := workbench.Fields(s[:end])
		switch {
		case err == nil && len(words) == 1:
			return words[0], s[end:], nil
		case end == len(s):
			return "", "", err
		}
	}
}
