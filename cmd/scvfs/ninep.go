package main

import (
	"context"
	"flag"
	"net"
	"strings"
	"sync"

	"scvfs/fs"
	"scvfs/fs/ninep"
	"scvfs/ledger/fault"
	"scvfs/workbench/run"
)

// ninepFlags say where the tree is served over 9P.
type ninepFlags struct {
	at          []string
	allowRemote bool
}

func (f *ninepFlags) register(set *flag.FlagSet) {
	set.Func("9p", "serve the tree over 9P too, at unix:PATH or tcp:HOST:PORT; may be given several times", func(at string) error {
		f.at = append(f.at, at)
		return nil
	})
	set.BoolVar(&f.allowRemote, "9p-allow-remote", false, "let --9p use a TCP address that other machines reach; all who do are taken for you")
}

// listen opens every address, or none.
func (f *ninepFlags) listen() ([]net.Listener, error) {
	var all []net.Listener
	for _, at := range f.at {
		l, err := f.listenAt(at)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func (f *ninepFlags) listenAt(at string) (net.Listener, error) {
	kind, address, _ := strings.Cut(at, ":")
	switch {
	case kind == "unix" && address != "":
		return ninep.ListenUnix(address)
	case kind == "tcp" && address != "":
		return ninep.ListenTCP(address, f.allowRemote)
	}
	return nil, fault.New(fault.Invalid, "--9p %q is no address; write unix:PATH or tcp:HOST:PORT, such as tcp:127.0.0.1:5640", at)
}

// nineServer is the tree over 9P.
type nineServer struct {
	server *ninep.Server
	serves sync.WaitGroup
}

// serveNinep serves the tree to whoever comes to the listeners, which it owns from
// then on. A process that an agent's run holds cannot speak for others.
func (d *instance) serveNinep(tree *fs.Tree, listeners []net.Listener) error {
	server, err := ninep.New(tree.Root(), ninep.Options{Log: d.log, Relay: func(pid int) bool {
		return d.runs.Origin(pid).Place == run.Outside
	}, Meet: tree.Meet})
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return err
	}
	d.ninep = &nineServer{server: server}
	for _, l := range listeners {
		d.log.Info("the tree is served over 9P", "at", l.Addr().Network()+":"+l.Addr().String())
		d.ninep.serves.Go(func() {
			if err := server.Serve(context.Background(), l); err != nil {
				d.log.Error("9P", "at", l.Addr().String(), "err", err)
			}
		})
	}
	return nil
}

// close ends all connections.
func (n *nineServer) close() {
	n.server.Close()
	n.serves.Wait()
}
