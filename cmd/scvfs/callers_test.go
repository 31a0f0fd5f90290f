package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// besieged is a world with jobs and sessions of all kinds, in which job-4 of
// session shop does what a test tells it (job.do) for as long as the test is.
func besieged(t *testing.T, config string) *world {
	t.Helper()
	t.Setenv("SHELL", "/bin/cat") // which shows nothing by itself
	w := newWorld(t, config).session().repository()
	w.sh(`echo "other \"$PWD\" Another" > "$M/sessions/new"; echo "old \"$PWD\"" > "$M/sessions/new"
for s in other old; do echo 'echo secret' > "$M/sessions/$s/start"; cat "$M/sessions/$s/jobs/job-1/wait"; done
rmdir "$M/sessions/old"; echo 'exec sleep 1000' > "$M/sessions/other/start"
echo 'echo one' > "$S/start"; cat "$J/job-1/wait"; echo 'exit 3' > "$S/start"; cat "$J/job-2/wait"
printf '#!scv worktree\nexec sleep 1000' > "$S/start"; until [ -e "$J/job-3/worktree/path" ]; do sleep 0.02; done
echo attach > "$S/conversations/sh-1/ctl"; until [ -e "$S/conversations/sh-1/takeover/input" ]; do sleep 0.02; done
echo 'touch ready; until [ -e end ]; do if [ -e do ]; then mv do doing; sh doing > said 2>&1; mv doing done; fi; sleep 0.02; done' > "$S/start"
until [ -e ready ] && [ -n "$(cat "$J/job-3/run/pid")" ] && [ "$(cat "$J"/job-[34]/state)" = "working
working" ]; do sleep 0.02; done`)
	t.Cleanup(func() { w.write("end", "") })
	return w
}

// write puts a file into the workspace, whole.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.place, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

// agent has job-4 run a script, which finds the intruder in $I and the tree as
// world.command has it, and waits for its end.
func (w *world) agent(script string) string {
	w.t.Helper()
	w.tellAgent(script)
	w.sh(`until [ -e done ]; do sleep 0.02; done; rm done`)
	said, err := os.ReadFile(filepath.Join(w.place, "said"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(said)
}

// tellAgent has job-4 run a script.
func (w *world) tellAgent(script string) {
	w.t.Helper()
	w.write("do", fmt.Sprintf("M=%s; S=$M/sessions/shop; J=$S/jobs; I=%s\n%s\n", w.mount, intruderPath(w.t), script))
}

func intruderPath(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// unlisted are the names that listings do not show.
var unlisted = []string{"events", "wait", "watch", "changes"}

// targets is the whole tree as the owner sees it.
func (w *world) targets() (all []target) {
	w.t.Helper()
	add := func(path string, info fs.FileInfo) {
		t := target{Path: path, Dir: info.IsDir(), Link: info.Mode()&fs.ModeSymlink != 0, Acts: []string{"x"}}
		t.Write = info.Mode()&0o200 != 0 && !t.Link
		if t.Write && !t.Dir {
			t.Acts = acts(w.t, path)
		}
		all = append(all, t)
	}
	err := filepath.WalkDir(w.mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		add(path, info)
		for _, name := range unlisted {
			if hidden := filepath.Join(path, name); d.IsDir() {
				if info, err := os.Lstat(hidden); err == nil {
					add(hidden, info)
				}
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// acts are the texts that a file takes, as it says itself.
func acts(t testing.TB, path string) (acts []string) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return []string{"x"} // it is only written to
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(line, "# "))
		switch {
		case !strings.HasPrefix(line, "# ") || words[0] == "last:":
		case words[0] == "write" || words[0] == "ID":
			acts = append(acts, "evil /tmp Evil")
		default:
			acts = append(acts, words[0], words[0]+" shop", words[0]+" /tmp")
		}
	}
	if acts == nil {
		return []string{"sh", "yes"}
	}
	return acts
}

// dump is all that the owner reads in the tree, but what tells of the time and
// of refusals.
func (w *world) dump(targets []target) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, t := range targets {
		name := strings.TrimPrefix(t.Path, w.mount)
		if t.Link {
			to, err := os.Readlink(t.Path)
			all[name] = fmt.Sprint(to, err)
			continue
		}
		if t.Dir {
			entries, err := os.ReadDir(t.Path)
			all[name] = fmt.Sprint(entries, err)
			continue
		}
		if slices.Contains([]string{"/metrics", "/errors"}, name) || slices.Contains(unlisted, filepath.Base(name)) && !w.listed(t.Path) {
			continue
		}
		text, err := os.ReadFile(t.Path)
		if all[name] = fmt.Sprint(string(text), err); name == "/snapshot" {
			all[name] = timeless(w.t, text)
		}
	}
	return all
}

func (w *world) listed(path string) bool {
	entries, err := os.ReadDir(filepath.Dir(path))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(path) })
}

// timeless is a snapshot without when it was taken.
func timeless(t testing.TB, text []byte) string {
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "generated")
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tried waits for what an intruder says.
func (w *world) tried(file string) (all []attempt) {
	w.t.Helper()
	w.sh(`until [ -s ` + file + `.tried ]; do sleep 0.02; done; mv ` + file + `.tried got`)
	text, err := os.ReadFile(filepath.Join(w.place, "got"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// An agent tries everything on everything in the tree, in all ways to hide.
// Each is refused with the right words, nothing changes, and it reads nothing
// but what is its own session's or everybody's.
func TestAnAgentTriesEverythingAndGetsNowhere(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 20\ndelegation_depth = 0\n")
	targets := w.targets()
	w.writeJSON("targets", targets)
	before := w.dump(targets)
	for _, way := range []struct{ name, script string }{
		{"as it is", `"$I" intrude walk targets`},
		{"in a session of its own", `setsid "$I" intrude walk targets`},
		{"without parents", `sh -c '("$0" intrude walk targets &)' "$I"`},
		{"without an environment", `env -i "$I" intrude walk targets`},
		{"in all these ways", `env -i setsid sh -c '(setsid "$0" intrude walk targets < /dev/null > /dev/null 2>&1 &)' "$I"`},
		{"after a daemon was killed", ``},
	} {
		t.Run(strings.ReplaceAll(way.name, " ", "_"), func(t *testing.T) {
			defer func(outer testing.TB) { w.t = outer }(w.t)
			w.t = t
			if way.script == "" {
				// A terminal ends with its daemon.
				w.sh(`echo end > "$S/conversations/sh-1/takeover/ctl"; until ! [ -e "$S/conversations/sh-1/takeover" ]; do sleep 0.02; done`)
				targets = w.targets()
				w.writeJSON("targets", targets)
				before = w.dump(targets)
				w.restartUnderFire()
				w.same(before, w.dump(w.unwritten(targets)))
				before = w.dump(targets) // a new daemon knows of no earlier outcomes
				way.script = `env -i setsid sh -c '(setsid "$0" intrude walk targets < /dev/null > /dev/null 2>&1 &)' "$I"`
			}
			if said := w.agent(way.script); said != "" {
				t.Errorf("the intruder says %s", said)
			}
			w.judge(targets, w.tried("targets"))
			after := w.dump(targets)
			if len(before) != len(after) {
				t.Errorf("%d things were there, and now %d", len(before), len(after))
			}
			w.same(before, after)
		})
	}
}

// same checks that what is there now is what was there before.
func (w *world) same(before, after map[string]string) {
	w.t.Helper()
	for name := range after {
		if before[name] != after[name] {
			w.t.Errorf("%s was\n%s\nand is\n%s", name, before[name], after[name])
		}
	}
}

// unwritten are those targets that show no outcomes of writes.
func (w *world) unwritten(all []target) []target {
	return slices.DeleteFunc(slices.Clone(all), func(t target) bool { return t.Write && !t.Dir })
}

func (w *world) writeJSON(name string, v any) {
	w.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, string(text))
}

// restartUnderFire kills the daemon and starts it anew while the agent tries
// without a pause to be faster than its adoption.
func (w *world) restartUnderFire() {
	w.t.Helper()
	w.tellAgent(`until [ -e cease ]; do echo evil > "$S/agent"; echo 'label evil' > "$S/ctl"; echo shutdown | dd of="$M/ctl" conv=nocreat; mkdir "$M/sessions/evil"; done > /dev/null 2>&1`)
	for range 3 {
		w.sh(`until [ -e doing ]; do sleep 0.02; done; sleep 0.1`)
		w.kill()
		w.start()
	}
	w.sh(`touch cease; until [ -e done ]; do sleep 0.02; done; rm done; ls "$M/sessions" | tr '\n' ' ' | grep -qx 'new old other shop '`)
}

// judge checks what came of each attempt.
func (w *world) judge(targets []target, all []attempt) {
	w.t.Helper()
	if len(all) < 800 {
		w.t.Errorf("only %d attempts", len(all))
	}
	writable := map[string]bool{}
	for _, t := range targets {
		writable[t.Path] = t.Write
	}
	log := w.logged()
	for _, a := range all {
		name := strings.TrimPrefix(a.Path, w.mount)
		verb, _, _ := strings.Cut(a.What, " ")
		switch verb {
		case "read":
			want := syscall.EPERM
			if w.readable(name) {
				want = 0
			}
			if a.Errno != want {
				w.t.Errorf("reading %s: %v", name, a.Errno)
			}
		case "write", "mkdir":
			if a.Errno != syscall.EPERM && (writable[a.Path] || a.Errno != syscall.EACCES) {
				w.t.Errorf("%s of %s: %v", a.What, name, a.Errno)
			}
			if top := w.refusedAt(name); verb == "write" && writable[a.Path] && !strings.Contains(log, "msg=refused path="+top+" ") {
				w.t.Errorf("%s of %s is not in /errors", a.What, name)
			}
		default:
			if a.Errno == 0 {
				w.t.Errorf("%s of %s was let", a.What, name)
			}
		}
	}
}

// refusedAt is where a path is refused to the agent: at itself, or at the
// first directory that it may not look into.
func (w *world) refusedAt(name string) string {
	parts := strings.SplitN(strings.TrimPrefix(name, "/"), "/", 3)
	if len(parts) == 3 && parts[0] == "sessions" && parts[1] != "shop" {
		return "/sessions/" + parts[1]
	}
	return name
}

// readable tells whether the agent of job-4 may read a path.
func (w *world) readable(name string) bool {
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	switch parts[0] {
	case "README", "version", "ctl", "errors", "agents":
		return true
	case "sessions":
		return parts[1] == "shop" && filepath.Base(name) != "approve"
	case "runs", "worktrees":
		text, err := os.ReadFile(filepath.Join(w.mount, "runs", parts[1], "session"))
		return err == nil && string(text) == "shop\n"
	}
	return false
}

// What an agent has been handed by the owner, or by a process of his, is of no
// more use to it than what it opens itself.
func TestDescriptorsOfTheOwnerDoNotServeAgents(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 20\n")
	w.tellAgent(`env -i "$I" intrude take socket`)
	var conn *net.UnixConn
	for deadline := time.Now().Add(patience); conn == nil; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(w.place, "socket"), Net: "unix"})
		if err == nil {
			conn = c
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	shop, other := filepath.Join(w.mount, "sessions/shop"), filepath.Join(w.mount, "sessions/other")
	give := func(f *os.File, act string) attempt {
		t.Helper()
		if _, _, err := conn.WriteMsgUnix([]byte(act), unix.UnixRights(int(f.Fd())), nil); err != nil {
			t.Fatal(err)
		}
		var a attempt
		buf := make([]byte, 64<<10)
		n, err := conn.Read(buf)
		if err == nil {
			err = json.Unmarshal(buf[:n], &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	open := func(name string, flags int) *os.File {
		t.Helper()
		f, err := os.OpenFile(name, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, act := range map[string]string{
		w.mount + "/ctl": "shutdown\n", w.mount + "/sessions/new": "evil /tmp\n", shop + "/ctl": "label evil\n", shop + "/agent": "codex\n",
		shop + "/jobs/job-3/ctl": "cancel\n", shop + "/jobs/job-1/resume": "evil\n", shop + "/conversations/sh-1/queue": "evil\n",
		shop + "/start": "evil\n", other + "/start": "evil\n",
	} {
		f := open(name, os.O_RDWR)
		if a := give(f, act); a.Errno != syscall.EPERM {
			t.Errorf("%q to the owner's descriptor of %s: %v", act, name, a.Errno)
		}
		f.Close()
	}
	f := open(shop+"/start", os.O_RDWR)
	if _, err := f.WriteString("echo owner"); err != nil {
		t.Fatal(err)
	}
	if a := give(f, "; echo evil"); a.Errno != syscall.EPERM || a.Text != "" {
		t.Errorf("an agent went on with the owner's document: %+v", a)
	}
	w.want(`ls "$J" | wc -l`, "4\n") // it was not sent by the agent's read or close
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(`cat "$J/job-5/wait" "$J/job-5/result" "$J/job-5/started_by"; ls "$M/sessions"; cat "$S/label" "$S/agent" "$J/job-3/status"`,
		"completed\nowner\nowner\nnew\nold\nother\nshop\nsh\nrunning\n")
	dir := open(other+"/jobs", os.O_RDONLY)
	defer dir.Close()
	for _, path := range []string{"job-1/result", "../label", "."} {
		if a := give(dir, "open "+path); a.Errno != syscall.EPERM {
			t.Errorf("below the owner's directory %s: %v", path, a.Errno)
		}
	}
}

// A program that git runs is the daemon's own child. A repository's
// configuration, which an agent can write, must not make it the owner.
func TestProgramsThatGitRunsAreNotTheOwner(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 20\n")
	w.write("filter", fmt.Sprintf("#!/bin/sh\nif echo 'label evil' > %[1]s/sessions/shop/ctl; then echo did; else echo tried; fi 2> /dev/null >> %[2]s/filtered\n"+
		"(setsid sh -c \"$(cat %[2]s/later)\" > /dev/null 2>&1 &)\nexec cat\n", w.mount, w.place))
	w.write("later", fmt.Sprintf("for i in 1 2 3 4 5; do sleep 0.1; if echo 'label evil' > %[1]s/sessions/shop/ctl; then echo did; else echo tried later; fi >> %[2]s/filtered; done", w.mount, w.place))
	w.agent(`chmod +x filter; git config filter.evil.clean ./filter; echo '* filter=evil' > .gitattributes; echo changed > file`)
	w.want(`cat "$J/job-1/diff" > /dev/null; until [ "$(grep -c later filtered)" -ge 3 ]; do sleep 0.02; done; sort -u filtered; cat "$S/label"`, "tried\ntried later\n")
	w.sh(`grep -q 'a program that the daemon or an agent started' "$M/errors"; echo maintain > "$M/ctl"`)
}

// Whoever kills its shim is no less an agent for that, and ends with the rest,
// even if nothing tells any more what it was.
func TestKilledShimSetsNobodyFree(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 20\n")
	w.write("free", fmt.Sprintf("while :; do echo 'label evil' > %[1]s/sessions/shop/ctl; echo $$ > %[2]s/freed; done", w.mount, w.place))
	w.tellAgent(`(env -i setsid sh free < /dev/null > /dev/null 2>&1 &); until [ -s freed ]; do sleep 0.02; done; kill -KILL $(sed 's/.*) . \([0-9]*\).*/\1/' /proc/` + strings.TrimSpace(w.sh(`cat "$J/job-4/run/pid"`)) + `/stat)`)
	w.want(`cat "$J/job-4/wait" "$S/label"; kill -0 "$(cat freed)" 2>/dev/null || echo gone`, "interrupted\ngone\n")
}

func TestAnAgentDoesNotStartItsDaemon(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 20\n")
	w.tellAgent(fmt.Sprintf(`until [ -e killed ]; do sleep 0.02; done; env -i PATH="$PATH" setsid %s serve --mount %s --state %s --config %s; echo $?`, binary, w.mount, w.state, w.config))
	w.kill()
	w.sh(`touch killed; until [ -e done ]; do sleep 0.02; done; grep -q 'may not start the daemon' said; tail -n 1 said | grep -qx 1`)
	w.start()
	w.want(`cat "$J/job-4/status"`, "running\n")
}

// What an agent may do it does with the same commands as the owner, and is
// told why when it may not.
func TestAnAgentStartsAndDirectsJobsOfItsOwn(t *testing.T) {
	w := besieged(t, "[limits]\njobs = 4\n")
	is := func(script, want string) {
		t.Helper()
		if got := w.agent(script); got != want {
			t.Errorf("%s\n got %q\nwant %q", script, got, want)
		}
	}
	is(`echo 'echo "depth $SCV_DEPTH"' > "$S/start"; j=$(cat "$S/start"); echo "$j"; cat "$J/job-5/wait" "$J/job-5/result" "$J/job-5/started_by"`,
		"shop/job-5\ncompleted\ndepth 2\nmodel\n")
	w.want(`cat "$S/start"; grep -e '"parent"' -e '"depth"' "$J/job-5/record" | sed "s/$(basename "$(readlink "$J/job-4/run")")/RUN/"`,
		"shop/job-4\n  \"parent\": \"RUN\",\n  \"depth\": 1,\n")
	is(`echo 'echo again' > "$J/job-5/reply"; cat "$J/job-6/wait" "$J/job-6/started_by"; rmdir "$J/job-5" && echo dismiss > "$J/job-6/ctl"; ls "$J"`,
		"completed\nmodel\njob-1\njob-2\njob-3\njob-4\n")
	is(`echo "exec sleep 1000" > "$S/start"; until [ "$(cat "$J/job-7/state")" = working ]; do sleep 0.02; done; echo cancel > "$J/job-7/ctl"; cat "$J/job-7/wait" "$J/job-7/state"`,
		"cancelled\ncancelled by the agent of shop/job-4 (run "+filepath.Base(strings.TrimSpace(w.sh(`readlink "$J/job-4/run"`)))+")\n")
	// Jobs of jobs, until it is too deep.
	w.write("deep", `S=$1 J=$1/jobs
echo "depth $SCV_DEPTH"
if echo "sh deep $S" > "$S/start"; then j=$J/$(basename "$(cat "$S/start")"); cat "$j/wait" "$j/result"; else tail -n 1 "$S/start"; fi 2> /dev/null
`)
	is(`echo "sh deep $S" > "$S/start"; cat "$J/job-8/wait"; sed 's/(run .*)/(RUN)/' "$J/job-8/result"`,
		"completed\ndepth 2\ncompleted\ndepth 3\n# last: start: refused: the agent of shop/job-9 (RUN) is as many jobs below the owner as limits.delegation_depth allows, 2, so it starts none: do the work yourself\n")
	// No slot is left for it once it has as many jobs as there are.
	const full = "session shop runs 4 jobs and 0 wait; at most 4 (limits.jobs) run, and an agent's jobs do not wait: " +
		"wait until one has ended, or stop one of yours: echo cancel > sessions/shop/jobs/job-10/ctl\n"
	is(`for i in 1 2 3; do echo 'exec sleep 1000' > "$S/start" || tail -n 1 "$S/start"; done 2> /dev/null; tail -n 1 "$M/errors" | cut -d' ' -f3-`,
		"# last: start: refused: "+full+"/sessions/shop/start start: "+full)
	// What is another's, and what is the owner's, in the words that it gets.
	for script, words := range map[string]string{
		`echo cancel > "$J/job-3/ctl"; tail -n 1 "$J/job-3/ctl"`:         "# last: cancel: refused: the agent of shop/job-4 (run sh-",
		`echo cancel > "$J/job-4/ctl"; tail -n 1 "$J/job-4/ctl"`:         "did not start shop/job-4, and directs only jobs that it started: ask the owner",
		`echo shutdown > "$M/ctl"; tail -n 1 "$M/ctl"`:                   "# last: ctl: refused: this is for the owner alone, and not for the agent of shop/job-4",
		`echo 'echo x' > "$J/job-1/resume"; tail -n 1 "$J/job-1/resume"`: "# last: resume: refused: this is for the owner alone",
		`mkdir "$M/sessions/mine"; tail -n 1 "$M/errors"`:                "/sessions/mine this is for the owner alone",
		`ls "$M/sessions/other"; tail -n 1 "$M/errors"`:                  "/sessions/other not for the agent of shop/job-4",
	} {
		if got := w.agent(script); !strings.Contains(got, words) || !strings.Contains(got, "Operation not permitted") && !strings.Contains(got, "I/O error") {
			t.Errorf("%s\nsaid %q, not %q", script, got, words)
		}
	}
}
