package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// approvalTable is approvals/<n>/.
var approvalTable = table[*ledger.Approval]{
	made:    func(_ *Tree, a *ledger.Approval) time.Time { return a.Created },
	changed: approvalChanged,
	newest:  approvalChanged,
	rows: []row[*ledger.Approval]{
		watched(text("request", approvalRequest)),
		watched(row[*ledger.Approval]{name: "summary", typ: Regular, node: summaryFile}),
		watched(constant("risk", func(_ *Tree, a *ledger.Approval) string { return a.Risk })),
		watched(constant("job", func(_ *Tree, a *ledger.Approval) string { return address(a.Session, a.Job) })),
		watched(constant("run", func(_ *Tree, a *ledger.Approval) string { return a.Run })),
		watched(constant("deadline", func(_ *Tree, a *ledger.Approval) string { return moment(a.Deadline) })),
		watched(row[*ledger.Approval]{name: "answer", typ: Regular, node: answerFile}),
	},
}

func approvalChanged(_ *Tree, a *ledger.Approval) time.Time { return latest(a.Created, a.Decided) }

// cutRequest stands for a request that is longer than is kept.
type cutRequest struct {
	Cut   string          `json:"cut"`
	Start json.RawMessage `json:"start"`
}

// approvalRequest is all that the agent asked, as JSON.
func approvalRequest(_ *Tree, a *ledger.Approval) ([]byte, error) {
	switch {
	case len(a.Request) == 0:
		return nil, nil
	case a.RequestBytes > 0:
		said := fmt.Sprintf("the request has %d bytes, more than are kept; this is how it begins", a.RequestBytes)
		return jsonText(cutRequest{said, a.Request}, "  ")
	}
	return jsonText(a.Request, "  ")
}

// summaryFile is all of a request in one line.
func summaryFile(d tableDir[*ledger.Approval], at site, _ *ledger.Approval) Node {
	f := drawn(d, at, approvalChanged, said((*Tree).summary))
	f.mtime = d.when(func(t *Tree, a *ledger.Approval) time.Time {
		_, since := minutesLeft(a, t.opt.Clock())
		return latest(approvalChanged(t, a), since)
	})
	return f
}

// summary says who wants to do what, where, and for how long it waits yet.
func (t *Tree) summary(a *ledger.Approval) string {
	who, how := a.Conversation, workbench.Outcome(a)
	if who == "" {
		who = a.Agent
	}
	if a.State == ledger.ApprovalWaiting {
		left, _ := minutesLeft(a, t.opt.Clock())
		how = left + " left"
	}
	return fmt.Sprintf("%s: %s in %s (job %s, %s)", who, a.Summary, t.tilde(a.CWD), address(a.Session, a.Job), how)
}

// minutesLeft is how long a request waits yet, in whole minutes, and since when
// it is so many.
func minutesLeft(a *ledger.Approval, now time.Time) (left string, since time.Time) {
	n, since := unitsLeft(a, now, time.Minute)
	return fmt.Sprintf("%d min", n), since
}

// secondsLeft is the same by the second: 2m13s.
func secondsLeft(a *ledger.Approval, now time.Time) (left string, since time.Time) {
	n, since := unitsLeft(a, now, time.Second)
	if n < 3600 {
		return fmt.Sprintf("%dm%02ds", n/60, n%60), since
	}
	return fmt.Sprintf("%dh%02dm%02ds", n/3600, n/60%60, n%60), since
}

func unitsLeft(a *ledger.Approval, now time.Time, unit time.Duration) (n int64, since time.Time) {
	if a.State != ledger.ApprovalWaiting {
		return 0, time.Time{}
	}
	n = int64(max(0, a.Deadline.Sub(now)) / unit)
	return n, a.Deadline.Add(-time.Duration(n+1) * unit)
}

// answerFile is answer: a write answers the request, a read tells how, or how it
// was answered.
func answerFile(d tableDir[*ledger.Approval], at site, _ *ledger.Approval) Node {
	f := commands(at, d.get, approvalChanged, nil, []verb[*ledger.Approval]{{
		syntax{"answer", "ANSWER…", ""},
		func(ctx context.Context, t *Tree, a *ledger.Approval, args []string) error {
			return t.bench.Answer(a.Number, args[0], answerer(ctx, at))
		},
	}})
	f.bare, f.whole = true, true
	f.value = func() ([]byte, error) {
		a, err := d.get()
		if err != nil {
			return nil, err
		}
		return block(answerText(a)), nil
	}
	return f
}

// answerer is who writes to a file.
func answerer(ctx context.Context, at site) workbench.Answerer {
	c, _ := CallerOf(ctx)
	return workbench.Answerer{PID: c.PID, Path: at.path}
}

// answerText says how a request can be answered, or how it was.
func answerText(a *ledger.Approval) string {
	var b strings.Builder
	switch {
	case a.State != ledger.ApprovalWaiting:
		fmt.Fprintf(&b, "%s, %s\n", workbench.Outcome(a), moment(a.Decided))
		for i, word := range a.Words {
			fmt.Fprintf(&b, "%d: %s\n", i+1, agent.OneLine(word, 0))
		}
		b.WriteString(agent.OneLine(a.Reason, 0))
	case a.Kind == string(dialogue.Question) && len(a.Questions) > 0:
		for i, q := range a.Questions {
			writeQuestion(&b, i+1, q)
		}
		b.WriteString("# write an option, its number, or words of your own")
		if len(a.Questions) > 1 {
			b.WriteString(": a line for each question, all in one write")
		}
		b.WriteString("; or no\n")
	default:
		fmt.Fprintf(&b, "# %s\n# %-20s  to allow it\n# %-20s  not to; WHY is for the agent to read\n", a.Summary, "yes", "no [WHY…]")
	}
	return b.String()
}

// writeQuestion shows one question with its options.
func writeQuestion(b *strings.Builder, n int, q ledger.Question) {
	fmt.Fprintf(b, "# %d: %s", n, agent.OneLine(q.Text, 0))
	if q.Multi {
		b.WriteString(" (one or more, with commas)")
	}
	b.WriteByte('\n')
	for i, o := range q.Options {
		fmt.Fprintf(b, "#    %d %s\n", i+1, agent.OneLine(o, 0))
	}
}

// approveRow is approve: the requests of a session or job that wait, one a line,
// and a write answers one of them.
func approveRow[S any](guard func(S) error, of func(S) (session string, job uint64)) row[S] {
	approve := watched(row[S]{name: "approve", typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		f := commands(at, d.get, d.table.changed, guard, []verb[S]{{
			syntax{"approve", "ANSWER…", ""},
			func(ctx context.Context, t *Tree, s S, args []string) error {
				session, job := of(s)
				return t.bench.Approve(session, job, args[0], answerer(ctx, at))
			},
		}})
		waiting := func() (recs []*ledger.Approval, changed time.Time, err error) {
			s, err := d.get()
			if err != nil {
				return nil, time.Time{}, err
			}
			return d.t.bench.Approvals(of(s)), d.table.changed(d.t, s), nil
		}
		f.bare = true
		f.value = func() ([]byte, error) {
			recs, _, err := waiting()
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			for _, a := range recs {
				b.Write(d.t.waitingLine(a, workbench.JobName(a.Job)))
			}
			return b.Bytes(), nil
		}
		f.mtime = func() (time.Time, error) {
			recs, changed, err := waiting()
			for _, a := range recs {
				_, since := secondsLeft(a, d.t.opt.Clock())
				changed = latest(changed, since)
			}
			return changed, err
		}
		return f
	}})
	return approve.to(nobody)
}

// waitingLine is a request in one line: number, risk, how long it waits yet,
// whose, and what.
func (t *Tree) waitingLine(a *ledger.Approval, whose string) []byte {
	left, _ := secondsLeft(a, t.opt.Clock())
	return oneLine(fmt.Sprintf("%d %s %s %s %s", a.Number, a.Risk, left, whose, a.Summary))
}

// approvalsDir is approvals/. It lists what waits; what was decided is found by
// its number as long as its job is kept.
type approvalsDir struct{ collection }

func newApprovalsDir(_ tableDir[none], at site, _ none) Node {
	d := approvalsDir{collection{site: at, perm: 0o500, mtime: always(at.t.lastChange)}}
	d.list = func() ([]Entry, error) {
		var entries []Entry
		for _, a := range at.t.bench.Approvals("", 0) {
			entries = append(entries, Entry{Name: strconv.FormatUint(a.Number, 10), Ino: approvalIno(a.Number), Type: Directory})
		}
		return entries, nil
	}
	d.find = func(name string) (Node, bool) {
		at := at.child(name).forever()
		if name == watchName {
			return newWatchFile(at), true
		}
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != name {
			return nil, false
		}
		get := at.t.approval(n)
		if _, err := get(); err != nil {
			return nil, false
		}
		at.ino = approvalIno(n)
		return approvalDir{tableDir[*ledger.Approval]{site: at, table: &approvalTable, get: get}}, true
	}
	return d
}

// List implements Dir. It counts as watching.
func (d approvalsDir) List(ctx context.Context) ([]Entry, error) {
	d.t.looked(ctx)
	return d.collection.List(ctx)
}

// approvalDir is approvals/<n>/.
type approvalDir struct{ tableDir[*ledger.Approval] }

// List implements Dir. It counts as watching.
func (d approvalDir) List(ctx context.Context) ([]Entry, error) {
	d.t.looked(ctx)
	return d.tableDir.List(ctx)
}

// approval finds a request.
func (t *Tree) approval(n uint64) subject[*ledger.Approval] {
	return func() (*ledger.Approval, error) {
		a, ok := t.bench.Approval(n)
		if !ok {
			return nil, fault.New(fault.NotFound, "approval %d is no longer there: its job was forgotten", n)
		}
		return a, nil
	}
}

func approvalIno(n uint64) uint64 { return thingIno("approval", strconv.FormatUint(n, 10)) }

var (
	_ Dir = approvalsDir{}
	_ Dir = approvalDir{}
)
