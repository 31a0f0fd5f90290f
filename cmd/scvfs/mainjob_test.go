package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// makefile is the real input of the main job.
const makefile = "test:\n\t@echo testing; for i in 1 2 3; do echo case $$i; done\nbad:\n\t@echo broken; exit 3\n"

// The lines of README, as they are typed, in each shell.
func TestMainJobInEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed", shell)
			}
			if _, err := exec.LookPath("make"); err != nil {
				t.Skip("make is not installed")
			}
			w := newWorld(t, "")
			if err := os.WriteFile(filepath.Join(w.place, "Makefile"), []byte(makefile), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := w.command(shell, `set -e
mkdir ~/scv/sessions/shop
echo 'make test' > ~/scv/sessions/shop/start
cat ~/scv/sessions/shop/start
cat ~/scv/sessions/shop/jobs/job-1/wait
cat ~/scv/sessions/shop/jobs/job-1/status ~/scv/sessions/shop/jobs/job-1/result
echo 'make bad' > ~/scv/sessions/shop/start
cat ~/scv/sessions/shop/jobs/job-2/wait ~/scv/sessions/shop/jobs/job-2/exit
grep -l failed ~/scv/sessions/*/jobs/*/status
ls -lt ~/scv/sessions/shop/jobs | head | wc -l
echo 'echo up; exec sleep 1000' > ~/scv/sessions/shop/start
echo cancel > ~/scv/sessions/shop/jobs/job-3/ctl
cat ~/scv/sessions/shop/jobs/job-3/wait
rmdir ~/scv/sessions/shop/jobs/job-1
ls ~/scv/sessions/shop/jobs
`)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, w.logged())
			}
			// make prints "make: *** [...] Error 3" in its own words.
			got := regexp.MustCompile(`(?m)^make: .*\n`).ReplaceAllString(string(out), "")
			want := "shop/job-1\ncompleted\ncompleted\ntesting\ncase 1\ncase 2\ncase 3\nfailed\nexit 2\n" +
				w.mount + "/sessions/shop/jobs/job-2/status\n3\ncancelled\njob-2\njob-3\n"
			if got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestTailFollowsALogToItsEnd(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'for i in 1 2 3 4 5; do echo line $i; sleep 0.3; done; echo last' > "$S/start"`)
	out := w.sh(`tail -n +1 -f "$J/job-1/log" > out & t=$!
cat "$J/job-1/wait" > /dev/null
until grep -q 'run ended' out; do sleep 0.05; done
kill $t; cat out; cmp out "$J/job-1/log" && echo same`)
	for _, line := range []string{"\nline 1\n", "\nline 5\n", "\nlast\n", "\nsame\n"} {
		if strings.Count(out, line) != 1 {
			t.Fatalf("%q is not there once:\n%s", line, out)
		}
	}
}

func TestTailOpenedWhileQueuedShowsTheRun(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 1\n").session()
	w.want(`echo 'sleep 1000' > "$S/start"; echo 'echo second' > "$S/start"; cat "$J/job-2/state" "$J/job-2/status"; cat "$J/job-2/log"`,
		"queued\nrunning\n")
	w.sh(`exec 5< "$J/job-2/log"; cat <&5; echo cancel > "$J/job-1/ctl"; cat "$J/job-2/wait"; cat <&5 | grep -x second`)
}

func TestScriptArrivesByteForByteAndStdinIsClosed(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`printf 'printf "%%s|" "a  b" "\\t" \x27$HOME\x27; printf "\xff\xc3\xa9"; cat; pwd' > "$S/start"; cat "$J/job-1/wait"
{ printf 'a  b|\\t|$HOME|\xff\xc3\xa9'; pwd; } | cmp - "$J/job-1/result"`)
	w.sh(`printf -- '-n; echo dash' > "$S/start"; cat "$J/job-2/wait"; grep -q 'not found' "$J/job-2/result"; cmp "$J/job-2/prompt" <(printf -- '-n; echo dash')`)
	w.sh(`head -c 3000000 /dev/zero | tr '\0' '#' > big; printf '\necho end' >> big; cat big > "$S/start"; cat "$J/job-3/wait" "$J/job-3/result" | tail -n 1 | grep -x end; cmp big "$J/job-3/prompt"`)
}

func TestTimeLimit(t *testing.T) {
	w := newWorld(t, "").session()
	w.want(`echo '{"agent":"sh","prompt":"echo up; sleep 1000","timeout_seconds":1}' > "$S/start"
cat "$J/job-1/wait" "$J/job-1/exit" "$J/job-1/result"`, "timeout\ntimeout 1s\nup\n")
}

func TestCancelEmptiesTheTreeFirst(t *testing.T) {
	w := newWorld(t, "").session()
	// Children that left the session, ignore TERM, forked twice, or are
	// stopped; each holds the fifo's other end open as long as it lives.
	w.sh(`mkfifo alive; exec 7<>alive
cat > "$S/start" <<'X'
trap '' TERM
exec 8>alive
setsid sleep 1001 &
(setsid sh -c 'trap "" TERM HUP; sleep 1002 & wait' &)
sh -c 'kill -STOP $$; sleep 1003' &
env -i setsid sh -c 'sleep 1004 & sleep 1005' >/dev/null 2>&1 &
echo ready
sleep 1006
X
until grep -qx ready "$J/job-1/log"; do sleep 0.02; done
echo cancel > "$J/job-1/ctl"; cat "$J/job-1/wait"`)
	w.want(`pgrep -fx 'sleep 100[1-6]' | while read p; do [ "$(readlink /proc/$p/cwd)" = "$PWD" ] && echo left $p; done; cat "$J/job-1/state"`,
		"cancelled by the owner\n")
	w.refused(`echo cancel > "$J/job-1/ctl"`, "Operation already in progress")
	w.want(`tail -n 1 "$J/job-1/ctl"`, "# last: cancel: refused: shop/job-1 already cancelled\n")
	w.sh(`tail -n 1 "$M/errors" | grep 'shop/job-1 already cancelled'`)
}

func TestJobsGoOnWithoutTheDaemon(t *testing.T) {
	for _, how := range []string{"SIGKILL", "SIGTERM", "shutdown"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, "").session()
			w.sh(`echo 'for i in $(seq 200); do echo line $i; sleep 0.01; done; cat' > "$S/start"; until grep -q 'line 20$' "$J/job-1/log"; do sleep 0.01; done`)
			switch how {
			case "SIGKILL":
				w.kill()
			case "SIGTERM":
				w.stop()
			default:
				w.sh(`echo shutdown > "$M/ctl"`)
				w.waitGone(w.exited)
			}
			if how != "SIGKILL" && len(w.mounts()) > 0 {
				t.Fatalf("an orderly stop left %q", w.mounts())
			}
			w.start()
			w.want(`cat "$J/job-1/wait" "$J/job-1/exit"`, "completed\nexit 0\n")
			var lines strings.Builder
			for i := range 200 {
				fmt.Fprintf(&lines, "line %d\n", i+1)
			}
			w.want(`cat "$J/job-1/result"`, lines.String())
			w.want(`grep '^line' "$J/job-1/log"`, lines.String())
			w.want(`grep -c 'run started' "$J/job-1/log"; grep -c 'run ended' "$J/job-1/log"; wc -l < "$J/job-1/log" | grep -qx "$(wc -l < "$J/job-1/events")" && echo same`, "1\n1\nsame\n")
		})
	}
}

func TestKilledShimInterruptsOnce(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprintf("daemon down %v", down), func(t *testing.T) {
			w := newWorld(t, "").session()
			w.sh(`echo 'echo $$ > pid; exec sleep 1000' > "$S/start"; until [ -s pid ]; do sleep 0.02; done`)
			if down {
				w.kill()
			}
			w.sh(`kill -KILL $(ps -o ppid= -p $(cat pid))`)
			if down {
				w.start()
			}
			w.want(`cat "$J/job-1/wait" "$J/job-1/status"; grep -c . "$J/job-1/state"; grep -c 'run ended: interrupted' "$J/job-1/log"; case $(sed 's/.*) //' /proc/$(cat pid)/stat 2>/dev/null) in ''|Z*) echo gone;; esac`,
				"interrupted\ninterrupted\n1\n1\ngone\n")
			w.kill()
			w.start()
			w.want(`cat "$J/job-1/status"; grep -c 'run ended' "$J/job-1/log"`, "interrupted\n1\n")
		})
	}
}
