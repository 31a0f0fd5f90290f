package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// The environment entries that every process of a run has, unless it clears
// its environment. The name tells people and agents which run it is. The
// directory tells this package: two daemons may have runs of one name.
const (
	nameTag = "SCV_RUN"
	dirTag  = "SCV_RUN_DIR"
)

// maxSide is the most columns or rows that the kernel lets a terminal have.
const maxSide = 1<<16 - 1

// maxName bounds a run's name.
const maxName = 128

// isRun tells whether a run's directory can be called so: letters, digits,
// '.', '_' and '-', and no '.', '_' or '-' first, which leaves hidden names to
// files that are being made. (Not a regular expression, which each shim would
// compile as it starts.)
func isRun(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// check refuses what no shim could start, and fills in what may be left out.
func (s *Spec) check() error {
	if s.Stdin == "" {
		s.Stdin = StdinNull
	}
	switch {
	case !isRun(s.Run):
		return fault.New(fault.Invalid, "%q is no name for a run: it takes letters, digits, '.', '_' and '-'", s.Run)
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return fault.New(fault.Invalid, "run %s has no program to start", s.Run)
	case !filepath.IsAbs(s.Dir):
		return fault.New(fault.Invalid, "run %s: the directory %q is not absolute", s.Run, s.Dir)
	case s.Stdin != StdinNull && s.Stdin != StdinFile && s.Stdin != StdinFIFO && s.Stdin != StdinTTY:
		return fault.New(fault.Invalid, "run %s: %q is no kind of standard input (null, file, fifo or tty)", s.Run, s.Stdin)
	case s.Stdin == StdinTTY && (s.Cols < 1 || s.Rows < 1 || s.Cols > maxSide || s.Rows > maxSide):
		return fault.New(fault.Invalid, "run %s: no terminal has the size %dx%d", s.Run, s.Cols, s.Rows)
	case s.Stdin != StdinTTY && (s.Cols != 0 || s.Rows != 0):
		return fault.New(fault.Invalid, "run %s has the size of a terminal, but its standard input is %s", s.Run, s.Stdin)
	case s.Timeout < 0 || s.Grace < 0:
		return fault.New(fault.Invalid, "run %s: a time limit or grace below 0", s.Run)
	case s.Umask != nil && (*s.Umask < 0 || *s.Umask > 0o777):
		return fault.New(fault.Invalid, "run %s: umask %#o is not between 0 and 0777", s.Run, *s.Umask)
	}
	for _, text := range append(append([]string{s.Dir}, s.Argv...), s.Env...) {
		if strings.IndexByte(text, 0) >= 0 {
			return fault.New(fault.Invalid, "run %s: a NUL in %.60q, which no program can be given", s.Run, text)
		}
	}
	return s.checkEnv()
}

// checkEnv refuses an environment that no program can be given, or that is
// another run's.
func (s *Spec) checkEnv() error {
	for _, e := range s.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return fault.New(fault.Invalid, "run %s: %.60q in the environment is not NAME=VALUE", s.Run, e)
		}
		if name == nameTag && value != s.Run {
			return fault.New(fault.Invalid, "run %s: its environment says %s, which would make it another run's", s.Run, e)
		}
	}
	return nil
}

// outputs are the files that the agent's output goes to.
func (s *Spec) outputs() []string {
	if s.Stdin == StdinTTY {
		return nil
	}
	return []string{stdoutName, stderrName}
}

// mark puts the run's tags into its environment.
func (s *Spec) mark(dir string) {
	env := make([]string, 0, len(s.Env)+2)
	for _, e := range s.Env {
		if name, _, _ := strings.Cut(e, "="); name != nameTag && name != dirTag {
			env = append(env, e)
		}
	}
	s.Env = append(env, nameTag+"="+s.Run, dirTag+"="+dir)
}

// specFile is spec.json: a Spec whose texts keep every byte, and the boot that
// it was written in.
type specFile struct {
	Spec
	Argv []text `json:"argv"`
	Env  []text `json:"env"`
	Dir  text   `json:"dir"`
	Boot string `json:"boot"`
}

// encodeSpec returns the content of spec.json.
func encodeSpec(s Spec, boot string) ([]byte, error) {
	return json.Marshal(specFile{Spec: s, Argv: texts[text](s.Argv), Env: texts[text](s.Env), Dir: text(s.Dir), Boot: boot})
}

// decodeSpec is the inverse of encodeSpec.
func decodeSpec(b []byte) (s Spec, boot string, err error) {
	var f specFile
	if err := json.Unmarshal(b, &f); err != nil {
		return Spec{}, "", fault.New(fault.Internal, "%s cannot be read: %w", specName, err)
	}
	s = f.Spec
	s.Argv, s.Env, s.Dir = texts[string](f.Argv), texts[string](f.Env), string(f.Dir)
	return s, f.Boot, s.check()
}

// readSpec reads a run's spec.json.
func readSpec(dir *os.Root) (s Spec, boot string, err error) {
	b, err := readFile(dir, specName, maxSpec)
	if err != nil {
		return Spec{}, "", err
	}
	return decodeSpec(b)
}

// thisBoot tells whether the run's spec was written since this boot.
func thisBoot(boot string) bool { return proc.ID{Boot: boot}.SameBoot() }

// texts converts between the two forms of a list of texts.
func texts[To, From ~string](from []From) []To {
	to := make([]To, len(from))
	for i, t := range from {
		to[i] = To(t)
	}
	return to
}

// text is a string that survives JSON byte by byte: JSON strings hold UTF-8
// only, so what is none goes as base64.
type text string

type rawText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(rawText{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw rawText
		err := json.Unmarshal(b, &raw)
		*t = text(raw.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}
