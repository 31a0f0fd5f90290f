package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// far is a scvfs mount-9p of a world's tree.
type far struct {
	w       *world
	dir     string
	cmd     *exec.Cmd
	exited  chan struct{}
	logging chan struct{}
	log     strings.Builder // after logging
}

// socket is where a world of ninepWorld serves its tree.
func (w *world) socket() string { return filepath.Join(w.dir, "9p.sock") }

// ninepWorld is a world that serves 9P on its socket.
func ninepWorld(t testing.TB, config string) *world {
	w := emptyWorld(t, config)
	w.args = []string{"--9p", "unix:" + w.socket()}
	w.start()
	return w
}

// farMount mounts what is served at an address. Scripts see that mount from
// then on.
func (w *world) farMount(address string) *far {
	w.t.Helper()
	f := &far{w: w, dir: filepath.Join(w.dir, "far"), exited: make(chan struct{}), logging: make(chan struct{})}
	f.cmd = exec.Command(binary, "mount-9p", address, f.dir)
	f.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=0 exitcode=66")
	out, err := f.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ready := make(chan bool, 2)
	go func() {
		defer close(f.logging)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			f.log.WriteString(lines.Text() + "\n")
			if strings.HasPrefix(lines.Text(), "scvfs: ready") {
				ready <- true
			}
		}
		ready <- false
	}()
	go func() { <-f.logging; f.cmd.Wait(); close(f.exited) }()
	w.t.Cleanup(f.end)
	select {
	case ok := <-ready:
		if !ok {
			<-f.logging
			w.t.Fatalf("mount-9p did not start:\n%s", f.log.String())
		}
	case <-time.After(patience):
		w.t.Fatal("mount-9p says nothing")
	}
	w.seen = f.dir
	return f
}

// end stops the mount and fails the test for anything that is left.
func (f *far) end() {
	f.w.seen = ""
	f.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-f.exited:
	case <-time.After(patience):
		f.w.t.Errorf("mount-9p does not stop")
		f.cmd.Process.Kill()
		<-f.exited
	}
	if log := f.log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic") || f.w.t.Failed() {
		f.w.t.Errorf("mount-9p says:\n%s", log)
	}
	table, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(table), " "+f.dir+" ") {
		f.w.t.Errorf("left mounted: %s", f.dir)
		syscall.Unmount(f.dir, syscall.MNT_DETACH)
	}
}

func TestMainJobThroughAMountOfNineP(t *testing.T) {
	w := ninepWorld(t, "")
	w.farMount(w.socket())
	w.session()
	w.want(`echo 'for i in 1 2 3; do echo line $i; sleep 0.2; done' > "$S/start"; cat "$S/start"
tail -n +1 -s 0.1 -f "$J/job-1/log" > out & t=$!; cat "$J/job-1/wait"; until grep -q 'run ended' out; do sleep 0.05; done; kill $t
cmp out "$J/job-1/log" && cat "$J/job-1/result"; [ $(stat -c %s "$J/job-1/result") = $(cat "$J/job-1/result" | wc -c) ] && echo true size`,
		"shop/job-1\ncompleted\nline 1\nline 2\nline 3\ntrue size\n")
	w.want(`echo 'exec sleep 1000' > "$S/start"; echo cancel > "$J/job-2/ctl"; cat "$J/job-2/wait"; rmdir "$J/job-2"; ls "$J"`, "cancelled\njob-1\n")
	w.refused(`echo cancel > "$J/job-1/ctl"`, "Operation already in progress")
	w.want(`tail -n 1 "$J/job-1/ctl"; ls "$J/job-1" | grep -c wait; readlink "$J/job-1/run" | cut -c1-14`, "# last: cancel: refused: shop/job-1 already completed\n0\n../../../../ru\n")
}

func TestKilledReaderOfANinePMountIsGone(t *testing.T) {
	w := ninepWorld(t, "")
	w.farMount(w.socket())
	w.session()
	w.want(`{ cat "$M/events" & p=$!; until [ -n "$(ls -l /proc/$p/fd 2>/dev/null | grep events)" ]; do sleep 0.02; done; kill -KILL $p; wait $p; echo $?; } 2>/dev/null; cat "$S/state"`, "137\nlive\n")
}

// An agent that uses its owner's mount is the agent that it is.
func TestAgentBehindANinePMountIsKnown(t *testing.T) {
	w := ninepWorld(t, "")
	w.farMount(w.socket())
	w.session()
	w.want(`echo "echo 'echo inner' > $S/start" > "$S/start"; cat "$J/job-1/wait"; until [ -d "$J/job-2" ]; do sleep 0.02; done
cat "$J/job-2/wait" "$J/job-1/started_by" "$J/job-2/started_by"`, "completed\ncompleted\nowner\nmodel\n")
}

// The server goes and comes back: calls fail with a reason, what was open is
// stale, and then the mount is what it was.
func TestNinePMountOutlivesItsServer(t *testing.T) {
	w := ninepWorld(t, "")
	f := w.farMount(w.socket())
	w.session()
	holder := w.command("bash", `exec 3< "$S/state" 4> "$S/start"; echo in; read -r go; cat <&3; echo lost >&4; cat "$S/state"`)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	holder.Stdout, holder.Stderr = &out, &out
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	holder.Stdout = writer
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	lines := bufio.NewReader(reader)
	if line, err := lines.ReadString('\n'); err != nil || line != "in\n" {
		t.Fatal(line, err)
	}
	w.stop()
	for _, script := range []string{`cat "$S/state"`, `ls "$S"`, `mkdir "$M/sessions/x"`, `echo x > "$S/ctl"`} {
		w.refused(script, "Connection refused")
	}
	w.start()
	fmt.Fprintln(in, "go")
	rest := ""
	for {
		line, err := lines.ReadString('\n')
		rest += line
		if err != nil {
			break
		}
	}
	holder.Wait()
	if rest != "live\n" || strings.Count(out.String(), "Stale file handle") != 2 {
		t.Errorf("what was open says %q, %q", rest, out.String())
	}
	w.want(`cat "$S/state"; ls "$J"; echo 'echo back' > "$S/start"; cat "$J/job-1/wait" "$J/job-1/result"`, "live\ncompleted\nback\n")
	f.end()
	if log := f.log.String(); strings.Count(log, "the 9P server is gone") != 1 || strings.Count(log, `"the 9P server answers again"`) != 1 {
		t.Errorf("the log has\n%s", log)
	}
}

func TestUmountEndsANinePMountAndADeadOneIsRecovered(t *testing.T) {
	w := ninepWorld(t, "")
	f := w.farMount(w.socket())
	f.cmd.Process.Kill()
	<-f.exited
	f = w.farMount(w.socket())
	w.want(`ls "$M" | grep -c README`, "1\n")
	if out, err := exec.Command(binary, "umount", f.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case <-f.exited:
	case <-time.After(patience):
		t.Error("mount-9p goes on without its mount")
	}
}

func TestMountNinePSaysWhatIsWrong(t *testing.T) {
	w := ninepWorld(t, "")
	far := filepath.Join(w.dir, "far")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"mount-9p"}, exitUsage, "takes a socket and a mount point"},
		{[]string{"mount-9p", w.socket() + "x", far}, exitFailure, "does not answer"},
		{[]string{"mount-9p", "example.org", far}, exitFailure, "is no address of a 9P server"},
		{[]string{"mount-9p", "192.0.2.1:5640", far}, exitFailure, "forward its socket with ssh"},
		{[]string{"mount-9p", w.socket(), w.mount}, exitBusy, "another scvfs"},
		{[]string{"mount-9p", w.socket(), w.dir}, exitFailure, "lies below the mount point"},
		{[]string{"mount-9p", w.socket(), w.place + "/../state"}, exitFailure, "not empty"},
		{[]string{"serve", "--9p", "/x", "--state", w.dir + "/s", "--mount", far}, exitFailure, "write unix:PATH or tcp:HOST:PORT"},
		{[]string{"serve", "--9p", "tcp:0.0.0.0:0", "--state", w.dir + "/s", "--mount", far}, exitFailure, "forward it with ssh"},
		{[]string{"serve", "--9p", "unix:" + w.socket(), "--state", w.dir + "/s", "--mount", far}, exitBusy, "another process serves on"},
	} {
		cmd := exec.Command(binary, c.args...)
		cmd.Env = append(os.Environ(), "HOME="+w.dir)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err == nil || code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("scvfs %q: exit %d, %s", c.args, code, out)
		}
	}
	info, err := os.Stat(w.socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}
