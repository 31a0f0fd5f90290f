package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an agent, an accident or a second daemon does to the files and the
// mount of a running one.

func TestEmptyLedgerLosesNoFiles(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'echo precious' > "$S/start"; cat "$J/job-1/wait"`)
	w.stop()
	ledger, kept := filepath.Join(w.state, "ledger.db"), filepath.Join(w.dir, "kept.db")
	if err := os.Rename(ledger, kept); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.want(`ls "$M/sessions"`, "new\n")
	w.sh(`echo maintain > "$M/ctl"`)
	w.stop()
	found, err := exec.Command("grep", "-rlx", "precious", w.state).Output()
	if err != nil || !strings.Contains(string(found), "result") {
		t.Errorf("the result is gone: %s, %v", found, err)
	}
	if err := os.Rename(kept, ledger); err != nil {
		t.Fatal(err)
	}
}

func TestSecondDaemonDoesNotTakeALivingMount(t *testing.T) {
	w := newWorld(t, "").session()
	cmd := exec.Command(binary, "serve", "--mount", w.mount, "--state", filepath.Join(w.dir, "state2"), "--config", w.config)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exitBusy || !strings.Contains(string(out), "another scvfs (pid ") {
		t.Fatalf("%v: %s", err, out)
	}
	w.want(`cat "$S/state"`, "live\n")
}

func TestLostRunDirectoryInterruptsTheJob(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'echo $$ > pid; exec sleep 1000' > "$S/start"; until [ -s pid ]; do sleep 0.02; done; basename $(readlink "$J/job-1/run") > run`)
	w.kill()
	w.sh(`rm -r "` + w.state + `/runs/$(cat run)"`)
	w.start()
	w.want(`cat "$J/job-1/wait"; case $(sed 's/.*) //' /proc/$(cat pid)/stat 2>/dev/null) in ''|Z*) echo gone;; esac; echo 'echo next' > "$S/start"; cat "$J/job-2/wait"`,
		"interrupted\ngone\ncompleted\n")
}

func TestQueuedJobDoesNotFollowASwappedWorkspace(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 1\n")
	w.sh(`mkdir del; echo "shop \"$PWD/del\"" > "$M/sessions/new"; echo 'exec sleep 1000' > "$S/start"; echo 'pwd -P' > "$S/start"; rmdir del; ln -s "$M" del; echo cancel > "$J/job-1/ctl"; cat "$J/job-1/wait"`)
	w.want(`cat "$J/job-2/wait"; grep -c 'mount point' "$J/job-2/state"; rm del`, "failed\n1\n")
}

func TestFIFOInARunsDirectoryHoldsNobody(t *testing.T) {
	for _, name := range []string{"stdout", "stderr", "log", "events"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "").session()
			w.sh(`echo 'cd "$TMPDIR/.."; rm -f ` + name + `; mkfifo ` + name + `; sleep 0.3; exit 3' > "$S/start"; cat "$J/job-1/wait"`)
			w.sh(`timeout 20 grep -r nothing "$S" "$M/runs" 2>/dev/null; [ $? != 124 ]`)
			w.kill()
			w.start()
			w.want(`echo 'echo next' > "$S/start"; cat "$J/job-2/wait"`, "completed\n")
		})
	}
}
