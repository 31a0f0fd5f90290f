// Command scvfs runs coding agents as background jobs and shows them as a file
// tree. See the README for what to do with it, and package workbench for how
// it works.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"scvfs/ledger/fault"
	"scvfs/workbench/run"
)

// version is set by the linker for a release.
var version = "0.1.0-dev"

// Exit codes. A code keeps its meaning for ever.
const (
	exitOK      = 0
	exitFailure = 1 // anything without a code of its own
	exitUsage   = 2 // the command line is wrong
	exitBusy    = 3 // another daemon holds the state, the mount point is in use, or somebody else took the terminal
)

const usage = `usage: scvfs COMMAND [FLAGS]

  serve     run the daemon and mount the tree      scvfs serve --mount ~/scv
  attach    a taken-over agent's terminal, in yours  scvfs attach ~/scv/sessions/shop/conversations/codex-1
  mount-9p  mount a tree that is served over 9P     scvfs mount-9p ~/host.sock ~/n/host
  umount    unmount a tree, also one left by a crash  scvfs umount ~/scv
  doctor    check what scvfs needs on this machine
  version   print the version

Everything else is done with the files of the tree: cat ~/scv/README.
scvfs COMMAND --help tells the flags of a command.
`

func main() {
	if len(os.Args) == 3 && os.Args[1] == "shim" { // first: it should cost little
		os.Exit(run.Shim(os.Args[2]))
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command runs one command line and returns its exit code.
func command(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	var err error
	switch args[0] {
	case "serve":
		err = serve(args[1:], stderr)
	case "attach":
		err = attachTo(args[1:], stdout, stderr)
	case "mount-9p":
		err = mount9p(args[1:], stderr)
	case "umount":
		err = umount(args[1:], stderr)
	case "doctor":
		err = doctor(args[1:], stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, versionLine())
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
	default:
		err = usageError(fmt.Sprintf("there is no command %q\n\n%s", args[0], usage))
	}
	return exitCode(err, stderr)
}

// usageError is a wrong command line; empty when the flag package has said
// what is wrong.
type usageError string

func (e usageError) Error() string { return string(e) }

// flagError is what the flag package has complained about already, or help
// that was asked for.
func flagError(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError("")
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(stderr, "scvfs:", text)
	}
	if _, wrong := err.(usageError); wrong {
		return exitUsage
	}
	if fault.Is(err, fault.Busy) {
		return exitBusy
	}
	return exitFailure
}

// versionLine is what /version shows: scvfs 1.2.3 go1.26 linux/amd64.
func versionLine() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "+" + s.Value[:12]
			}
		}
	}
	return fmt.Sprintf("scvfs %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
