package main

import (
	"strings"
	"testing"
)

func TestConversationAsFiles(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'echo one; sleep 0.3' > "$S/start"; cat "$S/start"`)
	w.want(`cd "$S/conversations" && ls; cat sh-1/agent sh-1/cwd; sed "s/starting/working/" sh-1/state; readlink "$J/job-1/conversation"`,
		"sh-1\nsh\n"+w.place+"\nworking job-1\n../../conversations/sh-1\n")
	w.want(`echo 'echo two' > "$S/conversations/sh-1/queue"; cat "$S/conversations/sh-1/queue"; cat "$J/job-2/wait" "$J/job-2/result"; cat "$J/job-1/status"; ls "$S/conversations/sh-1/jobs"`,
		"shop/job-2\ncompleted\ntwo\ncompleted\njob-1\njob-2\n")
	w.want(`echo 'echo three' > "$J/job-2/reply"; cat "$J/job-2/reply"; cat "$J/job-3/wait" "$J/job-3/resumed-from/result"; readlink "$J/job-2/resumed-as"`,
		"shop/job-3\ncompleted\ntwo\n../../../shop/jobs/job-3\n")
	w.refused(`echo x > "$S/conversations/sh-1/steer"`, "No such file")
	w.want(`tail -n 1 "$S/conversations/sh-1/steer"`, "# last: steer: refused: no turn of conversation sh-1 runs: write to queue\n")
	w.want(`echo release > "$S/conversations/sh-1/ctl"; ls "$S/conversations" | wc -l; cat "$J/job-1/status"`, "0\ncompleted\n")
}

func TestInterruptedJobIsResumedThroughItsFiles(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'echo run >> runs; echo $$ > pid; [ -e fast ] || exec sleep 1000' > "$S/start"; until [ -s pid ]; do sleep 0.02; done
kill -KILL $(ps -o ppid= -p $(cat pid)); cat "$J/job-1/wait"; touch fast`)
	w.want(`echo resume > "$J/job-1/ctl"; cat "$J/job-2/wait"; wc -l < runs; readlink "$J/job-2/resumed-from"`, "completed\n2\n../../../shop/jobs/job-1\n")
	w.refused(`echo resume > "$J/job-1/ctl"`, "Operation already in progress")
	if last := w.sh(`tail -n 1 "$J/job-1/ctl"`); !strings.Contains(last, "was resumed already, as shop/job-2") {
		t.Errorf("the reason is %q", last)
	}
	w.want(`echo 'echo other words' > "$J/job-2/resume"; cat "$J/job-2/resume"; cat "$J/job-3/wait" "$J/job-3/result"`, "shop/job-3\ncompleted\nother words\n")
	w.refused(`echo x > "$J/job-2/resume"`, "Operation already in progress")
}

func TestRebootInterruptsAndKeepsWhatWaits(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 1\n").session()
	w.sh(`echo 'echo $$ > pid; exec sleep 1000' > "$S/start"; until [ -s pid ]; do sleep 0.02; done; echo 'echo waited' > "$S/start"; echo 'echo behind' > "$S/conversations/sh-1/queue"`)
	w.kill()
	w.sh(`shim=$(ps -o ppid= -p $(cat pid)); kill -KILL $shim $(cat pid)`)
	w.start()
	w.want(`cat "$J"/job-1/wait "$J"/job-2/wait "$J"/job-3/wait; cat "$J/job-3/state"`,
		"interrupted\ncompleted\ninterrupted\ninterrupted shop/job-1, which it waited for, was interrupted; resume that first\n")
}
