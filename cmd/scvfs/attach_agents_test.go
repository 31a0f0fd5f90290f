package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// caseAttach takes a conversation over with scvfs attach in a terminal, types a
// prompt to the agent there, leaves, comes back, and gives the conversation
// back, which then goes on with what was said in the terminal.
func caseAttach(a *agentCase) {
	a.ended(a.start(a.script("SAY: The first answer.")), "completed")
	conversation := filepath.Join(a.mount, "sessions", a.name, "conversations", a.client.name+"-1")
	takeover := filepath.Join(conversation, "takeover")
	p := a.newPane(110, 36)
	defer p.end() // before it is looked what still runs
	defer func() {
		if a.t.Failed() {
			out, _ := a.try(`cat "$M"/runs/*/log`)
			a.t.Logf("the runs' logs:\n%s", out)
		}
	}()
	p.attach("", conversation)
	p.sees("The first answer.")
	p.same(takeover)
	p.do("send-keys", "-l", "-t", p.target, "HISTORY")
	p.sees("HISTORY")
	const answer = "history: 2 user prompts"
	pressed := time.Time{}
	p.until("the answer", func() bool {
		// What comes quickly is taken for a paste, and Enter for a part of it.
		if time.Since(pressed) > 2*time.Second && !strings.Contains(p.text(), answer) {
			p.keys("Enter")
			pressed = time.Now()
		}
		return strings.Contains(p.text(), answer)
	})
	p.resize(100, 30)
	p.until("the new size", func() bool { return a.sh(fmt.Sprintf("cat '%s/size'", takeover)) == "100x30\n" })
	p.same(takeover)
	p.keys(`C-\`)
	p.left(0, "attach: detached; the agent goes on")
	p.attach("", takeover)
	p.sees(answer)
	p.same(takeover)
	a.sh(fmt.Sprintf("echo end > '%s/ctl'", takeover))
	p.left(0, "attach: the terminal has ended: ")
	a.says(a.ended(a.send("conversations/"+a.client.name+"-1/queue", "HISTORY"), "completed"), "history: 3 user prompts", "2. HISTORY")
}
