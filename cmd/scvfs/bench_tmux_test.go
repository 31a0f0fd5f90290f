package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The yardstick of takeovers: a server of tmux with one window of the same
// size, a shell in it, and as many lines of history.
type tmuxServer struct {
	b      *testing.B
	socket string
	pid    int
}

// The terminal that both sides have, and the lines that each keeps.
const (
	benchCols, benchRows = 120, 40
	benchHistory         = 5000
)

// tmux starts such a server; it ends with b.
func (w *world) tmux(b *testing.B) *tmuxServer {
	b.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		b.Skip("tmux is not installed: scripts/setup bench")
	}
	t := &tmuxServer{b: b, socket: filepath.Join(w.dir, "beside")}
	config := filepath.Join(w.dir, "tmux.conf")
	if err := os.WriteFile(config, []byte(fmt.Sprintf("set -g history-limit %d\nset -g status off\n", benchHistory)), 0o600); err != nil {
		b.Fatal(err)
	}
	t.do("-f", config, "new-session", "-d", "-s", "a", "-x", strconv.Itoa(benchCols), "-y", strconv.Itoa(benchRows), "sh")
	var err error
	if t.pid, err = strconv.Atoi(strings.TrimSpace(t.do("display-message", "-p", "#{pid}"))); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		t.do("kill-server")
		await(b, "the end of tmux", func() bool { return !exists(fmt.Sprintf("/proc/%d", t.pid)) })
	})
	return t
}

// do runs tmux with a command, as a script does.
func (t *tmuxServer) do(args ...string) string {
	t.b.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", t.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.b.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// types sends text as it is, and shows returns the screen.
func (t *tmuxServer) types(text string) { t.b.Helper(); t.do("send-keys", "-t", "a", "-l", text) }

func (t *tmuxServer) shows() string { t.b.Helper(); return t.do("capture-pane", "-p", "-t", "a") }

// tmuxControl is a client that stays and gives its commands one a line, which
// saves a process for each.
type tmuxControl struct {
	b   *testing.B
	in  io.Writer
	out *bufio.Reader
}

// control attaches such a client; it goes with b, before the server does.
func (t *tmuxServer) control(b *testing.B) *tmuxControl {
	b.Helper()
	cmd := exec.Command("tmux", "-u", "-S", t.socket, "-C", "attach-session", "-t", "a", "-f", "no-output,ignore-size")
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	c := &tmuxControl{b: b, in: in, out: bufio.NewReader(out)}
	c.answer() // to attach-session
	return c
}

// do gives a command and returns what it prints.
func (c *tmuxControl) do(command string) string {
	c.b.Helper()
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		c.b.Fatal(err)
	}
	return c.answer()
}

// answer reads on to the end of the next answer: lines between %begin and %end,
// with notifications before them.
func (c *tmuxControl) answer() string {
	c.b.Helper()
	var text strings.Builder
	for begun := false; ; {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.b.Fatal("tmux -C: ", err)
		}
		switch {
		case strings.HasPrefix(line, "%begin "):
			begun = true
		case strings.HasPrefix(line, "%error ") && begun:
			c.b.Fatalf("tmux -C refuses: %s", text.String())
		case strings.HasPrefix(line, "%end ") && begun:
			return text.String()
		case begun:
			text.WriteString(line)
		}
	}
}

func (c *tmuxControl) types(text string) {
	c.b.Helper()
	c.do("send-keys -t a -l '" + text + "'")
}
func (c *tmuxControl) shows() string { c.b.Helper(); return c.do("capture-pane -p -t a") }

// filesTerminal is a takeover of the world's conversation, by its files.
type filesTerminal struct {
	b   *testing.B
	dir string
}

// takeover takes the world's conversation over; the takeover ends with b.
func (w *world) takeover(b *testing.B) *filesTerminal {
	b.Helper()
	w.sh(takeoverWords + fmt.Sprintf(`echo attach %dx%d > "$C/ctl"`, benchCols, benchRows))
	b.Cleanup(func() { w.sh(takeoverWords + `echo end > "$T/ctl"`) })
	return &filesTerminal{b, w.mount + "/sessions/shop/conversations/sh-1/takeover/"}
}

func (f *filesTerminal) types(text string) {
	f.b.Helper()
	input, err := os.OpenFile(f.dir+"input", os.O_WRONLY, 0)
	if err != nil {
		f.b.Fatal(err)
	}
	_, err = input.WriteString(text)
	if closed := input.Close(); err == nil {
		err = closed
	}
	if err != nil {
		f.b.Fatal(err)
	}
}

func (f *filesTerminal) shows() string {
	f.b.Helper()
	text, err := os.ReadFile(f.dir + "screen")
	if err != nil {
		f.b.Fatal(err)
	}
	return string(text)
}

// keptTerminal is a takeover whose input and screen stay open.
type keptTerminal struct {
	b             *testing.B
	input, screen *os.File
	buf           []byte
}

// keep opens input and one of the screen's files until the end of b.
func (f *filesTerminal) keep(b *testing.B, name string) *keptTerminal {
	b.Helper()
	k := &keptTerminal{b: b, buf: make([]byte, 128<<10)}
	var err error
	if k.input, err = os.OpenFile(f.dir+"input", os.O_WRONLY, 0); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { k.input.Close() })
	if k.screen, err = os.Open(f.dir + name); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { k.screen.Close() })
	return k
}

func (k *keptTerminal) types(text string) {
	k.b.Helper()
	if _, err := k.input.WriteString(text); err != nil {
		k.b.Fatal(err)
	}
}

func (k *keptTerminal) shows() string {
	k.b.Helper()
	n, err := k.screen.ReadAt(k.buf, 0)
	if err != nil && err != io.EOF {
		k.b.Fatal(err)
	}
	return string(k.buf[:n])
}

// benchTerminal is a terminal of either side.
type benchTerminal interface {
	types(text string)
	shows() string
}

var (
	_ benchTerminal = (*tmuxServer)(nil)
	_ benchTerminal = (*tmuxControl)(nil)
	_ benchTerminal = (*filesTerminal)(nil)
	_ benchTerminal = (*keptTerminal)(nil)
)

// await waits for what is sure to come and is not measured.
func await(b testing.TB, what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s does not come", what)
		}
	}
}

// awaitShown waits until a terminal shows a text.
func awaitShown(b testing.TB, t benchTerminal, text string) {
	b.Helper()
	await(b, text, func() bool { return strings.Contains(t.shows(), text) })
}
