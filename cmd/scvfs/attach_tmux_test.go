package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scvfs/takeover/screen"
)

// pane is a person's terminal: one of tmux, with a shell in it from which
// scvfs attach is started.
type pane struct {
	w      *world
	tmux   string // its socket
	target string // the window
	env    []string
	ended  *sync.Once
	starts int // of the client
}

// outer is the shell in a pane; a shell that starts it would lose its prompt.
const outer = "env 'PS1=outer> ' bash --norc"

// newPane opens a terminal in a tmux of the world's own, which ends with the
// test.
func (w *world) newPane(cols, rows int) *pane {
	w.t.Helper()
	for _, program := range []string{"tmux", "vim"} {
		if _, err := exec.LookPath(program); err != nil {
			w.t.Skipf("%s is missing: run scripts/setup test", program)
		}
	}
	p := &pane{w: w, tmux: filepath.Join(w.dir, "tmux"), ended: new(sync.Once)}
	p.env = append(os.Environ(), "HOME="+w.dir, "LC_ALL=C.UTF-8", "SCVFS="+binary)
	p.open("a", cols, rows)
	w.t.Cleanup(p.end)
	return p
}

// second opens another terminal in the same tmux.
func (p *pane) second(cols, rows int) *pane {
	p.w.t.Helper()
	other := *p
	other.open("b", cols, rows)
	return &other
}

func (p *pane) open(session string, cols, rows int) {
	p.w.t.Helper()
	p.target = session + ":0"
	p.do("-f", "/dev/null", "new-session", "-d", "-s", session, "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), outer)
	p.sees("outer>")
}

// end ends the tmux, which hangs up on all that runs in it.
func (p *pane) end() {
	p.ended.Do(func() {
		pid := strings.TrimSpace(p.do("display-message", "-p", "#{pid}"))
		p.do("kill-server")
		for end := time.Now().Add(patience); exists("/proc/" + pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				p.w.t.Error("tmux does not end")
				return
			}
		}
	})
}

// do runs a command of tmux.
func (p *pane) do(args ...string) string {
	p.w.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.tmux}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.w.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) resize(cols, rows int) {
	p.w.t.Helper()
	p.do("resize-window", "-t", p.target, "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows))
}

// keys presses keys by their tmux names.
func (p *pane) keys(names ...string) {
	p.w.t.Helper()
	p.do(append([]string{"send-keys", "-t", p.target}, names...)...)
}

// types types text as it is, and Enter behind it.
func (p *pane) types(text string) {
	p.w.t.Helper()
	p.do("send-keys", "-l", "-t", p.target, text)
	p.keys("Enter")
}

// text is what the terminal shows.
func (p *pane) text() string {
	p.w.t.Helper()
	return p.do("capture-pane", "-p", "-t", p.target)
}

// until waits for something to become true.
func (p *pane) until(what string, ok func() bool) {
	p.w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.w.t.Fatalf("%s does not come; the terminal shows\n%s", what, p.text())
		}
	}
}

func (p *pane) sees(text string) {
	p.w.t.Helper()
	p.until(fmt.Sprintf("%q", text), func() bool { return strings.Contains(p.text(), text) })
}

// attach starts the client and waits until it has the terminal.
func (p *pane) attach(flags, path string) {
	p.w.t.Helper()
	p.start(flags, path)
	p.until("the client", func() bool {
		return strings.HasPrefix(p.do("display-message", "-p", "-t", p.target, "#{alternate_on} #{pane_title}"), "1 attach: ")
	})
}

// start types the command.
func (p *pane) start(flags, path string) {
	p.w.t.Helper()
	p.starts++
	p.types(fmt.Sprintf(`clear; was=$(stty -g); "$SCVFS" attach %s '%s'; echo "start %d: rc=$?"; [ "$was" = "$(stty -g)" ] && echo as before`, flags, path, p.starts))
}

// left waits for the client's end, and looks whether it says what it should,
// ends with this code, and leaves the terminal as it was.
func (p *pane) left(code int, says string) {
	p.w.t.Helper()
	p.sees(fmt.Sprintf("\nstart %d: rc=%d\nas before\nouter>", p.starts, code))
	flat := strings.ReplaceAll(p.text(), "\n", "") // lines are wrapped
	if !strings.Contains(flat, says) {
		p.w.t.Fatalf("it does not say %q:\n%s", says, p.text())
	}
	if state := p.do("display-message", "-p", "-t", p.target, "#{alternate_on}#{keypad_cursor_flag}#{mouse_any_flag}#{cursor_flag}#{wrap_flag}"); state != "00011\n" {
		p.w.t.Errorf("alternate screen, cursor keys, mouse, cursor and wrap are left as %s", state)
	}
}

// page is a takeover's screen.
func (p *pane) page(takeover string) (page screen.Page) {
	p.w.t.Helper()
	text, err := os.ReadFile(filepath.Join(takeover, "screen.json"))
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil {
		p.w.t.Fatal(err)
	}
	return page
}

// shown is what the terminal shows, as a page: what tmux holds, drawn anew.
func (p *pane) shown(cols, rows int) screen.Page {
	p.w.t.Helper()
	s := screen.New(screen.Options{Cols: cols, Rows: rows})
	text := strings.TrimSuffix(p.do("capture-pane", "-p", "-e", "-N", "-t", p.target), "\n")
	_, _ = s.Write([]byte("\x1b[?7l" + strings.ReplaceAll(text, "\n", "\r\n")))
	return s.Page(0)
}

// same waits until the terminal shows a takeover's screen, cell for cell, with
// colours, and the cursor at its place.
func (p *pane) same(takeover string) {
	p.w.t.Helper()
	var want, got, cursor, at string
	defer func() {
		if p.w.t.Failed() {
			p.w.t.Logf("the terminal shows %s, cursor %s\nthe screen is %s, cursor %s", got, at, want, cursor)
		}
	}()
	p.until("the same picture", func() bool {
		page := p.page(takeover)
		want = rowsOf(page)
		got = rowsOf(p.shown(page.Cols, page.Rows))
		cursor, at = "hidden", "hidden"
		if page.Cursor != nil {
			cursor = fmt.Sprintf("%d %d", page.Cursor[0], page.Cursor[1])
		}
		if state := p.do("display-message", "-p", "-t", p.target, "#{cursor_flag} #{cursor_y} #{cursor_x}"); state[0] == '1' {
			at = strings.TrimSpace(state[2:])
		}
		return want == got && cursor == at
	})
}

// rowsOf returns a page's rows for comparison. Blanks at the end of a row that a
// page cannot tell from those of the default style are left out.
func rowsOf(p screen.Page) string {
	for i, l := range p.Lines {
		if n := len(l.Spans); n > 0 {
			last := l.Spans[n-1]
			last.Text = ""
			if last == (screen.Span{}) {
				last.Text = strings.TrimRight(l.Spans[n-1].Text, " ")
				p.Lines[i].Spans[n-1] = last
			}
			if last.Text == "" && last == (screen.Span{}) {
				p.Lines[i].Spans = l.Spans[:n-1]
			}
		}
	}
	text, _ := json.Marshal(p.Lines)
	return string(text)
}

// attachable makes a world whose conversation sh-1 has had a turn and can be
// taken over, and returns the conversation's directory. far is for a tree that
// is mounted over 9P.
func attachable(t *testing.T, far bool) (w *world, conversation string) {
	t.Helper()
	t.Setenv("SHELL", "/bin/bash")
	if far {
		w = ninepWorld(t, "")
	} else {
		w = newWorld(t, "")
	}
	w.session()
	w.sh(`echo 'echo hi' > "$S/start"; cat "$J/job-1/wait"`)
	if !strings.Contains(w.sh(`cat "$S/conversations/sh-1/ctl"`), "attach") {
		t.Skip("conversations cannot be taken over: their ctl does not know attach")
	}
	mount := w.mount
	if far {
		mount = w.farMount("unix:" + w.socket()).dir
	}
	return w, filepath.Join(mount, "sessions/shop/conversations/sh-1")
}

// everyMount runs a test on the tree itself and over 9P.
func everyMount(t *testing.T, test func(t *testing.T, w *world, conversation string)) {
	for name, far := range map[string]bool{"fuse": false, "9p": true} {
		t.Run(name, func(t *testing.T) {
			w, conversation := attachable(t, far)
			test(t, w, conversation)
		})
	}
}

func TestAttachToVim(t *testing.T) {
	everyMount(t, func(t *testing.T, w *world, conversation string) {
		p := w.newPane(100, 30)
		p.attach("", conversation)
		takeover := filepath.Join(conversation, "takeover")
		p.types("PS1='inner> '; clear; stty size; tty > /dev/null && echo is a tty")
		p.sees("30 100\nis a tty\ninner>")
		p.same(takeover)
		p.types("vim -N -u NONE -i NONE --cmd 'set nocompatible number hlsearch autoindent' notes.c")
		p.sees(`"notes.c" [New]`)
		p.keys("i")
		p.types("int main(void) { return 0; } // héllo 好的 👍")
		p.types("    second")
		p.keys("Up", "Up", "End")
		p.types(" over")
		p.keys("Escape")
		p.types(":syntax on")
		p.types(":set filetype=c")
		p.types("/ret")
		p.same(takeover)
		p.resize(70, 20)
		p.until("the new size", func() bool { return w.sh("cat '"+takeover+"/size'") == "70x20\n" })
		p.same(takeover)
		// A paste comes as one, so vim does not indent it again and again.
		p.keys("G", "o")
		p.do("set-buffer", "    four\n    four\n    four\n")
		p.do("paste-buffer", "-p", "-t", p.target)
		p.sees("four\n")
		p.keys("Escape")
		p.types(":wq")
		p.sees("inner>")
		text, err := os.ReadFile(filepath.Join(w.place, "notes.c"))
		if want := "int main(void) { return 0; } // héllo 好的 👍 over\n\n    second\n\n    four\n    four\n    four\n\n"; err != nil || string(text) != want {
			t.Errorf("vim wrote %q, %v, not %q", text, err, want)
		}
		p.types("exit")
		p.left(0, "attach: the terminal has ended: exit 0")
	})
}

func TestAttachDetachesAndComesBack(t *testing.T) {
	everyMount(t, func(t *testing.T, w *world, conversation string) {
		p := w.newPane(90, 24)
		takeover := filepath.Join(conversation, "takeover")
		p.attach("", conversation)
		p.types("PS1='inner> '; clear; echo $(echo before)")
		p.sees("before\ninner>")
		p.keys(`C-\`)
		p.left(0, `attach: detached; the agent goes on`)
		if text := p.do("capture-pane", "-p", "-S", "-", "-t", p.target); !strings.Contains(strings.ReplaceAll(text, "\n", ""), `detach with Ctrl-\`) {
			t.Errorf("it was not said how to detach:\n%s", text)
		}
		w.want("cat '"+takeover+"/holder'", "")
		p.attach("--detach-key 'ctrl-b d'", takeover)
		p.sees("before\ninner>")
		p.same(takeover)
		p.keys("C-b", "x") // not the key: the program gets both
		p.types("$(echo after)")
		p.sees("xafter")
		p.keys("C-b", "d")
		p.left(0, "attach: detached; the agent goes on")
	})
}

func TestAttachLeavesWhenTheTerminalIsTaken(t *testing.T) {
	w, conversation := attachable(t, false)
	p := w.newPane(90, 24)
	takeover := filepath.Join(conversation, "takeover")
	p.attach("", conversation)
	p.types("PS1='inner> '; clear")
	p.sees("inner>")
	// The other types, which is seen; and the other only takes it, and our own
	// key finds out.
	for _, script := range []string{`printf 'echo other\r' >&3`, ":"} {
		out := make(chan string)
		go func() {
			text, _ := w.try(`exec 3> '` + takeover + `/input'; echo taken > taken; ` + script + `; until [ -e seen ]; do sleep 0.02; done; rm seen taken`)
			out <- text
		}()
		p.until("the other", func() bool { return exists(filepath.Join(w.place, "taken")) })
		if script == ":" {
			p.keys("x")
		}
		p.left(3, "the terminal was taken by process ")
		p.w.sh("touch seen")
		if text := <-out; text != "" {
			t.Errorf("the other: %s", text)
		}
		p.attach("", conversation)
	}
	p.keys(`C-\`)
	p.left(0, "detached")
}

func TestAttachWatchesOnly(t *testing.T) {
	everyMount(t, func(t *testing.T, w *world, conversation string) {
		p := w.newPane(90, 24)
		takeover := filepath.Join(conversation, "takeover")
		p.start("--read-only", conversation)
		p.left(1, "is not taken over, and watching takes nothing over")
		p.attach("", conversation)
		p.types("PS1='inner> '; clear")
		p.sees("inner>")
		watcher := p.second(90, 24)
		watcher.attach("--read-only", conversation)
		watcher.types("nothing of this is typed")
		p.types(`printf '\033[1;31mred\033[0m and \033[48;5;19mblue\033[0m and \033[38;2;1;2;3mtrue\033[0m\n'`)
		watcher.sees("red and blue")
		watcher.same(takeover)
		p.same(takeover)
		watcher.resize(40, 10) // which resizes nothing, and shows the part with the cursor
		watcher.sees("inner>")
		w.want("cat '"+takeover+"/size'", "90x24\n")
		watcher.keys("C-c")
		watcher.left(0, "detached")
		p.keys(`C-\`)
		p.left(0, "detached")
	})
}

func TestAttachInterruptsTheJob(t *testing.T) {
	w, conversation := attachable(t, false)
	p := w.newPane(90, 24)
	w.sh(`echo 'sleep 1000' > "$S/conversations/sh-1/queue"; until grep -q working "$J/job-2/state"; do sleep 0.02; done`)
	p.start("", conversation)
	p.left(1, "attach: refused: ")
	w.want(`cat "$J/job-2/status"`, "running\n")
	p.attach("--interrupt", conversation)
	w.want(`cat "$J/job-2/wait"`, "cancelled\n")
	p.types("exit")
	p.left(0, "the terminal has ended")
}

func TestAttachIsEndedBySignals(t *testing.T) {
	w, conversation := attachable(t, false)
	p := w.newPane(90, 24)
	for sig, name := range map[syscall.Signal]string{syscall.SIGTERM: "terminated", syscall.SIGHUP: "hangup", syscall.SIGINT: "interrupt", syscall.SIGQUIT: "quit"} {
		p.attach("", conversation)
		syscall.Kill(w.holderPID(), sig)
		p.left(1, "ended by signal "+name)
	}
	w.want(`cat "$S/conversations/sh-1/takeover/holder"`, "")
}

// holderPID is the process that holds the terminal of sh-1.
func (w *world) holderPID() int {
	w.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(w.sh(`until [ -s "$S/conversations/sh-1/takeover/holder" ]; do sleep 0.02; done; sed 's/process \([0-9]*\) .*/\1/' "$S/conversations/sh-1/takeover/holder"`)))
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

func TestAttachEndsWithTheDaemon(t *testing.T) {
	w, conversation := attachable(t, false)
	p := w.newPane(90, 24)
	p.attach("", conversation)
	w.kill()
	p.left(1, "the screen can be followed no longer")
	w.start()
}

func TestAttachRefuses(t *testing.T) {
	w, conversation := attachable(t, false)
	p := w.newPane(90, 24)
	p.start("", conversation+"/../../jobs/job-1")
	p.left(1, "is no conversation and no takeover")
	p.start("", conversation+"/none")
	p.left(1, "there is no ")
	p.start("< /dev/null", conversation)
	p.left(1, "/dev/stdin is no terminal")
	p.start("--detach-key d", conversation)
	p.left(2, `cannot detach`)
	p.types("export TERM=dumb")
	p.start("", conversation)
	p.left(1, "cannot be drawn on (TERM=dumb)")
	w.refused(`"`+binary+`" attach a b`, "attach takes one conversation or takeover")
}
