package run

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/workbench/run/proc"
)

// Whatever its processes do to hide, they are inside: for the daemon that
// started them, and for a later one before it has adopted anything.
func TestProcessesOfARunAreInside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", self("nasty", file, "PATH=/bin")...))
	ids := append(tells(t, file, 5), b.shimOf("r"))
	later := benchAt(t, b.root)
	for name, m := range map[string]*bench{"its own daemon": b, "a later one": later} {
		for _, id := range ids {
			for range 2 { // known, the second time
				if o := m.Origin(id.PID); o != (Origin{Place: Inside, Run: "r"}) {
					t.Errorf("for %s process %v is %+v", name, id, o)
				}
			}
		}
	}
	// An agent can remove its own run's files. It stays inside all the same.
	if err := os.Remove(b.Path("r", shimName)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if o := benchAt(t, b.root).Origin(id.PID); o != (Origin{Place: Inside}) {
			t.Errorf("without its run's files process %v is %+v", id, o)
		}
	}
	b.stop(p)
	if o := newBench(t).Origin(os.Getppid()); o.Place != Outside {
		t.Errorf("a stranger is %+v", o)
	}
}

func TestOthersAreOutsideOrUnclear(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if o := b.Origin(os.Getppid()); o != (Origin{}) {
		t.Errorf("the parent of the daemon is %+v", o)
	}
	if o := b.Origin(os.Getpid()); o != (Origin{Place: Inside}) {
		t.Errorf("the daemon itself is %+v", o)
	}
	child := bystander(t)
	if o := b.Origin(child.PID); o != (Origin{Place: Inside}) {
		t.Errorf("what the daemon started is %+v", o)
	}
	for _, pid := range []int{0, -1, 1 << 29} {
		if o := b.Origin(pid); o.Place != Unclear || o.Why == "" {
			t.Errorf("process %d is %+v", pid, o)
		}
	}
}

// What is kept of a number is of no use to another process of that number.
func TestOriginOfAReusedNumberIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent, err := proc.ReadStat(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	old := parent
	old.Start--
	b.origins.keep([]proc.Stat{old}, Origin{Place: Inside, Run: "gone"}, time.Now().Add(-2*originFresh))
	if o := b.Origin(parent.PID); o != (Origin{}) {
		t.Errorf("it is %+v", o)
	}
}

// Not everybody's parents last. A process whose parents end all the time is
// inside or unclear, never outside.
func TestOriginWhileParentsLeave(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	p := b.start(b.spec("r", "sh", "-c", `cat > "$0.sh" <<'E'
echo $$ >> "$1"
[ $(wc -l < "$1") -gt 300 ] || (sh "$0" "$1" & )
sleep 0.02
E
sh "$0.sh" "$0"; sleep 3600`, file))
	deadline := time.Now().Add(patience)
	seen := 0
	for lines := 0; lines < 250; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d processes came", lines)
		}
		pids := numbers(file)
		if lines = len(pids); lines == 0 {
			continue
		}
		switch o := b.Origin(pids[lines-1]); {
		case o.Place == Outside:
			t.Fatalf("process %d of the run is outside", pids[lines-1])
		case o.Place == Inside:
			seen++
		}
	}
	if seen == 0 {
		t.Error("none was ever seen inside")
	}
	b.stop(p)
}

// numbers returns the numbers in a file, one a line.
func numbers(file string) (all []int) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// A process that has nothing left to be known by is found all the same when
// its shim is killed, by a daemon that takes orphans; and none is left a
// zombie.
func TestOrphansComeToTheDaemonAndEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	if err := b.Create(b.spec("r", self("nasty", file, "PATH=/bin")...), nil); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(exe, "daemon", b.root, "r", "takes")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	}()
	ids := tells(t, file, 5)
	if err := proc.Signal(b.shimOf("r"), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all of the run are gone", func() bool {
		return !slices.ContainsFunc(ids, proc.ID.Alive)
	})
	eventually(t, "the daemon has no child left", func() bool {
		left, err := proc.Processes()
		return err == nil && len(left.Descendants(daemon.Process.Pid)) == 0
	})
}
