package fs

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
	"scvfs/workbench/worktree"
)

// The pids of a crowd's callers.
const (
	ownerPID = 4242 // as of any client
	agentPID = 7000 + iota
	otherPID
	strayPID
	hiddenPID
)

// callers are those who are not the owner.
var callers = map[string]int{"an agent": agentPID, "another session's agent": otherPID, "a stray": strayPID, "a hidden process": hiddenPID}

// newCrowd is a tree with all kinds of things in it: session shop, whose job-1
// is the owner's and runs the agent, and whose job-2, which has ended, the
// agent started; and session other.
func newCrowd(t testing.TB) (client, *fake) {
	c, f := newShop(t)
	must(f.RegisterSession("other", "/src", ""))
	must(f.Start(c.ctx, "shop", draftOf("the owner's")))
	agent := workbench.Caller{Agent: true, Run: f.run("shop", 1), Session: "shop", Job: 1}
	f.converse("shop", 1, "sh-1")
	must(f.Start(c.ctx, "shop", workbench.Draft{Prompt: []byte("the agent's"), By: agent}))
	f.run("shop", 2)
	f.end("shop", 2, "completed", "done")
	must(f.Start(c.ctx, "other", draftOf("the other's")))
	other := f.run("other", 1)
	f.converse("other", 1, "sh-1")
	for _, name := range []string{agent.Run, other, "sh-gone00"} {
		f.worktrees = append(f.worktrees, worktree.Worktree{Name: name, Path: "/w/" + name, Created: epoch})
	}
	f.raise("shop", 1, "process", "run `rm -rf build`")
	f.be(agentPID, agent)
	f.be(otherPID, workbench.Caller{Agent: true, Run: other, Session: "other", Job: 1})
	f.be(strayPID, workbench.Caller{Agent: true})
	f.be(hiddenPID, workbench.Caller{Unclear: "it hides"})
	return c, f
}

// by is the client as another process.
func (c client) by(pid int) client {
	c.ctx = WithCaller(context.Background(), Caller{PID: pid})
	return c
}

// hiddenNames are the names that no listing shows, of all tables.
func hiddenNames() []string {
	names := map[string]bool{}
	collect(names, rootTable.rows)
	collect(names, sessionTable.rows)
	collect(names, conversationTable.rows)
	collect(names, jobTable.rows)
	collect(names, runTable.rows)
	collect(names, worktreeTable.rows)
	collect(names, agentTable.rows)
	collect(names, approvalTable.rows)
	collect(names, takeoverTable.rows)
	names[watchName] = true
	return slices.Sorted(maps.Keys(names))
}

func collect[S any](names map[string]bool, rows []row[S]) {
	for _, r := range rows {
		if r.hidden {
			names[r.name] = true
		}
	}
}

// everything is all that the tree has, by path, listed or not.
func (c client) everything() map[string]Node {
	c.Helper()
	all := map[string]Node{"": c.tree.Root()}
	err := walk(c.ctx, c.tree.Root(), "", func(name string, _ Entry, n Node) { all[name] = n })
	if err != nil {
		c.Fatal(err)
	}
	for at, n := range maps.Clone(all) {
		for _, name := range hiddenNames() {
			if d, ok := n.(Dir); ok {
				if child, err := d.Lookup(c.ctx, name); err == nil {
					all[path.Join(at, name)] = child
				}
			}
		}
	}
	return all
}

// matches tells whether one of the patterns is a path, or with a slash at its
// end a path above it.
func matches(name string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if top, tree := strings.CutSuffix(p, "/"); tree {
			return name == top || strings.HasPrefix(name, p)
		}
		ok, err := path.Match(p, name)
		if err != nil {
			panic(err)
		}
		return ok
	})
}

// What each caller may read, beside the owner: the rest is refused.
func TestWhatAgentsRead(t *testing.T) {
	c, f := newCrowd(t)
	open := []string{"", "README", "version", "ctl", "errors", "agents/", "active/", "sessions", "runs", "worktrees"}
	mine, others := f.jobs["shop"][0].Run, f.jobs["other"][0].Run
	reads := map[string][]string{
		"an agent":                append([]string{"sessions/shop/", "runs/" + mine + "/", "runs/" + f.jobs["shop"][1].Run + "/", "worktrees/" + mine + "/"}, open...),
		"another session's agent": append([]string{"sessions/other/", "runs/" + others + "/", "worktrees/" + others + "/"}, open...),
		"a stray":                 open,
		"a hidden process":        {"?*", "?*/*", "?*/*/*", "?*/*/*/*", "?*/*/*/*/*", "?*/*/*/*/*/*", ""},
	}
	reads["the owner"] = reads["a hidden process"]
	for who, patterns := range reads {
		pid := callers[who]
		if who == "the owner" {
			pid = ownerPID
		}
		as := c.by(pid)
		for name, n := range c.everything() {
			allowed := matches(name, patterns...) && (path.Base(name) != "approve" || pid == ownerPID || pid == hiddenPID)
			for what, err := range as.look(n) {
				if denied := fault.Is(err, fault.Denied); denied == allowed {
					t.Errorf("%s of %s for %s: %v", what, name, who, err)
				}
			}
		}
	}
}

// Only the owner watches: what others read below approvals counts for nothing.
func TestAgentsDoNotWatch(t *testing.T) {
	c, f := newCrowd(t)
	f.watched()
	for who, pid := range callers {
		for name, n := range c.by(ownerPID).everything() {
			if matches(name, "approvals/", "sessions/shop/approve", "sessions/shop/jobs/job-1/approve") {
				f.watched()
				c.by(pid).look(n)
				if h, err := c.by(pid).open(name, Mode{Read: true, NonBlock: true}); err == nil {
					_, _ = h.Read(c.by(pid).ctx, make([]byte, 10), 0)
					if watchers, _ := f.watched(); watchers != 0 {
						t.Errorf("%s watches by %s", who, name)
					}
					h.Release(c.by(pid).ctx)
				}
				if watchers, looks := f.watched(); watchers != 0 || looks != 0 {
					t.Errorf("reads of %s by %s count: %d watchers, %d looks", name, who, watchers, looks)
				}
			}
		}
	}
	c.cat("sessions/shop/approve")
	if _, looks := f.watched(); looks == 0 {
		t.Error("nothing counts")
	}
}

// look does all to a node that shows something of it.
func (c client) look(n Node) map[string]error {
	did := map[string]error{}
	switch n := n.(type) {
	case Dir:
		_, did["stat"] = n.Attr(c.ctx)
		_, did["list"] = n.List(c.ctx)
		_, did["lookup"] = n.Lookup(c.ctx, "wait")
	case Link:
		_, did["readlink"] = n.Readlink(c.ctx)
	case File:
		h, err := n.Open(c.ctx, Mode{Read: true, NonBlock: true})
		if did["open"] = err; err == nil {
			h.Release(c.ctx)
		}
	}
	return did
}

// The acts that are open to agents, by their pid and file, beside which all is
// refused.
var openActs = map[int]map[string][]string{
	agentPID: {
		"sessions/shop/start":            {"a prompt"},
		"sessions/shop/jobs/job-2/reply": {"a prompt"},
		"sessions/shop/jobs/job-2/ctl":   {"cancel", "cancel /src", "dismiss", "dismiss /src"},
	},
	otherPID: {"sessions/other/start": {"a prompt"}},
}

// Every act that any file offers is tried by everybody who is not the owner,
// on a descriptor of his own and on one that the owner opened. Nothing changes.
func TestEveryActIsTheOwnersUnlessItIsOpenToAgents(t *testing.T) {
	c, f := newCrowd(t)
	tried := 0
	for who, pid := range callers {
		for name, n := range c.everything() {
			file, ok := n.(File)
			if !ok {
				continue
			}
			for _, text := range c.acts(name) {
				if slices.Contains(openActs[pid][name], text) {
					continue
				}
				tried++
				before := len(f.changes)
				for opener, ctx := range map[string]context.Context{who: c.by(pid).ctx, "the owner": c.ctx} {
					h, err := file.Open(ctx, Mode{Write: true})
					if err == nil {
						_, err = h.Write(c.by(pid).ctx, []byte(text+"\n"))
						_ = h.Flush(c.by(pid).ctx, Closer{Opener: opener == who})
						h.Release(context.Background())
					}
					if !fault.Is(err, fault.Denied) {
						t.Errorf("%q to %s by %s, opened by %s: %v", text, name, who, opener, err)
					}
				}
				if len(f.changes) != before {
					t.Fatalf("%q to %s by %s did %+v", text, name, who, f.changes[before:])
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d acts were tried", tried)
	}
}

// acts are the texts that a file takes, as it says itself.
func (c client) acts(name string) []string {
	if a := c.attr(name); a.Perm&0o200 == 0 {
		return []string{"x"}
	}
	var acts []string
	for line := range strings.Lines(c.cat(name)) {
		words := strings.Fields(strings.TrimPrefix(line, "#"))
		switch {
		case !strings.HasPrefix(line, "# "), words[0] == "last:":
		case words[0] == "write":
			return []string{"a prompt"}
		case words[0] == "ID":
			acts = append(acts, "evil /src")
		default:
			acts = append(acts, words[0], words[0]+" /src")
		}
	}
	if acts == nil {
		return []string{"sh"} // it shows a value
	}
	return acts
}

func TestDirectoriesAreTheOwnersToChange(t *testing.T) {
	c, f := newCrowd(t)
	for who, pid := range callers {
		before := len(f.changes)
		for name, n := range c.everything() {
			if m, ok := n.(Maker); ok {
				_, err := m.Mkdir(c.by(pid).ctx, "evil")
				isKind(t, err, fault.Denied, "")
			}
			r, ok := n.(Remover)
			if !ok {
				continue
			}
			for _, child := range []string{"shop", "other", "job-1", "job-2"} {
				err := r.Rmdir(c.by(pid).ctx, child)
				if pid == agentPID && name == "sessions/shop/jobs" {
					continue // the workbench says which jobs
				}
				if !fault.Is(err, fault.Denied) && !fault.Is(err, fault.NotFound) {
					t.Errorf("rmdir %s/%s by %s: %v", name, child, who, err)
				}
			}
		}
		if pid != agentPID && len(f.changes) != before {
			t.Errorf("%s changed %+v", who, f.changes[before:])
		}
	}
	if n := f.refused(t, c); n == 0 {
		t.Error("no refusal is in /errors")
	}
}

// refused counts the lines of /errors.
func (f *fake) refused(_ testing.TB, c client) int { return strings.Count(c.cat("errors"), "\n") }

func TestAnAgentsActsAreItsOwn(t *testing.T) {
	c, f := newCrowd(t)
	a := c.by(agentPID)
	a.put("sessions/shop/start", "from the agent")
	if j := f.jobs["shop"][2]; j.StartedBy != "model" || j.Parent != f.jobs["shop"][0].Run {
		t.Errorf("its job is %+v", j)
	}
	a.put("sessions/shop/jobs/job-2/reply", "and then?")
	a.put("sessions/shop/jobs/job-3/ctl", "cancel\n")
	if got := a.cat("sessions/shop/jobs/job-3/status"); got != "cancelled\n" {
		t.Errorf("it is %q", got)
	}
	if err := a.rmdir("sessions/shop/jobs/job-3"); err != nil {
		t.Error(err)
	}
}

// The last line of a file is for whoever wrote to it. Else an agent's acts
// would stand where the owner looks for the outcome of his own.
func TestOutcomesAreTheWriters(t *testing.T) {
	c, _ := newCrowd(t)
	a, b := c.by(agentPID), c.by(otherPID)
	c.put("sessions/shop/start", "mine")
	a.put("sessions/shop/start", "yours")
	if got := c.cat("sessions/shop/start"); got != "shop/job-3\n" {
		t.Errorf("the owner reads %q", got)
	}
	if got := a.cat("sessions/shop/start"); got != "shop/job-4\n" {
		t.Errorf("the agent reads %q", got)
	}
	if size := a.attr("sessions/shop/start").Size; size != int64(len("shop/job-4\n")) {
		t.Errorf("its size is %d", size)
	}
	usage := c.cat("ctl")
	isKind(t, a.write("ctl", "shutdown\n"), fault.Denied, "the agent of shop/job-1")
	if got := c.cat("ctl"); got != usage {
		t.Errorf("the owner reads %q", got)
	}
	if got := a.cat("ctl"); !strings.Contains(got, "# last: ctl: refused: this is for the owner alone") || a.attr("ctl").Size != int64(len(got)) {
		t.Errorf("the agent reads %q", got)
	}
	if got := b.cat("ctl"); got != usage {
		t.Errorf("another agent reads %q", got)
	}
	for who, want := range map[client]int{c: 1, a: 1, b: 0} {
		if got := who.cat("errors"); strings.Count(got, "\n") != want || int64(len(got)) != who.attr("errors").Size {
			t.Errorf("%d lines expected in /errors: %q", want, got)
		}
	}
	isKind(t, a.write("sessions/shop/jobs/job-1/ctl", "cancel\n"), fault.Denied, "")
	if got := c.cat("sessions/shop/jobs/job-1/ctl"); strings.Contains(got, "last") {
		t.Errorf("the owner reads %q", got)
	}
}

// A document is sent by nobody but who opened it, and has no words in it of
// anybody else.
func TestADocumentHasOneAuthor(t *testing.T) {
	c, f := newCrowd(t)
	a := c.by(agentPID)
	for name, opener := range map[string]client{"the owner's": c, "the agent's": a} {
		writer := a
		if opener == a {
			writer = c
		}
		n := len(f.jobs["shop"])
		h := must(opener.open("sessions/shop/start", Mode{Read: true, Write: true}))
		must(h.Write(opener.ctx, []byte(name)))
		_, err := h.Write(writer.ctx, []byte(" and more"))
		isKind(t, err, fault.Denied, "open /sessions/shop/start anew")
		var p [64]byte
		_, err = h.Read(writer.ctx, p[:], 0)
		isKind(t, err, fault.Denied, "cannot be sent by")
		if err := h.Flush(writer.ctx, Closer{}); err != nil || len(f.jobs["shop"]) != n {
			t.Errorf("a close by another: %v, %d jobs", err, len(f.jobs["shop"]))
		}
		if err := h.Flush(opener.ctx, Closer{Opener: true}); err != nil {
			t.Error(err)
		}
		h.Release(context.Background()) // nobody is said to do it
		j := f.jobs["shop"][n]
		if f.prompts[len(f.prompts)-1] != name || (j.StartedBy == "owner") != (opener == c) {
			t.Errorf("%s document became %+v, %q", name, j, f.prompts[len(f.prompts)-1])
		}
	}
}

// A file of a kind that knows nothing of callers is the owner's.
func TestUnknownKindsAreTheOwners(t *testing.T) {
	c, f := newCrowd(t)
	var got strings.Builder
	at := site{t: c.tree, path: "/new", ino: 99, readers: listers}
	always := func(*Tree, none) time.Time { return epoch }
	table := table[none]{made: always, changed: always, newest: always, rows: []row[none]{
		{name: "input", typ: Regular, node: func(_ tableDir[none], at site, _ none) Node { return sink{at, &got} }},
		row[none]{name: "public", typ: Regular, node: func(_ tableDir[none], at site, _ none) Node { return sink{at, &got} }}.to(everybody),
	}}
	dir := tableDir[none]{site: at, table: &table, get: nothing}
	for _, name := range []string{"input", "public"} {
		file := must(dir.Lookup(c.ctx, name)).(File)
		for who, pid := range callers {
			ctx := c.by(pid).ctx
			_, err := file.Open(ctx, Mode{Write: true})
			isKind(t, err, fault.Denied, "the owner alone")
			if _, err := file.Open(ctx, Mode{Read: true}); (err == nil) != (name == "public" || pid == hiddenPID) {
				t.Errorf("reading %s by %s: %v", name, who, err)
			}
			h := must(file.Open(c.ctx, Mode{Write: true}))
			_, err = h.Write(ctx, []byte("evil"))
			isKind(t, err, fault.Denied, "the owner alone")
			if err := h.Flush(ctx, Closer{}); err != nil {
				t.Error(err)
			}
			must(h.Write(c.ctx, []byte(".")))
			if err := h.Flush(c.ctx, Closer{Opener: true}); err != nil {
				t.Error(err)
			}
		}
	}
	if want := strings.Repeat("f.f", 2*len(callers)); got.String() != want {
		t.Errorf("it was told %q, not %q", got.String(), want)
	}
	if f.refused(t, c) == 0 {
		t.Error("nothing is in /errors")
	}
}

// sink is a file that takes everything from everybody.
type sink struct {
	site
	got *strings.Builder
}

func (s sink) Attr(context.Context) (Attr, error) { return s.attr(Regular, 0o600, epoch), nil }

func (s sink) Open(context.Context, Mode) (Handle, error) { return s, nil }

func (s sink) Read(context.Context, []byte, int64) (int, error) { return 0, nil }

func (s sink) Write(_ context.Context, p []byte) (int, error) { return s.got.Write(p) }

func (s sink) Flush(context.Context, Closer) error {
	s.got.WriteString("f")
	return nil
}

func (s sink) Release(context.Context) {}

// A look-up that a transport makes for itself tells what anybody's would.
func TestAttributesWithoutACallerAreTheOwners(t *testing.T) {
	c, _ := newCrowd(t)
	n := must(c.at("sessions/other"))
	a := c.by(agentPID)
	if _, err := n.Attr(a.ctx); !fault.Is(err, fault.Denied) {
		t.Errorf("an agent may look into another's session: %v", err)
	}
	got, err := n.Attr(WithoutCaller(a.ctx))
	if want := must(n.Attr(c.ctx)); err != nil || got != want {
		t.Errorf("%v, %v", fmt.Sprint(got), err)
	}
}

// Who connected stays who it was, whatever process has its number later.
func TestAMetCallerStaysWhoItWas(t *testing.T) {
	c, f := newCrowd(t)
	met := c.tree.Meet(Caller{PID: agentPID, Bound: true})
	owner := c.tree.Meet(Caller{PID: ownerPID, Bound: true})
	f.be(agentPID, workbench.Caller{})
	f.be(ownerPID, workbench.Caller{Unclear: "it has ended"})
	file := must(c.at("ctl")).(File)
	_, err := file.Open(WithCaller(context.Background(), met), Mode{Write: true})
	isKind(t, err, fault.Denied, "the agent of shop/job-1")
	must(file.Open(WithCaller(context.Background(), owner), Mode{Write: true}))
}

// A transport that learned once who connected answers for him, also when he has
// ended, and for one of whom it knows no process.
func TestABoundCallerIsWhoOpenedTheFile(t *testing.T) {
	c, f := newShop(t)
	agent := workbench.Caller{Agent: true, Run: "sh-abcdef", Session: "shop"}
	f.be(77, agent)
	as := func(caller Caller) context.Context { return WithCaller(context.Background(), caller) }
	file := must(c.at("sessions/shop/ctl")).(File)
	if _, err := file.Open(as(Caller{PID: 77, Bound: true}), Mode{Write: true}); !fault.Is(err, fault.Denied) {
		t.Errorf("an agent behind a connection: %v", err)
	}
	far := as(Caller{Bound: true})
	h := must(file.Open(far, Mode{Write: true}))
	if _, err := h.Write(far, []byte("label far\n")); err != nil {
		t.Errorf("a connection that names nobody: %v", err)
	}
	gone := as(Caller{PID: 78, Bound: true})
	h = must(must(c.at("sessions/shop/start")).(File).Open(gone, Mode{Write: true}))
	f.be(78, workbench.Caller{Unclear: "it has ended"})
	if _, err := h.Write(gone, []byte("more")); err != nil {
		t.Errorf("the opener has ended: %v", err)
	}
}
