package workbench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
)

// Answerer is who answers a request, and where.
type Answerer struct {
	PID  int    // of the process that wrote; 0 when not known
	Path string // of the file that it wrote to, from the mount point
}

func (by Answerer) String() string {
	if by.PID == 0 {
		return by.Path
	}
	return fmt.Sprintf("pid %d, %s", by.PID, by.Path)
}

// Answer gives the owner's answer to a request. The first answer wins:
// fault.Done names who decided before. fault.NotFound: there is no such
// request; fault.Invalid: the text is no answer to it.
func (w *Workbench) Answer(n uint64, text string, by Answerer) error {
	a := w.approvals.find(n)
	if a == nil {
		return noApproval(n)
	}
	a.j.s.tr.Lock()
	tell, err := w.answerLocked(a, text, by)
	a.j.s.tr.Unlock()
	if err != nil {
		return err
	}
	tell()
	return nil
}

// answerLocked is Answer under s.tr. tell is to be called without.
func (w *Workbench) answerLocked(a *approval, text string, by Answerer) (tell func(), err error) {
	switch rec := a.record(); {
	case !a.waits():
		return nil, decidedFault(rec)
	case a.gone != nil:
		return nil, fault.New(fault.Done, "approval %d was withdrawn: %s", rec.Number, a.gone.why)
	}
	answer, err := ParseAnswer(a.record(), text)
	if err != nil {
		return nil, err
	}
	if err := w.decide(a.j, []*approval{a}, time.Now(), func(rec *ledger.Approval) {
		rec.State, rec.By, rec.How = ledger.ApprovalDenied, ledger.DecidedByOwner, by.String()
		if answer.Allow {
			rec.State = ledger.ApprovalApproved
		}
		rec.Words, rec.Reason = answer.Words, answer.Reason
	}); err != nil {
		return nil, err
	}
	return a.hand(), nil
}

func decidedFault(rec *ledger.Approval) error {
	return fault.New(fault.Done, "approval %d was %s, at %s", rec.Number, Outcome(rec), rec.Decided.Format(time.RFC3339))
}

// Approve takes a line that answers a request of a session, or of one job of
// it unless job is 0: an answer as Answer takes it, and behind yes or no the
// number of the request, which may be left out while one waits alone.
// fault.Invalid: it is not said which; else as Answer.
func (w *Workbench) Approve(session string, job uint64, line string, by Answerer) error {
	text, n := CutNumber(line)
	if n == 0 {
		var err error
		if n, err = w.onlyOne(session, job); err != nil {
			return err
		}
	}
	rec, ok := w.Approval(n)
	if !ok || rec.Session != session || job != 0 && rec.Job != job {
		return fault.New(fault.NotFound, "there is no approval %d of %s; cat this file for those that wait", n, place(session, job))
	}
	return w.Answer(n, text, by)
}

// CutNumber takes the number of an approval out of a line such as "yes 17" or
// "no 17 not now"; it is 0 when the line has none.
func CutNumber(line string) (text string, n uint64) {
	words := strings.Fields(line)
	if len(words) < 2 || !isWord(words[0], "yes") && !isWord(words[0], "no") {
		return line, 0
	}
	n, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil || n == 0 {
		return line, 0
	}
	return strings.Join(append(words[:1:1], words[2:]...), " "), n
}

// onlyOne returns the number of the only request that waits.
func (w *Workbench) onlyOne(session string, job uint64) (uint64, error) {
	waiting := w.Approvals(session, job)
	switch len(waiting) {
	case 1:
		return waiting[0].Number, nil
	case 0:
		if rec := w.lastDecided(session, job); rec != nil {
			return 0, fault.New(fault.Done, "nothing of %s waits any more: %w", place(session, job), decidedFault(rec))
		}
		return 0, fault.New(fault.NotFound, "nothing of %s waits for an answer", place(session, job))
	}
	var numbers []string
	for _, rec := range waiting {
		numbers = append(numbers, strconv.FormatUint(rec.Number, 10))
	}
	return 0, fault.New(fault.Invalid, "%d requests of %s wait (%s): say which, as in: yes %s",
		len(waiting), place(session, job), strings.Join(numbers, ", "), numbers[0])
}

// lastDecided returns the request of a job that was decided last; nil when
// there is none, and for a whole session.
func (w *Workbench) lastDecided(session string, job uint64) *ledger.Approval {
	j, err := w.find(session, job)
	if err != nil {
		return nil
	}
	j.s.tr.Lock()
	defer j.s.tr.Unlock()
	var last *ledger.Approval
	for _, a := range j.asks {
		if rec := a.record(); last == nil || rec.Decided.After(last.Decided) {
			last = rec
		}
	}
	return last
}

// place is how a session, or a job of it, is called.
func place(session string, job uint64) string {
	if job == 0 {
		return session
	}
	return address(session, job)
}
