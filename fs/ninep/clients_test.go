package ninep

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"9fans.net/go/plan9"
	"9fans.net/go/plan9/client"
	"github.com/hugelgupf/p9/p9"
)

// The tests here are those of clients that others have written.

var longText = strings.Repeat("0123456789abcdef", 20_000)

// clientsTree has what a client meets.
func clientsTree() (root *folder, doc *document, ctl *control, waits *stream) {
	doc, ctl, waits = newDocument(), newControl(), newStream()
	many := newFolder()
	for i := range 500 {
		many.add(fmt.Sprintf("entry-%03d", i), newText("x"))
	}
	root = newFolder().add("text", newText(longText)).add("start", doc).add("ctl", ctl).
		add("many", many).add("dir", newFolder().add("link", newLink("../text"))).hide("waits", waits)
	return root, doc, ctl, waits
}

// says tells whether a client's error, of whatever type, is an errno.
func says(err error, no syscall.Errno) bool { return err != nil && err.Error() == no.Error() }

// hugelgupf is a client of 9P2000.L.
type hugelgupf struct {
	t   *testing.T
	top p9.File
}

func (s *testServer) hugelgupf(t *testing.T) hugelgupf {
	t.Helper()
	nc, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p9.NewClient(nc, p9.WithMessageSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	top, err := c.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	return hugelgupf{t, top}
}

func (h hugelgupf) open(flags p9.OpenFlags, names ...string) p9.File {
	h.t.Helper()
	_, f, err := h.top.Walk(names)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, _, err := f.Open(flags); err != nil {
		h.t.Fatal(err)
	}
	return f
}

func TestHugelgupfReads(t *testing.T) {
	root, _, _, _ := clientsTree()
	h := serve(t, root, Options{}).hugelgupf(t)
	f := h.open(p9.ReadOnly, "text")
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil || string(text) != longText {
		t.Errorf("text: %d bytes, %v", len(text), err)
	}
	if _, _, attr, err := f.GetAttr(p9.AttrMaskAll); err != nil || attr.Size != 0 || attr.Mode.Permissions() != 0o400 {
		t.Errorf("text: %v, %v", attr, err)
	}
	if err := f.FSync(); err != nil {
		t.Error(err)
	}
	_, link, err := h.top.Walk([]string{"dir", "link"})
	if err != nil {
		t.Fatal(err)
	}
	if target, err := link.Readlink(); err != nil || target != "../text" {
		t.Errorf("the link: %q, %v", target, err)
	}
	if _, _, err := h.top.Walk([]string{"absent"}); !says(err, syscall.ENOENT) {
		t.Errorf("absent: %v", err)
	}
	if st, err := h.top.StatFS(); err != nil || st.Type != fsType {
		t.Errorf("statfs: %+v, %v", st, err)
	}
	if err := h.top.UnlinkAt("text", 0); !says(err, syscall.EPERM) {
		t.Errorf("unlink: %v", err)
	}
}

func TestHugelgupfWrites(t *testing.T) {
	root, doc, ctl, _ := clientsTree()
	h := serve(t, root, Options{}).hugelgupf(t)
	write := func(name, text string) (writeErr, closeErr error) {
		f := h.open(p9.ReadWrite, name)
		_, writeErr = f.WriteAt([]byte(text), 0)
		return writeErr, f.Close()
	}
	if err, closeErr := write("start", "a document"); err != nil || closeErr != nil {
		t.Errorf("a document: %v, %v", err, closeErr)
	}
	doc.full.Store(true)
	if err, closeErr := write("start", "another"); err != nil || !says(closeErr, syscall.EAGAIN) {
		t.Errorf("a refused document: %v, %v", err, closeErr)
	}
	if sent, _, _ := doc.state(); !slices.Equal(sent, []string{"a document"}) {
		t.Errorf("sent %q", sent)
	}
	if err, closeErr := write("ctl", "refuse 4"); !says(err, syscall.EBUSY) || closeErr != nil {
		t.Errorf("a refused write: %v, %v", err, closeErr)
	}
	if err, closeErr := write("ctl", "do\n"); err != nil || closeErr != nil || !slices.Equal(ctl.lines(), []string{"do"}) {
		t.Errorf("a command: %q, %v, %v", ctl.lines(), err, closeErr)
	}
}

func TestHugelgupfLists(t *testing.T) {
	root, _, _, _ := clientsTree()
	f := serve(t, root, Options{}).hugelgupf(t).open(p9.ReadOnly, "many")
	var names []string
	for off := uint64(0); ; {
		part, err := f.Readdir(off, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			break
		}
		for _, e := range part {
			names, off = append(names, e.Name), e.Offset
		}
	}
	if len(names) != 502 || names[501] != "entry-499" {
		t.Errorf("listed %d names", len(names))
	}
}

func TestHugelgupfFollows(t *testing.T) {
	root, _, _, waits := clientsTree()
	f := serve(t, root, Options{}).hugelgupf(t).open(p9.ReadOnly, "waits")
	follow(t, waits, func(p []byte) (int, error) { return f.ReadAt(p, 0) })
}

// follow waits with a client's read for what a stream says.
func follow(t *testing.T, waits *stream, read func(p []byte) (int, error)) {
	t.Helper()
	said := make(chan string, 1)
	go func() {
		buf := make([]byte, 100)
		n, _ := read(buf)
		said <- string(buf[:n])
	}()
	eventually(t, "the reader", func() bool { waiting, _ := waits.readers(); return waiting == 1 })
	waits.say("news")
	if got := await(t, "the news", said); got != "news" {
		t.Errorf("the stream said %q", got)
	}
}

// plan9 attaches a client of 9P2000.
func (s *testServer) plan9(t *testing.T) *client.Fsys {
	t.Helper()
	nc, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewConn(nc)
	if err != nil {
		t.Fatal(err)
	}
	top, err := c.Attach(nil, "somebody", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		top.Close()
		c.Release()
	})
	return top
}

func openPlan9(t *testing.T, top *client.Fsys, name string, mode uint8) *client.Fid {
	t.Helper()
	f, err := top.Open(name, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestPlan9Reads(t *testing.T) {
	root, _, _, waits := clientsTree()
	top := serve(t, root, Options{}).plan9(t)
	for _, name := range []string{"text", "dir/link"} {
		text, err := io.ReadAll(openPlan9(t, top, name, plan9.OREAD))
		if err != nil || string(text) != longText {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	if all, err := openPlan9(t, top, "many", plan9.OREAD).Dirreadall(); err != nil || len(all) != 500 || all[499].Name != "entry-499" {
		t.Errorf("listed %d names, %v", len(all), err)
	}
	if d, err := top.Stat("dir"); err != nil || d.Mode != plan9.DMDIR|0o500 || d.Name != "dir" {
		t.Errorf("dir: %v, %v", d, err)
	}
	if _, err := top.Stat("absent"); err == nil || err.Error() != "No such file or directory" {
		t.Errorf("absent: %v", err)
	}
	follow(t, waits, openPlan9(t, top, "waits", plan9.OREAD).Read)
}

func TestPlan9Writes(t *testing.T) {
	root, doc, ctl, _ := clientsTree()
	top := serve(t, root, Options{}).plan9(t)
	f := openPlan9(t, top, "start", plan9.OWRITE)
	long := strings.Repeat("long ", 50_000)
	if _, err := io.WriteString(f, long); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if sent, _, _ := doc.state(); len(sent) != 1 || sent[0] != long {
		t.Errorf("sent %d documents", len(sent))
	}
	f = openPlan9(t, top, "ctl", plan9.ORDWR)
	if _, err := io.WriteString(f, "refuse 4"); err == nil || err.Error() != "Device or resource busy" {
		t.Errorf("a refused write: %v", err)
	}
	if _, err := io.WriteString(f, "do\n"); err != nil || !slices.Equal(ctl.lines(), []string{"do"}) {
		t.Errorf("a command: %q, %v", ctl.lines(), err)
	}
	if err := top.Remove("text"); err == nil || err.Error() != "Operation not permitted" {
		t.Errorf("remove: %v", err)
	}
}
