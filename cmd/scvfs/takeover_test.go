package main

import (
	"strings"
	"syscall"
	"testing"
)

// takeoverWords are shell functions for tests of takeovers: T is the takeover's
// directory, shows waits until the screen shows a line, typed types one.
const takeoverWords = `C="$S/conversations/sh-1"; T="$C/takeover"
shows() { until grep -qx -- "$1" "$T/screen"; do sleep 0.02; done; }
typed() { printf '%s\r' "$1" > "$T/input"; }
`

// taken makes a world whose conversation sh-1 can be taken over.
func taken(t testing.TB, config string) *world {
	w := newWorld(t, config).session()
	w.sh(`echo 'echo hi' > "$S/start"; cat "$J/job-1/wait"`)
	return w
}

func TestATakeoverIsATerminalInFiles(t *testing.T) {
	w := taken(t, "")
	w.want(takeoverWords+`cat "$C/attach-state"; ls -d "$T" 2>&1 | grep -o 'No such.*'`, `{"state":"ready","interrupt":true}`+"\nNo such file or directory\n")
	w.sh(takeoverWords + `echo attach 90x20 > "$C/ctl"; typed "PS1=; stty -echo"; typed 'tty >/dev/null && echo is a "tty" of $(stty size)'; shows 'is a tty of 20 90'`)
	w.want(takeoverWords+`cat "$T/size"; cut -d' ' -f1,2 "$C/state"; cat "$T/run" | grep -c ^sh-; sed 's/.*"state":"\([a-z_]*\)".*/\1/' "$C/attach-state"; echo attach > "$C/ctl"; stat -c %a "$T" "$T/input" "$T/ctl" "$T/screen"`,
		"90x20\nworking takeover\n1\ntaken_over\n500\n600\n600\n400\n")
	w.sh(takeoverWords + `echo 100x30 > "$T/size"; typed 'stty size'; shows '30 100'`)
	// Ctrl-C and job control are the terminal's.
	w.sh(takeoverWords + `cat > waits <<'END'
trap 'echo interrupted; exit' INT
echo waits
while :; do sleep 0.1; done
END
typed 'sh waits'; shows waits; echo 'key ctrl-c' > "$T/ctl"; shows interrupted; typed 'echo goes on'; shows 'goes on'`)
	w.sh(takeoverWords + `typed cat; echo 'paste pasted $(text) as it is' > "$T/ctl"; echo 'key enter' > "$T/ctl"; shows 'pasted $(text) as it is'; echo 'key ctrl-d' > "$T/ctl"`)
	w.sh(takeoverWords + `printf '' > "$T/input"; typed "printf '\\033[31mred\\033[m\\n'"; shows red; grep -q $'\e\[.*31mred' "$T/screen.ansi"; grep -q '"text": "red"' "$T/screen.json"; grep -q '<svg' "$T/screen.svg"`)
	w.sh(takeoverWords + `typed 'for i in $(seq 60); do echo row $i; done'; shows 'row 60'; grep -qx 'row 3' "$T/scrollback"`)
	w.sh(takeoverWords + `typed "printf '\\033]2;a title\\007\\033]7501;state=working:app=test\\033\\\\'"; until grep -qx 'a title' "$T/title"; do sleep 0.02; done; grep -q working "$T/program"`)
	w.sh(takeoverWords + `cat "$T"/* > all; grep -r zz "$M" > found || [ $? = 1 ]`) // a walker comes to an end, and takes nothing
	// What is sent meanwhile waits, and runs behind it.
	w.want(takeoverWords+`echo 'echo behind' > "$C/queue"; cat "$J/job-2/state"; echo end > "$T/ctl"; cat "$J/job-2/wait" "$J/job-2/result"; ls "$C" | grep -c takeover || :`, "queued\ncompleted\nbehind\n0\n")
	log := w.sh(`for r in "$M"/runs/*/log; do grep -l 'taken over' "$r"; done | xargs cat`)
	for _, want := range []string{"was ended by the owner", "row 60", "run ended: completed: signal HUP"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
}

func TestATakeoverEndsInEachWay(t *testing.T) {
	w := taken(t, "")
	w.sh(takeoverWords + `echo attach > "$C/ctl"; typed exit; while [ -e "$T" ]; do sleep 0.02; done`)
	if log := w.sh(`cat "$M"/runs/*/log`); !strings.Contains(log, "ended by itself") {
		t.Errorf("the log says\n%s", log)
	}
	// A closed session.
	w.sh(takeoverWords + `echo attach > "$C/ctl"; typed 'sleep 1000 & exec sleep 2000'; echo close > "$S/ctl"; while [ -e "$T" ]; do sleep 0.02; done`)
	if log := w.sh(`cat "$M"/runs/*/log`); !strings.Contains(log, "ended by closing the session") {
		t.Errorf("the log says\n%s", log)
	}
	// The daemon's orderly stop, and its death.
	w.sh(`echo "$PWD" > /dev/null; echo "shop $PWD" > "$M/sessions/new"; echo 'echo hi' > "$S/start"; cat "$J"/job-2/wait`)
	w.sh(`C=$(readlink -f "$J/job-2/conversation"); echo attach > "$C/ctl"`)
	w.stop()
	w.start()
	if log := w.sh(`cat "$M"/runs/*/log`); !strings.Contains(log, "ended by the daemon, which stops") {
		t.Errorf("the log says\n%s", log)
	}
	w.sh(`C=$(readlink -f "$J/job-2/conversation"); echo attach > "$C/ctl"; printf 'trap "" HUP TERM; echo $$ > pid; sleep 1000\r' > "$C/takeover/input"; until [ -s pid ]; do sleep 0.02; done`)
	w.signal(syscall.SIGKILL)
	w.start()
	w.want(`C=$(readlink -f "$J/job-2/conversation"); echo 'echo after' > "$C/queue"; cat "$J/job-3/wait"; kill -0 $(cat pid) 2>&1 | grep -o 'No such.*'; grep -l 'terminal was hung up' "$M"/runs/*/state | wc -l`,
		"completed\nNo such process\n1\n")
}

func TestTheTerminalHasOneHolder(t *testing.T) {
	w := taken(t, "")
	w.sh(takeoverWords + `echo attach > "$C/ctl"; [ ! -s "$T/holder" ]`)
	w.want(takeoverWords+`exec 3> "$T/input"; printf 'echo one\r' >&3; grep -c bash "$T/holder"
sh -c 'exec 4> "$1"; printf "echo two\r" >&4; cat "$2"' - "$T/input" "$T/holder" | grep -c '(sh)'
printf x >&3 2>/dev/null || echo stale`, "1\n1\nstale\n")
	w.refused(takeoverWords+`exec 3> "$T/input"; sh -c 'exec 4> "$1"; sleep 1' - "$T/input" & sleep 0.5; printf x >&3`, "Stale file handle")
	// Others may neither press keys nor resize while somebody holds it; the holder may.
	w.refused(takeoverWords+`exec 3> "$T/input"; sh -c 'echo 80x24 > "$1/size"' - "$T"; exit $?`, "I/O error")
	w.refused(takeoverWords+`exec 3> "$T/input"; sh -c 'echo "key up" > "$1/ctl"' - "$T"; exit $?`, "I/O error")
	w.sh(takeoverWords + `exec 3> "$T/input"; echo 80x24 > "$T/size"; echo 'key up' > "$T/ctl"; sh -c 'echo detach > "$1/ctl"' - "$T"; ! printf x >&3 2>/dev/null; [ ! -s "$T/holder" ]`)
	w.refused(takeoverWords+`echo 10x2 > "$T/size"`, "Invalid argument")
	w.refused(takeoverWords+`echo 'key nonsense' > "$T/ctl"`, "Invalid argument")
	if last := w.sh(takeoverWords + `tail -n 1 "$T/ctl"`); !strings.Contains(last, "nonsense") {
		t.Errorf("the reason is %q", last)
	}
	w.sh(takeoverWords + `echo end > "$T/ctl"`)
}

func TestChangesAreAFullPageAndThenWhatChanged(t *testing.T) {
	w := taken(t, "")
	out := w.sh(takeoverWords + `echo attach > "$C/ctl"; cat "$T/changes" > pages & until [ -s pages ]; do sleep 0.02; done
typed 'echo some "thing"'; until grep -q 'some thing' pages; do sleep 0.02; done
echo end > "$T/ctl"; wait; head -n 1 pages | grep -c '"full":true'; sed 1d pages | grep -c '"full":true'; tail -n 1 pages | grep -o '"ended":true.*'`)
	if !strings.HasPrefix(out, "1\n0\n"+`"ended":true,"exit":"signal HUP","note":"the takeover of sh-1 was ended by the owner`) {
		t.Errorf("pages: %s", out)
	}
}

func TestAnInterruptHoldsTheLaneFirst(t *testing.T) {
	w := taken(t, "")
	w.sh(takeoverWords + `echo 'sleep 1000' > "$C/queue"; until grep -q working "$J/job-2/state"; do sleep 0.02; done; echo 'echo behind' > "$C/queue"`)
	w.want(takeoverWords+`cat "$C/attach-state" | grep -o '"state":"busy"\|"interrupt":true\|"job":"job-2"'`, "\"state\":\"busy\"\n\"interrupt\":true\n\"job\":\"job-2\"\n")
	w.refused(takeoverWords+`echo attach > "$C/ctl"`, "busy")
	w.refused(takeoverWords+`echo 'interrupt job-1' > "$C/ctl"`, "busy")
	w.want(takeoverWords+`tail -n 1 "$C/ctl"; cat "$J/job-2/status"`, "# last: interrupt: refused: job-2 runs the turn of conversation sh-1 now, not job-1; nothing was stopped\nrunning\n")
	w.want(takeoverWords+`echo 'interrupt job-2 80x24' > "$C/ctl"; cat "$J/job-2/state" "$J/job-3/status" "$T/size"; echo end > "$T/ctl"; cat "$J/job-3/wait"`,
		"cancelled by the owner, who took sh-1 over\nrunning\n80x24\ncompleted\n")
	if log := w.sh(`cat "$M"/runs/*/log`); !strings.Contains(log, "conversation sh-1 is taken over; shop/job-2 was stopped for the takeover") {
		t.Errorf("the log says\n%s", log)
	}
}

func TestATakeoverIsRefusedWithAReason(t *testing.T) {
	w := newWorld(t, `[limits]
takeovers = 1
[agents.asks]
like = "claude"
command = "/bin/true"
[agents.full]
like = "claude"
command = "/bin/true"
permissions = "full"
`).session()
	w.sh(`echo 'echo hi' > "$S/start"; echo 'echo hi' > "$S/start"; printf '#!scv agent=asks\nx' > "$S/start"; printf '#!scv agent=full\nx' > "$S/start"; cat "$J"/job-*/wait`)
	for conv, want := range map[string]string{"asks-1": "ineligible", "full-1": "no_session"} {
		w.want(`C="$S/conversations/`+conv+`"; grep -c '"state":"`+want+`"' "$C/attach-state"; exec 2>/dev/null; echo attach > "$C/ctl" || echo refused; echo interrupt > "$C/ctl" || echo refused; ls "$C" | grep -c takeover || :`, "1\nrefused\nrefused\n0\n")
	}
	reasons := w.sh(`for c in asks-1 full-1; do tail -n 1 "$S/conversations/$c/ctl"; done`)
	for _, want := range []string{"would ask for approvals in its terminal", "has no session of its agent's yet"} {
		if !strings.Contains(reasons, want) {
			t.Errorf("no %q in %s", want, reasons)
		}
	}
	w.refused(`echo attach > "$S/conversations/sh-1/ctl"; echo attach > "$S/conversations/sh-2/ctl"`, "temporarily unavailable")
	w.want(`grep -c '"state":"full"' "$S/conversations/sh-2/attach-state"; tail -n 1 "$S/conversations/sh-2/ctl" | grep -c limits.takeovers`, "1\n1\n")
	w.refused(`echo interrupt > "$S/conversations/sh-1/ctl"`, "busy")
	w.refused(`echo 'attach 5x5' > "$S/conversations/sh-2/ctl"`, "Invalid argument")
	w.refused(`echo release > "$S/conversations/sh-1/ctl"`, "busy")
	w.sh(`echo end > "$S/conversations/sh-1/takeover/ctl"; echo attach > "$S/conversations/sh-2/ctl"; echo end > "$S/conversations/sh-2/takeover/ctl"`)
}
