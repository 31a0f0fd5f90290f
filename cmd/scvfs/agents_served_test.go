package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// watch has a process watch for requests, until stop is called.
func (a *agentCase) watch() (stop func()) {
	a.t.Helper()
	stream, err := os.Open(filepath.Join(a.mount, "approvals", "watch"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer stream.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.Stdin = stream
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	var once sync.Once
	stop = func() { once.Do(func() { cmd.Process.Kill(); cmd.Wait() }) }
	a.t.Cleanup(stop)
	return stop
}

// ask starts a job of the agent that asks, whose model runs a command that has
// to be allowed first.
func (a *agentCase) ask(command string, after ...string) string {
	a.t.Helper()
	return a.send("start", "#!scv agent="+a.client.name+asking+"\n"+a.script(append([]string{a.client.served.run + ": " + command}, after...)...))
}

// asked waits for the request of a job, and returns its number.
func (a *agentCase) asked(job string) string {
	a.t.Helper()
	out := a.sh(fmt.Sprintf(`cd %q; until grep '^[0-9]' approve; do if [ -s ended ]; then cat state result log; exit 1; fi; sleep 0.05; done`, job))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 1 {
		a.t.Fatalf("%d requests wait: %q", len(lines), out)
	}
	number, _, _ := strings.Cut(lines[0], " ")
	return number
}

// answer answers a job's request.
func (a *agentCase) answer(job, text string) {
	a.t.Helper()
	a.sh(fmt.Sprintf(`echo %q > %q/approve || { tail -n 1 %[2]q/approve; exit 1; }`, text, job))
}

// holds tells what a file of the workspace holds; empty for none.
func (a *agentCase) holds(file string) string {
	text, _ := os.ReadFile(filepath.Join(a.dir, file)) // none is empty
	return string(text)
}

// once fails unless each request to the model held each prompt of the case but
// once: nothing was sent twice.
func (a *agentCase) once(prompts ...string) {
	a.t.Helper()
	asked := a.model.requests(a.t, a.mark(), false)
	if len(asked) == 0 {
		a.t.Error("the model was not asked")
	}
	for _, q := range asked {
		for _, prompt := range append(prompts, "Task "+a.mark()) {
			if n := strings.Count(strings.Join(q.Users, "\n"), prompt); n > 1 {
				a.t.Errorf("request %d holds %q %d times: %q", q.N, prompt, n, q.Users)
			}
		}
	}
}

// release ends what the case's conversations still have running.
func (a *agentCase) release() {
	a.t.Helper()
	a.sh(fmt.Sprintf(`cd "$M/sessions/%s/conversations"; for c in *; do [ ! -e "$c" ] || echo release > "$c/ctl" || { tail -n 1 "$c/ctl"; exit 1; }; done
cd "$M/runs"; for r in *; do [ "$(cat "$r/session" 2>&1)" != %[1]s ] || until [ ! -s "$r/pid" ]; do sleep 0.05; done; done`, a.name))
}

func caseAllowed(a *agentCase) {
	a.watch()
	job := a.ask("printf changed > made.txt; echo told-by-the-tool", "SAY: I changed it.")
	number := a.asked(job)
	a.says(a.read(job, "state"), "awaiting_input approval "+number+": ", "printf changed > made.txt")
	a.says(a.sh(`cat "$M/approvals/`+number+`/summary"`), a.client.name+asking+"-1: ", "printf changed > made.txt", a.name+"/job-1")
	if made := a.holds("made.txt"); made != "" {
		a.t.Errorf("it ran unasked: %q", made)
	}
	a.answer(job, "yes")
	if got := a.ended(job, "completed"); got != "I changed it." {
		a.t.Errorf("the result is %q", got)
	}
	if made := a.holds("made.txt"); made != "changed" {
		a.t.Errorf("the file holds %q", made)
	}
	for _, line := range []string{"approval " + number + ` asked \(.*`, "approval " + number + ` approved by owner .*`} {
		if n := len(regexp.MustCompile(`(?m)^`+line+`$`).FindAllString(a.read(job, "log"), -1)); n != 1 {
			a.t.Errorf("%d lines of the log are %s:\n%s", n, line, a.read(job, "log"))
		}
	}
	a.refused(fmt.Sprintf(`echo no > "$M/approvals/%s/answer"`, number), "already in progress")
	a.refused(fmt.Sprintf(`echo no > %q/approve`, job), "already in progress")
	a.once()
}

func caseDenied(a *agentCase) {
	a.watch()
	job := a.ask("touch made.txt", "SAY: Then not.")
	number := a.asked(job)
	a.answer(job, "no "+number+" leave-it-alone")
	if a.client.served.goesOn {
		if got := a.ended(job, "completed"); got != "Then not." {
			a.t.Errorf("the result is %q", got)
		}
	} else {
		a.says(a.ended(job, "failed"), "denied")
	}
	if exists(filepath.Join(a.dir, "made.txt")) {
		a.t.Error("it ran what was denied")
	}
	a.says(a.read(job, "log"), "\napproval "+number+" denied by owner")
	a.once()
}

// both: the requests of two jobs wait at once, each with its number.
func caseBoth(a *agentCase) {
	a.watch()
	one := a.ask("touch one", "SAY: It was one.")
	two := a.ask("touch two", "SAY: It was two.")
	first, second := a.asked(one), a.asked(two)
	approve := fmt.Sprintf(`"$M/sessions/%s/approve"`, a.name)
	a.refused(`echo yes > `+approve, "Invalid argument")
	a.want(`grep -c '^[0-9]' `+approve, "2\n")
	a.sh(`echo yes ` + second + ` > ` + approve)
	if got := a.ended(two, "completed"); got != "It was two." {
		a.t.Errorf("the result is %q", got)
	}
	if exists(filepath.Join(a.dir, "one")) || !exists(filepath.Join(a.dir, "two")) {
		a.t.Error("the answer went to the wrong one")
	}
	// Two at once: one of them decides, the other learns that.
	a.want(fmt.Sprintf(`cd "$M/approvals/%s"; (echo yes > answer) 2>/dev/null & one=$!; (echo yes > answer) 2>/dev/null & two=$!; n=0; wait $one || n=$((n+1)); wait $two || n=$((n+1)); echo $n`, first), "1\n")
	if got := a.ended(one, "completed"); got != "It was one." {
		a.t.Errorf("the result is %q", got)
	}
}

// unwatched: nobody watches, so the gate denies at once what is no reading.
func caseUnwatched(a *agentCase) {
	a.sh(`sleep 1.1`) // limits.watch_ttl
	job := a.ask("touch made.txt", "SAY: Then not.")
	if a.client.served.goesOn {
		a.ended(job, "completed")
	} else {
		a.ended(job, "failed")
	}
	if exists(filepath.Join(a.dir, "made.txt")) {
		a.t.Error("it ran what nobody allowed")
	}
	log := a.read(job, "log")
	if n := len(regexp.MustCompile(`(?m)^approval \d+ denied by .*nobody watches`).FindAllString(log, -1)); n != 1 {
		a.t.Errorf("the log says:\n%s", log)
	}
}

// deadline: nobody answers in time.
func caseDeadline(a *agentCase) {
	config, err := os.ReadFile(a.config)
	if err != nil {
		a.t.Fatal(err)
	}
	with := func(text string) {
		a.stop()
		if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
			a.t.Fatal(err)
		}
		a.world.start()
	}
	with(strings.Replace(string(config), "[limits]\n", "[limits]\nattended_wait = \"1s\"\n", 1))
	defer with(string(config))
	a.watch()
	job := a.ask("touch made.txt", "SAY: Then not.")
	a.says(a.read(job, "wait"), "ed\n")
	if exists(filepath.Join(a.dir, "made.txt")) {
		a.t.Error("it ran what nobody allowed")
	}
	found := regexp.MustCompile(`(?m)^approval (\d+) denied by (.*)$`).FindStringSubmatch(a.read(job, "log"))
	if found == nil {
		a.t.Fatalf("the log says:\n%s", a.read(job, "log"))
	}
	a.says(found[2], "gate")
	a.says(a.sh(`cat "$M/approvals/`+found[1]+`/answer"`), "denied")
	a.release()
}

// withdrawn: a cancel takes the request back.
func caseWithdrawn(a *agentCase) {
	a.watch()
	job := a.ask("touch made.txt", "SAY: It should not come to this.")
	number := a.asked(job)
	a.sh(fmt.Sprintf(`echo cancel > %q/ctl`, job))
	a.ended(job, "cancelled")
	a.onlyDaemon()
	a.want(`ls "$M/approvals"`, "")
	a.says(a.sh(`cat "$M/approvals/`+number+`/answer"`), "withdrawn")
	a.refused(`echo yes > "$M/approvals/`+number+`/answer"`, "already in progress")
	if exists(filepath.Join(a.dir, "made.txt")) {
		a.t.Error("it ran what nobody allowed")
	}
}

// outage: the daemon is killed with a request waiting, and the next one has it
// answered.
func caseOutage(a *agentCase) {
	stop := a.watch()
	job := a.ask("echo ran >> made.txt", "SAY: I waited.")
	number := a.asked(job)
	a.kill()
	stop()
	a.world.start()
	a.says(a.read(job, "state"), "awaiting_input approval "+number+": ")
	if again := a.asked(job); again != number {
		a.t.Errorf("it is number %s now, and was %s", again, number)
	}
	a.answer(job, "yes")
	if got := a.ended(job, "completed"); got != "I waited." {
		a.t.Errorf("the result is %q", got)
	}
	if made := a.holds("made.txt"); made != "ran\n" {
		a.t.Errorf("the file holds %q", made)
	}
	log := a.read(job, "log")
	for _, once := range []string{"\nturn 1 (job-1): ", "\napproval " + number + " asked", "\napproval " + number + " approved", "\nI waited.\n"} {
		if n := strings.Count(log, once); n != 1 {
			a.t.Errorf("the log has %q %d times:\n%s", once, n, log)
		}
	}
	a.once()
}

// turns: three turns of a conversation, each under another daemon.
func caseTurns(a *agentCase) {
	conversation := "conversations/" + a.client.name + "-1/"
	jobs := []string{a.start(a.script("SAY: The first answer."))}
	a.ended(jobs[0], "completed")
	for _, prompt := range []string{"SAY: The second answer.", "HISTORY"} {
		a.kill()
		a.world.start()
		jobs = append(jobs, a.send(conversation+"queue", prompt))
		a.ended(jobs[len(jobs)-1], "completed")
	}
	a.says(a.read(jobs[2], "result"), "history: 3 user prompts", "2. SAY: The second answer.")
	runs := map[string]bool{}
	for _, job := range jobs {
		runs[a.sh(fmt.Sprintf("readlink %q/run", job))] = true
	}
	if want := map[bool]int{true: 1, false: 3}[a.client.served.kept]; len(runs) != want {
		a.t.Errorf("%d processes served it, not %d", len(runs), want)
	}
	a.once("SAY: The second answer.")
}

// steer: a prompt goes into the turn that runs.
func caseSteer(a *agentCase) {
	conversation := fmt.Sprintf(`"$M/sessions/%s/conversations/%s-1"`, a.name, a.client.name)
	if !a.client.served.steers {
		job := a.start(a.script("RUN: echo $$ > at; until [ -e go ]; do sleep 0.1; done", "SAY: Done."))
		a.until("at")
		a.says(a.sh(`cd `+conversation+`; echo "Mind the gap." > steer; tail -n 1 steer`), "# last: steer: refused: "+a.client.name+" takes no text during a turn")
		a.sh(fmt.Sprintf(`touch %q/go`, a.dir))
		a.ended(job, "completed")
		return
	}
	job := a.start(a.script("RUN: echo $$ > at; until [ -e go ]; do sleep 0.1; done", "SAY: Done."))
	a.until("at")
	a.sh(fmt.Sprintf(`until grep -q '^\$ echo' %q/log; do sleep 0.05; done`, job))
	a.want(`cd `+conversation+`; echo "Mind the gap." > steer || tail -n 1 steer; cat steer; ls jobs`, a.name+"/job-1\njob-1\n")
	a.sh(fmt.Sprintf(`touch %q/go`, a.dir))
	a.ended(job, "completed")
	a.says(a.read(job, "log"), "\nsteered by owner: Mind the gap.\n")
	told := func(q modelRequest) bool {
		return slices.ContainsFunc(q.texts(), func(s string) bool { return strings.Contains(s, "Mind the gap.") })
	}
	if !slices.ContainsFunc(a.model.requests(a.t, a.mark(), true), told) {
		a.t.Error("the model was not told")
	}
}

// question: the agent asks which, and gets an option.
func caseQuestion(a *agentCase) {
	if !a.client.served.questions {
		a.t.Skip(a.client.label + " asks no questions")
	}
	a.watch()
	job := a.call(a.script("ASK: Which colour? | Red | Blue", "RESULT"), map[string]any{"agent": a.client.name + asking})
	number := a.asked(job)
	a.says(a.read(job, "state"), "awaiting_input approval "+number+": ", "Which colour?")
	a.says(a.sh(`cat "$M/approvals/`+number+`/answer"`), "1 Red", "2 Blue")
	a.answer(job, "2")
	a.says(a.ended(job, "completed"), "Blue")
}
