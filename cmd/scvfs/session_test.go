package main

import (
	"testing"
)

// rmdir closes a session that has jobs, whose directory stays. Whoever stands
// in it, before or after, still sees it.
func TestClosedSessionStaysWhoeverStandsInIt(t *testing.T) {
	w := newWorld(t, "").session()
	w.sh(`echo 'echo kept' > "$S/start"; cat "$J/job-1/wait"`)
	w.want(`cd "$J/job-1" && rmdir "$S" && cat result && cat "$S/state" "$J/job-1/result" && ls "$J"`, "kept\nclosed\nkept\njob-1\n")
	w.refused(`echo x > "$S/start"`, "Read-only file system")
	w.refused(`echo dismiss > "$J/job-1/ctl"`, "Read-only file system")
	w.refused(`rmdir "$S"`, "Read-only file system")
	w.want(`cd "$J" && echo "shop \"`+w.place+`\" The shop again" > "$M/sessions/new" && cat "$S/state" "$S/label" && echo 'echo more' > "$S/start" && cat "$J/job-2/wait" "$J/job-2/result" && rmdir "$J/job-1" "$J/job-2" && rmdir "$S" && ls "$M/sessions"`,
		"live\nThe shop again\ncompleted\nmore\nnew\n")
}

func TestDefaultAgentOfTheConfigurationIsShown(t *testing.T) {
	w := newWorld(t, "default_agent = \"mine\"\n[agents.mine]\ncommand = \"/bin/cat\"\n").session()
	w.want(`cat "$S/agent"; echo hello > "$S/start"; cat "$J/job-1/wait" "$J/job-1/agent" "$J/job-1/result"`, "mine\ncompleted\nmine\nhello\n")
}
