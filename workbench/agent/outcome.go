package agent

import (
	"fmt"
)

// signals names the exit codes by which a shell or a program that caught a
// signal says that the signal ended it.
var signals = map[int]string{129: "HUP", 130: "INT", 131: "QUIT", 134: "ABRT", 137: "KILL", 139: "SEGV", 141: "PIPE", 143: "TERM"}

// Outcome judges by what the stream told; the exit only counts when the stream
// has no ending, because programs exit with 0 on errors and with all kinds of
// codes else.
func (r *reader) Outcome(exit Exit, stderr []byte) Outcome {
	t := r.turn
	r.d.settle(&t, exit)
	o := Outcome{Reply: t.Reply, Session: t.ID, Usage: t.Usage, Unknown: t.Unknown}
	switch {
	case t.Refused:
		o.Status, o.Error = StatusDeclined, r.refusal(t.Reason)
	case t.Failed:
		p := problem{reason: t.Reason, http: t.HTTP, reset: t.Reset}
		if p.reason == "" {
			p.reason = complaint(stderr)
		}
		o.Status, o.Error = StatusFailed, p.sentence(r.a)
	case t.Done:
		o.Status = StatusCompleted
	default:
		o.Status, o.Error = StatusFailed, r.unfinished(&t, exit, stderr)
	}
	return o
}

// refusal is the sentence of a turn that the model declined.
func (r *reader) refusal(reason string) string {
	if reason != "" {
		return fmt.Sprintf("%s's model declined (%s): word the prompt differently, or ask another agent", r.a.Name, problem{reason: reason}.words())
	}
	return fmt.Sprintf("%s's model gave no answer, which is how it declines: word the prompt differently, or ask another agent", r.a.Name)
}

// unfinished is the sentence of a turn that nothing says the end of.
func (r *reader) unfinished(t *turn, exit Exit, stderr []byte) string {
	said := complaint(stderr)
	if t.Events == 0 && len(t.Stray) > 0 {
		s := fmt.Sprintf("unrecognised output: %q: check that %s prints what its output setting (%s) says", OneLine(Redact(string(t.Stray)), maxStray), r.a.Name, t.Format)
		if said != "" {
			s += "; on standard error it said: " + problem{reason: said}.words()
		}
		return s
	}
	if name, ok := signals[exit.Code]; ok && exit.Signal == "" {
		exit.Signal = name
	}
	if exit.Signal != "" {
		s := fmt.Sprintf("%s %s before its turn was over", r.a.Name, ending(exit))
		if t.Reason != "" {
			s += "; the last it told: " + problem{reason: t.Reason}.words()
		}
		return s
	}
	if p := (problem{reason: t.Reason, http: t.HTTP, reset: t.Reset}); p.reason != "" {
		return p.sentence(r.a)
	}
	p := problem{reason: said}
	switch {
	case said == "":
		return fmt.Sprintf("%s %s before its turn was over, and said nothing about it", r.a.Name, ending(exit))
	case t.Events == 0 || p.cause() != causeUnknown:
		return p.sentence(r.a)
	}
	return fmt.Sprintf("%s %s before its turn was over; on standard error it said: %s", r.a.Name, ending(exit), p.words())
}
