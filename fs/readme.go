package fs

import "strings"

// readmeText is /README, one screen; @ stands for the mount point.
const readmeText = `Coding agents as files: ls and cat show jobs, echo controls them. Paste:

  cd @
  echo "shop \"$OLDPWD\"" > sessions/new   a session named shop, in that place
  echo 'make test' > sessions/shop/start   a job; cat start says which one
  echo codex > sessions/shop/agent         gets the next prompts (see agents/)

  ls -l active                             the jobs that have not ended
  cat sessions/shop/jobs/job-1/wait        waits, then says how it ended
  cat sessions/shop/jobs/job-1/result      the reply, or the error
  tail -f sessions/shop/jobs/job-1/log     what it does; see state, diff, usage
  echo cancel > sessions/shop/jobs/job-1/ctl
  echo 'and now?' > sessions/shop/jobs/job-1/reply
  ls sessions/shop/conversations           attach > ctl: the agent's terminal

  tail -f /dev/null < approvals/watch &    I watch: what agents ask waits for me
  cat sessions/shop/jobs/job-1/approve     what it asks; echo yes or no into it
  cat events                               all changes from now on, as JSON
  cat errors snapshot metrics config       refused writes, everything, numbers

A prompt is sent when its file is closed. A ctl file shows its commands and how
the last one went. You are an agent? Read, start and reply in your own session;
the rest is the owner's. To choose the agent or an option for one job:
  printf '#!scv agent=codex effort=high\nfix it\n' > sessions/shop/start
`

// readme returns /README for a tree that is mounted at dir.
func readme(dir string) []byte {
	if dir == "" {
		dir = "~/scv"
	} else if strings.ContainsFunc(dir, special) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return []byte(strings.Replace(readmeText, "@", dir, 1))
}

// special tells whether a shell would read r as more than a letter.
func special(r rune) bool {
	return !strings.ContainsRune("/._-+,:@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r < 0x80
}
