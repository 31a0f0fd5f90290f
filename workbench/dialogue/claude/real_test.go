package claude

import (
	"strings"
	"testing"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	. "scvfs/workbench/dialogue/internal/dialoguetest"
)

// Real Claude Code against the scripted model server, with a key that is none.
func TestRealClaude(t *testing.T) {
	Real{
		Name: "claude", Transport: agent.TransportStream, New: New,
		Needs: "RUN",
		// One of its tools runs after the other; an agent of its own asks beside.
		Two: `TOOL: Task {"description":"sub","prompt":"RUN: touch two\nSAY: sub","subagent_type":"general-purpose"}` + "\nRUN: touch one\nSAY: both",
		Env: func(model string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1",
				"IS_SANDBOX=1", // or root may not have full permissions
			}
		},
		Exits: map[agent.Status]int{agent.StatusCompleted: 0, agent.StatusFailed: 1, agent.StatusDeclined: 1},
		More: map[string]func(*Rehearsal){
			"agent of its own": func(c *Rehearsal) {
				v := c.Start(nil)
				v.Prompt(`TOOL: Task {"description":"sub","prompt":"SLEEP: 2\nSAY: sub answer","subagent_type":"general-purpose","run_in_background":true}` + "\nSAY: It works.")
				v.Ended(agent.StatusCompleted, "It works.")
				if results := strings.Count(v.Transcript(), `text "It works."`); results != 2 {
					t.Errorf("it answers %d times: once, and once more when its agent has ended", results)
				}
				v.Close(0)
			},
			"steer into the past": func(c *Rehearsal) {
				v := c.Start(nil)
				v.Prompt("SAY: first")
				v.Steerable()
				v.Hold(`"state":"idle"`)
				v.Steer("SAY: second")
				v.Ended(agent.StatusCompleted, "second")
				if !strings.Contains(v.Transcript(), "cancel_async_message") {
					t.Error("it was not asked for whether it read the text")
				}
				v.Prompt("SAY: third")
				v.Ended(agent.StatusCompleted, "third")
				v.Close(0)
			},
			"steer and interrupt": func(c *Rehearsal) {
				v := c.Start(nil)
				v.Prompt("SLEEP: 30\nSAY: first")
				v.Steerable()
				v.Steer("SAY: second")
				v.Interrupt()
				v.Ended(agent.StatusFailed, "it was interrupted")
				v.Prompt("HISTORY")
				if o := v.Ended(agent.StatusCompleted, "2 user prompts"); strings.Contains(string(o.Reply), "second") {
					t.Errorf("what was taken back is in %s", o.Reply)
				}
				v.Close(0)
			},
			"interrupt an agent of its own": func(c *Rehearsal) {
				v := c.Start(nil)
				v.Prompt(`TOOL: Task {"description":"sub","prompt":"SLEEP: 30\nSAY: sub answer","subagent_type":"general-purpose","run_in_background":true}` + "\nSAY: It works.")
				v.Did(agent.Text, "It works.")
				v.Hold(`"type":"result"`)
				v.Interrupt() // which ends its agent; it has answered already
				v.Ended(agent.StatusCompleted, "It works.")
				v.Close(0)
			},
			"mode": func(c *Rehearsal) {
				v := c.Start(func(o *dialogue.Options) { o.Mode = "nonsense" })
				v.Prompt("SAY: hi")
				v.Ended(agent.StatusFailed, `does not take the mode "nonsense"`)
				v.Close(0)
			},
			"file": func(c *Rehearsal) {
				v := c.Start(nil)
				v.Prompt("WRITE: " + c.Dir + "/one <hello> & more\nSAY: written")
				q := v.Asked()
				if q.Risk != dialogue.Filesystem || !strings.HasPrefix(q.Summary, "write ") {
					t.Errorf("it asks %+v", q)
				}
				v.Answer(q, dialogue.Answer{Allow: true})
				v.Ended(agent.StatusCompleted, "written")
				if !c.Touched("one") {
					t.Error("it is not written")
				}
				v.Close(0)
			},
		},
	}.Run(t)
}
