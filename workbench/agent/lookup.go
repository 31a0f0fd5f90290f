package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LookPath finds an executable: a command with a slash is taken as it is (with
// ~/ for the home), any other is searched for in dirs, which are below the
// home, and then in PATH. It returns an absolute path, or an empty one and why.
type LookPath func(command string, dirs ...string) (path, why string)

// NewLookPath returns the LookPath of a home directory and a PATH. Entries of
// PATH that are not absolute are skipped, so that no workspace provides an
// agent.
func NewLookPath(home, pathVariable string) LookPath {
	return func(command string, dirs ...string) (string, string) {
		if rest, ok := strings.CutPrefix(command, "~/"); ok {
			command = filepath.Join(home, rest)
		}
		if strings.Contains(command, "/") {
			if why := runnable(command); why != "" {
				return "", why
			}
			path, err := filepath.Abs(command)
			if err != nil {
				return "", fmt.Sprintf("%s cannot be found from here", command)
			}
			return path, ""
		}
		var search []string
		if filepath.IsAbs(home) {
			for _, dir := range dirs {
				search = append(search, filepath.Join(home, dir))
			}
		}
		why := ""
		for _, dir := range append(search, filepath.SplitList(pathVariable)...) {
			if !filepath.IsAbs(dir) {
				continue
			}
			path := filepath.Join(dir, command)
			switch reason := runnable(path); {
			case reason == "":
				return path, ""
			case why == "" && !strings.HasSuffix(reason, missing):
				why = reason
			}
		}
		if why == "" {
			why = command + " is not installed: it is neither in ~/.local/bin nor in PATH"
		}
		return "", why
	}
}

const missing = "does not exist"

// runnable says why path is no program; empty when it is one.
func runnable(path string) string {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return path + " " + missing
	case err != nil:
		return fmt.Sprintf("%s cannot be looked at: %v", path, err)
	case info.IsDir():
		return path + " is a directory"
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return path + " is not executable"
	}
	return ""
}

// TerminalProgram looks the program of the agent's own terminal up, which is
// its command whatever its turns go over; path and why are as of Offered.
func (a *Agent) TerminalProgram(look LookPath) (path, why string) {
	if a.Command == "" {
		return "", "no command is set: put one into [agents." + a.Name + "] of the configuration"
	}
	return look(a.Command, a.Dirs...)
}

// Offered tells whether the agent can be given a prompt: the executable of the
// transport that its turns go over is there. path is that of the executable; an
// empty one comes with the reason, in one sentence.
func (a *Agent) Offered(look LookPath) (path, why string) {
	carrier, err := a.Carrier()
	if err != nil {
		return "", err.Error()
	}
	return a.OfferedOver(carrier, look)
}
