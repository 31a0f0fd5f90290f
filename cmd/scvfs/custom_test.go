package main

import (
	"os"
	"path/filepath"
	"testing"
)

// An agent that only the configuration knows: it reads its prompt from
// standard input, takes a model, and remembers its sessions by an id that it
// is given.
func TestAgentOfTheUsersOwn(t *testing.T) {
	w := emptyWorld(t, `
[agents.echo]
command = "~/echo-agent"
args = ["--quiet"]
session = "chosen"
start_args = ["--new", "{session}"]
continue_args = ["--go-on", "{session}"]
model_args = ["--model", "{model}"]
model = "small"
env = { GREETING = "hello" }

[agents.missing]
command = "no-such-agent"
`)
	script := "#!/bin/sh\necho \"$*\" | sed 's/[0-9a-f-]\\{36\\}/ID/'\necho \"$GREETING\"\nwc -c\n"
	if err := os.WriteFile(filepath.Join(w.dir, "echo-agent"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.session()
	w.want(`cat "$M/agents/echo/offered" "$M/agents/missing/offered"`, "yes\nno: no-such-agent is not installed: it is neither in ~/.local/bin nor in PATH\n")
	w.want(`printf '#!scv agent=echo\n--help "x"\n' > "$S/start"; cat "$J/job-1/wait" "$J/job-1/result"`, "completed\n--quiet --model small --new ID\nhello\n11\n")
	w.want(`printf 'again' > "$J/job-1/reply"; cat "$J/job-2/wait" "$J/job-2/result"`, "completed\n--quiet --model small --go-on ID\nhello\n5\n")
	w.refused(`printf '#!scv agent=missing\nx' > "$S/start"`, "Invalid argument")
	w.sh(`tail -n 1 "$S/start" | grep 'agent missing is not offered: no-such-agent is not installed'`)
	w.refused(`echo nobody > "$S/agent"`, "Invalid argument")
	w.want(`echo echo > "$S/agent"; printf 'plain' > "$S/start"; cat "$J/job-3/wait" "$J/job-3/agent"`, "completed\necho\n")
}
