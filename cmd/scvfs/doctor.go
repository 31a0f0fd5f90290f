package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// check is one thing that scvfs needs, or can use.
type check struct {
	name   string
	needed bool
	run    func() (found string, err error)
}

// doctor tells what of the machine's set-up would keep scvfs from working.
func doctor(args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("scvfs doctor", flag.ContinueOnError)
	set.SetOutput(stderr)
	var flags serveFlags
	set.StringVar(&flags.config, "config", "", "configuration file (default: $XDG_CONFIG_HOME/scvfs/config.toml)")
	set.StringVar(&flags.state, "state", "", "directory of the state (default: $XDG_STATE_HOME/scvfs)")
	if err := set.Parse(args); err != nil {
		return flagError(err)
	}
	failed := 0
	for _, c := range checks(flags) {
		found, err := c.run()
		switch {
		case err == nil:
			fmt.Fprintf(stdout, "ok    %-14s %s\n", c.name, found)
		case c.needed:
			failed++
			fmt.Fprintf(stdout, "FAIL  %-14s %v\n", c.name, err)
		default:
			fmt.Fprintf(stdout, "none  %-14s %v\n", c.name, err)
		}
	}
	if failed > 0 {
		return fault.New(fault.Invalid, "%d of the things that scvfs needs are missing", failed)
	}
	return nil
}

func checks(flags serveFlags) []check {
	all := []check{
		{"version", true, func() (string, error) { return versionLine(), nil }},
		{"/dev/fuse", true, openFUSE},
		{"fusermount3", os.Getuid() != 0, func() (string, error) { return exec.LookPath("fusermount3") }},
		{"git", false, func() (string, error) { return exec.LookPath("git") }},
		{"configuration", true, func() (string, error) {
			_, layout, err := settings(flags)
			return layout.Config, err
		}},
		{"disk", true, func() (string, error) { return freeSpace(flags) }},
	}
	home, _ := os.UserHomeDir()
	look := agent.NewLookPath(home, os.Getenv("PATH"))
	table := configured(flags)
	for _, name := range table.Names() {
		all = append(all, check{"agent " + name, false, func() (string, error) {
			a, err := table.Get(name)
			if err != nil {
				return "", err
			}
			path, why := a.Offered(look)
			if why != "" {
				return "", fault.New(fault.NotFound, "%s", why)
			}
			return path, nil
		}})
	}
	return all
}

// configured is the table of agents in force; where the configuration is
// wrong, which another check tells, the built-in one.
func configured(flags serveFlags) *agent.Table {
	conf, _, err := settings(flags)
	if err != nil {
		return agent.Builtin()
	}
	table, err := conf.Table()
	if err != nil {
		return agent.Builtin()
	}
	return table
}

func openFUSE() (string, error) {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return "", fault.New(fault.Denied, "%w: load the module fuse, or ask for access to the device", err)
	}
	return "can be opened", f.Close()
}

// freeSpace looks at the state's disk, or at the nearest directory above that
// is there already.
func freeSpace(flags serveFlags) (string, error) {
	conf, layout, err := settings(flags)
	if err != nil {
		return "", err
	}
	free, err := run.DiskFree(existing(layout.State))
	if err != nil {
		return "", err
	}
	if floor := int64(conf.Limits.DiskFloor); free < floor {
		return "", fault.New(fault.Limit, "%d MiB are free where %s lies, and limits.disk_floor is %d MiB", free>>20, layout.State, floor>>20)
	}
	return fmt.Sprintf("%d MiB are free where %s lies", free>>20, layout.State), nil
}
