package agent

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// maxDetail is how many characters of a command or query a line shows, and
// maxInput how many bytes of it are looked at.
const (
	maxDetail = 200
	maxInput  = 8 << 10
)

// A verb is what a tool does, by which its line is written.
type verb uint8

const (
	verbShell verb = iota + 1
	verbRead
	verbWrite
	verbEdit
	verbList
	verbSearch
	verbFetch
	verbPlan
	verbTask
)

// tools are the names that agents give their tools, in lower case and without
// underscores and hyphens.
var tools = map[string]verb{
	"bash": verbShell, "shell": verbShell, "runshellcommand": verbShell, "execcommand": verbShell, "localshell": verbShell, "powershell": verbShell,
	"execute": verbShell, "terminal": verbShell, "runinterminal": verbShell,
	"read": verbRead, "readfile": verbRead, "view": verbRead, "readmanyfiles": verbRead, "notebookread": verbRead,
	"write": verbWrite, "writefile": verbWrite, "create": verbWrite, "createfile": verbWrite,
	"edit": verbEdit, "multiedit": verbEdit, "replace": verbEdit, "strreplace": verbEdit, "strreplaceeditor": verbEdit, "notebookedit": verbEdit,
	"applypatch": verbEdit, "patch": verbEdit, "insert": verbEdit,
	"ls": verbList, "list": verbList, "listdirectory": verbList,
	"grep": verbSearch, "greptool": verbSearch, "grepsearch": verbSearch, "searchfilecontent": verbSearch, "glob": verbSearch, "find": verbSearch, "rg": verbSearch,
	"websearch": verbSearch, "googlewebsearch": verbSearch, "toolsearch": verbSearch, "codesearch": verbSearch,
	"webfetch": verbFetch, "fetch": verbFetch, "fetchurl": verbFetch,
	"todowrite": verbPlan, "writetodos": verbPlan, "updateplan": verbPlan, "updatetodo": verbPlan,
	"task": verbTask, "agent": verbTask,
}

// input is what lines show of a tool's arguments, under the names in use.
type input struct {
	Command     json.RawMessage
	Cmd         json.RawMessage
	Script      string
	FilePath    string `json:"file_path"`
	FilePath2   string `json:"filePath"`
	AbsPath     string `json:"absolute_path"`
	Path        string
	DirPath     string `json:"dir_path"`
	Notebook    string `json:"notebook_path"`
	Pattern     string
	Query       string
	URL         string
	Prompt      string
	Description string
	Todos       []todo
	Plan        []todo
}

type todo struct {
	Content, Description, Step, Title string
	ActiveForm                        string
	Status                            string
}

// tool logs a call of a tool with its arguments, or the plan that it writes.
func (r *reader) tool(id, name string, arguments json.RawMessage) {
	var in input
	_ = json.Unmarshal(arguments, &in) // what does not fit is not shown
	if tools[toolName(name)] == verbPlan {
		r.flushText()
		r.plan(in.steps())
		return
	}
	r.call(id, toolLine(name, &in))
}

// toolLine says in a line what a call of a tool does.
func toolLine(name string, in *input) string {
	file := first(in.FilePath, in.FilePath2, in.AbsPath, in.Path, in.Notebook, in.DirPath)
	v := tools[toolName(name)]
	switch command := first(words(in.Command), words(in.Cmd), in.Script); {
	case v == verbShell && command != "":
		return shellLine(command)
	case v == verbSearch:
		return searchLine(first(in.Query, in.Pattern, file))
	case v == verbFetch:
		return fetchLine(first(in.URL, in.Prompt))
	case v == verbTask && in.Description != "":
		return toolText("agent: " + in.Description)
	case v == verbRead:
		return fileLine("read", file)
	case v == verbWrite:
		return fileLine("write", file)
	case v == verbEdit:
		return fileLine("edit", file)
	case v == verbList:
		return fileLine("list", file)
	}
	if server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__"); ok && strings.HasPrefix(name, "mcp__") {
		name = server + "." + tool
	}
	return fileLine(name, file)
}

// toolName is a tool's name without what agents spell differently.
func toolName(name string) string {
	if len(name) > 64 {
		return ""
	}
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// words returns a command that is a string or a list of words.
func words(command json.RawMessage) string {
	var s string
	if json.Unmarshal(command, &s) == nil {
		return s
	}
	var list []string
	if json.Unmarshal(command, &list) != nil || len(list) == 0 {
		return ""
	}
	if len(list) == 3 && isShell(list[0]) && isRun(list[1]) {
		return list[2]
	}
	return strings.Join(list, " ")
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// toolText makes what a tool got safe to log, on one line.
func toolText(s string) string {
	return OneLine(Redact(s[:min(len(s), maxInput)]), maxDetail)
}

func shellLine(command string) string {
	if command = toolText(unwrap(command[:min(len(command), maxInput)])); command == "" {
		return ""
	}
	return "$ " + command
}

func searchLine(query string) string { return strings.TrimSuffix("search: "+toolText(query), ": ") }

// fetchLine shows an address without its query, which may hold anything.
func fetchLine(address string) string {
	address = address[:min(len(address), maxInput)]
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
		address = u.String()
	} else if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return strings.TrimSpace("fetch " + toolText(address))
}

// fileLine names a tool and the last two parts of the file that it works on.
func fileLine(what, file string) string {
	return strings.TrimSpace(toolText(what) + " " + toolText(lastTwo(file)))
}

func lastTwo(file string) string {
	file = file[:min(len(file), maxInput)]
	dir, base := path.Split(strings.TrimRight(file, "/"))
	if parent := path.Base(dir); dir != "" && parent != "/" && parent != "." {
		return path.Join(parent, base)
	}
	return base
}

// changesLine names the files of a patch: the first one, and how many more.
func changesLine(n int, change func(int) (kind, file string)) string {
	if n == 0 {
		return "edit"
	}
	kind, file := change(0)
	what := map[string]string{"add": "write", "delete": "delete"}[kind]
	line := fileLine(first(what, "edit"), file)
	if n > 1 {
		line += fmt.Sprintf(" and %d more", n-1)
	}
	return line
}

func exitText(code int) string { return fmt.Sprintf("exit %d", code) }
