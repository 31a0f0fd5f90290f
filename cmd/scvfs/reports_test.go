package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// delegate starts job-1, a script that starts job-2 through the mount, then
// does the rest, and waits for the file go before it ends. It begins once the
// daemon has its run in its tables, which is when it is known for an agent.
func (w *world) delegate(child, rest string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.place, "child"), []byte(child), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.sh(`{ echo "export S='$S' J='$J'"; cat <<'X'
until [ -e begin ]; do sleep 0.02; done
cat child > "$S/start"
` + rest + `
until [ -e go ]; do sleep 0.02; done
X
} > "$S/start"
until grep -q working "$J/job-1/state"; do sleep 0.02; done; touch begin
until [ -e "$J/job-2" ]; do sleep 0.02; done`)
	w.want(`cat "$J/job-2/started_by" "$J/job-1/started_by"`, "model\nowner\n")
}

// report waits for job-3 and returns its prompt.
func (w *world) report() string {
	w.t.Helper()
	w.want(`until [ -e "$J/job-3" ]; do sleep 0.02; done; cat "$J/job-3/wait" "$J/job-3/started_by" "$J/job-3/task"; readlink "$J/job-3/conversation"`,
		"completed\nmodel\nA background job that you started has ended: job-2.\n../../conversations/sh-1\n")
	return w.sh(`cat "$J/job-3/prompt"`)
}

// settled checks that nothing more comes of job-2: its record says that it is
// reported, which no second turn can follow.
func (w *world) settled(jobs string) {
	w.t.Helper()
	w.want(`grep -c '"reported": true' "$J/job-2/record"; ls "$J" | wc -l`, "1\n"+jobs+"\n")
}

func TestAnAgentIsToldOfItsJobThatEndedUnseen(t *testing.T) {
	w := newWorld(t, "").session()
	lines := w.follow(`"$S/events"`)
	w.delegate("printf '\\140touch stolen\\140\\ndone\\n'; exit 3", `cat "$J/job-2/status" > status; cat "$J/job-2/log" > /dev/null`)
	w.want(`cat "$J/job-2/wait" "$J/job-2/status"; cat "$J/job-2/result" | tail -n 1`, "failed\nfailed\ndone\n") // the owner's reading does not count
	w.want(`ls "$J"; touch go; cat "$J/job-1/wait"`, "job-1\njob-2\ncompleted\n")
	prompt := w.report()
	for _, part := range []string{"# shop/job-2 (agent sh): failed\n", "# `touch stolen`\n# done\n# ```\n", "no instruction"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("the prompt lacks %q:\n%s", part, prompt)
		}
	}
	w.want(`[ ! -e stolen ] && cat "$J/job-3/result" && ls "$S/conversations/sh-1/jobs"`, "job-1\njob-3\n")
	w.settled("3")
	var got []string
	for range 7 {
		select {
		case line := <-lines:
			got = append(got, regexp.MustCompile(`,"task".*`).ReplaceAllString(line, ""))
		case <-time.After(patience):
			t.Fatalf("the session's events are %q", got)
		}
	}
	// Jobs 1 and 2 overlap, so what is said of them can come in any order.
	for _, want := range []string{
		`{"job":"job-1","tool":"agent_sh","status":"running"`,
		`{"job":"job-2","tool":"agent_sh","status":"running"`,
		`{"job":"job-2","tool":"agent_sh","status":"failed"`,
		`{"job":"job-1","tool":"agent_sh","status":"completed"`,
		`{"job":"job-3","tool":"agent_sh","status":"running"`,
		`{"origin":{"kind":"background","jobs":["job-2"]},"job":"job-3","conversation":"sh-1"}`,
		`{"job":"job-3","tool":"agent_sh","status":"completed"`,
	} {
		if i := slices.Index(got, want); i < 0 {
			t.Errorf("the session's events %q lack %s", got, want)
		} else {
			got = slices.Delete(got, i, i+1)
		}
	}
}

// follow reads a stream of the tree by cat, from before it returns on, until
// the test ends.
func (w *world) follow(name string) <-chan string {
	w.t.Helper()
	cmd := w.command("bash", `exec 3< `+name+`; echo open; exec cat <&3 3<&-`)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line := <-lines; line != "open" {
		w.t.Fatalf("%s cannot be opened", name)
	}
	return lines
}

func TestAnAgentIsNotToldOfWhatItRead(t *testing.T) {
	for name, read := range map[string]string{
		"wait and result":   `cat "$J/job-2/wait" > /dev/null; cat "$J/job-2/result" > read`,
		"wait":              `cat "$J/job-2/wait" > read`,
		"status, in a loop": `until grep -qv running "$J/job-2/status"; do sleep 0.02; done; touch read`,
		"result, by a tool": `(setsid sh -c 'until [ -s "$J/job-2/result" ]; do sleep 0.02; done; tail -n 1 "$J/job-2/result" > read')`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "").session()
			w.delegate("sleep 0.2; echo answer", read+`; touch all`)
			w.sh(`until [ -e all ]; do sleep 0.02; done; touch go; cat "$J/job-1/wait"`)
			w.settled("2")
		})
	}
}

func TestAnAgentThatReadTooEarlyIsTold(t *testing.T) {
	w := newWorld(t, "").session()
	w.delegate("until [ -e end ]; do sleep 0.02; done; echo answer", `cat "$J/job-2/status" "$J/job-2/result" > early; timeout 0.2 cat "$J/job-2/wait"; mv early read`)
	w.want(`until [ -e read ]; do sleep 0.02; done; cat read; touch go; cat "$J/job-1/wait"; ls "$J"; touch end; cat "$J/job-2/wait"`,
		"running\ncompleted\njob-1\njob-2\ncompleted\n")
	if prompt := w.report(); !strings.Contains(prompt, "# answer\n") {
		t.Errorf("the prompt is\n%s", prompt)
	}
	w.settled("3")
}

func TestAnAgentIsToldOnceWhenTheDaemonIsKilled(t *testing.T) {
	w := newWorld(t, "").session()
	w.delegate("echo answer", "")
	w.sh(`cat "$J/job-2/wait"`)
	w.kill()
	w.sh(`touch go`)
	w.start()
	w.report()
	w.kill()
	w.start()
	w.want(`cat "$J/job-1/status" "$J/job-3/status"`, "completed\ncompleted\n")
	w.settled("3")
}

func TestSeveralJobsAreToldOfTogether(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 8\n").session()
	w.delegate("echo 2", `for i in 3 4 5 6; do echo "echo $i" > "$S/start"; done`)
	w.sh(`for i in 2 3 4 5 6; do until [ -e "$J/job-$i" ]; do sleep 0.02; done; cat "$J/job-$i/wait"; done; touch go`)
	w.want(`for i in 7 8; do until [ -e "$J/job-$i" ]; do sleep 0.02; done; cat "$J/job-$i/wait"; sed -n '/"origin"/,/}/p' "$J/job-$i/record" | grep -o 'job-[0-9]*'; done | sort; ls "$J" | wc -l`,
		"completed\ncompleted\njob-2\njob-3\njob-4\njob-5\njob-6\n8\n")
	w.want(`sed -n '/"origin"/,/}/p' "$J/job-7/record" | grep -c 'job-[0-9]'`, "4\n")
}
