package takeover

import "strings"

// The terminal that programs are told they have.
const (
	termName  = "xterm-256color"
	termColor = "truecolor"
)

// foreign are variables that tell of another terminal, the one that the daemon
// was started in. A * stands for what begins so.
var foreign = []string{
	"TERM", "COLORTERM", "TERMCAP", "LINES", "COLUMNS", "TERM_*", "LC_TERMINAL*", "TMUX*", "STY", "WINDOW", "WINDOWID",
	"SSH_TTY", "GPG_TTY", "VTE_*", "KITTY_*", "ITERM_*", "ALACRITTY_*", "WEZTERM_*", "KONSOLE_*", "GHOSTTY_*",
	"GNOME_TERMINAL_*", "TERMINATOR_*", "TILIX_*", "ZELLIJ*", "WT_SESSION", "WT_PROFILE_ID",
}

// Environ returns env, which is the daemon's own, for a program on a terminal of
// this package: what it must know of that, and nothing of another. What a
// configuration sets comes after it.
func Environ(env []string) []string {
	out := make([]string, 0, len(env)+2)
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !isForeign(name) {
			out = append(out, entry)
		}
	}
	return append(out, "TERM="+termName, "COLORTERM="+termColor)
}

func isForeign(name string) bool {
	for _, f := range foreign {
		if prefix, open := strings.CutSuffix(f, "*"); name == f || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
