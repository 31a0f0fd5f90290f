package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// caseTakeover takes a conversation over by the files alone, types a prompt to
// the agent there, gives it back and goes on, and then takes it from a turn that
// runs.
func caseTakeover(a *agentCase) {
	a.ended(a.start(a.script("SAY: The first answer.")), "completed")
	if a.client.name == "claude" {
		a.acceptTerms()
	}
	conversation := filepath.Join(a.mount, "sessions", a.name, "conversations", a.client.name+"-1")
	takeover := filepath.Join(conversation, "takeover")
	a.sh(fmt.Sprintf(`echo 'attach 100x30' > '%s/ctl' || { tail -n 1 '%[1]s/ctl'; exit 1; }`, conversation))
	a.shows(takeover, "The first answer.")
	a.types(takeover, "HISTORY", "history: 2 user prompts")
	a.want(fmt.Sprintf(`cat '%s/size'; grep -c '<svg' '%[1]s/screen.svg'; cut -d' ' -f1,2 '%s/state'`, takeover, conversation), "100x30\n1\nworking takeover\n")
	a.sh(fmt.Sprintf("echo end > '%s/ctl'", takeover))
	a.onlyDaemon()
	queue := "conversations/" + a.client.name + "-1/queue"
	a.says(a.ended(a.send(queue, "HISTORY"), "completed"), "history: 3 user prompts", "1. Task "+a.mark(), "2. HISTORY", "3. HISTORY")

	job := a.send(queue, a.script(lasting))
	a.until("inner", "outer")
	a.sh(fmt.Sprintf(`echo 'interrupt %s' > '%s/ctl' || { tail -n 1 '%[2]s/ctl'; exit 1; }`, filepath.Base(job), conversation))
	a.want(fmt.Sprintf(`cut -d' ' -f1 %q/state`, job), "cancelled\n")
	a.gone("inner", "outer")
	a.shows(takeover, "history: 3 user prompts")
	a.sh(fmt.Sprintf("echo end > '%s/ctl'", takeover))
}

// screen is what a terminal shows.
func (a *agentCase) screen(takeover string) string {
	a.t.Helper()
	return a.sh(fmt.Sprintf("cat '%s/screen'", takeover))
}

// shows waits until a terminal shows a text.
func (a *agentCase) shows(takeover, text string) {
	a.t.Helper()
	a.comes(takeover, text, func() bool { return strings.Contains(a.screen(takeover), text) })
}

func (a *agentCase) comes(takeover, what string, there func() bool) {
	a.t.Helper()
	for end := time.Now().Add(patience); !there(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("the terminal does not show %q:\n%s", what, a.screen(takeover))
		}
	}
}

// types types a prompt into an agent's terminal, and waits for what the
// terminal shows then.
func (a *agentCase) types(takeover, prompt, answer string) {
	a.t.Helper()
	typed := time.Time{}
	a.comes(takeover, prompt, func() bool {
		if time.Since(typed) > 5*time.Second { // one that still starts may take no notice
			a.sh(fmt.Sprintf("printf %%s %q > '%s/input'", prompt, takeover))
			typed = time.Now()
		}
		return strings.Contains(a.screen(takeover), prompt)
	})
	pressed := time.Now()
	a.comes(takeover, answer, func() bool {
		// What comes quickly is taken for a paste, and Enter for a part of it.
		if time.Since(pressed) > 500*time.Millisecond {
			a.sh(fmt.Sprintf("echo 'key enter' > '%s/ctl'", takeover))
			pressed = time.Now().Add(2 * time.Second)
		}
		return strings.Contains(a.screen(takeover), answer)
	})
}
