package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// entryKeys are the keys of an agent's section.
func entryKeys() []string {
	var keys []string
	for field := range reflect.TypeFor[agent.Entry]().Fields() {
		keys = append(keys, field.Tag.Get("toml"))
	}
	return keys
}

// checkEntries refuses what is no section of an agent: unknown keys and values
// of a wrong type. agents is what the file has under that name, or nil.
func checkEntries(at *place, agents any) error {
	if agents == nil {
		return nil
	}
	sections, ok := agents.(map[string]any)
	if !ok {
		return fault.New(fault.Invalid, "%s: agents takes sections such as [agents.codex], not %s", at.of("agents"), shown(agents))
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		section, ok := sections[name].(map[string]any)
		if !ok {
			return fault.New(fault.Invalid, "%s: agents.%s takes a section [agents.%s], not %s",
				at.of("agents", name), agent.OneLine(name, 64), agent.OneLine(name, 64), shown(sections[name]))
		}
		for _, key := range slices.Sorted(maps.Keys(section)) {
			if wrong := checkEntry(name, key, section[key]); wrong != "" {
				return fault.New(fault.Invalid, "%s: %s", at.of("agents", name, key), wrong)
			}
		}
	}
	return nil
}

// checkEntry tells what is wrong with a key of an agent's section; "" is
// nothing.
func checkEntry(name, key string, v any) string {
	full := "agents." + agent.OneLine(name+"."+key, 80)
	i := slices.Index(entryKeys(), key)
	if i < 0 {
		if meant := nearest(key, entryKeys()); meant != "" {
			return fmt.Sprintf("unknown key %s; did you mean %s?", full, meant)
		}
		return fmt.Sprintf("unknown key %s; an agent takes %s", full, strings.Join(entryKeys(), " "))
	}
	ok, takes := true, ""
	switch reflect.TypeFor[agent.Entry]().Field(i).Type {
	case reflect.TypeFor[string]():
		_, ok = v.(string)
		takes = "a text"
	case reflect.TypeFor[[]string]():
		ok, takes = listOfTexts(v), `a list of texts, such as ["-v"]`
	case reflect.TypeFor[map[string]string]():
		ok, takes = tableOfTexts(v), `a table of texts, such as { LANG = "C.UTF-8" }`
	case reflect.TypeFor[*bool]():
		_, ok = v.(bool)
		takes = "true or false"
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s takes %s, not %s", full, takes, shown(v))
}

func listOfTexts(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, notText)
}

func tableOfTexts(v any) bool {
	table, ok := v.(map[string]any)
	return ok && !slices.ContainsFunc(slices.Collect(maps.Values(table)), notText)
}

func notText(v any) bool {
	_, ok := v.(string)
	return !ok
}

// renderEntry writes what an agent's section sets.
func renderEntry(e agent.Entry) string {
	set := map[string]any{}
	v := reflect.ValueOf(e)
	for i, key := range entryKeys() {
		if field := v.Field(i); !field.IsZero() {
			set[key] = field.Interface()
		}
	}
	var b bytes.Buffer
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	env := set["env"]
	delete(set, "env")
	if err := enc.Encode(set); err != nil {
		return "# cannot be shown: " + err.Error() + "\n"
	}
	if m, ok := env.(map[string]string); ok {
		b.WriteString("env = {")
		sep := ""
		for _, name := range sortedKeys(m) {
			b.WriteString(sep + quote(name) + " = " + quote(m[name]))
			sep = ", "
		}
		b.WriteString("}\n")
	}
	return b.String()
}
