package origin

import (
	"os"
	"strings"
	"testing"
)

func TestProcessOfThisMachineIsKnown(t *testing.T) {
	if got := PID(Of(os.Getpid())); got != os.Getpid() {
		t.Errorf("got %d, want %d, out of %q", got, os.Getpid(), Of(os.Getpid()))
	}
}

func TestAnythingElseIsNobody(t *testing.T) {
	name := Of(4711)
	for _, name := range []string{
		"", "root", "4711", "/4711", "x" + name, name + "x", name + "/", name + "99999999999", strings.Replace(name, "/", "//", 1),
		strings.TrimSuffix(name, "4711") + "-1", strings.TrimSuffix(name, "4711") + "0", Of(0), Of(-1),
	} {
		if got := PID(name); got != 0 {
			t.Errorf("%q is taken for process %d", name, got)
		}
	}
}
