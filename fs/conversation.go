package fs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// conversationTable is conversations/<conversation>/.
var conversationTable = table[*ledger.Conversation]{
	made:    func(_ *Tree, c *ledger.Conversation) time.Time { return c.Created },
	changed: conversationUsed,
	newest:  conversationUsed,
	rows: []row[*ledger.Conversation]{
		constant("agent", func(_ *Tree, c *ledger.Conversation) string { return c.Agent }),
		line("cwd", func(_ *Tree, c *ledger.Conversation) string { return c.CWD }),
		line("state", func(t *Tree, c *ledger.Conversation) string {
			return stateLine(t.bench.ConversationState(c.Session, c.ID))
		}),
		line("vendor", func(_ *Tree, c *ledger.Conversation) string { return c.Vendor }),
		sendFile(workbench.SendAuto, "write a prompt: a turn of this conversation, now or behind what runs"),
		sendFile(workbench.SendQueue, "write a prompt: a turn of this conversation, behind what runs"),
		sendFile(workbench.SendSteer, "write a prompt: into the running turn, where the agent can take it"),
		text("attach-state", attachState),
		ctl(nil,
			verb[*ledger.Conversation]{syntax{"attach", "[COLSxROWS]", "take the conversation over in its agent's own terminal: takeover/"}, attachConversation},
			verb[*ledger.Conversation]{syntax{"interrupt", "[JOB] [COLSxROWS]", "the same, stopping first the job that runs its turn"}, interruptConversation},
			verb[*ledger.Conversation]{syntax{"release", "", "forget the conversation; its jobs stay"}, releaseConversation},
		),
		subdir("jobs", conversationJobs),
		takeoverRow,
	},
}

func conversationUsed(_ *Tree, c *ledger.Conversation) time.Time { return c.Used }

func releaseConversation(_ context.Context, t *Tree, c *ledger.Conversation, _ []string) error {
	return t.bench.Release(c.Session, c.ID)
}

// sendFile is a document that sends a prompt to the conversation by a mode,
// whose word is its name.
func sendFile(mode workbench.SendMode, usage string) row[*ledger.Conversation] {
	return row[*ledger.Conversation]{name: string(mode), typ: Regular, node: func(d tableDir[*ledger.Conversation], at site, c *ledger.Conversation) Node {
		b, session, id := d.t.bench, c.Session, c.ID
		return promptFile(d, at, document{
			op: string(mode), usage: usage,
			precheck: func(part []byte) error { return b.PrecheckSend(session, id, part, mode) },
			accepts:  func(whole []byte) error { return b.CheckSend(session, id, whole, mode) },
			send:     func(ctx context.Context, whole []byte) (string, error) { return b.Send(ctx, session, id, whole, mode) },
		})
	}}
}

// replyFile is jobs/<job>/reply, a follow-up to the job's conversation.
func replyFile(d tableDir[*ledger.Job], at site, j *ledger.Job) Node {
	return promptFile(d, at, replyBy(d, j.Session, j.Number, workbench.Caller{}))
}

// replyBy is the document as it is for one who writes to it.
func replyBy(d tableDir[*ledger.Job], session string, n uint64, by workbench.Caller) document {
	b := d.t.bench
	return document{
		op: "reply", usage: "write a prompt: a follow-up in this job's conversation, behind what runs there",
		precheck: func(part []byte) error { return b.PrecheckReply(by, session, n, part) },
		accepts:  func(whole []byte) error { return b.CheckReply(by, session, n, whole) },
		send: func(ctx context.Context, whole []byte) (string, error) {
			return b.Reply(ctx, by, session, n, whole)
		},
		by: func(by workbench.Caller) document { return replyBy(d, session, n, by) },
	}
}

// resumeFile is jobs/<job>/resume, which goes on with the job by a prompt.
func resumeFile(d tableDir[*ledger.Job], at site, j *ledger.Job) Node {
	b, session, n := d.t.bench, j.Session, j.Number
	return promptFile(d, at, document{
		op: "resume", usage: "write a prompt: goes on with this job, once it has ended, as a new job",
		precheck: func(part []byte) error { return b.PrecheckResume(session, session, n, part) },
		accepts:  func(whole []byte) error { return b.CheckResume(session, session, n, whole) },
		send: func(ctx context.Context, whole []byte) (string, error) {
			return b.ResumeWith(ctx, session, session, n, whole)
		},
	})
}

// promptFile fills in what the documents that take a prompt share. One without
// a check of its own is open to writers as long as its thing is there.
func promptFile[S any](d tableDir[S], at site, doc document) document {
	doc.site, doc.limit, doc.mtime = at, d.t.bench.PromptBytes(), d.when(d.table.changed)
	if doc.check == nil {
		doc.check = func() error { _, err := d.get(); return err }
	}
	send, by := doc.send, doc.by
	doc.send = func(ctx context.Context, whole []byte) (string, error) {
		if _, err := d.get(); err != nil {
			return "", stale(err)
		}
		return send(ctx, whole)
	}
	if by != nil {
		doc.by = func(who workbench.Caller) document { return promptFile(d, at, by(who)) }
	}
	return doc
}

// resumeJob is the verb resume of a job's ctl.
func resumeJob(ctx context.Context, t *Tree, j *ledger.Job, args []string) error {
	host := j.Session
	if len(args) > 0 {
		host = args[0]
	}
	_, err := t.bench.Resume(ctx, host, j.Session, j.Number)
	return err
}

// newConversationsDir is sessions/<session>/conversations/.
func newConversationsDir(d tableDir[*ledger.Session], at site, s *ledger.Session) Node {
	id, serial := s.ID, s.Serial
	return collection{
		site: at, perm: 0o500, mtime: d.when(sessionChanged),
		list: func() ([]Entry, error) {
			if _, err := d.get(); err != nil {
				return nil, err
			}
			var entries []Entry
			for _, c := range at.t.bench.Conversations(id) {
				entries = append(entries, Entry{Name: c.ID, Ino: conversationIno(serial, c.ID), Type: Directory})
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) {
			_, ok := at.t.bench.Conversation(id, name)
			if _, err := d.get(); !ok || err != nil {
				return nil, false
			}
			at := at.child(name).forever()
			at.ino = conversationIno(serial, name)
			return tableDir[*ledger.Conversation]{site: at, table: &conversationTable, get: at.t.conversation(id, name, d.get)}, true
		},
	}
}

// conversationIno is stable: a session never gives a conversation's name twice.
func conversationIno(session uint64, id string) uint64 {
	return thingIno("conversation", strconv.FormatUint(session, 10)+"/"+id)
}

// conversation finds a conversation, as long as its session is the same one.
func (t *Tree) conversation(session, id string, owner subject[*ledger.Session]) subject[*ledger.Conversation] {
	return func() (*ledger.Conversation, error) {
		if _, err := owner(); err != nil {
			return nil, err
		}
		c, ok := t.bench.Conversation(session, id)
		if !ok {
			return nil, fault.New(fault.NotFound, "conversation %s of session %s is no longer there", id, session)
		}
		return c, nil
	}
}

// conversationJobs is conversations/<conversation>/jobs/: links to its jobs,
// oldest first.
func conversationJobs(d tableDir[*ledger.Conversation], at site, c *ledger.Conversation) Node {
	session, id := c.Session, c.ID
	ino := func(j *ledger.Job) uint64 { return childIno(at.ino, strconv.FormatUint(j.Serial, 10)) }
	return collection{
		site: at, perm: 0o500, mtime: d.when(conversationUsed),
		list: func() ([]Entry, error) {
			if _, err := d.get(); err != nil {
				return nil, err
			}
			var entries []Entry
			for _, j := range at.t.bench.ConversationJobs(session, id) {
				entries = append(entries, Entry{Name: workbench.JobName(j.Number), Ino: ino(j), Type: Symlink})
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) {
			n, ok := workbench.ParseJobName(name)
			if !ok {
				return nil, false
			}
			j, ok := at.t.bench.Job(session, n)
			if !ok || j.Conversation != id {
				return nil, false
			}
			at := at.child(name)
			at.ino = ino(j)
			get := at.t.job(session, n, j.Serial)
			return link{site: at, target: "../../../jobs/" + name, mtime: func() (time.Time, error) {
				j, err := get()
				if err != nil {
					return time.Time{}, err
				}
				return j.Updated, nil
			}}, true
		},
	}
}

// jobLink is a link of a job's directory that is there once its target is
// known.
func jobLink(name string, target func(t *Tree, j *ledger.Job) string) row[*ledger.Job] {
	return row[*ledger.Job]{
		name: name, typ: Symlink,
		shown: func(t *Tree, j *ledger.Job) bool { return target(t, j) != "" },
		node: func(d tableDir[*ledger.Job], at site, j *ledger.Job) Node {
			return link{site: at, target: target(d.t, j), mtime: d.when(jobChanged)}
		},
	}
}

// conversationOf, resumedAs and resumedFrom are the targets of a job's links.
func conversationOf(t *Tree, j *ledger.Job) string {
	if _, ok := t.bench.Conversation(j.Session, j.Conversation); !ok {
		return ""
	}
	return "../../conversations/" + j.Conversation
}

func resumedAs(t *Tree, j *ledger.Job) string   { return jobPath(t, j.ResumedAs) }
func resumedFrom(t *Tree, j *ledger.Job) string { return jobPath(t, j.ResumedFrom) }

// jobPath is the way from a job's directory to the job of an address; empty
// when that was dismissed.
func jobPath(t *Tree, address string) string {
	session, job, _ := strings.Cut(address, "/")
	n, ok := workbench.ParseJobName(job)
	if _, there := t.bench.Job(session, n); !ok || !there {
		return ""
	}
	return "../../../" + session + "/jobs/" + job
}
