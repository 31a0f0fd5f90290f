package agent

import "fmt"

// step is one step of an agent's plan.
type step struct {
	text      string
	completed bool
	current   bool
}

// plan logs where a plan stands: the step that is at work, or the first that
// is not done, with its number.
func (r *reader) plan(steps []step) {
	at := -1
	for i, s := range steps {
		if s.current {
			at = i
			break
		}
		if at < 0 && !s.completed {
			at = i
		}
	}
	switch {
	case len(steps) == 0:
	case at < 0:
		r.once(Plan, fmt.Sprintf("%d/%d done", len(steps), len(steps)))
	default:
		r.once(Plan, fmt.Sprintf("%d/%d %s", at+1, len(steps), steps[at].text))
	}
}

func (in *input) steps() []step {
	all := append(in.Todos, in.Plan...)
	steps := make([]step, len(all))
	for i, t := range all {
		steps[i] = step{first(t.Content, t.Step, t.Description, t.Title), t.Status == "completed" || t.Status == "done", t.Status == "in_progress"}
		if steps[i].current {
			steps[i].text = first(t.ActiveForm, steps[i].text)
		}
	}
	return steps
}
