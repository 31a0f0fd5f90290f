package main

import (
	"os/exec"
	"testing"
)

// repository makes the workspace a git repository with one commit.
func (w *world) repository() *world {
	w.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		w.t.Skip("git is not installed")
	}
	w.sh(`git init -q . && git config user.name t && git config user.email t@example.org && echo one > file && mkdir sub && echo two > sub/file && git add . && git commit -qm first`)
	return w
}

func TestWorktreeForOneJob(t *testing.T) {
	w := newWorld(t, "").session().repository()
	w.want(`printf '#!scv worktree\npwd; cat file; echo changed > file; echo new > untracked' > "$S/start"; cat "$J/job-1/wait"; tail -n 1 "$J/job-1/result"; cat file`,
		"completed\none\none\n")
	w.want(`T=$(readlink "$J/job-1/worktree"); T="$M/worktrees/$(basename "$T")"; cat "$T/repo" "$T/dirty" "$T/users"; [ "$(cat "$T/branch")" = "scv/$(basename "$T")" ] && echo branch; cat "$(cat "$T/path")/file"; head -n 1 "$J/job-1/result" | cmp - "$T/path" && echo there`,
		w.place+"\nyes\nbranch\nchanged\nthere\n")
	w.want(`grep -c '^+changed' "$J/job-1/diff"; grep -c '^+new' "$J/job-1/diff"`, "1\n1\n")
	w.refused(`echo remove > "$M"/worktrees/*/ctl`, "busy")
	w.want(`echo 'cat file' > "$J/job-1/reply"; cat "$J/job-2/wait" "$J/job-2/result"; readlink "$J/job-2/worktree" | cmp - <(readlink "$J/job-1/worktree") && echo same`,
		"completed\nchanged\nsame\n")
	w.want(`cd "$(cat "$M"/worktrees/*/path)" && git checkout -q file && rm untracked && cd - > /dev/null; sleep 1.1; cat "$M"/worktrees/*/dirty; echo remove > "$M"/worktrees/*/ctl && ls "$M/worktrees" | wc -l; git worktree list | wc -l; git branch --list 'scv/*' | wc -l`,
		"no\n0\n1\n0\n")
	w.refused(`printf '#!scv session=sh-1\npwd' > "$S/start"`, "No such file")
	w.sh(`tail -n 1 "$S/start" | grep "there is no worktree"`)
}

func TestWorktreeRefusals(t *testing.T) {
	w := newWorld(t, "").session()
	w.refused(`printf '#!scv worktree\npwd' > "$S/start"`, "Invalid argument")
	w.sh(`tail -n 1 "$S/start" | grep 'can only be made of a git repository'`)
	w.repository()
	w.sh(`printf '#!scv worktree cwd=sub\necho $$ > pid; exec sleep 1000' > "$S/start"; until ls "$M"/worktrees/*/users > /dev/null 2>&1 && [ -s "$(cat "$M"/worktrees/*/path)/sub/pid" ]; do sleep 0.05; done`)
	w.want(`cat "$M"/worktrees/*/users`, "shop/job-1\n")
	w.refused(`echo remove > "$M"/worktrees/*/ctl`, "busy")
	w.sh(`tail -n 1 "$M"/worktrees/*/ctl | grep shop/job-1`)
}

func TestFollowUpOfACutOffTurnStartsApart(t *testing.T) {
	w := newWorld(t, "").session().repository()
	w.sh(`echo 'echo $$ > pid; exec sleep 1000' > "$S/start"; until [ -s pid ]; do sleep 0.02; done; echo 'pwd; cat file' > "$S/conversations/sh-1/queue"
kill -KILL $(ps -o ppid= -p $(cat pid)); cat "$J/job-2/wait"`)
	w.want(`echo resume > "$J/job-2/ctl"; cat "$J/job-3/wait"; tail -n 1 "$J/job-3/result"; head -n 1 "$J/job-3/result" | cmp - "$J/job-3/worktree/path" && echo apart`,
		"completed\none\napart\n")
}
