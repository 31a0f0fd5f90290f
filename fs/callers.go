package fs

import (
	"context"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// An agent is a process below a run's shim, whatever else it says it is. Two
// things are asked of the workbench about each caller, here and nowhere else:
// whether it may read what stands at a site (mayRead), and whether it may do an
// act there (permit). Where nothing is said, both are for the owner alone, so a
// new file of any kind is the owner's until its row opens it to agents.

// readers says who, beside the owner, may read what stands at a site: the
// agents of the session of that name, or one of these. What is below a
// directory is for the same readers unless its row says otherwise.
type readers string

const (
	unsaid    readers = ""  // of a row: as its directory; at a site: nobody
	nobody    readers = "-" // nobody else
	everybody readers = "*" // all agents
	listers   readers = "/" // all agents may list the directory; what is below it says for itself
)

// to says of a row who may read it, and all below it.
func (r row[S]) to(who readers) row[S] {
	r.readers = who
	return r
}

// rule refuses an act on a subject to agents that may not do it.
type rule[S any] func(t *Tree, who workbench.Caller, s S) error

// agents opens acts of a row to the agents that the rule lets pass: verbs of a
// command file, or the word of a document. All others stay the owner's.
func (r row[S]) agents(may rule[S], acts ...string) row[S] {
	all := make(map[string]rule[S], len(r.acts)+len(acts))
	for act, old := range r.acts {
		all[act] = old
	}
	for _, act := range acts {
		all[act] = may
	}
	r.acts = all
	return r
}

// open binds what a row says about callers to a site.
func (r *row[S]) open(at site, d tableDir[S]) site {
	if r.readers != unsaid {
		at.readers = r.readers
	}
	if r.acts == nil {
		return at
	}
	at.may = func(who workbench.Caller, act string) error {
		may := r.acts[act]
		if may == nil {
			return workbench.OwnersAlone(who)
		}
		s, err := d.get()
		if err != nil {
			return stale(err)
		}
		return may(d.t, who, s)
	}
	return at
}

type whoKey struct{}

// as returns a context in which who asks, whatever process that is by now.
func as(ctx context.Context, who workbench.Caller) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// who tells who asks. A transport that names no process answers for its
// clients: they are the owner.
func (t *Tree) who(ctx context.Context) workbench.Caller {
	if who, ok := ctx.Value(whoKey{}).(workbench.Caller); ok {
		return who
	}
	c, ok := CallerOf(ctx)
	switch {
	case !ok || c.Bound && c.PID == 0:
		return workbench.Caller{}
	case c.who != nil:
		return *c.who
	}
	return t.bench.Caller(c.PID)
}

// Meet finds out who a caller is, once and for all that is done for it from
// then on: what a transport learned when somebody connected means another
// process, or none, once that one has ended.
func (t *Tree) Meet(c Caller) Caller {
	who := t.who(WithCaller(context.Background(), c))
	c.who = &who
	return c
}

// mayRead refuses readers for whom the site is not, and records it.
func (s site) mayRead(ctx context.Context) error {
	if s.readers == everybody || s.readers == listers {
		return nil
	}
	who := s.t.who(ctx)
	if who.Reads(string(s.readers)) {
		return nil
	}
	err := fault.New(fault.Denied, "not for %s, which reads what belongs to its own session", who)
	s.t.recordOnce(ctx, s.path, err)
	return err
}

// permit refuses an act to whoever may not do it.
func (s site) permit(who workbench.Caller, act string) error {
	if who.Agent && s.may != nil {
		return s.may(who, act)
	}
	return workbench.OwnersAlone(who)
}

// mayWrite refuses writers of a file of which nothing is open to them.
func (s site) mayWrite(who workbench.Caller) error {
	if who.Agent && s.may != nil {
		return nil
	}
	return workbench.OwnersAlone(who)
}

// key is what the outcomes of a caller's writes to a file are kept under: what
// an agent does is not the last thing that the owner did.
func (s site) key(who workbench.Caller) uint64 {
	if who.Owner() {
		return s.ino
	}
	return childIno(s.ino, "\x00"+who.Run)
}

// stands is implemented by all that has a site.
type stands interface{ place() site }

func (s site) place() site { return s }

// judge is implemented by files that ask by themselves who writes, or that
// nobody writes to.
type judge interface{ judges() }

func (lineFile) judges()   {}
func (document) judges()   {}
func (textFile) judges()   {}
func (diskFile) judges()   {}
func (streamFile) judges() {}

// guard puts a file behind the rule.
func guard(n Node) Node {
	f, ok := n.(File)
	if !ok {
		return n
	}
	at, ok := n.(stands)
	if !ok {
		return n
	}
	_, judges := f.(judge)
	return guarded{File: f, at: at.place(), judges: judges}
}

// guarded is a file behind the rule of who may read and write it.
type guarded struct {
	File
	at     site
	judges bool
}

// Open implements File.
func (g guarded) Open(ctx context.Context, mode Mode) (Handle, error) {
	if mode.Read {
		if err := g.at.mayRead(ctx); err != nil {
			return nil, err
		}
	}
	if !mode.Write || g.judges {
		return g.File.Open(ctx, mode)
	}
	if err := g.owners(ctx); err != nil {
		return nil, err
	}
	h, err := g.File.Open(ctx, mode)
	if err != nil {
		return nil, err
	}
	return guardedHandle{h, g}, nil
}

// owners refuses and records whoever is not the owner.
func (g guarded) owners(ctx context.Context) error {
	err := workbench.OwnersAlone(g.at.t.who(ctx))
	if err != nil {
		g.at.t.record(ctx, g.at.path, err)
	}
	return err
}

// guardedHandle is an open file that the owner alone writes to, whoever has
// its descriptor by now.
type guardedHandle struct {
	Handle
	g guarded
}

// Write implements Handle.
func (h guardedHandle) Write(ctx context.Context, p []byte) (int, error) {
	if err := h.g.owners(ctx); err != nil {
		return 0, err
	}
	return h.Handle.Write(ctx, p)
}

// Stream implements Streamer.
func (h guardedHandle) Stream() bool {
	s, ok := h.Handle.(Streamer)
	return ok && s.Stream()
}

var (
	_ File     = guarded{}
	_ Handle   = guardedHandle{}
	_ Streamer = guardedHandle{}
)
