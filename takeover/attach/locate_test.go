package attach

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
	"scvfs/takeover/pty"
)

// conversation makes the files of a conversation in a directory.
func conversation(t *testing.T, takenOver bool) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ctl", "vendor"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if takenOver {
		appear(t, dir)
	}
	return dir
}

func appear(t *testing.T, dir string) {
	if err := os.Mkdir(filepath.Join(dir, "takeover"), 0o700); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"input", "ctl"} {
		if err := os.WriteFile(filepath.Join(dir, "takeover", name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestLocateFindsWhatIsTakenOver(t *testing.T) {
	dir := conversation(t, true)
	for _, path := range []string{dir, filepath.Join(dir, "takeover")} {
		for _, wanted := range []Wanted{Join, Attach, Interrupt} {
			if got, err := Locate(path, wanted, 80, 24); err != nil || got != filepath.Join(dir, "takeover") {
				t.Errorf("%s is %q, %v", path, got, err)
			}
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "ctl")); len(text) > 0 {
		t.Errorf("something was commanded: %q", text)
	}
}

func TestLocateTakesOverWhenThatIsWanted(t *testing.T) {
	for wanted, command := range map[Wanted]string{Attach: "attach 80x24\n", Interrupt: "interrupt 80x24\n"} {
		dir := conversation(t, false)
		done := make(chan struct{})
		go func() { // the tree, as slow as a client's memory of what was not there
			defer close(done)
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if text, _ := os.ReadFile(filepath.Join(dir, "ctl")); bytes.Equal(text, []byte(command)) {
					appear(t, dir)
					return
				}
			}
			t.Errorf("%q was not commanded", command)
		}()
		if got, err := Locate(dir, wanted, 80, 24); err != nil || got != filepath.Join(dir, "takeover") {
			t.Errorf("it is %q, %v", got, err)
		}
		<-done
	}
}

func TestLocateRefuses(t *testing.T) {
	dir, other := conversation(t, false), t.TempDir()
	file := filepath.Join(dir, "vendor")
	for _, c := range []struct {
		path   string
		wanted Wanted
		kind   fault.Kind
		says   string
	}{
		{filepath.Join(dir, "none"), Attach, fault.NotFound, "there is no " + dir + "/none"},
		{other, Attach, fault.Invalid, other + " is no conversation and no takeover"},
		{file, Attach, fault.Invalid, file + " is no conversation and no takeover"},
		{dir, Join, fault.NotFound, dir + " is not taken over, and watching takes nothing over"},
	} {
		if _, err := Locate(c.path, c.wanted, 80, 24); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, not %s", c.path, err, c.says)
		}
	}
}

func TestRefusalIsTheLastLineOfAControlFile(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "# attach [COLSxROWS]  take it\n": "", "# last: attach: ok\n": "",
		"# attach\n# last: attach: refused: shop/job-3 runs the turn\n": "attach: refused: shop/job-3 runs the turn",
		"# last: attach: refused: this\n# last: attach: ok\n":           "",
	} {
		if got := refusal(text); got != want {
			t.Errorf("%q says %q, not %q", text, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for size, want := range map[[2]int][2]int{{80, 24}: {80, 24}, {1, 1}: {20, 5}, {1000, 1000}: {500, 200}, {10, 300}: {20, 200}} {
		if cols, rows := Fit(size[0], size[1]); cols != want[0] || rows != want[1] {
			t.Errorf("%v fits as %dx%d, not %v", size, cols, rows, want)
		}
	}
}

func TestOnlyATerminalThatCanBeDrawnOnIsTaken(t *testing.T) {
	_, slave, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		in, out    *os.File
		kind, says string
	}{
		{file, slave, "xterm", "/dev/null is no terminal"},
		{slave, file, "xterm", "/dev/null is no terminal"},
		{slave, slave, "dumb", "cannot be drawn on (TERM=dumb)"},
		{slave, slave, "", "cannot be drawn on (TERM=)"},
	} {
		if _, err := OpenTerminal(c.in, c.out, c.kind); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, not %s", err, c.says)
		}
	}
	terminal, err := OpenTerminal(slave, slave, "xterm")
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if cols, rows := terminal.Size(); cols != 80 || rows != 24 {
		t.Errorf("its size is %dx%d", cols, rows)
	}
}

func TestDirWritesWhatIsThereOnly(t *testing.T) {
	dir := Dir(t.TempDir())
	if _, err := dir.Writer("input"); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	path := filepath.Join(string(dir), "size")
	if err := os.WriteFile(path, []byte("120x40\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, "size", "80x24"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(dir, "size"); err != nil || got != "80x24\n\nmore" { // not truncated
		t.Errorf("it holds %q, %v", got, err)
	}
	if err := write(dir, "none", "x"); !os.IsNotExist(err) {
		t.Errorf("writing to what is not there: %v", err)
	}
}
