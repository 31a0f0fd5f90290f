package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestProcessOf(t *testing.T) {
	me := processOf(os.Getpid())
	if me.pid != os.Getpid() || me.start == 0 || me.killed {
		t.Errorf("this process is %+v", me)
	}
	tids, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		var id int
		fmt.Sscan(tid.Name(), &id)
		if p := processOf(id); p.known() && !p.same(me) { // a thread may end meanwhile
			t.Errorf("thread %d is of %+v, not of %+v", id, p, me)
		}
	}
	parent := processOf(os.Getppid())
	if parent.same(me) {
		t.Error("the parent is the child")
	}
	for _, tid := range []int{0, -1, 1 << 30} {
		if p := processOf(tid); p.known() || p.killed {
			t.Errorf("thread %d is %+v", tid, p)
		}
	}
}

func TestAPidUsedAgainIsAnotherProcess(t *testing.T) {
	p := process{pid: 7, start: 100}
	if p.same(process{pid: 7, start: 101}) || !p.same(process{pid: 7, start: 100, killed: true}) {
		t.Error("processes are told apart wrongly")
	}
}

func TestADeadProcessIsNotKnown(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	alive := processOf(cmd.Process.Pid)
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if !alive.known() || alive.killed {
		t.Errorf("alive, it was %+v", alive)
	}
	if dead := processOf(cmd.Process.Pid); dead.same(alive) {
		t.Errorf("dead, it is %+v", dead)
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 4 5 1028 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21\n"
	for _, name := range []string{"sh", "a b", "x) S 1 (y", ")", ""} {
		flags, start, ok := parseStat("77 (" + name + ")" + tail)
		if !ok || flags != 1028 || start != 424242 {
			t.Errorf("of %q: %d, %d, %v", name, flags, start, ok)
		}
	}
	for _, bad := range []string{"", "1", "1 (x)", "1 (x) S 1 2", "1 (x)" + strings.ReplaceAll(tail, "1028", "-1")} {
		if _, _, ok := parseStat(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseGroup(t *testing.T) {
	for status, want := range map[string]int{
		"Name:\tx\nTgid:\t42\nPid:\t43\n": 42,
		"Name:\tTgid:\nTgid:\t1\n":        1,
		"Tgid:\t0\n":                      0, // of another pid namespace
		"Tgid:\tx\n":                      0,
		"Pid:\t1\n":                       0,
		"":                                0,
	} {
		if got, ok := parseGroup(status); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d, %v", status, got, ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	for _, path := range []string{"/proc/self/stat", "/proc/1/stat"} {
		if stat, err := os.ReadFile(path); err == nil {
			f.Add(string(stat))
		}
	}
	f.Add("1 (x) y (z) S")
	f.Fuzz(func(t *testing.T, stat string) {
		flags, start, ok := parseStat(stat)
		if !ok && (flags|start) != 0 && !strings.Contains(stat, ")") {
			t.Errorf("%d, %d out of nothing", flags, start)
		}
	})
}

// BenchmarkProcessOf is what the open and the close of a writer cost more than
// a reader's.
func BenchmarkProcessOf(b *testing.B) {
	for b.Loop() {
		processOf(os.Getpid())
	}
}
