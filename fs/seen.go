package fs

import (
	"bytes"
	"context"

	"scvfs/ledger"
	"scvfs/workbench"
)

// seen tells the workbench that a reader was shown how a job ended: an agent
// that saw it needs no turn that reports it. It costs others nothing.
func (t *Tree) seen(ctx context.Context, get subject[*ledger.Job]) {
	j, err := get()
	if err != nil || !workbench.Unreported(j) || ctx.Err() != nil {
		return
	}
	if caller, ok := CallerOf(ctx); ok {
		t.bench.Seen(j.Session, j.Number, caller.PID)
	}
}

// told makes a row of a text tell of readers whom it showed a job's end.
func told(r row[*ledger.Job]) row[*ledger.Job] {
	plain := r.node
	r.node = func(d tableDir[*ledger.Job], at site, j *ledger.Job) Node {
		switch f := plain(d, at, j).(type) {
		case textFile:
			f.told = func(ctx context.Context, text []byte) {
				if ledger.AgentState(bytes.TrimSpace(text)).Terminal() {
					d.t.seen(ctx, d.get)
				}
			}
			return f
		case diskFile:
			f.told = func(ctx context.Context) { d.t.seen(ctx, d.get) }
			return f
		default:
			return f
		}
	}
	return r
}

// teller is a source that wants to know to whom it was read.
type teller interface {
	told(ctx context.Context)
}

// told implements teller.
func (s *waitSource) told(ctx context.Context) {
	if s.done {
		s.t.seen(ctx, s.get)
	}
}

var _ teller = (*waitSource)(nil)
