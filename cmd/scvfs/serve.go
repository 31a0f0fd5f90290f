package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"scvfs/fs"
	"scvfs/fs/fusefs"
	nineclient "scvfs/fs/ninep/client"
	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench"
	"scvfs/workbench/config"
	"scvfs/workbench/run"
	"scvfs/workbench/worktree"
)

// serveFlags are the flags of scvfs serve.
type serveFlags struct {
	mount, state, config string
	verbose              bool
	ninep                ninepFlags
}

func parseServe(args []string, stderr io.Writer) (serveFlags, error) {
	var f serveFlags
	set := flag.NewFlagSet("scvfs serve", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.mount, "mount", "", "mount point; made when missing (default: mount of the configuration, else ~/scv)")
	set.StringVar(&f.state, "state", "", "directory of the ledger and of all runs (default: $XDG_STATE_HOME/scvfs)")
	set.StringVar(&f.config, "config", "", "configuration file (default: $XDG_CONFIG_HOME/scvfs/config.toml)")
	set.BoolVar(&f.verbose, "v", false, "log more")
	f.ninep.register(set)
	if err := set.Parse(args); err != nil {
		return f, flagError(err)
	}
	if set.NArg() > 0 {
		return f, usageError(fmt.Sprintf("serve takes flags only, not %q", set.Arg(0)))
	}
	return f, nil
}

// serve runs the daemon until it is told to stop or its mount is taken away.
// Jobs outlive it.
func serve(args []string, stderr io.Writer) error {
	flags, err := parseServe(args, stderr)
	if err != nil {
		return err
	}
	d, signals := begin(flags.verbose, stderr)
	defer d.end(signals)
	if err := d.open(flags); err != nil {
		return err
	}
	return d.run(stderr, signals)
}

// signalled is told of the signals that end a command.
type signalled chan os.Signal

// begin makes the process one that serves. What it begins, end ends.
func begin(verbose bool, stderr io.Writer) (*instance, signalled) {
	umask := syscall.Umask(0o077) // ours; agents keep the user's
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	d := &instance{log: log, umask: umask, manager: os.Getenv(notifyVariable), stop: make(chan string, 1)}
	os.Unsetenv(notifyVariable)
	signals := make(signalled, 4)
	// SIGPIPE is caught, not ignored: a closed stderr must not end the daemon,
	// and an ignored signal would be inherited by agents.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	return d, signals
}

// end closes what is open.
func (d *instance) end(signals signalled) {
	d.close()
	signal.Stop(signals)
}

// instance is one running daemon: what it opened, in order.
type instance struct {
	log     *slog.Logger
	umask   int    // of agents
	manager string // socket of the service manager; empty for none
	mount   string
	claim   *net.UnixListener // of the mount point
	stop    chan string       // why to stop

	ledger *ledger.Ledger
	bench  *workbench.Workbench
	server *fusefs.Server
	ninep  *nineServer
	remote *nineclient.Client // whose tree is mounted, of mount-9p
	runs   *run.Manager

	forgetting func() // ends what forget began
}

// shutdown asks for an orderly stop; it never blocks.
func (d *instance) shutdown(why string) {
	select {
	case d.stop <- why:
	default: // asked already
	}
}

// open opens everything up to the mount. What it has opened, close closes.
func (d *instance) open(flags serveFlags) error {
	conf, layout, err := settings(flags)
	if err != nil {
		return err
	}
	for _, dir := range []string{layout.State, filepath.Join(layout.State, "runs"), filepath.Join(layout.State, "jobs")} {
		if err := config.EnsureDir(dir); err != nil {
			return err
		}
	}
	if d.ledger, err = ledger.Open(layout.State, ledger.Options{}); err != nil {
		return err
	}
	point, err := fusefs.Locate(conf.Mount)
	if err != nil {
		return err
	}
	if d.claim, err = claimMount(point); err != nil {
		return err
	}
	if d.mount, err = fusefs.Prepare(point); err != nil {
		return err
	}
	if d.runs, err = run.New(filepath.Join(layout.State, "runs"), "/proc/self/exe", "shim"); err != nil {
		return err
	}
	d.runs.OnWarning = func(sentence string) { d.log.Warn(sentence) }
	if err := d.ownOrphans(); err != nil {
		return err
	}
	if err := d.openBench(conf, layout); err != nil {
		return err
	}
	return d.serveTree(flags)
}

// openBench opens the workbench over the ledger and the runs.
func (d *instance) openBench(conf *config.Config, layout config.Layout) error {
	table, err := conf.Table()
	if err != nil {
		return err
	}
	worktrees := worktree.New(filepath.Join(layout.State, "worktrees"))
	if err := worktrees.Recover(context.Background()); err != nil {
		d.log.Warn("worktrees that are half made or half removed stay behind", "err", err)
	}
	d.bench, err = workbench.New(workbench.Options{
		State: layout.State, Mount: d.mount, Ledger: d.ledger, Runs: d.runs, Worktrees: worktrees, Agents: table, Config: conf,
		Log: d.log, Umask: &d.umask, Shell: os.Getenv("SHELL"), Version: versionLine(),
	})
	return err
}

// serveTree serves the tree of the workbench over 9P, where the flags say so,
// and mounts it.
func (d *instance) serveTree(flags serveFlags) error {
	work, err := os.Getwd()
	if err != nil {
		work = "/"
	}
	tree := fs.New(d.bench, fs.Options{
		Shutdown: func() { d.shutdown("asked by a write to ctl") }, WorkDir: work, MountPoint: d.mount, Log: d.log,
	})
	listeners, err := flags.ninep.listen()
	if err != nil {
		return err
	}
	if err := d.serveNinep(tree, listeners); err != nil {
		return err
	}
	changes := d.bench.Subscribe()
	if d.server, err = fusefs.Mount(d.mount, tree.Root(), fusefs.Options{Log: d.log}); err != nil {
		return err
	}
	d.forget(changes)
	return nil
}

// ownOrphans makes this process the one that what a run leaves comes to. It
// refuses to serve the state that whoever started it is an agent of: an agent's
// daemon would be the agent's to command.
func (d *instance) ownOrphans() error {
	if o := d.runs.Origin(os.Getppid()); o.Place == run.Inside {
		return fault.New(fault.Denied, "a process of run %s may not start the daemon whose agent it is: the owner does", o.Run)
	}
	if err := d.runs.TakeOrphans(); err != nil {
		d.log.Warn("what a killed shim leaves is found by its environment alone", "err", err)
	}
	return nil
}

// forget tells the kernel of the names that changes take out of the tree, so
// that it lets go of all it knows below them. It holds no lock and serves no
// request, as fusefs asks of whoever calls Forget.
func (d *instance) forget(changes *workbench.Subscription) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	d.forgetting = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for {
			came, err := changes.Next(ctx)
			if err != nil {
				return
			}
			for _, c := range came {
				for _, name := range fs.Stale(c) {
					d.server.Forget(name.Dir, name.Name)
				}
			}
		}
	}()
}

// run serves until a signal, a write to ctl, or an unmount by somebody else.
func (d *instance) run(stderr io.Writer, signals signalled) error {
	gone := make(chan struct{})
	go func() { d.server.Wait(); close(gone) }()
	fmt.Fprintf(stderr, "scvfs: ready: %s\n", d.mount)
	d.notify(daemon.SdNotifyReady)
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				d.shutdown("signal " + s.String())
			} // a terminal that closes ends no daemon
		case why := <-d.stop:
			d.log.Info("stopping; jobs go on", "why", why)
			return nil
		case <-gone:
			d.log.Warn("the tree was unmounted; stopping, jobs go on", "mount", d.mount)
			return nil
		}
	}
}

// notifyVariable names the socket of the service manager. Agents must not
// inherit it, or they could speak for us, so it is there only while we speak.
const notifyVariable = "NOTIFY_SOCKET"

// notify tells the service manager, if there is one, how we stand.
func (d *instance) notify(state string) {
	if d.manager == "" {
		return
	}
	os.Setenv(notifyVariable, d.manager)
	if _, err := daemon.SdNotify(true, state); err != nil {
		d.log.Warn("the service manager cannot be told", "state", state, "err", err)
	}
}

// close closes in the opposite order of open: nobody reads the tree any more
// when the workbench stops, and nothing commits when the ledger closes.
func (d *instance) close() {
	d.notify(daemon.SdNotifyStopping)
	if d.forgetting != nil {
		d.forgetting()
	}
	if d.server != nil {
		if err := d.server.Unmount(); err != nil {
			d.log.Error("unmount", "err", err)
		}
	}
	if d.remote != nil {
		d.remote.Close()
	}
	if d.ninep != nil {
		d.ninep.close()
	}
	if d.bench != nil {
		d.bench.Close()
	}
	if d.runs != nil {
		d.runs.Tidy() // while they are still this process's
		d.runs.Close()
	}
	if d.claim != nil {
		d.claim.Close()
	}
	if d.ledger != nil {
		if err := d.ledger.Close(); err != nil {
			d.log.Error("closing the ledger", "err", err)
		}
	}
}
