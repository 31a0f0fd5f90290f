package config

import (
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
	at := newPlace(path, data)
	for _, k := range c.keys() {
		parts := strings.Split(k.name, ".")
		if !meta.IsDefined(parts...) {
			continue
		}
		if err := k.value.set(lookup(tree, parts)); err != nil {
			return nil, fault.New(fault.Invalid, "%s: %s %w, not %s", at.of(parts...), k.name, err, shown(lookup(tree, parts)))
		}
		c.sources[k.name] = at.of(parts...)
	}
	if err := c.unknown(at, meta.Keys(), tree); err != nil {
		return nil, err
	}
	if err := c.agents(at, tree, data); err != nil {
		return nil, err
	}
	if err := c.agree(at, meta.IsDefined("limits", "timeout")); err != nil {
		return nil, err
	}
	return c, nil
}

// agree checks what concerns more than one key. ownTimeout says that the file
// sets limits.timeout.
func (c *Config) agree(at *place, ownTimeout bool) error {
	if c.Limits.Timeout > c.Limits.TimeoutMax {
		line := at.of("limits", "timeout_max")
		if ownTimeout {
			line = at.of("limits", "timeout")
		}
		return fault.New(fault.Invalid, "%s: limits.timeout %s is above limits.timeout_max %s: lower the one or raise the other", line, c.Limits.Timeout, c.Limits.TimeoutMax)
	}
	table, err := c.Table()
	if err != nil {
		name, _, _ := strings.Cut(err.Error(), ":") // agents.NAME.KEY
		return fault.New(fault.Invalid, "%s: %w", at.of(strings.Split(name, ".")...), err)
	}
	if _, err := table.Get(c.DefaultAgent); err != nil {
		return fault.New(fault.Invalid, "%s: default_agent: %w", at.of("default_agent"), err)
	}
	return nil
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
func (c *Config) agents(at *place, tree map[string]any, data []byte) error {
	if err := checkEntries(at, tree["agents"]); err != nil {
		return err
	}
	var file struct {
		Agents map[string]agent.Entry `toml:"agents"`
	}
	if _, err := toml.Decode(string(data), &file); err != nil {
		return syntaxFault(at.path, err)
	}
	c.Agents = file.Agents
	for name := range c.Agents {
		c.sources["agents."+name] = at.of("agents", name)
	}
	return nil
}

// unknown refuses keys that nobody reads; found lists the file's in its order.
func (c *Config) unknown(at *place, found []toml.Key, tree map[string]any) error {
	known := []string{"agents"}
	for _, k := range c.keys() {
		known = append(known, k.name)
	}
	if limits, there := tree["limits"]; there {
		if _, section := limits.(map[string]any); !section {
			return fault.New(fault.Invalid, "%s: unknown key limits; it is a section: write [limits], and its keys below it", at.of("limits"))
		}
	}
	for _, k := range found {
		name := k.String()
		if k[0] == "agents" || name == "limits" || slices.Contains(known, name) {
			continue
		}
		meant := nearest(name, known)
		switch section, isSection := lookup(tree, k).(map[string]any); {
		case meant != "":
			meant = "; did you mean " + meant + "?"
		case isSection && len(section) > 0:
			continue // its first key says more
		default:
			meant = "; the keys are in docs/configuration.md"
		}
		return fault.New(fault.Invalid, "%s: unknown key %s%s", at.of(k...), agent.OneLine(name, 80), meant)
	}
	return nil
}

// nearest returns the known key that was probably meant: one in another
// section, or one that is spelled much alike. It returns "" when there is none.
func nearest(name string, known []string) string {
	section, last := cutLast(name)
	best, least := "", 2+len(last)/3
	for _, k := range known {
		in, word := cutLast(k)
		d := distance(strings.ToLower(last), word)
		if in != section && d > 0 {
			d++
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// cutLast splits a key into its section and its own name.
func cutLast(name string) (section, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
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
