package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"9fans.net/go/plan9"
	"9fans.net/go/plan9/srv9p"
	"github.com/hugelgupf/p9/fsimpl/templatefs"
	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"

	"scvfs/fs"
	"scvfs/fs/ninep"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

// BenchmarkNineP is our 9P server beside others, each with the same two files
// and nothing else: status, of 100 bytes, and big, of 1 MiB. One raw client
// speaks to all of them. See docs/performance.md.
func BenchmarkNineP(b *testing.B) {
	files := map[string]string{"status": strings.Repeat("s", 100), "big": strings.Repeat("b", 1<<20)}
	ours := serveOurs(b, files)
	for _, c := range []struct {
		name, beside string
		dialect      wire.Dialect
	}{
		{"9p-l", serveP9(b, files), wire.Linux},
		{"9p-2000", serveSrv9p(b, files), wire.Plain},
	} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s-walk-%d", c.name, clients), func(b *testing.B) {
				const each = 1000
				measure := func(socket string) float64 {
					return together(b, socket, c.dialect, clients, func(r *rawClient) { r.visits(each) }) / float64(clients*each)
				}
				p := &pair{name: fmt.Sprintf("%s-walk-%d", c.name, clients), show: showRate}
				p.alternate(b, func() float64 { return measure(ours) }, func() float64 { return measure(c.beside) })
			})
		}
		b.Run(c.name+"-read", func(b *testing.B) {
			const times = 50
			measure := func(socket string) float64 {
				return together(b, socket, c.dialect, 1, func(r *rawClient) { r.readBig(times) }) / times
			}
			p := &pair{name: c.name + "-read", show: func(ns float64) string { return digits((1<<20)/ns) + " GB/s" }}
			p.alternate(b, func() float64 { return measure(ours) }, func() float64 { return measure(c.beside) })
		})
	}
}

// alternate takes both sides round by round, who goes first in turns.
func (p *pair) alternate(b *testing.B, ours, beside func() float64) {
	b.Helper()
	for oursFirst := true; b.Loop(); oursFirst = !oursFirst {
		if oursFirst {
			p.ours = append(p.ours, ours())
		}
		p.beside = append(p.beside, beside())
		if !oursFirst {
			p.ours = append(p.ours, ours())
		}
	}
	p.report(b)
}

// together returns how many nanoseconds clients take for what each does at the
// same time.
func together(b *testing.B, socket string, d wire.Dialect, clients int, work func(*rawClient)) float64 {
	b.Helper()
	all := make([]*rawClient, clients)
	for i := range all {
		all[i] = dialRaw(b, socket, d)
		defer all[i].nc.Close()
	}
	begin := time.Now()
	var done sync.WaitGroup
	for _, r := range all {
		done.Go(func() { work(r) })
	}
	done.Wait()
	return float64(time.Since(begin))
}

// rawClient sends one message at a time. Fid 0 is the root.
type rawClient struct {
	b   *testing.B
	nc  net.Conn
	in  *bufio.Reader
	d   wire.Dialect
	out []byte
}

const rawMessage = 128 << 10

func dialRaw(b *testing.B, socket string, d wire.Dialect) *rawClient {
	b.Helper()
	nc, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	r := &rawClient{b: b, nc: nc, in: bufio.NewReaderSize(nc, 64<<10), d: d}
	r.ask(&wire.Tversion{MSize: rawMessage, Version: d.String()})
	r.ask(&wire.Tattach{AFid: wire.NoFid, UName: "owner", UID: wire.NoUID})
	return r
}

func (r *rawClient) ask(m wire.Message) wire.Message {
	tag := uint16(1)
	if m.Type() == wire.TypeTversion {
		tag = wire.NoTag
	}
	frame, err := wire.Append(r.out[:0], r.d, tag, m)
	if err == nil {
		r.out = frame
		_, err = r.nc.Write(frame)
	}
	if err != nil {
		r.b.Error(err)
		return nil
	}
	h, answer, err := wire.ReadMessage(r.in, r.d, rawMessage)
	if err != nil || h.Type != m.Type()+1 {
		r.b.Errorf("%s was answered by %s, %+v, %v", m.Type(), h.Type, answer, err)
	}
	return answer
}

func (r *rawClient) open(name string) {
	r.ask(&wire.Twalk{NewFid: 1, Names: []string{name}})
	if r.d == wire.Linux {
		r.ask(&wire.Tlopen{Fid: 1})
	} else {
		r.ask(&wire.Topen{Fid: 1})
	}
}

// visits walks to the small file, opens, reads and clunks it.
func (r *rawClient) visits(times int) {
	for range times {
		r.open("status")
		r.ask(&wire.Tread{Fid: 1, Count: 4096})
		r.ask(&wire.Tclunk{Fid: 1})
		if r.b.Failed() {
			return
		}
	}
}

// readBig reads the big file from beginning to end.
func (r *rawClient) readBig(times int) {
	r.open("big")
	for range times {
		for off := uint64(0); off < 1<<20; {
			read, ok := r.ask(&wire.Tread{Fid: 1, Offset: off, Count: rawMessage - wire.IOHeader}).(*wire.Rread)
			if !ok || len(read.Data) == 0 {
				r.b.Errorf("big ends at %d", off)
				return
			}
			off += uint64(len(read.Data))
		}
	}
}

func listenBench(b *testing.B, name string) net.Listener {
	b.Helper()
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), name))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

// bareDir is a tree of a few files for our server.
type bareDir map[string]string

func (d bareDir) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: 2, Type: fs.Directory, Perm: 0o500}, nil
}
func (d bareDir) List(context.Context) ([]fs.Entry, error) { return nil, nil }

func (d bareDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	text, ok := d[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no %s", name)
	}
	return bareText{text, 3 + uint64(len(name))}, nil
}

type bareText struct {
	text string
	ino  uint64
}

func (f bareText) Attr(context.Context) (fs.Attr, error) {
	return fs.Attr{Ino: f.ino, Perm: 0o400, Type: fs.Regular, Size: int64(len(f.text))}, nil
}
func (f bareText) Open(context.Context, fs.Mode) (fs.Handle, error) { return f, nil }
func (f bareText) Read(_ context.Context, p []byte, off int64) (int, error) {
	return copy(p, f.text[min(off, int64(len(f.text))):]), nil
}

func (f bareText) Write(context.Context, []byte) (int, error) {
	return 0, fault.New(fault.Denied, "no")
}
func (f bareText) Flush(context.Context, fs.Closer) error { return nil }
func (f bareText) Release(context.Context)                {}

func serveOurs(b *testing.B, files map[string]string) string {
	b.Helper()
	server, err := ninep.New(bareDir(files), ninep.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := listenBench(b, "ours")
	b.Cleanup(server.Close)
	go server.Serve(context.Background(), l)
	return l.Addr().String()
}

// p9Dir and p9File are the same files for the server of hugelgupf/p9.
type p9Dir struct {
	p9.DefaultWalkGetAttr
	templatefs.ReadOnlyDir
	templatefs.NilCloser
	files map[string]string
}

type p9File struct {
	p9.DefaultWalkGetAttr
	templatefs.ReadOnlyFile
	templatefs.NilCloser
	*strings.Reader
	qid p9.QID
}

var p9Root = p9.QID{Type: p9.TypeDir, Path: 2}

func (d p9Dir) Attach() (p9.File, error)                        { return d, nil }
func (p9Dir) StatFS() (p9.FSStat, error)                        { return p9.FSStat{}, nil }
func (p9Dir) Open(p9.OpenFlags) (p9.QID, uint32, error)         { return p9Root, 0, nil }
func (f p9File) Open(p9.OpenFlags) (p9.QID, uint32, error)      { return f.qid, 0, nil }
func (p9File) StatFS() (p9.FSStat, error)                       { return p9.FSStat{}, nil }
func (f p9File) Walk(names []string) ([]p9.QID, p9.File, error) { return nil, f, nil }

func (d p9Dir) Walk(names []string) ([]p9.QID, p9.File, error) {
	if len(names) == 0 {
		return nil, d, nil
	}
	text, ok := d.files[names[0]]
	if !ok {
		return nil, nil, linux.ENOENT
	}
	f := p9File{Reader: strings.NewReader(text), qid: p9.QID{Type: p9.TypeRegular, Path: 3 + uint64(len(names[0]))}}
	return []p9.QID{f.qid}, f, nil
}

func (d p9Dir) GetAttr(req p9.AttrMask) (p9.QID, p9.AttrMask, p9.Attr, error) {
	return p9Root, req, p9.Attr{Mode: p9.ModeDirectory | 0o500, NLink: 2}, nil
}

func (f p9File) GetAttr(req p9.AttrMask) (p9.QID, p9.AttrMask, p9.Attr, error) {
	return f.qid, req, p9.Attr{Mode: p9.ModeRegular | 0o400, NLink: 1, Size: uint64(f.Size())}, nil
}

func serveP9(b *testing.B, files map[string]string) string {
	b.Helper()
	l := listenBench(b, "p9")
	go p9.NewServer(p9Dir{files: files}).Serve(l)
	return l.Addr().String()
}

func serveSrv9p(b *testing.B, files map[string]string) string {
	b.Helper()
	tree := srv9p.NewTree("owner", "owner", plan9.DMDIR|0o555, nil)
	for name, text := range files {
		if _, err := tree.Root.Create(name, "owner", 0o444, text); err != nil {
			b.Fatal(err)
		}
	}
	srv := &srv9p.Server{Tree: tree, Read: func(_ context.Context, fid *srv9p.Fid, data []byte, offset int64) (int, error) {
		return fid.ReadString(data, offset, fid.File().Aux.(string))
	}}
	l := listenBench(b, "srv9p")
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go srv.Serve(nc, nc)
		}
	}()
	return l.Addr().String()
}

var (
	_ fs.Dir    = bareDir{}
	_ fs.File   = bareText{}
	_ fs.Handle = bareText{}
)
