package agent

// FormatText is plain output: its end is the reply, the exit code decides.
const FormatText = "text"

// dialects are the parsers of JSON lines by the name of their format.
var dialects = map[string]dialect{
	"codex": codexDialect{}, "claude": claudeDialect{}, "pi": piDialect{}, "gemini": geminiDialect{}, "opencode": opencodeDialect{}, "copilot": copilotDialect{},
	FormatAppServer: appServerDialect{}, FormatACP: acpDialect{},
}

// Formats returns the names of the output formats that there are parsers for.
func Formats() []string {
	return []string{FormatText, "claude", "codex", "copilot", "gemini", "opencode", "pi"}
}

// NewParser returns a parser for the output of one turn of the agent.
func (a *Agent) NewParser() Parser { return a.NewParserOf(a.Output) }

// NewParserOf returns a parser for the output of one turn of the agent in
// another format than its entry has: one of Formats, or FormatAppServer.
func (a *Agent) NewParserOf(format string) Parser {
	if d, ok := dialects[format]; ok {
		return &reader{a: a, d: d, turn: turn{Format: format}}
	}
	return &textParser{a: a, textState: textState{Format: FormatText}}
}
