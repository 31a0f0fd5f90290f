package fs

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"scvfs/workbench"
)

// rootTable is the top directory.
var rootTable = table[none]{
	made:    func(t *Tree, _ none) time.Time { return t.bench.Started() },
	changed: func(t *Tree, _ none) time.Time { return t.bench.Started() },
	newest:  func(t *Tree, _ none) time.Time { return latest(t.lastChange(), t.refusals.changed()) },
	rows: []row[none]{
		fixedText("README", func(t *Tree, _ none) ([]byte, error) { return readme(t.opt.MountPoint), nil }).to(everybody),
		constant("version", func(t *Tree, _ none) string { return t.bench.Version() }).to(everybody),
		ctl(nil,
			verb[none]{syntax{"maintain", "", "settle what stopped processes left, forget what is older than limits.keep"}, maintain},
			verb[none]{syntax{"shutdown", "", "stop the daemon; agents go on and the next daemon adopts them"}, shutdown},
		).to(everybody),
		dated("snapshot", allOfThem, (*Tree).lastChange, (*Tree).snapshotText),
		dated("metrics", allOfThem, (*Tree).measured, (*Tree).metricsText),
		fixedText("config", (*Tree).configText),
		errorsRow.to(everybody),
		stream("events", func(d tableDir[none]) (source, error) {
			return &changeSource{feed: d.t.subscribe(), words: everyChange}, nil
		}),
		subdir("agents", agentsDir).to(everybody),
		subdir("active", activeDir).to(everybody),
		subdir("approvals", newApprovalsDir),
		subdir("sessions", newSessionsDir).to(listers),
		subdir("runs", runsDir).to(listers),
		subdir("worktrees", worktreesDir).to(listers),
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

// errorsRow is /errors. It shows an agent what was refused to it.
var errorsRow = row[none]{name: "errors", typ: Regular, node: func(d tableDir[none], at site, _ none) Node {
	t := d.t
	return textFile{
		site:  at,
		mtime: always(func() time.Time { return latest(t.bench.Started(), t.refusals.changed()) }),
		draw:  func(ctx context.Context) ([]byte, error) { return t.refusals.text(t.who(ctx)), nil },
	}
}}

// snapshotText is /snapshot. It is drawn again after each change.
func (t *Tree) snapshotText(none) ([]byte, error) {
	_, seq := t.bench.LastChange()
	text, _, err := t.snapshot.get(seq, 0, nil, func() ([]byte, error) { return jsonText(t.bench.Snapshot(), "  ") })
	return text, err
}

// metricsAge is how old the numbers in /metrics may be that change without a
// change of the workbench. Asking for them stops the world.
const metricsAge = time.Second

// metricsText is /metrics.
func (t *Tree) metricsText(none) ([]byte, error) {
	text, _, err := t.measure()
	return text, err
}

// measured is when the numbers in /metrics were taken.
func (t *Tree) measured() time.Time {
	_, at, _ := t.measure() // drawing it cannot fail
	return at
}

func (t *Tree) measure() ([]byte, time.Time, error) {
	_, seq := t.bench.LastChange()
	return t.metrics.get(seq, metricsAge, t.opt.Clock, func() ([]byte, error) { return drawMetrics(t.bench.Metrics()), nil })
}

// configText is /config, which the daemon reads once.
func (t *Tree) configText(none) ([]byte, error) {
	text, _, err := t.config.get(0, 0, nil, func() ([]byte, error) { return t.bench.ConfigText(), nil })
	return text, err
}

// drawMetrics draws metrics in Prometheus' text format.
func drawMetrics(metrics []workbench.Metric) []byte {
	var b bytes.Buffer
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	previous := ""
	for _, m := range metrics {
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
	return b.Bytes()
}

// agentTable is agents/<agent>/.
var agentTable = table[workbench.AgentInfo]{
	made:    func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	changed: func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	newest:  func(t *Tree, _ workbench.AgentInfo) time.Time { return t.bench.Started() },
	fixed:   true,
	rows: []row[workbench.AgentInfo]{
		// These two change when a program is installed; the others are the
		// agent's entry in the table, which is read once.
		line("offered", func(_ *Tree, a workbench.AgentInfo) string { return a.Offered }),
		line("command", func(_ *Tree, a workbench.AgentInfo) string { return a.Command }),
		constant("transport", func(_ *Tree, a workbench.AgentInfo) string { return a.Transport }),
		fixedText("models", func(_ *Tree, a workbench.AgentInfo) ([]byte, error) { return block(a.Models), nil }),
		constant("resume", func(_ *Tree, a workbench.AgentInfo) string { return a.Resume }),
		constant("takeover", func(_ *Tree, a workbench.AgentInfo) string { return a.Takeover }),
		constant("signin", func(_ *Tree, a workbench.AgentInfo) string { return a.Signin }),
	},
}

// agentsDir is agents/.
func agentsDir(d tableDir[none], at site, _ none) Node {
	return collection{
		site: at, perm: 0o500, fixed: true, mtime: always(d.t.bench.Started),
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
			return tableDir[workbench.AgentInfo]{site: at.child(name).forever(), table: &agentTable, get: get}, err == nil
		},
	}
}
