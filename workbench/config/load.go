package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// maxFile is the largest configuration file that is read.
const maxFile = 1 << 20

// Load returns the configuration of a file. A file that is not there gives the
// defaults, unless named says that the user named it. Errors are of kind
// Invalid and name the file, the line and the key.
func Load(path string, named bool) (*Config, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return Defaults(), nil
	}
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

// readFile reads a file that nobody else can have written.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the configuration cannot be read: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault.New(fault.Invalid, "the configuration cannot be read: %w", err)
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Invalid, "%s is no regular file", path)
	case stat != nil && int(stat.Uid) != os.Getuid() && stat.Uid != 0:
		return nil, fault.New(fault.Invalid, "%s belongs to another user, who could make agents run anything: copy it", path)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fault.New(fault.Invalid, "%s can be written by others, who could make agents run anything: chmod go-w it", path)
	case info.Size() > maxFile:
		return nil, fault.New(fault.Invalid, "%s has %d bytes, and a configuration at most %d", path, info.Size(), maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// parse reads a configuration. path is for messages.
func parse(path string, data []byte) (*Config, error) {
	var tree map[string]any
	meta, err := toml.Decode(string(data), &tree)
	if err != nil {
		return nil, syntaxFault(path, err)
	}
	c := Defaults()
	at := &place{path: path, data: data}
	for _, k := range c.keys() {
		parts := strings.Split(k.name, ".")
		if !meta.IsDefined(parts...) {
			continue
		}
		if err := k.value.set(lookup(tree, parts)); err != nil {
			return nil, fault.New(fault.Invalid, "%s: %s %w, not %s", at.of(k.name), k.name, err, shown(lookup(tree, parts)))
		}
		c.sources[k.name] = at.of(k.name)
	}
	if err := c.agents(at, data); err != nil {
		return nil, err
	}
	if err := c.unknown(at, tree); err != nil {
		return nil, err
	}
	if c.Limits.Timeout > c.Limits.TimeoutMax {
		return nil, fault.New(fault.Invalid, "%s: limits.timeout %s is above limits.timeout_max %s", path, c.Limits.Timeout, c.Limits.TimeoutMax)
	}
	table, err := c.Table()
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", path, err)
	}
	if _, err := table.Get(c.DefaultAgent); err != nil {
		return nil, fault.New(fault.Invalid, "%s: default_agent: %w", at.of("default_agent"), err)
	}
	return c, nil
}

func syntaxFault(path string, err error) error {
	var wrong toml.ParseError
	if errors.As(err, &wrong) {
		return fault.New(fault.Invalid, "%s:%d: %s", path, wrong.Position.Line, wrong.Message)
	}
	return fault.New(fault.Invalid, "%s: %w", path, err)
}

func lookup(tree map[string]any, parts []string) any {
	var v any = tree
	for _, p := range parts {
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		v = m[p]
	}
	return v
}

// shown is a value for a message.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return quote(agent.OneLine(s, 60))
	}
	return agent.OneLine(fmt.Sprint(v), 60)
}

// agents decodes the sections of agents, whose keys are those of agent.Entry.
func (c *Config) agents(at *place, data []byte) error {
	var file struct {
		Agents map[string]agent.Entry `toml:"agents"`
	}
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		return syntaxFault(at.path, err)
	}
	for _, k := range meta.Undecoded() {
		if len(k) > 2 && k[0] == "agents" {
			return fault.New(fault.Invalid, "%s: unknown key %s; an agent takes %s", at.of(k.String()), k, strings.Join(entryKeys(), " "))
		}
	}
	c.Agents = file.Agents
	for name := range c.Agents {
		c.sources["agents."+name] = at.of("agents." + name)
	}
	return nil
}

// unknown refuses keys that nobody reads.
func (c *Config) unknown(at *place, tree map[string]any) error {
	known := []string{"agents"}
	for _, k := range c.keys() {
		known = append(known, k.name)
	}
	var all []string
	for name, v := range tree {
		section, nested := v.(map[string]any)
		if !nested || name == "agents" {
			all = append(all, name)
			continue
		}
		for inner := range section {
			all = append(all, name+"."+inner)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		if !slices.Contains(known, name) {
			return fault.New(fault.Invalid, "%s: unknown key %s%s", at.of(name), name, nearest(name, known))
		}
	}
	return nil
}

// nearest suggests the known key that was probably meant.
func nearest(name string, known []string) string {
	best, at := "", 4
	for _, k := range known {
		if d := distance(name, k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return "; the keys are in docs/configuration.md"
	}
	return "; did you mean " + best + "?"
}

// distance is how many characters must be changed, added or left out to make
// b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// place finds the lines of keys, which the library does not tell of keys that
// it has decoded.
type place struct {
	path string
	data []byte
}

// of returns file:line of a key, or the file where the key is written in a way
// that this does not see, such as inside an inline table.
func (p *place) of(name string) string {
	section := ""
	for i, line := range bytes.Split(p.data, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if rest, ok := strings.CutPrefix(text, "["); ok {
			section, _, _ = strings.Cut(rest, "]")
			if section = strings.TrimSpace(section); section == name {
				return fmt.Sprintf("%s:%d", p.path, i+1)
			}
			continue
		}
		word, _, found := strings.Cut(text, "=")
		if word = strings.TrimSpace(word); found && (word == name && section == "" || section+"."+word == name) {
			return fmt.Sprintf("%s:%d", p.path, i+1)
		}
	}
	return p.path
}
