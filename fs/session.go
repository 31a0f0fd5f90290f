package fs

import (
	"context"
	"strconv"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// sessionTable is sessions/<session>/.
var sessionTable = table[*ledger.Session]{
	made:    func(_ *Tree, s *ledger.Session) time.Time { return s.Created },
	changed: sessionChanged,
	newest:  sessionChanged,
	rows: []row[*ledger.Session]{
		line("label", func(_ *Tree, s *ledger.Session) string { return s.Label }),
		line("workspace", func(_ *Tree, s *ledger.Session) string { return s.Workspace }),
		line("state", func(_ *Tree, s *ledger.Session) string { return workbench.SessionState(s) }),
		attribute(sessionAgent, sessionLive,
			verb[*ledger.Session]{syntax{"agent", "AGENT", "the agent that plain prompts go to"}, setAgent}),
		ctl(sessionLive,
			verb[*ledger.Session]{syntax{"close", "", "cancel its jobs and make the session read-only"}, closeSession},
			verb[*ledger.Session]{syntax{"label", "[TEXT…]", "say who the session serves"}, setLabel},
			verb[*ledger.Session]{syntax{"workspace", "DIR", "the directory that new jobs run in"}, setWorkspace},
		),
		row[*ledger.Session]{name: "start", typ: Regular, node: startFile}.agents(startsHere, "start"),
		approveRow(sessionLive, func(s *ledger.Session) (string, uint64) { return s.ID, 0 }),
		stream("events", func(d tableDir[*ledger.Session]) (source, error) {
			s, err := d.get()
			if err != nil {
				return nil, err
			}
			return &changeSource{feed: d.t.subscribe(), words: jobChanges(s.ID)}, nil
		}),
		subdir("conversations", newConversationsDir),
		subdir("jobs", newJobsDir),
	},
}

func sessionChanged(_ *Tree, s *ledger.Session) time.Time { return s.Updated }

func sessionAgent(t *Tree, s *ledger.Session) string { return t.bench.DefaultAgent(s) }

// sessionLive refuses writers of a closed session's files.
func sessionLive(s *ledger.Session) error {
	if s.Closed {
		return fault.New(fault.Closed, "session %s is closed, so its files are read-only; write its name and workspace to sessions/new to open it again", s.ID)
	}
	return nil
}

func closeSession(_ context.Context, t *Tree, s *ledger.Session, _ []string) error {
	return t.bench.CloseSession(s.ID)
}

func setAgent(_ context.Context, t *Tree, s *ledger.Session, args []string) error {
	return t.bench.SetAgent(s.ID, args[0])
}

func setLabel(_ context.Context, t *Tree, s *ledger.Session, args []string) error {
	label := ""
	if len(args) > 0 {
		label = args[0]
	}
	return t.bench.SetLabel(s.ID, label)
}

func setWorkspace(_ context.Context, t *Tree, s *ledger.Session, args []string) error {
	return t.bench.SetWorkspace(s.ID, args[0])
}

// startsHere lets agents start jobs in their own session.
func startsHere(t *Tree, who workbench.Caller, s *ledger.Session) error {
	return t.bench.MayStart(who, s.ID)
}

// startFile is the document that starts jobs in a session.
func startFile(d tableDir[*ledger.Session], at site, s *ledger.Session) Node {
	return promptFile(d, at, startBy(d, s.ID, workbench.Caller{}))
}

// startBy is the document as it is for one who writes to it.
func startBy(d tableDir[*ledger.Session], id string, by workbench.Caller) document {
	b := d.t.bench
	return document{
		op:    "start",
		usage: "write a prompt, or a JSON agent call: a job",
		check: func() error {
			s, err := d.get()
			if err != nil {
				return err
			}
			return sessionLive(s)
		},
		precheck: func(part []byte) error { return b.PrecheckDraft(by, id, part) },
		accepts: func(whole []byte) error {
			draft, err := workbench.ParseDraft(whole)
			if err != nil {
				return err
			}
			draft.By = by
			return b.CheckDraft(id, draft)
		},
		send: func(ctx context.Context, whole []byte) (string, error) {
			draft, err := workbench.ParseDraft(whole)
			if err != nil {
				return "", err
			}
			draft.By = by
			return b.Start(ctx, id, draft)
		},
		by: func(by workbench.Caller) document { return startBy(d, id, by) },
	}
}

// session finds a session, as long as it is the same one.
func (t *Tree) session(id string, serial uint64) subject[*ledger.Session] {
	return func() (*ledger.Session, error) {
		s, ok := t.bench.Session(id)
		if !ok || s.Serial != serial {
			return nil, fault.New(fault.NotFound, "session %s is no longer there", id)
		}
		return s, nil
	}
}

// sessionIno changes when the session is closed: rmdir has then removed the
// directory as the kernel sees it, and whoever still stands in that one would
// keep it dead for everybody.
func sessionIno(s *ledger.Session) uint64 {
	return thingIno("session", strconv.FormatUint(s.Serial, 10)+"/"+strconv.FormatUint(s.Epoch, 10))
}

// sessionsDir is sessions/, where mkdir makes a session and rmdir closes one.
type sessionsDir struct{ collection }

// newName is the name in sessions/ that is no session's.
const newName = "new"

func newSessionsDir(_ tableDir[none], at site, _ none) Node {
	d := sessionsDir{collection{site: at, perm: 0o700, mtime: always(at.t.lastChange)}}
	d.list = func() ([]Entry, error) {
		sessions := at.t.bench.Sessions()
		entries := make([]Entry, 0, len(sessions)+1)
		entries = append(entries, Entry{Name: newName, Ino: childIno(at.ino, newName), Type: Regular})
		for _, s := range sessions {
			entries = append(entries, Entry{Name: s.ID, Ino: sessionIno(s), Type: Directory})
		}
		return entries, nil
	}
	d.find = func(name string) (Node, bool) {
		if name == newName {
			return newSessionFile(at.child(name).forever()), true
		}
		s, ok := at.t.bench.Session(name)
		if !ok {
			return nil, false
		}
		return d.session(s), true
	}
	return d
}

// session is the directory of one session.
func (d sessionsDir) session(s *ledger.Session) Node {
	at := d.child(s.ID)
	at.ino, at.scope, at.readers = sessionIno(s), scope(s.ID), readers(s.ID)
	return tableDir[*ledger.Session]{site: at, table: &sessionTable, get: d.t.session(s.ID, s.Serial)}
}

// Mkdir implements Maker: it makes a session whose workspace is where the
// daemon started.
func (d sessionsDir) Mkdir(ctx context.Context, name string) (Node, error) {
	err := workbench.OwnersAlone(d.t.who(ctx))
	var s *ledger.Session
	if err == nil {
		s, err = d.t.makeSession(name)
	}
	if err != nil {
		d.t.record(ctx, d.child(name).path, err)
		return nil, err
	}
	return d.session(s), nil
}

func (t *Tree) makeSession(name string) (*ledger.Session, error) {
	if err := reserved(name); err != nil {
		return nil, err
	}
	if _, ok := t.bench.Session(name); ok {
		return nil, fault.New(fault.Exists, "session %s exists already; if it is closed, write its name and workspace to sessions/new to open it again", name)
	}
	return t.bench.RegisterSession(name, t.opt.WorkDir, "")
}

// Rmdir implements Remover: it closes a session.
func (d sessionsDir) Rmdir(ctx context.Context, name string) error {
	err := workbench.OwnersAlone(d.t.who(ctx))
	if err == nil {
		err = d.closeByName(name)
	}
	if err != nil {
		d.t.record(ctx, d.child(name).path, err)
	}
	return err
}

func (d sessionsDir) closeByName(name string) error {
	s, ok := d.t.bench.Session(name)
	if !ok {
		return d.missing(name)
	}
	if s.Closed {
		return fault.New(fault.Closed, "session %s is closed already; it leaves the tree with its last job", name)
	}
	return d.t.bench.CloseSession(name)
}

// reserved refuses the one name that a session may have by its form and not
// by its place.
func reserved(name string) error {
	if name == newName {
		return fault.New(fault.Invalid, "a session cannot be called %s: that is the file that makes sessions", name)
	}
	return nil
}

// newSessionFile is sessions/new.
func newSessionFile(at site) Node {
	f := commands(at, nothing, func(t *Tree, _ none) time.Time { return t.bench.Started() }, nil, []verb[none]{
		{syntax{newName, "ID WORKSPACE [LABEL…]", `a session in that directory; quote blanks: "a b" or a\ b`}, newSession},
	})
	f.bare = true
	return f
}

func newSession(_ context.Context, t *Tree, _ none, args []string) error {
	if err := reserved(args[0]); err != nil {
		return err
	}
	label := ""
	if len(args) > 2 {
		label = args[2]
	}
	_, err := t.bench.RegisterSession(args[0], args[1], label)
	return err
}

var (
	_ Dir     = sessionsDir{}
	_ Maker   = sessionsDir{}
	_ Remover = sessionsDir{}
)
