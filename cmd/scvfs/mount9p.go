package main

import (
	"context"
	"flag"
	"io"
	"path/filepath"
	"strings"

	"scvfs/fs/fusefs"
	nineclient "scvfs/fs/ninep/client"
	"scvfs/ledger/fault"
)

// mount9p mounts the tree that a daemon serves over 9P, until it is told to
// stop or the mount is taken away. The daemon may go and come meanwhile.
func mount9p(args []string, stderr io.Writer) error {
	set := flag.NewFlagSet("scvfs mount-9p", flag.ContinueOnError)
	set.SetOutput(stderr)
	verbose := set.Bool("v", false, "log more")
	if err := set.Parse(args); err != nil {
		return flagError(err)
	}
	if set.NArg() != 2 {
		return usageError("mount-9p takes a socket and a mount point: scvfs mount-9p ~/host.sock ~/n/host")
	}
	d, signals := begin(*verbose, stderr)
	defer d.end(signals)
	return d.mountRemote(set.Arg(0), set.Arg(1), stderr, signals)
}

func (d *instance) mountRemote(address, dir string, stderr io.Writer, signals signalled) error {
	point, err := fusefs.Locate(dir)
	if err != nil {
		return err
	}
	if err := outside(address, point); err != nil {
		return err
	}
	if d.claim, err = claimMount(point); err != nil {
		return err
	}
	if d.remote, err = nineclient.Dial(context.Background(), address, nineclient.Options{Log: d.log}); err != nil {
		return err
	}
	if d.mount, err = fusefs.Prepare(point); err != nil {
		return err
	}
	if d.server, err = fusefs.Mount(d.mount, d.remote.Root(), fusefs.Options{Log: d.log}); err != nil {
		return err
	}
	return d.run(stderr, signals)
}

// outside refuses a socket below the mount point, which nobody could reach any
// more.
func outside(address, point string) error {
	network, path, err := nineclient.ParseAddress(address)
	if err != nil || network != "unix" {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if strings.HasPrefix(abs, point+"/") {
		return fault.New(fault.Invalid, "the socket %s lies below the mount point %s; choose another mount point", abs, point)
	}
	return nil
}
