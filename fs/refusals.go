package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// refusalsKept is how many refusals /errors shows: of writes, and of what an
// agent may not read.
const refusalsKept = 100

// refusals are the last refusals, oldest first. Its lock is a leaf.
type refusals struct {
	mu    sync.Mutex
	lines []refusal
	last  time.Time
}

// refusal is one line.
type refusal struct {
	line []byte
	who  workbench.Caller
}

// recordOnce records what is asked for again and again, such as a look into a
// directory, unless it is kept already.
func (t *Tree) recordOnce(ctx context.Context, path string, err error) {
	if !t.refusals.has(t.who(ctx), what(path, err)) {
		t.record(ctx, path, err)
	}
}

// what is what a line says beside when and by whom.
func what(path string, err error) string { return shown(path) + " " + reason("", err) + "\n" }

// record keeps and logs that something was refused at path.
func (t *Tree) record(ctx context.Context, path string, err error) {
	caller, _ := CallerOf(ctx)
	now, why := t.opt.Clock(), reason("", err)
	t.refusals.add(now, t.who(ctx), fmt.Appendf(nil, "%s %d %s", now.Format(time.RFC3339), caller.PID, what(path, err)))
	level := slog.LevelWarn
	if fault.Is(err, fault.Internal) {
		level = slog.LevelError
	}
	t.opt.Log.LogAttrs(ctx, level, "refused", slog.String("path", path), slog.Int("pid", caller.PID), slog.String("reason", why))
}

// has tells whether a line is kept that says this of that caller.
func (r *refusals) has(who workbench.Caller, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, func(l refusal) bool {
		return l.who.Same(who) && bytes.HasSuffix(l.line, []byte(" "+what))
	})
}

func (r *refusals) add(at time.Time, who workbench.Caller, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, refusal{line, who})
	r.lines = r.lines[max(0, len(r.lines)-refusalsKept):]
	r.last = at
}

// text returns what /errors shows: an agent what was refused to it alone.
func (r *refusals) text(who workbench.Caller) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text []byte
	for _, l := range r.lines {
		if !who.Agent || l.who.Same(who) {
			text = append(text, l.line...)
		}
	}
	return text
}

// changed is when something was refused last.
func (r *refusals) changed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// outcome is how the last write to a file came out.
type outcome struct {
	line    string // with its newline
	at      time.Time
	refused bool
}

// outcomesKept bounds how many files' last outcomes are remembered.
const outcomesKept = 4096

// outcomes remembers the last outcome of each file by its inode number. The
// files that were first written to the longest ago are forgotten first. Its
// lock is a leaf.
type outcomes struct {
	mu    sync.Mutex
	last  map[uint64]outcome
	order []uint64
}

func (o *outcomes) get(ino uint64) (outcome, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, ok := o.last[ino]
	return last, ok
}

func (o *outcomes) set(ino uint64, last outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = make(map[uint64]outcome)
	}
	if _, known := o.last[ino]; !known {
		if len(o.order) == outcomesKept {
			delete(o.last, o.order[0])
			o.order = o.order[1:]
		}
		o.order = append(o.order, ino)
	}
	o.last[ino] = last
}

// refuse records a refused write everywhere that it shows, and returns the
// line that the file shows to the writer from now on.
func (t *Tree) refuse(ctx context.Context, at site, op string, err error) string {
	why := reason(op, err)
	t.record(ctx, at.path, fault.New(fault.KindOf(err), "%s: %s", op, why))
	line := fmt.Sprintf("# last: %s: refused: %s\n", op, why)
	t.outcomes.set(at.key(t.who(ctx)), outcome{line: line, at: t.opt.Clock(), refused: true})
	return line
}

// succeed records that a command was done.
func (t *Tree) succeed(who workbench.Caller, at site, op string) string {
	line := fmt.Sprintf("# last: %s: ok\n", op)
	t.outcomes.set(at.key(who), outcome{line: line, at: t.opt.Clock()})
	return line
}

// reason returns the sentence of err in one line, without what is said
// already: that op was refused.
func reason(op string, err error) string {
	var e *fault.Error
	if errors.As(err, &e) && e.Op == op && e.Error() == err.Error() {
		short := *e
		short.Op = ""
		err = &short
	}
	return strings.TrimPrefix(cleanLine(err.Error()), "refused: ")
}
