package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tool is one row of the table of docs/tools.md, with the script that shows
// its outcome.
type tool struct {
	command, file, outcome string // as the document has them

	needs  string // programs that the row needs, beside a shell and coreutils
	script string
	want   string // all that it prints; the mount point reads $M
}

// restart stands in a script where the daemon is started anew.
const restart = "# the daemon is started anew"

// toolsPrelude is at the head of each row's script.
const toolsPrelude = `
said() { "$@" 2>&1 >/dev/null | sed 's/.*: //'; return ${PIPESTATUS[0]}; }       # why it failed, without the path
tree() { find "$M" -path "$M/active" -prune -o -printf '%P %y %m %l\n' | sort; cat "$S/label" "$J/job-1/result" "$J/job-1/prompt"; }
same() { local b; b=$(tree); "$@"; echo "exit $?"; [ "$b" = "$(tree)" ] && echo unchanged || echo CHANGED; }
last() { local a; a=$(cat "$S/start"); echo "$J/${a#*/}"; }                      # the directory of the job started last
ran() { cat "$(last)/wait" "$(last)/result"; }
count() { ls "$J" | wc -l; }
until_in() { until grep -qs -- "$1" "$2"; do sleep 0.02; done; }
`

// toolsWorld starts job-1, which has ended and changed a file, job-2, which
// has failed, and job-3, which says what is written to the fifo more.
const toolsWorld = `exec 2>&1; set -e
git init -q . && git config user.email a@example.org && git config user.name a && echo one > f && git add f && git commit -qm one
mkfifo more; mkdir "$S"
echo 'echo one; echo two; echo three; echo changed >> f' > "$S/start"
cat "$J/job-1/wait"
echo 'echo broken; exit 3' > "$S/start"
cat "$J/job-2/wait"
echo 'exec 3<>more; while read -r l <&3; do echo "$l"; done' > "$S/start"
echo ready > more
until grep -q ready "$J/job-3/log"; do sleep 0.02; done`

var tools = []tool{
	{
		"cat FILE", "jobs/JOB/status result log …", "the content, byte for byte, to its end", "",
		`cat "$J/job-1/status" "$J/job-1/result" "$J/job-2/exit"`, "completed\none\ntwo\nthree\nexit 3\n",
	},
	{
		"cat FILE", "jobs/JOB/wait", "waits for the job's end, then its status word", "",
		`echo 'echo x' > "$S/start"; cat "$(last)/wait"; cat "$J/job-2/wait"; timeout 0.2 cat "$J/job-3/wait"; echo "exit $?"`, "completed\nfailed\nexit 124\n",
	},
	{
		"cat FILE", "jobs/JOB/diff", "what changed in the workspace's git repository since the commit that it started from", "git",
		`grep '^[+-]' "$J/job-1/diff"; stat -c %s "$J/job-1/diff"`, "--- a/f\n+++ b/f\n+changed\n0\n",
	},
	{
		"head -n, head -c", "a log, a result", "the first lines or bytes", "",
		`head -n 1 "$J/job-1/log"; head -c 5 "$J/job-1/result"; head -n 1 "$J/job-3/log"`, "-- run started: sh in $D/shop\none\nt-- run started: sh in $D/shop\n",
	},
	{
		"tail -n, tail -c", "a log, a ctl, errors", "the last lines or bytes: a ctl's last line says how the last command went", "",
		`tail -n 1 "$J/job-1/log"; tail -n 1 "$J/job-3/log"; tail -c 4 "$J/job-1/result"; echo nonsense > "$J/job-1/ctl"; tail -n 1 "$J/job-1/ctl"
tail -n 1 "$M/errors" | cut -d' ' -f3-`,
		"-- run ended: completed: exit 0\nready\nree\nbash: line 0: echo: write error: Invalid argument\n" +
			"# last: ctl: refused: unknown verb nonsense; this file knows: cancel, dismiss, resume\n" +
			"/sessions/shop/jobs/job-1/ctl ctl: unknown verb nonsense; this file knows: cancel, dismiss, resume\n",
	},
	{
		"tail -f", "a growing log", "follows it; asks once a second, since inotify sees nothing there", "",
		`tail -n 1 -f "$J/job-3/log" > out & t=$!; until_in . out; echo grown > more; until_in grown out; kill $t; wait $t; grep -c grown out`, "1\n",
	},
	{
		"tail -F", "a log, while the daemon is started anew", "survives it; shows the file from its beginning once it is back", "",
		`tail -n +1 -F "$J/job-3/log" > out 2> err & echo $! > pid; until_in ready out
` + restart + `
echo 'after it' > more; until_in 'after it' out; kill $(cat pid); grep -c 'after it' out`, "1\n",
	},
	{
		"grep -r, grep -rl", "a session", "ends by itself; finds every file but those that wait", "",
		`grep -rlx three "$S" | sort; grep -rl failed "$J" --include=status`, "$M/sessions/shop/jobs/job-1/log\n$M/sessions/shop/jobs/job-1/result\n$M/sessions/shop/jobs/job-2/status\n",
	},
	{
		"rg", "a session", "the same", "rg",
		`rg -lx three "$S" | sort; rg -n two "$J/job-1/result"`, "$M/sessions/shop/jobs/job-1/log\n$M/sessions/shop/jobs/job-1/result\n2:two\n",
	},
	{
		"find -newer, -mmin", "statuses", "by the last change of what a file shows", "",
		`touch mark; echo 'echo x' > "$S/start"; cat "$(last)/wait" > /dev/null; n=$(last); [ "$(find "$J" -name status -newer mark)" = "$n/status" ] && echo one
find "$J" -maxdepth 2 -name status -mmin -600 | wc -l | grep -qx "$(count)" && echo all; find "$M" -name status -mmin +600`, "one\nall\n",
	},
	{
		"tar", "a session", "an archive whose bytes are those of cat; only diff is empty in it", "tar",
		`tar cf a.tar -C "$S" jobs/job-1 start agent; echo "exit $?"; mkdir x; tar xf a.tar -C x
for f in $(cd "$S" && find jobs/job-1 start agent -type f ! -name diff); do cmp "$S/$f" "x/$f" || echo differs; done; find x -type f | wc -l; stat -c %s x/jobs/job-1/diff`,
		"exit 0\n22\n0\n",
	},
	{
		"cp -r", "a job", "a copy whose bytes are those of cat, links as links", "",
		`cp -r "$J/job-1" c; echo "exit $?"; diff -r --no-dereference "$J/job-1" c && echo same`, "exit 0\nsame\n",
	},
	{
		"rsync -a", "a job", "the same, with times; only diff is empty in it", "rsync",
		`rsync -a "$J/job-1/" r; echo "exit $?"; diff -rq --no-dereference "$J/job-1" r | sed 's/.* and //'; rsync -ai --exclude diff "$J/job-1/" r; stat -c %y "$J/job-1/log" r/log | uniq | wc -l`,
		"exit 0\nr/diff differ\n1\n",
	},
	{
		"vim :wq", "start", "the text becomes a job", "vim",
		`vim -u NONE -es '+%d' '+call setline(1, "echo from vim")' '+wq' "$S/start" < /dev/null; echo "exit $?"; ran`, "exit 0\ncompleted\nfrom vim\n",
	},
	{
		"vim :wq", "a ctl", "what stands there already does nothing; added lines are done; a refused one fails the write", "vim",
		`vim -u NONE -es '+wq' "$J/job-3/ctl" < /dev/null; echo "exit $?"; cat "$J/job-3/status"
vim -u NONE -es '+call append(line("$"), "label by vim")' '+wq' "$S/ctl" < /dev/null; echo "exit $?"; cat "$S/label"
vim -u NONE -es '+call append(line("$"), "nonsense")' '+wq' "$S/ctl" < /dev/null; echo "exit $?"; tail -n 1 "$S/ctl"`,
		"exit 0\nrunning\nexit 0\nby vim\nexit 1\n# last: ctl: refused: unknown verb nonsense; this file knows: close, label, workspace\n",
	},
	{
		"less", "a log, a result", "shows it", "less",
		`less "$J/job-1/result" | cat`, "one\ntwo\nthree\n",
	},
	{
		"dd of=", "start", "all its writes are one job, whatever bs is", "",
		`n=$(count); printf 'echo %s\n' a b c d | dd of="$S/start" bs=3 status=none; echo "exit $?"; ran; echo $(($(count) - n))`, "exit 0\ncompleted\na\nb\nc\nd\n1\n",
	},
	{
		"dd if=", "a result, a log", "any block", "",
		`dd if="$J/job-1/result" bs=4 skip=1 count=1 status=none; dd if="$J/job-1/log" of=l bs=7 status=none; cmp l "$J/job-1/log" && echo same`, "two\nsame\n",
	},
	{
		"sort, wc", "a result", "as of any file; wc -c believes the size, which is true", "",
		`sort "$J/job-1/result"; wc -lc < "$J/job-1/result" | xargs; wc -c < "$J/job-1/log" | grep -qx "$(cat "$J/job-1/log" | wc -c)" && echo true`, "one\nthree\ntwo\n3 14\ntrue\n",
	},
	{
		"watch -n", "statuses", "shows them anew each time", "watch script",
		`TERM=xterm script -qefc "watch -t -n 0.1 -g tail -n 1 '$J/job-3/log'" typed > /dev/null < /dev/null & t=$!
until_in . typed; until_in "$(tail -n 1 "$J/job-3/log")" typed; echo watched > more; wait $t; echo "exit $?"; tail -n 1 "$J/job-3/log"`, "exit 0\nwatched\n",
	},
	{
		"tee, tee -a", "start, a ctl", "a job, a command; a refusal is tee's exit status", "",
		`echo 'echo tea' | tee "$S/start"; ran; echo 'echo more' | tee -a "$S/start" > /dev/null; ran; echo 'label tea' | tee "$S/ctl" > /dev/null; cat "$S/label"
echo nonsense | said tee "$S/ctl"; echo "exit $?"`, "echo tea\ncompleted\ntea\ncompleted\nmore\ntea\nInvalid argument\nexit 1\n",
	},
	{
		"sed -i", "a ctl, start", "refused: it would replace the file; the tree is unchanged", "",
		`same said sed -i s/o/p/ "$S/ctl"; same said sed -i s/o/p/ "$S/start"`, strings.Repeat("Operation not permitted\nexit 4\nunchanged\n", 2),
	},
	{
		"mv", "into, within and out of the tree", "refused; nothing is moved, the tree is unchanged", "",
		`echo keep > x; same said mv x "$S/start"; cat x; same said mv x "$J/job-1/y"; cat x; same said mv "$J/job-1" "$J/job-9"; same said mv "$J/job-1/log" out; rm -f out`,
		"Operation not permitted\nexit 1\nunchanged\nkeep\nOperation not permitted\nexit 1\nunchanged\nkeep\n" +
			"Operation not permitted\nexit 1\nunchanged\nOperation not permitted\nexit 1\nunchanged\n",
	},
	{
		"git hash-object", "a result, a log", "the hash of the content: it believes the size", "git",
		`for f in result log prompt record; do [ $(git hash-object "$J/job-1/$f") = $(cat "$J/job-1/$f" | git hash-object --stdin) ] && echo equal; done`, "equal\nequal\nequal\nequal\n",
	},
	{
		"python3 open, with", "start, a ctl, a result", "read and write; a refusal raises OSError with its errno", "python3",
		`python3 - "$S" "$J/job-1" <<'X'
import sys, errno
s, j = sys.argv[1:]
print(open(j + "/result").read().split())
with open(s + "/start", "w") as f:
    f.write("echo from "); f.flush(); f.write("python")
for path, text in (s + "/ctl", "nonsense\n"), (s + "/start", "#!scv\nx"), (s + "/start", "   "), (j + "/log", "x"):
    try:
        with open(path, "w") as f:
            f.write(text)
    except OSError as e:
        print(errno.errorcode[e.errno])
X
echo 'echo next' > "$S/start"; ran`, "['one', 'two', 'three']\nEINVAL\nEINVAL\nEINVAL\nEPERM\ncompleted\nnext\n",
	},
	{
		"du", "a job", "its size as read, files of size 0 aside", "",
		`du -b "$J/job-1/result" | cut -f1; du -s "$J/job-1" | cut -f1 | grep -qx '[1-9][0-9]*' && echo some`, "14\nsome\n",
	},
	{
		"file", "a job", "looks into the content", "file",
		`file -b "$J/job-1/result" "$J/job-1/ctl" "$J/job-1"; file -b "$J/job-1/record" | grep -o JSON`, "ASCII text\nASCII text\ndirectory\nJSON\n",
	},
	{
		"ls -lt", "jobs/", "the job that changed last comes first", "",
		`echo 'echo x' > "$S/start"; j=$(last); cat "$j/wait" > /dev/null; ls -t "$J" | head -n 1 | grep -qx "${j##*/}" && echo newest`, "newest\n",
	},
	{
		"ls -l, stat", "a job", "true modes, sizes and times", "",
		`stat -c '%n %F %a %s %h' "$J/job-1" "$J/job-1/result" "$J/job-2/status" "$S/start" "$M/sessions" | sed "s,$M/,,;s/ [0-9]* 1$/ N 1/"; ls -l "$J/job-1/run" | cut -d' ' -f1`,
		"sessions/shop/jobs/job-1 directory 500 0 2\nsessions/shop/jobs/job-1/result regular file 400 N 1\nsessions/shop/jobs/job-2/status regular file 400 N 1\n" +
			"sessions/shop/start regular file 600 N 1\nsessions directory 700 0 2\nlrwxrwxrwx\n",
	},
	{
		"exec 3> FILE", "start", "several writes are one job, made when the last descriptor is closed", "",
		`n=$(count); exec 3> "$S/start"; echo 'echo part 1' >&3; echo 'echo part 2' >&3; echo $(($(count) - n)); exec 3>&-; ran; echo $(($(count) - n))`, "0\ncompleted\npart 1\npart 2\n1\n",
	},
	{
		"exec 3<> FILE", "start", "reading after writing sends, and gives the new job's address; then the next text begins", "",
		`n=$(count); exec 3<> "$S/start"; echo 'echo a' >&3; read -r a <&3; echo 'echo b' >&3; read -r b <&3; exec 3>&-; echo $(($(count) - n))
for x in $a $b; do cat "$J/${x#*/}/wait" "$J/${x#*/}/result"; done`, "2\ncompleted\na\ncompleted\nb\n",
	},
	{
		"touch", "start, a ctl", "nothing happens, and the time is not taken; refused on read-only files and for new names", "",
		`same touch "$S/start" "$S/ctl"; same said touch -d yesterday "$J/job-1/log"; same said touch "$S/fresh"`,
		"exit 0\nunchanged\nOperation not permitted\nexit 1\nunchanged\nOperation not permitted\nexit 1\nunchanged\n",
	},
	{
		"rm, rm -r", "a file, a job", "refused; rmdir dismisses a job that has ended", "",
		`same said rm -f "$J/job-1/log"; rm -rf "$J/job-1" 2> err; echo "exit $?"; ls "$J/job-1" | grep -c .  | grep -qx "$(ls "$J/job-2" | grep -c .)" && echo whole
echo 'echo x' > "$S/start"; j=$(last); cat "$j/wait" > /dev/null; rmdir "$j"; ls -d "$j" 2> /dev/null; said rmdir "$J/job-3"`,
		"Operation not permitted\nexit 1\nunchanged\nexit 1\nwhole\nDevice or resource busy\n",
	},
	{
		"mkdir", "sessions/, elsewhere", "makes a session in sessions/; refused elsewhere", "",
		`mkdir "$M/sessions/more"; cat "$M/sessions/more/workspace"; rmdir "$M/sessions/more"; ls "$M/sessions"; same said mkdir "$J/job-99"; same said mkdir "$M/x"; said mkdir "$M/sessions/No"`,
		"$D/shop\nnew\nshop\n" + strings.Repeat("Operation not permitted\nexit 1\nunchanged\n", 2) + "Invalid argument\n",
	},
	{
		"ln, ln -s", "in the tree, to it", "refused in the tree; a symbolic link to it from elsewhere works", "",
		`same said ln "$J/job-1/log" "$J/job-1/x"; same said ln -s log "$J/job-1/x"; ln -s "$J/job-1/result" link; head -n 1 link`, strings.Repeat("Operation not permitted\nexit 1\nunchanged\n", 2) + "one\n",
	},
	{
		"chmod, chown", "any file", "refused", "",
		`same said chmod 777 "$J/job-1/log"; same said chown 1 "$S/start"`, strings.Repeat("Operation not permitted\nexit 1\nunchanged\n", 2),
	},
	{
		"xargs", "results, ctl files", "as with any names: none needs quoting", "",
		`find "$J" -name status | xargs grep -lx failed | xargs -n 1 dirname | sed "s,$M,\$M,"; echo 'exec sleep 1000' > "$S/start"; last | xargs -I{} sh -c 'echo cancel > {}/ctl; cat {}/wait'`, "$M/sessions/shop/jobs/job-2\ncancelled\n",
	},
	{
		"diff", "two results", "their difference", "",
		`diff "$J/job-1/result" "$J/job-2/result"; echo "exit $?"`, "1,3c1\n< one\n< two\n< three\n---\n> broken\nexit 1\n",
	},
	{
		"inotify", "any", "sees what clients do, not what jobs do: wait on wait or events instead", "python3",
		`cat > watch.py <<'X'
import ctypes, os, struct, subprocess, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init()
names = {libc.inotify_add_watch(fd, p.encode(), 2): p.rsplit("/", 1)[1] for p in sys.argv[1:]}
subprocess.run(["sh", "-c", "echo unseen > more; until grep -q unseen \"$J/job-3/log\"; do sleep 0.02; done; echo 'label seen' > \"$S/ctl\""])
b = os.read(fd, 4096)
print(*[names[struct.unpack_from("iIII", b, i)[0]] for i in range(0, len(b), 16)])
X
python3 watch.py "$J/job-3/log" "$S/ctl"`, "ctl\n",
	},
}

func TestTools(t *testing.T) {
	w := newWorld(t, "")
	w.sh(toolsWorld)
	for _, row := range tools {
		t.Run(strings.ReplaceAll(row.command+" on "+row.file, "/", "∕"), func(t *testing.T) {
			for _, program := range strings.Fields(row.needs) {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			w.sh(`rm -rf x c r out err l link typed`)
			before, after, restarts := strings.Cut(row.script, restart)
			out, _ := w.try(toolsPrelude + "\n" + before)
			if restarts {
				w.stop()
				w.start()
				more, _ := w.try(toolsPrelude + "\n" + after)
				out += more
			}
			if out = plain(w, out); out != row.want {
				t.Errorf("%s\n got %q\nwant %q", row.script, out, row.want)
			}
		})
	}
	w.sh(`echo cancel > "$J/job-3/ctl"; cat "$J/job-3/wait"`)
}

var bashLine = regexp.MustCompile(`(?m)^bash: line \d+:`)

// plain takes from an output what differs between runs.
func plain(w *world, out string) string {
	out = bashLine.ReplaceAllString(out, "bash: line 0:")
	if w.seen != "" {
		out = strings.ReplaceAll(out, w.seen, "$M")
	}
	return strings.NewReplacer(w.mount, "$M", w.dir, "$D", "‘", "'", "’", "'").Replace(out)
}

// The document's table is this table, so that no row is without a test.
func TestToolsDocumentIsWhatIsTested(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, row := range tools {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", row.command, row.file, row.outcome))
	}
	_, table, found := strings.Cut(string(text), "| command | file | outcome |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	got := strings.Split(strings.TrimSpace(table), "\n")
	if !found || !slices.Equal(got, want) {
		t.Errorf("docs/tools.md differs from the table in this file. Its table should be:\n%s", strings.Join(want, "\n"))
	}
}

// walks are programs that go through the whole tree. What may be said of a
// tree in which jobs start and end meanwhile: that a directory, or a file of a
// job that is not over, changed (tar), and that a link of active/ went. Not
// read here are snapshot and metrics, which are others at each look.
var walks = []struct{ needs, script, may string }{
	{"grep", `grep -rc e "$M" > counts`, ``},
	{"tar", `tar cf - -C "$M" --exclude=./snapshot --exclude=./metrics . > a.tar`, `^tar: \S+: file changed as we read it$`},
	{"cp", `cp -r "$M" copied`, ``},
	{"rsync", `rsync -a --exclude=/snapshot --exclude=/metrics "$M/" synced`, `^rsync warning: some files vanished`},
	{"find", `find "$M" -type f -exec head -c 1000000 {} + > heads`, ``},
	{"md5sum", `find "$M" -type f -print0 | xargs -0 md5sum > sums`, ``},
	{"du", `du -a "$M" > sizes`, ``},
	{"ls", `ls -lR "$M" > listed`, ``},
}

// feed is a process that starts jobs until it is told to stop.
const feed = `for i in $(seq 60); do
	[ ! -e enough ] || break
	echo "for i in 1 2 3 4 5; do echo \$i; sleep 0.01; done" > "$S/start"
	a=$(cat "$S/start"); cat "$J/${a#*/}/wait" > /dev/null
done`

func TestWalksEndWithoutAnErrorWhileJobsRun(t *testing.T) {
	w := newWorld(t, "[limits]\nconversations = 1000\n").session()
	w.sh(`mkfifo more; echo 'while :; do echo tick; sleep 0.01; done' > "$S/start"; echo 'read -r x < more' > "$S/start"; until grep -q tick "$J/job-1/log"; do sleep 0.02; done`)
	feeder := w.command("bash", feed)
	if err := feeder.Start(); err != nil {
		t.Fatal(err)
	}
	gone := regexp.MustCompile(`\bactive/\S+: No such file or directory$|^(file|symlink) has vanished: "\S*/active/`)
	for _, walk := range walks {
		if _, err := exec.LookPath(walk.needs); err != nil {
			t.Logf("%s is not installed", walk.needs)
			continue
		}
		out, err := w.try(walk.script)
		may := regexp.MustCompile(walk.may)
		bad := walk.may == "" && err != nil && out == ""
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(strings.NewReplacer("‘", "", "’", "", "'", "").Replace(line))
			bad = bad || !gone.MatchString(line) && (walk.may == "" || !may.MatchString(line))
		}
		if bad {
			t.Errorf("%s: %v\n%s", walk.script, err, out)
		}
	}
	w.sh(`touch enough`)
	if err := feeder.Wait(); err != nil {
		t.Error(err)
	}
	w.want(`find "$M" -name wait; ls "$M" "$S" | grep -x events; find "$M" -type p -o -type s; cat "$J/job-1/status" "$J/job-2/status"; ls -d copied/sessions/shop/jobs/job-[12]`, "running\nrunning\ncopied/sessions/shop/jobs/job-1\ncopied/sessions/shop/jobs/job-2\n")
	w.sh(`for j in 1 2; do echo cancel > "$J/job-$j/ctl"; cat "$J/job-$j/wait"; done`)
}

var updateRules = flag.Bool("update", false, "write what the commands of testdata/rules print into them")

// rulesPrelude is known to the commands of testdata/rules: the last line of a
// control file and of errors, and a wait until something is there.
const rulesPrelude = `why() { tail -n 1 "$1"; tail -n 1 "$M/errors" | cut -d' ' -f3-; }
errors() { cut -d' ' -f3- "$M/errors" | tail -n "$1"; }
ends() { cat "$J/$1/wait" "$J/$1/result"; }
until_is() { until [ "$(cat "$1")" = "$2" ]; do sleep 0.02; done; }
`

// rules is a transcript: after "config" lines and the shells that it is for,
// each command after "$ ", its output, and its exit status when that is not 0.
type rules struct {
	head, config string
	shells       []string
	steps        []step
}

type step struct{ command, out string }

func parseRules(text string) rules {
	r := rules{shells: []string{"bash"}}
	head, rest, _ := strings.Cut(text, "\n$ ")
	r.head = head
	for line := range strings.Lines(head + "\n") {
		if value, ok := strings.CutPrefix(line, "config "); ok {
			r.config += value
		}
		if value, ok := strings.CutPrefix(line, "shells "); ok {
			r.shells = strings.Fields(value)
		}
	}
	for part := range strings.SplitSeq(rest, "\n$ ") {
		command, out, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		for strings.HasPrefix(out, "> ") {
			more, after, _ := strings.Cut(out[len("> "):], "\n")
			command, out = command+"\n"+more, after
		}
		r.steps = append(r.steps, step{command, out})
	}
	return r
}

func (r rules) String() string {
	var b strings.Builder
	b.WriteString(r.head)
	for _, s := range r.steps {
		b.WriteString("\n$ " + strings.ReplaceAll(s.command, "\n", "\n> ") + "\n" + strings.TrimSuffix(s.out, "\n"))
	}
	return strings.ReplaceAll(b.String(), "\n\n$ ", "\n$ ") + "\n"
}

// The rules of DESIGN section 4, over the real mount.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no rules", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := parseRules(string(text))
		for _, shell := range r.shells {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+" in "+shell, func(t *testing.T) {
				if _, err := exec.LookPath(shell); err != nil {
					t.Skipf("%s is not installed", shell)
				}
				r.follow(t, newWorld(t, r.config).session(), shell)
			})
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+" through mount-9p", func(t *testing.T) {
			w := ninepWorld(t, r.config)
			w.farMount(w.socket())
			r.follow(t, w.session(), r.shells[0])
		})
		if *updateRules {
			if err := os.WriteFile(file, []byte(r.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (r *rules) follow(t *testing.T, w *world, shell string) {
	for i := range r.steps {
		s := &r.steps[i]
		got := w.typed(t, shell, s.command)
		if *updateRules && shell == r.shells[0] {
			s.out = got
		}
		if !sameWords(shell, got, s.out) {
			t.Errorf("$ %s\n got %q\nwant %q", s.command, got, s.out)
		}
	}
}

// typed returns what a command prints, with its exit status.
func (w *world) typed(t *testing.T, shell, command string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	typed := w.command(shell, rulesPrelude+command)
	cmd := exec.CommandContext(ctx, typed.Args[0], typed.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = typed.Dir, typed.Env, time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("hangs: %s\n%s", command, w.logged())
	}
	text := shellWords(shell, plain(w, string(out)))
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text += fmt.Sprintf("=> %d\n", exit.ExitCode())
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

// complaints are how shells say why a write or an open failed.
var complaints = map[string]*regexp.Regexp{
	"bash": regexp.MustCompile(`(?m)^bash: line \w+: (?:.*: )?([^:\n]+)$`),
	"dash": regexp.MustCompile(`(?m)^dash: \d+: (?:.*: )?([^:\n]+)$`),
	"zsh":  regexp.MustCompile(`(?m)^zsh:(?:\w+:)?\d+: (?:write error: )?([^:\n]+)(?:: .*)?$`),
}

// shellWords leaves only the errno's words of a shell's complaints.
func shellWords(shell, out string) string {
	return complaints[shell].ReplaceAllStringFunc(out, func(line string) string {
		return "sh: " + strings.ToLower(complaints[shell].FindStringSubmatch(line)[1])
	})
}

// sameWords compares outputs. Dash knows but one word for a failed write, and
// an exit status of its own for a failed open.
func sameWords(shell, got, want string) bool {
	if shell == "dash" {
		got = strings.ReplaceAll(got, "sh: directory nonexistent\n", "sh: no such file or directory\n")
		got = strings.ReplaceAll(got, "=> 2\n", "=> 1\n")
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i, line := range gotLines {
			if line == "sh: i/o error" && i < len(wantLines) && strings.HasPrefix(wantLines[i], "sh: ") {
				gotLines[i] = wantLines[i]
			}
		}
		got = strings.Join(gotLines, "\n")
	}
	return got == want
}
