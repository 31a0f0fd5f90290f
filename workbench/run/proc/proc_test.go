package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

const patience = 30 * time.Second

// sleeper starts a child that stays until the test ends or kills it.
func sleeper(t *testing.T) (*exec.Cmd, ID) {
	t.Helper()
	c := exec.Command("/bin/sleep", "3600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	id, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return c, id
}

// ended waits for a handle's end.
func ended(t *testing.T, h *Handle) {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(patience):
		t.Fatalf("the end of process %v was not seen", h.ID())
	}
	if !h.Ended() {
		t.Error("it has ended and has not")
	}
}

func open(t *testing.T, id ID) *Handle {
	t.Helper()
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestIdentityTellsProcessesApart(t *testing.T) {
	c, id := sleeper(t)
	if !id.Alive() || !id.SameBoot() || id.Start == 0 || id.PID != c.Process.Pid {
		t.Fatalf("%+v is not alive", id)
	}
	later, reboot := id, id
	later.Start++
	reboot.Boot = "another"
	for _, other := range []ID{later, reboot, {}} {
		if other.Alive() {
			t.Errorf("%+v is alive", other)
		}
		if h, err := Open(other); err == nil {
			h.Close()
			t.Errorf("%+v can be held", other)
		}
		if err := Signal(other, unix.SIGKILL); err == nil {
			t.Errorf("%+v can be signalled", other)
		}
	}
	if !id.Alive() {
		t.Fatal("a signal to another killed it")
	}
	if err := Signal(id, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, open(t, id)) // a zombie can be held
	if id.Alive() {
		t.Error("a zombie is alive")
	}
	if err := Signal(id, unix.SIGKILL); err != nil {
		t.Errorf("signalling a zombie: %v", err)
	}
	_ = c.Wait()
	if _, err := Of(id.PID); err == nil {
		if again, _ := Of(id.PID); again == id {
			t.Error("it is there after it was reaped")
		}
	}
	if err := Signal(id, unix.SIGKILL); !fault.Is(err, fault.NotFound) {
		t.Errorf("signalling the gone: %v", err)
	}
}

func TestNobodyHoldsInitOrGroups(t *testing.T) {
	boot, err := Boot()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{1, 0, -1, -os.Getpid()} {
		if err := Signal(ID{PID: pid, Boot: boot}, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}

func TestWatchSeesTheEndOfAChildAndOfAStranger(t *testing.T) {
	c, id := sleeper(t)
	h := open(t, id)
	select {
	case <-h.Done():
		t.Fatal("it has ended before it was killed")
	default:
	}
	if h.Ended() {
		t.Error("it has ended before it was killed")
	}
	if err := h.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended(t, h)
	_ = c.Wait()
	ended(t, h)
	if err := h.Signal(unix.SIGTERM); !fault.Is(err, fault.NotFound) {
		t.Errorf("signalling the gone: %v", err)
	}

	id = stranger(t)
	h = open(t, id)
	if err := h.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, h)
}

// stranger starts a process that is no child of ours.
func stranger(t *testing.T) ID {
	t.Helper()
	c := exec.Command("/bin/sh", "-c", "sleep 3600 & echo $!")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	id, err := Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_ = c.Wait()
	return id
}

func TestWatchingTakesNoThreads(t *testing.T) {
	var handles []*Handle
	for range 50 {
		_, id := sleeper(t)
		h := open(t, id)
		h.Done()
		handles = append(handles, h)
	}
	s, err := ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if s.Threads > 40 {
		t.Errorf("%d threads watch 50 processes", s.Threads)
	}
	for _, h := range handles {
		_ = h.Signal(unix.SIGKILL)
	}
	for _, h := range handles {
		ended(t, h)
	}
}

func TestClosingAHandleLeavesTheProcessAndEndsTheWatch(t *testing.T) {
	_, id := sleeper(t)
	before := runtime.NumGoroutine()
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	done := h.Done()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the watch goes on")
		}
	}
	select {
	case <-done:
		t.Error("it ended because nobody looks")
	default:
	}
	if err := h.Signal(unix.SIGKILL); !fault.Is(err, fault.Gone) {
		t.Errorf("signalling through a closed handle: %v", err)
	}
	if !id.Alive() {
		t.Error("it is gone")
	}
}

func TestGroupSignalReachesAGroupWhoseLeaderIsReaped(t *testing.T) {
	c := exec.Command("/bin/sh", "-c", "sleep 3600 & echo $!")
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	leader, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, leader)
	text, _ := bufio.NewReader(out).ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	member, err := Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_ = c.Wait()
	watch := open(t, member)
	switch err := h.SignalGroup(unix.SIGKILL); {
	case fault.Is(err, fault.Unsupported):
		_ = Signal(member, unix.SIGKILL)
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	ended(t, watch)
}

func TestFamily(t *testing.T) {
	_, id := sleeper(t)
	self := os.Getpid()
	living, err := Descendants(self)
	if err != nil || !slices.ContainsFunc(living, func(s Stat) bool { return id.Is(s) }) {
		t.Errorf("it is no descendant: %v, %v", living, err)
	}
}

func TestArgs(t *testing.T) {
	c, _ := sleeper(t)
	for deadline := time.Now().Add(patience); ; {
		args, err := Args(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(args, []string{"/bin/sleep", "3600"}) { // exec sets it after it has told us
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("its arguments are %q", args)
		}
	}
	if _, err := Args(1 << 29); !fault.Is(err, fault.NotFound) {
		t.Errorf("the arguments of nobody: %v", err)
	}
}

func TestDescendantsOfATable(t *testing.T) {
	table := Table{
		{PID: 1, PPID: 0},
		{PID: 2, PPID: 1},
		{PID: 3, PPID: 2},
		{PID: 4, PPID: 1},
		{PID: 5, PPID: 3, State: 'Z', Threads: 1},
		{PID: 7, PPID: 8},
		{PID: 8, PPID: 7}, // numbers given away while the table was read
	}
	for root, want := range map[int][]int{1: {2, 3, 4, 5}, 2: {3, 5}, 5: nil, 6: nil, 7: {8}} {
		var got []int
		for _, s := range table.Descendants(root) {
			got = append(got, s.PID)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("of %d: %v, not %v", root, got, want)
		}
	}
}

func TestThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	if pid, err := TGID(tid); err != nil || pid != os.Getpid() {
		t.Errorf("thread %d is of process %d, %v", tid, pid, err)
	}
	if _, err := TGID(1 << 29); !fault.Is(err, fault.NotFound) {
		t.Errorf("a thread of nobody: %v", err)
	}
	if uid, err := Owner(tid); err != nil || uid != os.Geteuid() {
		t.Errorf("it is user %d's, %v", uid, err)
	}
}

func TestTagged(t *testing.T) {
	c := exec.Command("/bin/sleep", "3600")
	c.Env = []string{"A=1", "SCV_RUN=r-1", "B="}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	for deadline := time.Now().Add(patience); !Tagged(c.Process.Pid, "A=1"); { // exec sets it after it has told us
		if time.Now().After(deadline) {
			t.Fatal("it has no environment")
		}
	}
	for entry, want := range map[string]bool{"SCV_RUN=r-1": true, "SCV_RUN=r": false, "SCV_RUN": false, "B=": true, "RUN=r-1": false, "": false} {
		if got := Tagged(c.Process.Pid, entry); got != want {
			t.Errorf("%q: %v", entry, got)
		}
	}
}

// A zombie keeps the flags that it died with.
func TestKilledTellsSignalsFromExits(t *testing.T) {
	for script, want := range map[string]bool{"exit 0": false, "exit 3": false, "kill -TERM $$": true, "kill -KILL $$": true, "kill -INT $$": true} {
		c := exec.Command("/bin/sh", "-c", script)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		id, err := Of(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		h := open(t, id)
		ended(t, h)
		if got := Killed(id.PID); got != want {
			t.Errorf("%s: %v", script, got)
		}
		_ = c.Wait()
	}
	if Killed(os.Getpid()) {
		t.Error("this process is dying")
	}
}

// A handle of a child takes the descriptor that the child came with.
func TestHandleOfAChild(t *testing.T) {
	fd := -1
	c := exec.Command("/bin/sleep", "3600")
	c.SysProcAttr = &unix.SysProcAttr{PidFD: &fd}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if fd < 0 {
		t.Skip("this kernel gives no pidfd with a child")
	}
	h, err := FromChild(c.Process.Pid, fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, h)
	_ = c.Wait()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
		t.Error("the descriptor is still open")
	}
}
