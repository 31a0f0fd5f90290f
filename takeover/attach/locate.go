package attach

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scvfs/ledger/fault"
)

// Wanted is what to do with a conversation that is not taken over.
type Wanted uint8

// The wishes.
const (
	Join      Wanted = iota // nothing: only what is taken over can be attached to
	Attach                  // take it over
	Interrupt               // take it over, stopping the job that runs its turn
)

const (
	// appearance is how long a takeover that the tree said is there may take to
	// be seen, by a client of it that remembers what was not there.
	appearance = 10 * time.Second
	lookEvery  = 50 * time.Millisecond
)

// Locate returns the directory of the takeover that path means: itself, or that
// of a conversation, which it takes over in a terminal of cols and rows if it
// is not and that is wanted. All errors have fault.Invalid or fault.NotFound,
// and say what the tree said.
func Locate(path string, wanted Wanted, cols, rows int) (string, error) {
	dir := filepath.Join(path, "takeover")
	switch {
	case !exists(path):
		return "", fault.New(fault.NotFound, "there is no %s", path)
	case exists(path, "input"):
		return path, nil
	case exists(dir, "input"):
		return dir, nil
	case !exists(path, "ctl") || !exists(path, "vendor"):
		return "", fault.New(fault.Invalid, "%s is no conversation and no takeover: give …/conversations/NAME", path)
	}
	verb := map[Wanted]string{Attach: "attach", Interrupt: "interrupt"}[wanted]
	if verb == "" {
		return "", fault.New(fault.NotFound, "%s is not taken over, and watching takes nothing over", path)
	}
	cols, rows = Fit(cols, rows)
	if err := command(filepath.Join(path, "ctl"), fmt.Sprintf("%s %dx%d", verb, cols, rows)); err != nil {
		return "", err
	}
	for end := time.Now().Add(appearance); !exists(dir, "input"); {
		if time.Now().After(end) {
			return "", fault.New(fault.NotFound, "%s was taken over, but has no terminal: it has ended already", path)
		}
		<-time.After(lookEvery) // nothing tells of names that come
	}
	return dir, nil
}

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

// command does a command by a control file. Its error is the sentence that the
// file has for it.
func command(path, line string) error {
	w, err := openWriter(path, os.O_RDWR)
	if err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	defer w.Close()
	_, err = w.Write([]byte(line + "\n"))
	if err == nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(w, maxFile)) // the outcome of this write
	if why := refusal(string(text)); why != "" {
		return fault.New(fault.Invalid, "%s", oneLine(why))
	}
	return fault.New(fault.Invalid, "%s was refused: %w", line, err)
}

// refusal returns why the last command of a control file was refused, by what
// the file says: "# last: attach: refused: WHY".
func refusal(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	said, ok := strings.CutPrefix(lines[len(lines)-1], "# last: ")
	if !ok || !strings.Contains(said, ": refused: ") {
		return ""
	}
	return said
}
