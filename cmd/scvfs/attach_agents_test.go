package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// caseAttach takes a conversation over with scvfs attach in a terminal, types a
// prompt to the agent there, leaves, comes back, and gives the conversation
// back, which then goes on with what was said in the terminal.
func caseAttach(a *agentCase) {
	a.ended(a.start(a.script("SAY: The first answer.")), "completed")
	if a.client.name == "claude" {
		a.acceptTerms()
	}
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
	accepted := false
	p.until("the conversation", func() bool {
		text := p.text()
		if !accepted && strings.Contains(text, "Yes, I accept") { // Claude Code asks whether no questions are meant
			accepted = true
			p.keys("Down", "Enter")
		}
		return strings.Contains(text, "The first answer.")
	})
	p.same(takeover)
	typed := time.Time{}
	p.until("what is typed", func() bool {
		if time.Since(typed) > 5*time.Second { // one that still starts may take no notice
			p.do("send-keys", "-l", "-t", p.target, "HISTORY")
			typed = time.Now()
		}
		return strings.Contains(p.text(), "HISTORY")
	})
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
	p.same(takeover)
	p.keys(`C-\`)
	p.left(0, "attach: detached; the agent goes on")
	p.attach("", takeover)
	p.sees(answer)
	p.resize(100, 30)
	p.until("the new size", func() bool { return a.sh(fmt.Sprintf("cat '%s/size'", takeover)) == "100x30\n" })
	p.same(takeover)
	a.sh(fmt.Sprintf("echo end > '%s/ctl'", takeover))
	p.left(0, "attach: the terminal has ended: ")
	a.says(a.ended(a.send("conversations/"+a.client.name+"-1/queue", "HISTORY"), "completed"), "history: 3 user prompts", "2. HISTORY")
}

// acceptTerms answers what Claude Code asks a person who starts it for the
// first time: its theme, the key, and whether the directory is to be trusted.
func (a *agentCase) acceptTerms() {
	a.t.Helper()
	path := filepath.Join(a.world.dir, ".claude.json")
	settings := map[string]any{}
	text, err := os.ReadFile(path) // what it has kept of the first turn
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	key := environment("")["ANTHROPIC_API_KEY"]
	maps.Copy(settings, map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.332", "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []string{key[max(0, len(key)-20):]}, "rejected": []string{}},
		"projects":              map[string]any{a.dir: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	if text, err = json.Marshal(settings); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}
