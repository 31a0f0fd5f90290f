package fs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// verb is one command of a command file over a subject.
type verb[S any] struct {
	syntax
	run func(ctx context.Context, t *Tree, s S, args []string) error
}

// lineFile is a command file: each line written to it is one command, done
// before write returns. Reading it shows how to use it and how the last
// command came out.
type lineFile struct {
	site
	known []syntax
	bare  bool // lines hold no verb, only the arguments of the one command
	// value is what an attribute file shows: nil for the usage of commands.
	value func() ([]byte, error)
	// whole says that each write is one command, all its lines together.
	whole bool
	// check refuses all writers of a thing that is gone or closed.
	check func() error
	run   func(ctx context.Context, which int, args []string) error
	mtime func() (time.Time, error)
}

// Attr implements Node.
func (f lineFile) Attr(ctx context.Context) (Attr, error) {
	if err := f.settle(ctx); err != nil {
		return Attr{}, err
	}
	at, err := f.mtime()
	if err != nil {
		return Attr{}, err
	}
	who := f.t.who(ctx)
	data, err := f.draw(who)
	if err != nil {
		return Attr{}, err
	}
	last, _ := f.t.outcomes.get(f.key(who))
	a := f.attr(Regular, 0o600, latest(at, last.at))
	a.Size = int64(len(data))
	return a, nil
}

// draw returns what a read shows.
func (f lineFile) draw(who workbench.Caller) ([]byte, error) {
	last, said := f.t.outcomes.get(f.key(who))
	if f.value != nil {
		b, err := f.value()
		if err != nil {
			return nil, err
		}
		if last.refused {
			b = append(b, last.line...)
		}
		return b, nil
	}
	if _, err := f.mtime(); err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, x := range f.known {
		fmt.Fprintf(&b, "# %-20s  %s\n", x.form(f.bare), x.help)
	}
	if said {
		b.WriteString(last.line)
	}
	return []byte(b.String()), nil
}

// Open implements File.
func (f lineFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	who := f.t.who(ctx)
	if mode.Write {
		err := f.mayWrite(who)
		if err == nil {
			err = f.check()
		}
		if err != nil {
			f.t.refuse(as(ctx, who), f.site, f.opName(), err)
			return nil, err
		}
	}
	h := &lineHandle{f: f, mode: mode, opener: who}
	if mode.Read {
		return h, h.take(who)
	}
	return h, nil
}

// opName is the word for the file in an outcome that belongs to no verb.
func (f lineFile) opName() string {
	if f.bare {
		return f.known[0].name
	}
	return "ctl"
}

// lineHandle is an open lineFile.
type lineHandle struct {
	f    lineFile
	mode Mode
	view view

	opener workbench.Caller

	mu   sync.Mutex
	own  []byte // outcome of this handle's last write, until it is read
	told string // reason recorded already for the line that the caller will send again
}

// Read implements Handle. The first read after a write shows how that write
// came out, wherever the shell's file offset stands by then.
func (h *lineHandle) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if !h.mode.Read {
		return 0, fault.New(fault.Denied, "%s is open for writing only", h.f.path)
	}
	h.mu.Lock()
	own := h.own
	h.own = nil
	h.mu.Unlock()
	switch {
	case off == 0:
		if err := h.take(h.f.t.who(ctx)); err != nil {
			return 0, stale(err)
		}
	case own != nil:
		h.view.set(own, off)
	}
	return h.view.read(p, off), nil
}

// take draws a new version; what is gone stays readable.
func (h *lineHandle) take(who workbench.Caller) error {
	data, err := h.f.draw(who)
	if err != nil {
		if fault.Is(err, fault.NotFound) && h.view.taken() {
			return nil
		}
		return err
	}
	h.view.set(data, 0)
	return nil
}

// Write implements Handle: it does each line of p. Whoever opened the file, it
// is who writes the line that does it.
func (h *lineHandle) Write(ctx context.Context, p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mode.Write {
		return 0, fault.New(fault.Denied, "%s is open for reading only", h.f.path)
	}
	who := h.opener
	if c, ok := CallerOf(ctx); !ok || !c.Bound {
		who = h.f.t.who(ctx)
	}
	ctx = as(ctx, who)
	used, acted := 0, false
	for used < len(p) {
		line, size := h.f.next(p[used:])
		op, err := h.do(ctx, who, line)
		if err != nil {
			h.refuse(ctx, op, err, acted)
			if acted {
				return used, nil
			}
			return 0, err
		}
		used += size
		acted = acted || op != ""
	}
	return used, nil
}

// do runs one line; op is empty when it asked for nothing.
func (h *lineHandle) do(ctx context.Context, who workbench.Caller, line string) (op string, err error) {
	if h.f.idle(line) && len(line) <= maxLine {
		return "", nil
	}
	op = h.f.opName()
	if err := h.f.mayWrite(who); err != nil {
		return op, err
	}
	if err := h.f.check(); err != nil {
		return op, stale(err)
	}
	if which := findVerb(line, h.f.known, h.f.bare); which >= 0 {
		if err := h.f.permit(who, h.f.known[which].name); err != nil {
			return h.f.known[which].name, err
		}
	}
	which, args, err := h.f.parse(line)
	if err != nil {
		return op, err
	}
	op = h.f.known[which].name
	if err := h.f.run(ctx, which, args); err != nil {
		return op, err
	}
	h.told = ""
	h.own = []byte(h.f.t.succeed(who, h.f.site, op))
	return op, nil
}

// refuse records a refusal once: a line refused after others took effect comes
// again in the caller's next write.
func (h *lineHandle) refuse(ctx context.Context, op string, err error, again bool) {
	if why := reason(op, err); why != h.told {
		h.own = []byte(h.f.t.refuse(ctx, h.f.site, op, err))
		h.told = ""
		if again {
			h.told = why
		}
		return
	}
	h.told = ""
}

// Flush implements Handle.
func (h *lineHandle) Flush(context.Context, Closer) error { return nil }

// Release implements Handle.
func (h *lineHandle) Release(context.Context) {}

// commands makes a command file over a subject. guard refuses writers; it may
// be nil.
func commands[S any](at site, get subject[S], mtime func(*Tree, S) time.Time, guard func(S) error, verbs []verb[S]) lineFile {
	known := make([]syntax, len(verbs))
	for i, v := range verbs {
		known[i] = v.syntax
	}
	return lineFile{
		site:  at,
		known: known,
		mtime: func() (time.Time, error) {
			s, err := get()
			if err != nil {
				return time.Time{}, err
			}
			return mtime(at.t, s), nil
		},
		check: func() error {
			s, err := get()
			if err != nil || guard == nil {
				return err
			}
			return guard(s)
		},
		run: func(ctx context.Context, which int, args []string) error {
			s, err := get()
			if err != nil {
				return stale(err)
			}
			return verbs[which].run(ctx, at.t, s, args)
		},
	}
}

// ctl is a row that holds a command file.
func ctl[S any](guard func(S) error, verbs ...verb[S]) row[S] {
	return row[S]{name: "ctl", typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		return commands(at, d.get, d.table.changed, guard, verbs)
	}}
}

// attribute is a row that shows a value and takes a new one.
func attribute[S any](value func(*Tree, S) string, guard func(S) error, set verb[S]) row[S] {
	return row[S]{name: set.name, typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		f := commands(at, d.get, d.table.changed, guard, []verb[S]{set})
		f.bare = true
		f.value = func() ([]byte, error) {
			s, err := d.get()
			if err != nil {
				return nil, err
			}
			return oneLine(value(d.t, s)), nil
		}
		return f
	}}
}

var (
	_ File   = lineFile{}
	_ Handle = (*lineHandle)(nil)
)
