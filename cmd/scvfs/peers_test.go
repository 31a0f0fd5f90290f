package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"9fans.net/go/plan9"
	plan9client "9fans.net/go/plan9/client"
	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"

	"scvfs/fs/ninep/wire"
)

// peer is a 9P client that knows nothing of ours. Paths are names from the
// root. Errors are syscall.Errno.
type peer interface {
	list(path []string) ([]string, error)
	open(path []string, read, write bool) (io.ReadWriteCloser, error)
	create(path []string) error
	size(path []string) (int64, error)
	mkdir(path []string) error
	rmdir(path []string) error
}

// peers are independent clients, by the dialect that they speak.
var peers = map[string]func(t *testing.T, socket string) peer{
	"9P2000.L": dialLinux,
	"9P2000":   dialPlan9,
}

// linuxPeer is the client of hugelgupf/p9.
type linuxPeer struct{ root p9.File }

func dialLinux(t *testing.T, socket string) peer {
	t.Helper()
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p9.NewClient(nc, p9.WithMessageSize(128<<10))
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close(); c.Close() })
	return linuxPeer{root}
}

// errnoIn finds the errno in an error of either client.
func errnoIn(err error) error {
	var no linux.Errno
	switch {
	case err == nil, err == io.EOF:
		return err
	case errors.As(err, &no):
		return syscall.Errno(no)
	}
	// 9fans' client puts the path before the words.
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	if no, ok := wire.Errno(text); ok {
		return no
	}
	if strings.HasPrefix(text, "file '") && strings.HasSuffix(text, "' not found") {
		return syscall.ENOENT // its own words for a walk that ended early
	}
	return err
}

func (p linuxPeer) at(path []string) (p9.File, error) {
	qids, f, err := p.root.Walk(path)
	if err == nil && len(qids) < len(path) { // it makes a file of nothing then
		err = linux.ENOENT
	}
	return f, errnoIn(err)
}

func (p linuxPeer) list(path []string) (names []string, err error) {
	f, err := p.at(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, _, err := f.Open(p9.ReadOnly); err != nil {
		return nil, errnoIn(err)
	}
	for off := uint64(0); ; {
		entries, err := f.Readdir(off, 8<<10)
		if err != nil || len(entries) == 0 {
			return names, errnoIn(err)
		}
		for _, e := range entries {
			off = e.Offset
			if e.Name != "." && e.Name != ".." {
				names = append(names, e.Name)
			}
		}
	}
}

func (p linuxPeer) open(path []string, read, write bool) (io.ReadWriteCloser, error) {
	f, err := p.at(path)
	if err != nil {
		return nil, err
	}
	flags := p9.ReadOnly
	if write {
		flags = p9.WriteOnly
	}
	if read && write {
		flags = p9.ReadWrite
	}
	if _, _, err := f.Open(flags); err != nil {
		f.Close()
		return nil, errnoIn(err)
	}
	return &linuxFile{f: f}, nil
}

func (p linuxPeer) create(path []string) error {
	f, err := p.at(path[:len(path)-1])
	if err != nil {
		return err
	}
	defer f.Close()
	_, _, _, err = f.Create(path[len(path)-1], p9.WriteOnly, 0o600, 0, 0)
	return errnoIn(err)
}

func (p linuxPeer) size(path []string) (int64, error) {
	f, err := p.at(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	_, _, attr, err := f.GetAttr(p9.AttrMaskAll)
	return int64(attr.Size), errnoIn(err)
}

func (p linuxPeer) mkdir(path []string) error {
	f, err := p.at(path[:len(path)-1])
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Mkdir(path[len(path)-1], 0o700, 0, 0)
	return errnoIn(err)
}

func (p linuxPeer) rmdir(path []string) error {
	f, err := p.at(path[:len(path)-1])
	if err != nil {
		return err
	}
	defer f.Close()
	return errnoIn(f.UnlinkAt(path[len(path)-1], wire.RemoveDir))
}

type linuxFile struct {
	f   p9.File
	off int64
}

func (f *linuxFile) Read(p []byte) (int, error) {
	n, err := f.f.ReadAt(p, f.off)
	f.off += int64(n)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, errnoIn(err)
}

func (f *linuxFile) Write(p []byte) (int, error) {
	n, err := f.f.WriteAt(p, f.off)
	f.off += int64(n)
	return n, errnoIn(err)
}

func (f *linuxFile) Close() error { return errnoIn(f.f.Close()) }

// plan9Peer is the client of 9fans.net/go.
type plan9Peer struct{ root *plan9client.Fsys }

func dialPlan9(t *testing.T, socket string) peer {
	t.Helper()
	c, err := plan9client.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.Attach(nil, "owner", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close(); c.Close() })
	return plan9Peer{root}
}

func (p plan9Peer) list(path []string) (names []string, err error) {
	f, err := p.root.Open(strings.Join(path, "/"), plan9.OREAD)
	if err != nil {
		return nil, errnoIn(err)
	}
	defer f.Close()
	entries, err := f.Dirreadall()
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, errnoIn(err)
}

func (p plan9Peer) open(path []string, read, write bool) (io.ReadWriteCloser, error) {
	mode := uint8(plan9.OREAD)
	if write {
		mode = plan9.OWRITE
	}
	if read && write {
		mode = plan9.ORDWR
	}
	f, err := p.root.Open(strings.Join(path, "/"), mode)
	if err != nil {
		return nil, errnoIn(err)
	}
	return plan9File{f}, nil
}

func (p plan9Peer) create(path []string) error {
	f, err := p.root.Create(strings.Join(path, "/"), plan9.OWRITE, 0o600)
	if err == nil {
		f.Close()
	}
	return errnoIn(err)
}

func (p plan9Peer) size(path []string) (int64, error) {
	d, err := p.root.Stat(strings.Join(path, "/"))
	if err != nil {
		return 0, errnoIn(err)
	}
	return int64(d.Length), nil
}

func (p plan9Peer) mkdir(path []string) error {
	f, err := p.root.Create(strings.Join(path, "/"), plan9.OREAD, plan9.DMDIR|0o700)
	if err != nil {
		return errnoIn(err)
	}
	return errnoIn(f.Close())
}

func (p plan9Peer) rmdir(path []string) error { return errnoIn(p.root.Remove(strings.Join(path, "/"))) }

type plan9File struct{ *plan9client.Fid }

func (f plan9File) Read(p []byte) (int, error)  { n, err := f.Fid.Read(p); return n, errnoIn(err) }
func (f plan9File) Write(p []byte) (int, error) { n, err := f.Fid.Write(p); return n, errnoIn(err) }
func (f plan9File) Close() error                { return errnoIn(f.Fid.Close()) }
