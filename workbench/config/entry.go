package config

import (
	"bytes"
	"reflect"

	"github.com/BurntSushi/toml"

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
