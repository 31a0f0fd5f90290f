package workbench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"scvfs/ledger"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
)

// The files of a reviewed job beside its prompt and result.
const (
	replyFile  = "reply"  // the builder's last answer
	reviewFile = "review" // all reviews
)

// promptName is the file with the prompt of the phase that a job is in.
func promptName(rec *ledger.Job) string {
	if r := rec.Review; r != nil && len(r.Runs) > 1 {
		return "prompt." + strconv.Itoa(len(r.Runs))
	}
	return "prompt"
}

// phaseAgent is who works in the phase that a job is in.
func (w *Workbench) phaseAgent(rec *ledger.Job) (*agent.Agent, error) {
	if r := rec.Review; r != nil && r.Phase == phaseReviewer {
		return w.agent(r.Agent)
	}
	return w.agent(rec.Agent)
}

// reviews tells whether the turn is a phase of a reviewed job's reviewer.
func reviews(rec *ledger.Job) bool { return rec.Review != nil && rec.Review.Phase == phaseReviewer }

// phaseOver carries out the end of a phase of a reviewed job. It is true when
// another phase began; else end is how the job ended.
func (t *turn) phaseOver(end *ending) (goesOn bool) {
	rec := t.j.record()
	if rec.Review == nil || rec.State.Terminal() {
		return false
	}
	next := *rec.Review
	prompt, err := t.decide(rec, &next, end)
	if err != nil {
		*end = ending{state: ledger.Failed, detail: "the review could not go on: " + err.Error(), exit: end.exit, ran: end.ran, usage: end.usage}
		next.Outcome = reviewStopped
	}
	t.outcome = next.Outcome
	if next.Outcome != "" {
		return false
	}
	t.logEnd(*end)
	began := false
	_ = t.untilDone("next phase", func() (err error) {
		began, err = t.nextPhase(&next, prompt, end)
		return err
	})
	return began || t.w.ctx.Err() != nil
}

// decide finds what comes after a phase: the prompt of the next one, or the
// outcome of the whole in next, with end as the job is to end.
func (t *turn) decide(rec *ledger.Job, next *ledger.Review, end *ending) (prompt []byte, err error) {
	if end.state != ledger.Completed {
		next.Outcome = reviewStopped
		if reviews(rec) && end.state == ledger.Failed {
			end.detail = "the reviewer " + next.Agent + " failed: " + end.detail
		}
		return nil, nil
	}
	said, err := readEnding(end)
	if err != nil {
		return nil, err
	}
	if !reviews(rec) {
		if err := writeFile(t.w.JobFile(rec, replyFile), bytes.NewReader(said)); err != nil {
			return nil, err
		}
		next.Phase = phaseReviewer
		return t.w.reviewPrompt(rec, said), nil
	}
	verdict := verdictOf(said)
	t.log.Record(activity.Event{Kind: agent.Note, Text: "verdict of the review: " + cmp.Or(verdict, "none")})
	if err := t.keepReview(rec, said); err != nil {
		return nil, err
	}
	switch {
	case verdict == "changes" && next.Round < next.Rounds:
		prompt = changesPrompt(rec, said)
		next.Phase, next.Round = phaseBuilder, next.Round+1
		return prompt, nil
	case verdict == "approve":
		next.Outcome = reviewApproved
	case verdict == "changes":
		next.Outcome = reviewUnresolved
		end.state, end.detail = ledger.Failed, fmt.Sprintf("review: %s still asks for changes after %d rounds", next.Agent, next.Rounds)
	case verdict == "escalate":
		next.Outcome = reviewEscalated
		end.state, end.detail = ledger.Failed, "review: "+next.Agent+" wants a person to decide"
	default:
		next.Outcome = reviewNoVerdict
		end.state, end.detail = ledger.Failed, "review: "+next.Agent+" gave no verdict"
	}
	return nil, t.reviewedResult(rec, end)
}

// readEnding reads what a phase said.
func readEnding(end *ending) ([]byte, error) {
	if end.result == nil {
		return nil, nil
	}
	return io.ReadAll(io.NewSectionReader(end.result, 0, end.result.Size()))
}

// keepReview adds a review to those of the job.
func (t *turn) keepReview(rec *ledger.Job, said []byte) error {
	old, err := os.ReadFile(t.w.JobFile(rec, reviewFile))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	part := fmt.Sprintf("round %d, by %s:\n%s\n", rec.Review.Round, rec.Review.Agent, bytes.TrimRight(said, "\n"))
	return writeFile(t.w.JobFile(rec, reviewFile), bytes.NewReader(slices.Concat(old, []byte(part))))
}

// reviewedResult makes the result: what the builder said last, and the reviews.
func (t *turn) reviewedResult(rec *ledger.Job, end *ending) error {
	reply, err := os.ReadFile(t.w.JobFile(rec, replyFile))
	if err != nil {
		return err
	}
	review, err := os.ReadFile(t.w.JobFile(rec, reviewFile))
	if err != nil {
		return err
	}
	if end.source != nil {
		end.source.Close()
		end.source = nil
	}
	end.say(slices.Concat(bytes.TrimRight(reply, "\n"), []byte("\n\n--- review ---\n"), review))
	return nil
}

// nextPhase commits the end of one phase's run and the beginning of the next
// one's, and hands it the job: each phase is a run of its own, whose process is
// gone when it is over. began is false when the job was cancelled meanwhile.
func (t *turn) nextPhase(review *ledger.Review, prompt []byte, end *ending) (began bool, err error) {
	w, s := t.w, t.j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	if cancel := t.j.record().Cancel; cancel != nil || t.unsaved != nil {
		*end = ending{state: ledger.Cancelled, detail: "by the owner, between two phases of its review", exit: end.exit, ran: true}
		t.outcome = reviewStopped
		return false, nil
	}
	rec := t.j.next(t.j.record().State, "")
	fresh := *review // this may be tried again
	review = &fresh
	rec.Review = review
	old := t.runRecord(end.state, end.detail)
	old.Updated, old.Ended = rec.Updated, rec.Updated
	convRec := t.phaseConversation(*end, old, rec)
	a, err := w.phaseAgent(rec)
	if err != nil {
		*end = ending{state: ledger.Failed, detail: "the review cannot go on: " + err.Error(), exit: end.exit, ran: true}
		t.outcome = reviewStopped
		return false, nil
	}
	g := w.grant(t.j, rec, s.touched(), a)
	if review.Runs = slices.Clone(review.Runs); len(review.Runs) == 0 {
		review.Runs = []string{t.rec.ID}
	}
	review.Runs = append(review.Runs, rec.Run)
	rec.Detail = fmt.Sprintf("review round %d: %s by %s", review.Round, review.Phase, a.Name)
	if err := writeFile(w.JobFile(rec, promptName(rec)), bytes.NewReader(prompt)); err != nil {
		g.drop()
		return false, err
	}
	builder := t.conv
	if err := w.advance(t.j, rec, also{
		put: func(b *ledger.Batch) {
			b.PutRun(old)
			if convRec != nil {
				b.PutConversation(convRec)
			}
			g.put(b)
		},
		then: func() {
			w.setLive(t.rec.ID, nil)
			w.showRun(old)
			if convRec != nil {
				s.putConversation(builder, convRec)
			}
			g.then()
			t.j.turn = g.turn
		},
	}); err != nil {
		g.drop()
		return false, err
	}
	w.spawn(g.turn.serve)
	return true, nil
}

// phaseConversation is the builder's conversation after its phase, nil for a
// reviewer's. What the phase consumed is added to the job's.
func (t *turn) phaseConversation(end ending, runRec *ledger.Run, rec *ledger.Job) *ledger.Conversation {
	before := rec.Usage
	conv := t.conversationEnd(end, runRec, rec)
	rec.Usage = addUsage(before, rec.Usage)
	return conv
}

// addUsage is what two turns consumed together.
func addUsage(a, b *ledger.Usage) *ledger.Usage {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &ledger.Usage{InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens, CostUSD: a.CostUSD + b.CostUSD}
}

// model and effort are those that the turn was asked to use.
func (t *turn) model() string {
	rec := t.j.record()
	if reviews(rec) {
		return cmp.Or(rec.Review.Model, t.agent.DefaultModel)
	}
	return cmp.Or(rec.Call.Model, t.agent.DefaultModel)
}

func (t *turn) effort() string {
	rec := t.j.record()
	if reviews(rec) {
		return cmp.Or(rec.Review.Effort, t.agent.DefaultEffort)
	}
	return cmp.Or(rec.Call.Effort, t.agent.DefaultEffort)
}

// reviewEnd is how the review stands when its job has ended.
func (t *turn) reviewEnd(r *ledger.Review) *ledger.Review {
	over := *r
	over.Outcome = cmp.Or(t.outcome, reviewStopped)
	return &over
}

// phaseTask is what a turn is about, in a line of the log.
func phaseTask(rec *ledger.Job) string {
	switch r := rec.Review; {
	case r == nil || r.Round == 1 && r.Phase == phaseBuilder:
		return rec.Task
	case r.Phase == phaseReviewer:
		return fmt.Sprintf("review, round %d, by %s", r.Round, r.Agent)
	default:
		return fmt.Sprintf("round %d: what the review asks for", r.Round)
	}
}
