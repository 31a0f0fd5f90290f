package workbench

import (
	"scvfs/ledger"
	"scvfs/workbench/dialogue"
)

// asker is the turn whose agent asks.
type asker interface {
	// answered hands a decision over. It never blocks.
	answered(ask string, number uint64, a dialogue.Answer, how string)
}

// decided is what the gate decided at once.
type decided struct {
	dialogue.Answer
	How string
}

// ask has the unattended gate decide: what only reads is allowed.
func (w *Workbench) ask(_ *job, _ *ledger.Run, _ asker, q dialogue.Ask) (uint64, *decided, error) {
	return 1, &decided{Answer: dialogue.Answer{Allow: q.Risk == dialogue.ReadOnly}, How: "policy"}, nil
}

func (w *Workbench) reask(*job, *ledger.Run, asker, []dialogue.Ask) map[string]uint64 { return nil }
func (w *Workbench) withdraw(_, _, _ string)                                          {}
func (w *Workbench) withdrawAll(_, _ string)                                          {}
