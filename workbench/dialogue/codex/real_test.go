package codex

import (
	"encoding/json"
	"strings"
	"testing"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	. "scvfs/workbench/dialogue/internal/dialoguetest"
)

// Real codex against the scripted model server, with a key that is none.
func TestRealCodex(t *testing.T) {
	Real{
		Name: "codex", Transport: agent.TransportAppServer, New: New,
		Needs: "ESCALATE", Two: "ESCALATE: touch one ;; touch two\nSAY: both", Questions: "plan",
		Files: map[string]string{".codex/config.toml": `model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "MODEL/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`},
		Env: func(string) []string { return []string{"OPENAI_API_KEY=fake"} },
		More: map[string]func(*Rehearsal){
			"file": func(c *Rehearsal) {
				v := c.Start(func(o *dialogue.Options) { o.Model, o.Effort = "gpt-6.2-sol", "high" })
				v.Prompt("WRITE: one hello\\n\nSAY: written")
				q := v.Asked()
				var request struct {
					Item struct{ Changes []struct{ Diff string } }
				}
				if err := json.Unmarshal(q.Request, &request); err != nil || q.Risk != dialogue.Filesystem || !strings.HasPrefix(q.Summary, "write ") || len(request.Item.Changes) != 1 ||
					!strings.Contains(request.Item.Changes[0].Diff, "hello") {
					t.Errorf("it asks %s", q.Request)
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
