package fs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/takeover"
	"scvfs/workbench"
)

// takeoverTable is conversations/<conversation>/takeover/.
var takeoverTable = table[*workbench.Takeover]{
	made:    drawnAt,
	changed: drawnAt,
	newest:  drawnAt,
	rows: []row[*workbench.Takeover]{
		text("screen", func(_ *Tree, k *workbench.Takeover) ([]byte, error) { return lines(k.Terminal().Text()), nil }),
		text("screen.ansi", func(_ *Tree, k *workbench.Takeover) ([]byte, error) { return lines(k.Terminal().ANSI()), nil }),
		text("screen.json", func(_ *Tree, k *workbench.Takeover) ([]byte, error) { return jsonText(k.Terminal().Page(0), "  ") }),
		text("screen.svg", func(_ *Tree, k *workbench.Takeover) ([]byte, error) { return lines(k.Terminal().SVG()), nil }),
		{name: "input", typ: Regular, node: func(d tableDir[*workbench.Takeover], at site, _ *workbench.Takeover) Node {
			return inputFile{site: at, get: d.get, mtime: d.when(drawnAt)}
		}},
		stream("changes", func(d tableDir[*workbench.Takeover]) (source, error) {
			k, err := d.get()
			if err != nil {
				return nil, err
			}
			return &pageSource{terminal: k.Terminal()}, nil
		}),
		attribute(func(_ *Tree, k *workbench.Takeover) string { return sizeOf(k).String() }, nil,
			verb[*workbench.Takeover]{syntax{"size", "COLSxROWS", "resize the terminal"}, resizeTerminal}),
		text("scrollback", func(_ *Tree, k *workbench.Takeover) ([]byte, error) {
			return lines(strings.Join(k.Terminal().Scrollback(), "\n")), nil
		}),
		line("program", terminalProgram),
		line("generation", func(_ *Tree, k *workbench.Takeover) string {
			return strconv.FormatUint(k.Terminal().State().Generation, 10)
		}),
		line("cursor", terminalCursor),
		line("title", func(_ *Tree, k *workbench.Takeover) string { return k.Terminal().State().Title }),
		text("modes", func(_ *Tree, k *workbench.Takeover) ([]byte, error) {
			return jsonText(k.Terminal().State().Modes, "  ")
		}),
		line("run", func(_ *Tree, k *workbench.Takeover) string { return k.Run() }),
		line("holder", func(_ *Tree, k *workbench.Takeover) string { return k.Terminal().Holder() }),
		ctl(nil,
			verb[*workbench.Takeover]{syntax{"detach", "", "take the terminal from whoever holds it; the agent goes on"}, detachTerminal},
			verb[*workbench.Takeover]{syntax{"end", "", "hang up, and give the conversation back"}, endTakeover},
			verb[*workbench.Takeover]{syntax{"paste", "TEXT…", "paste a text as one piece"}, pasteText},
			verb[*workbench.Takeover]{syntax{"key", "NAME…", "press keys: up, enter, ctrl-c, alt-x, shift-tab, f5, …"}, pressKeys},
		),
	},
}

func drawnAt(_ *Tree, k *workbench.Takeover) time.Time { return k.Terminal().Updated() }

// lines is the content of a file of whole lines that are safe to show already.
func lines(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(strings.TrimSuffix(s, "\n") + "\n")
}

func sizeOf(k *workbench.Takeover) takeover.Size {
	st := k.Terminal().State()
	return takeover.Size{Cols: st.Cols, Rows: st.Rows}
}

// terminalProgram is what the program says of itself: untrusted text.
func terminalProgram(_ *Tree, k *workbench.Takeover) string {
	return k.Terminal().State().Program.String()
}

// terminalCursor is the cursor's row and column, from 0, and hidden when it is
// not shown.
func terminalCursor(_ *Tree, k *workbench.Takeover) string {
	st := k.Terminal().State()
	if !st.Modes.CursorVisible {
		return fmt.Sprintf("%d %d hidden", st.Row, st.Col)
	}
	return fmt.Sprintf("%d %d", st.Row, st.Col)
}

// takeoverRow is the directory takeover, which is there while the conversation
// is taken over.
var takeoverRow = row[*ledger.Conversation]{
	name: "takeover", typ: Directory,
	shown: func(t *Tree, c *ledger.Conversation) bool {
		_, ok := t.bench.Takeover(c.Session, c.ID)
		return ok
	},
	node: func(d tableDir[*ledger.Conversation], at site, c *ledger.Conversation) Node {
		session, id := c.Session, c.ID
		first, _ := d.t.bench.Takeover(session, id)
		if first != nil {
			at.ino = thingIno("takeover", first.Run())
		}
		return tableDir[*workbench.Takeover]{site: at, table: &takeoverTable, get: func() (*workbench.Takeover, error) {
			k, ok := d.t.bench.Takeover(session, id)
			if !ok || k != first {
				return nil, fault.New(fault.NotFound, "this takeover of conversation %s is over", id)
			}
			return k, nil
		}}
	},
}

// terminalHolder names a process for people.
func terminalHolder(ctx context.Context) (pid int, who string) {
	c, _ := CallerOf(ctx)
	if c.PID == 0 {
		return 0, "another machine"
	}
	pid = processOf(c.PID)
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return pid, fmt.Sprintf("process %d", pid)
	}
	return pid, fmt.Sprintf("process %d (%s)", pid, cleanLine(string(comm)))
}

// processOf is the process of a thread, as far as it can be told.
func processOf(tid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return tid
	}
	for _, l := range strings.Split(string(status), "\n") {
		if digits, ok := strings.CutPrefix(l, "Tgid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil {
				return pid
			}
		}
	}
	return tid
}

func resizeTerminal(ctx context.Context, _ *Tree, k *workbench.Takeover, args []string) error {
	size, err := takeover.ParseSize(args[0])
	if err != nil {
		return err
	}
	pid, who := terminalHolder(ctx)
	return k.By(pid, who, func(h *takeover.Hold) error { return h.Resize(size) })
}

func pressKeys(ctx context.Context, _ *Tree, k *workbench.Takeover, args []string) error {
	pid, who := terminalHolder(ctx)
	return k.By(pid, who, func(h *takeover.Hold) error { return h.Key(ctx, strings.Fields(args[0])...) })
}

func pasteText(ctx context.Context, _ *Tree, k *workbench.Takeover, args []string) error {
	pid, who := terminalHolder(ctx)
	return k.By(pid, who, func(h *takeover.Hold) error { return h.Paste(ctx, args[0]) })
}

func detachTerminal(_ context.Context, _ *Tree, k *workbench.Takeover, _ []string) error {
	k.Detach()
	return nil
}

func endTakeover(ctx context.Context, t *Tree, k *workbench.Takeover, _ []string) error {
	session, id := k.Conversation()
	_, _, err := t.bench.EndTakeover(ctx, session, id)
	return err
}

// attachConversation is the verb attach of a conversation's ctl.
func attachConversation(ctx context.Context, t *Tree, c *ledger.Conversation, args []string) error {
	var size takeover.Size
	if len(args) > 0 {
		var err error
		if size, err = takeover.ParseSize(args[0]); err != nil {
			return err
		}
	}
	return t.bench.AttachTerminal(ctx, c.Session, c.ID, size)
}

// interruptConversation is the verb interrupt of a conversation's ctl.
func interruptConversation(ctx context.Context, t *Tree, c *ledger.Conversation, args []string) error {
	var size takeover.Size
	job := ""
	for i, arg := range args {
		name := strings.TrimPrefix(arg, c.Session+"/")
		if _, ok := workbench.ParseJobName(name); ok && i == 0 {
			job = name
			continue
		}
		var err error
		if size, err = takeover.ParseSize(arg); err != nil {
			return err
		}
	}
	_, err := t.bench.InterruptAndAttach(ctx, c.Session, c.ID, job, size)
	return err
}

// attachState is conversations/<conversation>/attach-state.
func attachState(t *Tree, c *ledger.Conversation) ([]byte, error) {
	return jsonText(t.bench.AttachState(c.Session, c.ID), "")
}

// inputFile takes what is typed. Opening it takes the terminal.
type inputFile struct {
	site
	get   subject[*workbench.Takeover]
	mtime func() (time.Time, error)
}

// Attr implements Node.
func (f inputFile) Attr(context.Context) (Attr, error) {
	at, err := f.mtime()
	if err != nil {
		return Attr{}, err
	}
	return f.attr(Regular, 0o600, at), nil
}

// Open implements File.
func (f inputFile) Open(ctx context.Context, mode Mode) (Handle, error) {
	if err := f.checkMode(ctx, 0o600, mode); err != nil {
		return nil, err
	}
	k, err := f.get()
	if err != nil || !mode.Write {
		return &inputHandle{f: f}, err
	}
	pid, who := terminalHolder(ctx)
	return &inputHandle{f: f, hold: k.TakeTerminal(pid, who)}, nil
}

// inputHandle is an open input, and a hold of the terminal.
type inputHandle struct {
	f    inputFile
	hold *takeover.Hold // nil for one that is open for reading only
}

// Read implements Handle. There is nothing to read: whoever walks the tree
// comes to an end.
func (h *inputHandle) Read(context.Context, []byte, int64) (int, error) { return 0, nil }

// Write implements Handle: the bytes go to the program as they are, at once.
func (h *inputHandle) Write(ctx context.Context, p []byte) (int, error) {
	if h.hold == nil {
		return 0, fault.New(fault.Denied, "%s is open for reading only", h.f.path)
	}
	n, err := h.hold.Write(ctx, p)
	if n > 0 {
		return n, nil // the rest comes again, and meets the error
	}
	if err != nil {
		h.f.t.record(ctx, h.f.path, err)
	}
	return n, err
}

// Flush implements Handle.
func (h *inputHandle) Flush(context.Context, Closer) error { return nil }

// Release implements Handle.
func (h *inputHandle) Release(context.Context) {
	if h.hold != nil {
		h.hold.Release()
	}
}

// pageSource gives a full page, then what changed, each as a line of JSON.
type pageSource struct {
	terminal *takeover.Terminal
	after    uint64
	last     bool
}

func (s *pageSource) next(ctx context.Context) ([]byte, error) {
	if s.last {
		return nil, io.EOF
	}
	page, err := s.terminal.Wait(ctx, s.after)
	if err != nil {
		return nil, err
	}
	s.after, s.last = page.Generation, page.Ended
	return jsonText(page, "")
}

var (
	_ File   = inputFile{}
	_ Handle = (*inputHandle)(nil)
	_ source = (*pageSource)(nil)
)
