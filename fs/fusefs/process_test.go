package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessOf(t *testing.T) {
	me := processOf(os.Getpid())
	if me.pid != os.Getpid() || me.killed {
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

// A zombie keeps the flags that it died with, and has no memory any more.
func TestKilledTellsSignalsFromExits(t *testing.T) {
	for script, want := range map[string]bool{"exit 0": false, "exit 3": false, "kill -TERM $$": true, "kill -KILL $$": true} {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%q does not end: %v", script, err)
			}
			if exiting(status) {
				break
			}
		}
		if p := processOf(cmd.Process.Pid); p.killed != want {
			t.Errorf("after %q: %+v", script, p)
		}
		_ = cmd.Wait()
	}
}

func TestChildrenOf(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	children, ok := childrenOf(os.Getpid())
	if !ok {
		t.Skip("this kernel tells no children")
	}
	if !slices.Contains(children, cmd.Process.Pid) {
		t.Errorf("%d is not among %d", cmd.Process.Pid, children)
	}
	if children, ok := childrenOf(1 << 30); !ok || len(children) != 0 {
		t.Errorf("nobody has children %d, %v", children, ok)
	}
}

func TestParseFlags(t *testing.T) {
	tail := " S 1 2 3 4 5 1028 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21\n"
	for _, name := range []string{"sh", "a b", "x) S 1 (y", ")", ""} {
		flags, ok := parseFlags("77 (" + name + ")" + tail)
		if !ok || flags != 1028 {
			t.Errorf("of %q: %d, %v", name, flags, ok)
		}
	}
	for _, bad := range []string{"", "1", "1 (x)", "1 (x) S 1 2", "1 (x)" + strings.ReplaceAll(tail, "1028", "-1")} {
		if _, ok := parseFlags(bad); ok {
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

func FuzzParseFlags(f *testing.F) {
	for _, path := range []string{"/proc/self/stat", "/proc/1/stat"} {
		if stat, err := os.ReadFile(path); err == nil {
			f.Add(string(stat))
		}
	}
	f.Add("1 (x) y (z) S")
	f.Fuzz(func(t *testing.T, stat string) {
		flags, ok := parseFlags(stat)
		if !ok && flags != 0 && !strings.Contains(stat, ")") {
			t.Errorf("%d out of nothing", flags)
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
