package agent

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Summary says in a line what a call of a tool would do, for who is asked
// whether it may: "run `make test`", "edit src/a.go". It is what the call's line
// in the log says, and so is as safe to show.
func Summary(tool string, arguments json.RawMessage) string {
	var in input
	_ = json.Unmarshal(arguments, &in) // what does not fit is not shown
	return summary(toolLine(tool, &in))
}

// CommandSummary is Summary of a shell's command line.
func CommandSummary(command string) string { return summary(shellLine(command)) }

// ChangesSummary is Summary of a patch of n files. change tells what it does
// to one of them (add, delete, or any other word for an edit), and the path.
func ChangesSummary(n int, change func(int) (kind, file string)) string {
	return summary(changesLine(n, change))
}

func summary(line string) string {
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		return "run `" + command + "`"
	}
	return line
}

var (
	secretFiles = []string{
		".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".vault-token", ".bash_history", ".zsh_history", "shadow", "gshadow", "environ",
	}
	secretDirs   = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", "gcloud", "secrets", "keyrings", ".password-store"}
	secretEnds   = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ovpn", ".asc", ".gpg"}
	secretStarts = []string{".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credential", "secret", "token", "auth.json", "service-account", "service_account"}
)

// SecretPath tells whether a path, or a pattern of paths, looks as if what is
// there is secret: keys, tokens, passwords, and the directories where programs
// keep them. It is a help, not a guarantee.
func SecretPath(file string) bool {
	parts := strings.Split(strings.ToLower(path.Clean(file)), "/")
	base := parts[len(parts)-1]
	if slices.Contains(secretFiles, base) {
		return true
	}
	for _, part := range parts {
		if slices.Contains(secretDirs, part) {
			return true
		}
	}
	ends := func(end string) bool { return strings.HasSuffix(base, end) }
	starts := func(start string) bool { return strings.HasPrefix(base, start) }
	return slices.ContainsFunc(secretEnds, ends) || slices.ContainsFunc(secretStarts, starts)
}
