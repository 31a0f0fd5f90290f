package fs

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"scvfs/workbench"
)

// rootTable is the top directory.
var rootTable = table[none]{
	made:    func(t *Tree, _ none) time.Time { return t.bench.Started() },
	changed: func(t *Tree, _ none) time.Time { return t.bench.Started() },
	newest:  func(t *Tree, _ none) time.Time { return latest(t.lastChange(), t.refusals.changed()) },
	rows: []row[none]{
		fixedText("README", func(t *Tree, _ none) ([]byte, error) { return readme(t.opt.MountPoint), nil }),
		constant("version", func(t *Tree, _ none) string { return t.bench.Version() }),
		ctl(nil,
			verb[none]{syntax{"maintain", "", "settle what stopped processes left, forget what is older than limits.keep"}, maintain},
			verb[none]{syntax{"shutdown", "", "stop the daemon; agents go on and the next daemon adopts them"}, shutdown},
		),
		dated("snapshot", allOfThem, (*Tree).lastChange, (*Tree).drawSnapshot),
		dated("metrics", allOfThem, now, (*Tree).drawMetrics),
		text("config", func(t *Tree, _ none) ([]byte, error) { return t.bench.ConfigText(), nil }),
		dated("errors", noSession, lastRefusal, func(t *Tree, _ none) ([]byte, error) { return t.refusals.text(), nil }),
		stream("events", func(d tableDir[none]) (source, error) {
			return &changeSource{feed: d.t.subscribe(), words: everyChange}, nil
		}),
		subdir("agents", agentsDir),
		subdir("active", activeDir),
		subdir("sessions", newSessionsDir),
		subdir("runs", runsDir),
	},
}

func maintain(_ context.Context, t *Tree, _ none, _ []string) error { return t.opt.Maintain() }

func shutdown(_ context.Context, t *Tree, _ none, _ []string) error {
	t.opt.Shutdown()
	return nil
}

// fixedText is a text that never changes.
func fixedText[S any](name string, draw func(*Tree, S) ([]byte, error)) row[S] {
	return row[S]{name: name, typ: Regular, node: func(d tableDir[S], at site, _ S) Node {
		f := drawn(d, at, d.table.made, draw)
		f.fixed = true
		return f
	}}
}

// dated is a text of the top directory that shows jobs of the sessions in
// scope and has an mtime of its own.
func dated(name string, shows scope, mtime func(*Tree) time.Time, draw func(*Tree, none) ([]byte, error)) row[none] {
	return row[none]{name: name, typ: Regular, node: func(d tableDir[none], at site, _ none) Node {
		at.scope = shows
		f := drawn(d, at, d.table.changed, draw)
		f.mtime = always(func() time.Time { return mtime(d.t) })
		return f
	}}
}

func now(t *Tree) time.Time { return t.opt.Clock() }

func lastRefusal(t *Tree) time.Time { return latest(t.bench.Started(), t.refusals.changed()) }

// snapshotCache keeps the drawn snapshot until something changes.
type snapshotCache struct {
	mu   sync.Mutex
	seq  uint64
	text []byte
}

// drawSnapshot draws /snapshot. Its lock is held while the workbench is asked,
// so that many readers make it draw once.
func (t *Tree) drawSnapshot(none) ([]byte, error) {
	c := &t.snapshot
	c.mu.Lock()
	defer c.mu.Unlock()
	_, seq := t.bench.LastChange()
	if c.text != nil && c.seq == seq {
		return c.text, nil
	}
	b, err := jsonText(t.bench.Snapshot(), "  ")
	if err != nil {
		return nil, err
	}
	c.seq, c.text = seq, b
	return b, nil
}

// drawMetrics draws /metrics in Prometheus' text format.
func (t *Tree) drawMetrics(none) ([]byte, error) {
	var b bytes.Buffer
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	previous := ""
	for _, m := range t.bench.Metrics() {
		if m.Name != previous {
			previous = m.Name
			b.WriteString("# HELP " + m.Name + " " + help.Replace(m.Help) + "\n")
			b.WriteString("# TYPE " + m.Name + " " + m.Type + "\n")
		}
		b.WriteString(m.Name)
		if m.Labels != "" {
			b.WriteString("{" + m.Labels + "}")
		}
		b.WriteString(" " + strconv.FormatFloat(m.Value, 'g', -1, 64) + "\n")
	}
	return b.Bytes(), nil
}

// agentTable is agents/<agent>/.
var agentTable = table[workbench.AgentInfo]{
	made:    func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	changed: func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	newest:  func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	rows: []row[workbench.AgentInfo]{
		agentLine("offered", func(a workbench.AgentInfo) string { return a.Offered }),
		agentLine("command", func(a workbench.AgentInfo) string { return a.Command }),
		agentLine("transport", func(a workbench.AgentInfo) string { return a.Transport }),
		text("models", func(_ *Tree, a workbench.AgentInfo) ([]byte, error) { return block(a.Models), nil }),
		agentLine("resume", func(a workbench.AgentInfo) string { return a.Resume }),
		agentLine("takeover", func(a workbench.AgentInfo) string { return a.Takeover }),
		agentLine("signin", func(a workbench.AgentInfo) string { return a.Signin }),
	},
}

func agentLine(name string, say func(workbench.AgentInfo) string) row[workbench.AgentInfo] {
	return line(name, func(_ *Tree, a workbench.AgentInfo) string { return say(a) })
}

// agentsDir is agents/.
func agentsDir(d tableDir[none], at site, _ none) Node {
	return collection{
		site: at, perm: 0o500, mtime: always(d.t.bench.Started),
		list: func() ([]Entry, error) {
			var entries []Entry
			for _, a := range at.t.bench.Agents() {
				entries = append(entries, Entry{Name: a.Name, Ino: childIno(at.ino, a.Name), Type: Directory})
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) {
			get := func() (workbench.AgentInfo, error) {
				for _, a := range at.t.bench.Agents() {
					if a.Name == name {
						return a, nil
					}
				}
				return workbench.AgentInfo{}, at.missing(name)
			}
			_, err := get()
			return tableDir[workbench.AgentInfo]{site: at.child(name), table: &agentTable, get: get}, err == nil
		},
	}
}
