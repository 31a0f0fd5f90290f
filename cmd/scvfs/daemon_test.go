package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSecondDaemonIsToldWhoIsFirst(t *testing.T) {
	w := newWorld(t, "")
	began := time.Now()
	cmd := exec.Command(binary, "serve", "--mount", filepath.Join(w.dir, "other"), "--state", w.state, "--config", w.config)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exitBusy || !strings.Contains(string(out), fmt.Sprint(w.pid())) {
		t.Fatalf("%v, exit %d: %s; want exit %d and the pid %d", err, cmd.ProcessState.ExitCode(), out, exitBusy, w.pid())
	}
	t.Logf("refused after %v", time.Since(began))
	w.want(`cat "$M/sessions/new" | head -n 0; ls "$M" | grep -c README`, "1\n")
	if _, err := os.Stat(filepath.Join(w.dir, "other")); err == nil {
		t.Error("the refused daemon made its mount point")
	}
}

// A daemon that is killed leaves a dead mount; the next one must recover it,
// whoever still stands in it or waits in it.
func TestDeadMountIsRecovered(t *testing.T) {
	for name, holder := range map[string]string{
		"idle":           `true`,
		"shell inside":   `cd "$S/jobs" && exec sleep 1000`,
		"file open":      `exec sleep 1000 < "$S/state"`,
		"reader waiting": `exec cat "$M/events"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "").session()
			cmd := w.command("bash", "echo in; "+holder)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cmd.Process.Kill(); cmd.Wait() }()
			if _, err := out.Read(make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			w.kill()
			w.start()
			w.want(`cat "$S/state"; echo true > "$S/start"; cat "$J/job-1/wait"`, "live\ncompleted\n")
			if mounts := w.mounts(); len(mounts) != 1 {
				t.Fatalf("mounted %d times: %q", len(mounts), mounts)
			}
		})
	}
}

func TestOrderlyStopLeavesNoMountWhoeverIsInside(t *testing.T) {
	w := newWorld(t, "").session()
	cmd := w.command("bash", `cd "$S/jobs" && echo in && exec cat "$M/events"`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if mounts := w.mounts(); len(mounts) != 0 {
		t.Fatalf("left %q", mounts)
	}
}

func TestUmountStopsTheDaemon(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'sleep 0.5; echo went on' > "$S/start"`)
	if out, err := exec.Command(binary, "umount", w.mount).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.waitGone(w.exited)
	w.start()
	w.want(`cat "$J/job-1/wait" "$J/job-1/result"`, "completed\nwent on\n")
	for _, args := range [][]string{{"umount", w.dir}, {"umount", "--force", w.dir}, {"umount"}, {"serve", "x"}, {"nonsense"}, {}} {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil || len(out) == 0 {
			t.Errorf("scvfs %q: %v, %s", args, err, out)
		}
	}
}

func TestForcedUmountFreesAHungMount(t *testing.T) {
	w := newWorld(t, "").session()
	pid := w.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	reader := w.command("cat", "")
	reader.Args = []string{"cat", filepath.Join(w.mount, "version")}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "umount", "--force", w.mount).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := reader.Wait(); err == nil {
		t.Error("a read of a hung mount succeeded")
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.waitGone(w.exited)
}

func TestNothingOfTheDaemonLeaksIntoAgents(t *testing.T) {
	w := emptyWorld(t, "")
	t.Setenv("OPENAI_API_KEY", "secret")
	t.Setenv("SCV_RUN", "stale-000000")
	w.start()
	w.session()
	w.want(`umask 022; echo 'ls /proc/self/fd | tr "\n" " "; umask; [ -z "$OPENAI_API_KEY" ] && echo clean; case $SCV_RUN in sh-??????) echo "$SCV_DEPTH";; esac; cat /proc/$$/status | grep SigIgn; [ -d "$TMPDIR" ] && echo tmp' > "$S/start"
cat "$J/job-1/wait" > /dev/null; cat "$J/job-1/result"`, fmt.Sprintf("0 1 2 3 %04o\nclean\n1\nSigIgn:\t0000000000000000\ntmp\n", umask()))
}

// umask is this process's, which the daemon inherits.
func umask() int {
	mask := syscall.Umask(0o22)
	syscall.Umask(mask)
	return mask
}

func TestConfigurationMistakesStopTheStart(t *testing.T) {
	w := emptyWorld(t, "[limits]\njbos = 3\n")
	err := w.tryStart()
	if err == nil || !strings.Contains(w.logged(), "config.toml:2: unknown key limits.jbos; did you mean limits.jobs?") {
		t.Fatalf("%v\n%s", err, w.logged())
	}
	<-w.exited
	w.daemon = nil
}

func TestConfigFileTellsSources(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 7\n")
	out := w.sh(`cat "$M/config"`)
	for _, line := range []string{"--mount", "config.toml:2", "# default"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}

func TestDoctorAndVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := command([]string{"version"}, &out, &errs); code != exitOK || !strings.HasPrefix(out.String(), "scvfs ") {
		t.Errorf("version: %d, %s%s", code, out.String(), errs.String())
	}
	w := emptyWorld(t, "")
	cmd := exec.Command(binary, "doctor", "--config", w.config, "--state", w.state)
	report, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(report), "ok    agent sh") {
		t.Errorf("doctor: %v\n%s", err, report)
	}
}

// Once echo has returned, the job is there, whatever happens to the daemon at
// that moment; and it is there once.
func TestDocumentIsDurableWhenTheLastCloseReturns(t *testing.T) {
	w := newWorld(t, "").session()
	for i := range 10 {
		job := fmt.Sprintf("job-%d", i+1)
		w.sh(fmt.Sprintf(`echo 'echo %s >> ran' > "$S/start"; kill -KILL %d`, job, w.pid()))
		w.waitGone(w.exited)
		w.start()
		w.want(fmt.Sprintf(`cat "$J/%s/wait"; ls "$J" | wc -l; grep -cx %s ran`, job, job), fmt.Sprintf("completed\n%d\n1\n", i+1))
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	at := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: at})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv(notifyVariable, at)
	w := newWorld(t, "").session()
	hears := func(want string) {
		t.Helper()
		buf := make([]byte, 100)
		if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := socket.Read(buf); err != nil || string(buf[:n]) != want {
			t.Fatalf("heard %q, %v; want %q", buf[:n], err, want)
		}
	}
	hears("READY=1")
	w.want(`echo 'echo "[$NOTIFY_SOCKET]"' > "$S/start"; cat "$J/job-1/wait" "$J/job-1/result"`, "completed\n[]\n")
	w.stop()
	hears("STOPPING=1")
}
