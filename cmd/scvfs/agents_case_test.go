package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// agentCases are run in this order, each with every agent that it is for.
var agentCases = []agentTest{
	{"tool", always, caseTool},
	{"say", turns, caseSay},
	{"log", always, caseLog},
	{"environment", turns, caseEnvironment},
	{"large", turns, caseLarge},
	{"badrequest", always, caseBadRequest},
	{"broken", turns | slow, caseBroken},
	{"refusal", turns | slow, caseRefusal},
	{"limit", turns | slow, caseLimit},
	{"keyrefused", turns, caseKeyRefused},
	{"signedout", turns, caseSignedOut},
	{"model", turns, caseUnknownModel},
	{"continue", always, caseContinue},
	{"cancel", always, caseCancel},
	{"timeout", turns | slow, caseTimeout},
	{"killed", always, caseKilled},
	{"restart", always, caseRestart},
	{"worktree", turns, caseWorktree},
	{"attach", only, caseAttach},
	{"takeover", only, caseTakeover},
	{"allowed", asks, caseAllowed},
	{"denied", asks, caseDenied},
	{"both", asks, caseBoth},
	{"unwatched", asks, caseUnwatched},
	{"deadline", asks, caseDeadline},
	{"withdrawn", asks, caseWithdrawn},
	{"outage", asks, caseOutage},
	{"turns", asks, caseTurns},
	{"steer", asks, caseSteer},
	{"question", asks, caseQuestion},
}

type agentTest struct {
	name string
	kind kind
	run  func(*agentCase)
}

// kind tells which agents a case is for, and when it is run.
type kind int

const (
	always kind = 0
	turns  kind = 1 << iota // over a transport that relays only when all is to be run
	only                    // one process a turn only
	asks                    // over a transport that relays only
	slow                    // waits for an agent's own retries, or for a time limit
)

// wanted tells whether a case is run with a client.
func (c *agentTest) wanted(a *client) bool {
	all, quick := os.Getenv("SCVFS_AGENTS_ALL") != "", os.Getenv("SCVFS_AGENTS_QUICK") != ""
	if c.kind&slow != 0 && quick {
		return false
	}
	if a.served == nil {
		return c.kind&asks == 0
	}
	return c.kind&only == 0 && (c.kind&turns == 0 || all)
}

func caseTool(a *agentCase) {
	job := a.start(a.script("THINK: I look first.", "RUN: printf changed > made.txt; echo told-by-the-tool", "SAY: I changed it."))
	if got := a.ended(job, "completed"); got != "I changed it." {
		a.t.Errorf("the result is %q", got)
	}
	if made, err := os.ReadFile(filepath.Join(a.dir, "made.txt")); string(made) != "changed" {
		a.t.Errorf("the file holds %q, %v", made, err)
	}
	exit := "exit 0\n"
	if a.client.kept() {
		exit = "server goes on\n"
	}
	a.says(a.read(job, "exit"), exit)
	a.says(a.read(job, "prompt"), a.mark())
	if usage := a.read(job, "usage"); !regexp.MustCompile(`^input_tokens=[1-9]\d* output_tokens=[1-9]`).MatchString(usage) {
		a.t.Errorf("the usage is %q", usage)
	}
	asked := a.model.requests(a.t, a.mark(), false)
	if !slices.ContainsFunc(asked, func(q modelRequest) bool { return strings.Contains(strings.Join(q.Results, "\n"), "told-by-the-tool") }) {
		a.t.Error("the model never got what the tool said")
	}
}

func caseSay(a *agentCase) {
	job := a.call(a.script(`SAY: One line,\nand “another”.`), nil)
	if got := a.ended(job, "completed"); got != "One line,\nand “another”." {
		a.t.Errorf("the result is %q", got)
	}
	a.says(a.read(job, "log"), "\nOne line,\nand “another”.\n")
	a.says(a.read(job, "state"), "completed")
}

// The log names what was done, and holds neither what tools said nor secrets.
func caseLog(a *agentCase) {
	job := a.call(a.script(
		"SAY: I begin.",
		"RUN: echo said-by-a-tool | tr a-z A-Z",
		"RUN: API_TOKEN=hunter2hunter2 sh -c 'exit 3'",
		"WRITE: notes.txt written-into-a-file",
		"SAY: All done.",
	), a.client.patching)
	a.ended(job, "completed")
	log := a.read(job, "log")
	for _, line := range []string{
		`-- run started: ` + a.client.name + ` in .*`,
		`turn 1 \(job-1\): Task ` + a.mark() + `\.`,
		`I begin\.`,
		`\$ echo said-by-a-tool \| tr a-z A-Z`,
		`\$ API_TOKEN=\*\*\* sh -c 'exit 3'`,
		`tool: (edit|write) (log/)?notes\.txt`,
		`All done\.`,
		`turn 1 ended: completed`,
		`-- run ended: completed: exit 0`,
	} {
		if a.client.kept() && strings.HasPrefix(line, "-- run ended") {
			continue // it goes on
		}
		if n := len(regexp.MustCompile(`(?m)^`+line+`$`).FindAllString(log, -1)); n != 1 {
			a.t.Errorf("%d lines of the log are %s", n, line)
		}
	}
	// Gemini does not say how its shell ended.
	if a.client.name != "gemini" {
		a.says(log, "\ntool failed: exit 3: API_TOKEN=*** sh -c 'exit 3'\n")
	}
	for _, file := range []string{"log", "events"} {
		for _, never := range []string{"SAID-BY-A-TOOL", "hunter2", "written-into-a-file"} {
			if strings.Contains(a.read(job, file), never) {
				a.t.Errorf("%s shows %s", file, never)
			}
		}
	}
	if a.t.Failed() {
		a.t.Logf("the log:\n%s", log)
	}
}

// An agent gets its own key and nobody else's.
func caseEnvironment(a *agentCase) {
	a.ended(a.start(a.script("RUN: env > env.txt", "SAY: Done.")), "completed")
	got, err := os.ReadFile(filepath.Join(a.dir, "env.txt"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.says(string(got), "SCV_RUN="+a.client.name+"-", "SCV_DEPTH=1", "TMPDIR="+a.state)
	for _, line := range strings.Split(string(got), "\n") {
		name, value, _ := strings.Cut(line, "=")
		own := map[string]string{"OPENAI_API_KEY": "codex", "ANTHROPIC_API_KEY": "claude", "GEMINI_API_KEY": "gemini"}[name]
		if strings.HasPrefix(value, "fake-") && own != a.client.name {
			a.t.Errorf("it got %s", name)
		}
	}
}

func caseLarge(a *agentCase) {
	var b strings.Builder
	fmt.Fprintf(&b, "-n --help \"quoted\" 'once' `twice` $HOME \\n %%s\n\n@%s /clear # é “…”\n", a.mark())
	for i := 0; b.Len() < 1<<20-200; i++ {
		fmt.Fprintf(&b, "- line %d: \"a\" 'b' \\ $(c) `d`\t<e> &amp; {f}\n", i)
	}
	b.WriteString("SAY: It all came.\n")
	b.WriteString(strings.Repeat("x", 1<<20-b.Len()))
	prompt := b.String()
	job := a.start(prompt)
	if got := a.ended(job, "completed"); got != "It all came." {
		a.t.Errorf("the result is %q", got)
	}
	if a.read(job, "prompt") != prompt {
		a.t.Error("the file prompt is not what was written")
	}
	for _, q := range a.model.requests(a.t, a.mark(), true) {
		if slices.ContainsFunc(q.texts(), func(s string) bool { return strings.Contains(s, prompt) }) {
			return
		}
	}
	a.t.Error("no request held the prompt byte for byte")
}

func caseBadRequest(a *agentCase) {
	job := a.start(a.script("FAIL: 400 the request is odd"))
	a.says(a.ended(job, "failed"), a.client.name+"'s model service refused the request", "the request is odd")
}

func caseBroken(a *agentCase) {
	job := a.start(a.script("FAIL: 500 the server is down"))
	a.says(a.ended(job, "failed"), a.client.name+"'s model service failed", a.client.brokenSaid, "try again")
}

func caseRefusal(a *agentCase) {
	job := a.start(a.script("REFUSE: I will not do that."))
	a.ended(job, "declined")
	a.says(a.read(job, "state"), "declined "+a.client.name+"'s model", "word the prompt differently")
}

func caseLimit(a *agentCase) {
	job := a.start(a.script("FAIL: 429 " + a.client.limitTold))
	a.says(a.ended(job, "failed"), a.client.name+" reached a rate or usage limit", a.client.limitSaid)
}

func caseKeyRefused(a *agentCase) {
	job := a.start(a.script("FAIL: 401 the key was refused"))
	a.says(a.ended(job, "failed"), a.client.name+" is not signed in, or its key was refused", a.client.signin)
}

// signedout: an agent of the same kind that gets no key.
func caseSignedOut(a *agentCase) {
	job := a.call(a.script("SAY: It should not come to this."), map[string]any{"agent": a.client.name + "out"})
	a.says(a.ended(job, "failed"), a.client.name+"out is not signed in, or its key was refused", a.client.signin)
	if asked := a.model.requests(a.t, a.mark(), false); len(asked) > 0 {
		a.t.Errorf("the model was asked %d times", len(asked))
	}
}

func caseUnknownModel(a *agentCase) {
	job := a.call(a.script("FAIL: 404 The model no-such-model does not exist"), map[string]any{"model": a.client.otherModel})
	a.says(a.ended(job, "failed"), a.client.name+" does not know the model, or may not use it", "no-such-model")
}

// continue: two prompts wait behind the first turn, and one comes after all.
func caseContinue(a *agentCase) {
	first := a.start(a.script("SLEEP: 1", "SAY: The first answer."))
	conversation := "conversations/" + a.client.name + "-1/"
	second := a.send(conversation+"queue", "SAY: The second answer.")
	third := a.send("jobs/"+filepath.Base(second)+"/reply", "HISTORY")
	for job, want := range map[string]string{first: "The first answer.", second: "The second answer."} {
		if got := a.ended(job, "completed"); got != want {
			a.t.Errorf("the result is %q, not %q", got, want)
		}
	}
	a.says(a.ended(third, "completed"), "history: 3 user prompts", "1. Task "+a.mark(), "2. SAY: The second answer.", "3. HISTORY")
	fourth := a.send(conversation+"queue", "HISTORY")
	a.says(a.ended(fourth, "completed"), "history: 4 user prompts", "1. Task "+a.mark())
	a.want(fmt.Sprintf(`cd "$M/sessions/%s/%s" && ls jobs && cat cwd`, a.name, conversation), "job-1\njob-2\njob-3\njob-4\n"+a.dir+"\n")
	if usage := a.read(fourth, "usage"); !regexp.MustCompile(`^input_tokens=[1-9]`).MatchString(usage) {
		a.t.Errorf("the usage is %q", usage)
	}
}

// lasting is a tool that does not end the first time it is called: a process
// in the tool's group, and one in a session of its own. The second step is for
// codex, whose tools go on in the background after ten seconds. Both end at
// once when they are called again: gemini sends a prompt that was cut off and
// the one after it in one message, which the model server takes for the first.
const lasting = `RUN: [ -e outer ] && touch again && exit; bash -c 'echo $$ > inner; exec tail -f /dev/null' & setsid bash -c 'echo $$ > outer; exec tail -f /dev/null' & wait
RUN: [ -e again ] || exec tail -f inner
SAY: It should not come to this.`

// gone fails when a process whose pid a file names is alive.
func (a *agentCase) gone(files ...string) {
	a.t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(a.dir, file))
		if err != nil {
			a.t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || pid < 2 {
			a.t.Fatalf("%s holds %q", file, text)
		}
		// One whose parent was killed may be dead and not waited for yet.
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(args) > 0 {
			a.t.Errorf("the tool's process %s is alive: %d", file, pid)
		}
	}
}

func caseCancel(a *agentCase) {
	job := a.start(a.script(lasting))
	a.until("inner", "outer")
	a.sh(fmt.Sprintf(`echo cancel > %q`, job+"/ctl"))
	a.ended(job, "cancelled")
	a.gone("inner", "outer")
	a.onlyDaemon()
}

func caseTimeout(a *agentCase) {
	job := a.call(a.script(lasting), map[string]any{"timeout_seconds": a.client.limit})
	a.ended(job, "timeout")
	a.says(a.read(job, "exit"), fmt.Sprintf("timeout %ds\n", a.client.limit))
	a.gone("inner", "outer")
	a.onlyDaemon()
}

// killed: the shim and the agent die in mid-turn; the resumed job goes on
// with the agent's own session.
func caseKilled(a *agentCase) {
	job := a.start(a.script(lasting))
	a.until("inner", "outer")
	a.sh(fmt.Sprintf(`agent=$(cat %q); kill -KILL $(ps -o ppid= -p "$agent") "$agent"`, job+"/run/pid"))
	a.ended(job, "interrupted")
	a.gone("inner", "outer")
	a.sh(fmt.Sprintf(`echo resume > %q`, job+"/ctl"))
	next := filepath.Join(filepath.Dir(job), "job-2")
	a.ended(next, "completed")
	both := func(q modelRequest) bool {
		text := strings.Join(q.texts(), "\n")
		return strings.Contains(text, "Task "+a.mark()) && strings.Contains(text, "Your previous attempt was cut off")
	}
	if !slices.ContainsFunc(a.model.requests(a.t, a.mark(), true), both) {
		a.t.Error("no request held the first prompt and the note")
	}
	a.want(fmt.Sprintf(`readlink %q`, next+"/resumed-from"), "../../../killed/jobs/job-1\n")
}

// restart: the daemon is killed with two turns at work. One ends while there
// is no daemon, the other under the next one.
func caseRestart(a *agentCase) {
	var jobs []string
	for _, which := range []string{"one", "two"} {
		jobs = append(jobs, a.start(a.script("SAY: I wait.", fmt.Sprintf("RUN: echo $$ > %s; while [ ! -e go-%s ]; do sleep 0.1; done; echo ran >> ran-%s", which, which, which), "SAY: It was "+which+".")))
	}
	a.until("one", "two")
	agent := strings.TrimSpace(a.read(jobs[0], "run/pid"))
	run := filepath.Base(strings.TrimSpace(a.sh(fmt.Sprintf("readlink %q/run", jobs[0]))))
	a.kill()
	ended := fmt.Sprintf("! kill -0 %s 2>/dev/null", agent)
	if a.client.served != nil { // it waits for what comes next
		ended = fmt.Sprintf("grep -q 'It was one.' %q/runs/%s/stdout", a.state, run)
	}
	a.sh(fmt.Sprintf(`touch %q/go-one; until %s; do sleep 0.05; done`, a.dir, ended))
	a.world.start()
	a.sh(fmt.Sprintf(`touch %q/go-two`, a.dir))
	for i, which := range []string{"one", "two"} {
		if got := a.ended(jobs[i], "completed"); got != "It was "+which+"." {
			a.t.Errorf("the result is %q", got)
		}
		log := a.read(jobs[i], "log")
		for _, once := range []string{"\nI wait.\n", "\n$ echo $$ > " + which, "\nIt was " + which + ".\n", "\nturn 1 ended: completed\n"} {
			if n := strings.Count(log, once); n != 1 {
				a.t.Errorf("the log has %q %d times:\n%s", once, n, log)
			}
		}
		a.want(fmt.Sprintf(`cat %q/ran-%s`, a.dir, which), "ran\n")
	}
}

func caseWorktree(a *agentCase) {
	a.sh(fmt.Sprintf(`cd %q && git init -q . && git config user.name t && git config user.email t@example.org && echo one > file && git add file && git commit -qm first`, a.dir))
	job := a.call(a.script("RUN: printf 'changed\\n' > file; pwd > where", "SAY: Done."), map[string]any{"worktree": true})
	a.ended(job, "completed")
	if text, err := os.ReadFile(filepath.Join(a.dir, "file")); string(text) != "one\n" {
		a.t.Errorf("the checkout's own file holds %q, %v", text, err)
	}
	a.says(a.read(job, "diff"), "-one", "+changed", "+++ b/where")
	tree := strings.TrimSpace(a.read(job, "worktree/path"))
	if where, err := os.ReadFile(filepath.Join(tree, "where")); strings.TrimSpace(string(where)) != tree {
		a.t.Errorf("it worked in %q, not in %s: %v", where, tree, err)
	}
	next := a.send("jobs/"+filepath.Base(job)+"/reply", a.script("RUN: cp file again", "SAY: Done again."))
	a.ended(next, "completed")
	if text, err := os.ReadFile(filepath.Join(tree, "again")); string(text) != "changed\n" {
		a.t.Errorf("the follow-up left %q, %v", text, err)
	}
}
