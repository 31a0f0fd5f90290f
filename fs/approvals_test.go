package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

// askingTree is a full tree in which job-2 asks for something, as approval 17.
func askingTree(t testing.TB) (client, *fake) {
	c, f := fullTree(t)
	f.raise("shop", 2, "process", "run `rm -rf build`")
	return c, f
}

const approveFile = "sessions/shop/jobs/job-2/approve"

func TestReadsOfApprovalsCountAsWatching(t *testing.T) {
	c, f := askingTree(t)
	counts := func(what string, want bool, do func()) {
		t.Helper()
		f.watched()
		do()
		if watchers, looks := f.watched(); looks > 0 != want || watchers != 0 {
			t.Errorf("%s: %d looks, %d watchers", what, looks, watchers)
		}
	}
	for _, name := range []string{"summary", "request", "risk", "job", "run", "deadline", "answer"} {
		counts("cat "+name, true, func() { c.cat("approvals/17/" + name) })
	}
	counts("cat approve", true, func() { c.cat(approveFile) })
	counts("cat approve of the session", true, func() { c.cat("sessions/shop/approve") })
	counts("ls approvals", true, func() { c.list("approvals") })
	counts("ls approvals/17", true, func() { c.list("approvals/17") })
	h := must(c.open(approveFile, Mode{Read: true}))
	counts("reading again", true, func() { must(h.Read(c.ctx, make([]byte, 10), 0)) })
	counts("ls -l of a job", false, func() { c.list("sessions/shop/jobs/job-2"); c.attr(approveFile) })
	counts("stat", false, func() {
		c.attr("approvals")
		c.attr("approvals/17")
		c.attr("approvals/17/answer")
		c.attr("approvals/watch")
	})
	counts("other files", false, func() { c.cat("snapshot"); c.cat("sessions/shop/jobs/job-2/state") })
	counts("an answer", false, func() { c.put("approvals/17/answer", "yes") })
}

func TestWhoHoldsWatchOpenWatches(t *testing.T) {
	c, f := askingTree(t)
	first := must(c.open("approvals/watch", Mode{Read: true}))
	second := must(c.open("approvals/watch", Mode{Read: true}))
	watchers := func(want int) {
		t.Helper()
		if n, _ := f.watched(); n != want {
			t.Errorf("%d watch, want %d", n, want)
		}
	}
	watchers(2)
	if err := first.Flush(c.ctx, Closer{Opener: true}); err != nil { // a descriptor of it is closed, another one is left
		t.Fatal(err)
	}
	watchers(2)
	first.Release(c.ctx)
	first.Release(c.ctx)
	watchers(1)
	second.Release(c.ctx)
	watchers(0)
	_, err := c.open("approvals/watch", Mode{Write: true})
	isKind(t, err, fault.Denied, "read-only")
	watchers(0)
}

func TestWatchSaysEachRequestOnce(t *testing.T) {
	c, f := askingTree(t)
	h := must(c.open("approvals/watch", Mode{Read: true}))
	defer h.Release(c.ctx)
	next := func(want ...string) {
		t.Helper()
		var p [4096]byte
		n, err := h.Read(c.ctx, p[:], 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(p[:n]), "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i, line := range got {
			// 17 process 9m59s shop/job-2 run `rm -rf build`
			words := strings.SplitN(line, " ", 4)
			if len(words) != 4 || words[0]+" "+words[1]+" "+words[3] != want[i] || !strings.HasPrefix(words[2], "9m") {
				t.Errorf("%q, want %q", line, want[i])
			}
		}
	}
	next("17 process shop/job-2 run `rm -rf build`") // it waits already
	f.raise("shop", 2, "network", "fetch it")
	next("18 network shop/job-2 fetch it")
	c.put("approvals/17/answer", "yes")
	c.put("approvals/18/answer", "no")
	f.raise("shop", 2, "filesystem", "edit a\nfile")
	f.raise("shop", 2, "process", "stop")
	next("19 filesystem shop/job-2 edit a file", "20 process shop/job-2 stop")
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error)
	go func() { _, err := h.Read(ctx, make([]byte, 10), 0); done <- err }()
	cancel()
	isKind(t, <-done, fault.Interrupted, "")
	quick := must(c.open("approvals/watch", Mode{Read: true, NonBlock: true}))
	defer quick.Release(c.ctx)
	if n := must(quick.Read(c.ctx, make([]byte, 4096), 0)); n == 0 {
		t.Error("those that wait are not there at once")
	}
	_, err := quick.Read(c.ctx, make([]byte, 10), 0)
	isKind(t, err, fault.Limit, "nothing has come yet")
}

func TestASessionsEventsTellOfRequests(t *testing.T) {
	c, f := askingTree(t)
	h := must(c.open("sessions/shop/events", Mode{Read: true}))
	defer h.Release(c.ctx)
	f.raise("shop", 2, "process", "run make")
	c.put(approveFile, "yes 18")
	for _, want := range []string{
		`{"approval":18,"job":"job-2","outcome":"waiting","detail":"run make"}`,
		`{"approval":18,"job":"job-2","outcome":"approved","detail":"run make"}`,
	} {
		p := make([]byte, len(want)+1)
		if n, err := h.Read(c.ctx, p, 0); err != nil || string(p[:n]) != want+"\n" {
			t.Errorf("%q (%v), want %q", p[:n], err, want)
		}
	}
}

func TestTimesOfWhatCountsDown(t *testing.T) {
	c, f := askingTree(t)
	a, _ := f.Approval(17)
	now := a.Created.Add(90 * time.Second)
	f.set(func(f *fake) { f.at = now })
	for name, unit := range map[string]time.Duration{"approvals/17/summary": time.Minute, approveFile: time.Second, "sessions/shop/approve": time.Second} {
		// The clock of a test moves on with each look.
		if at := c.attr(name).Mtime; at.After(now.Add(10*time.Second)) || now.Sub(at) > unit || a.Deadline.Sub(at)%unit != 0 {
			t.Errorf("%s changed at %v, it is %v", name, at, now)
		}
	}
	if at := c.attr("approvals/17/answer").Mtime; !at.Equal(a.Created) {
		t.Errorf("answer changed at %v", at)
	}
	c.put("approvals/17/answer", "yes")
	a, _ = f.Approval(17)
	for _, name := range []string{"approvals/17", "approvals/17/summary", "approvals/17/request"} {
		if at := c.attr(name).Mtime; !at.Equal(a.Decided) {
			t.Errorf("%s changed at %v, it was decided at %v", name, at, a.Decided)
		}
	}
	if at := c.attr("approvals/17/risk").Mtime; !at.Equal(a.Created) {
		t.Errorf("risk changed at %v", at)
	}
	f.set(func(f *fake) { f.at = a.Deadline.Add(time.Hour) })
	f.raise("shop", 2, "process", "long")
	f.set(func(f *fake) { f.approvals[1].Deadline = f.at.Add(3 * time.Hour) })
	if got := c.cat("sessions/shop/approve"); !strings.HasPrefix(got, "18 process 2h59m5") {
		t.Errorf("hours left: %s", got)
	}
	f.set(func(f *fake) { f.approvals[1].Deadline = f.at.Add(-time.Hour) })
	if got := c.cat("sessions/shop/approve"); !strings.HasPrefix(got, "18 process 0m00s ") {
		t.Errorf("nothing left: %s", got)
	}
}

func TestAModeOfEachFileOfARequest(t *testing.T) {
	c, _ := askingTree(t)
	for name, perm := range map[string]uint32{
		"approvals": 0o500, "approvals/17": 0o500, "approvals/watch": 0o400, "approvals/17/answer": 0o600, "approvals/17/request": 0o400,
		"approvals/17/summary": 0o400, approveFile: 0o600, "sessions/shop/approve": 0o600,
	} {
		if got := c.attr(name).Perm; got != perm {
			t.Errorf("%s is %o, want %o", name, got, perm)
		}
	}
	for _, name := range c.list("approvals") {
		if name == "watch" {
			t.Error("watch blocks and is listed")
		}
	}
}

func TestALongRequestSaysThatItWasCut(t *testing.T) {
	c, f := askingTree(t)
	f.set(func(f *fake) {
		a := *f.approvals[0]
		a.Request, a.RequestBytes = json.RawMessage(`"{\"command\": \"\u202e"`), 300_000
		f.approvals[0] = &a
	})
	var got struct{ Cut, Start string }
	text := c.cat("approvals/17/request")
	if err := json.Unmarshal([]byte(text), &got); err != nil || !strings.Contains(got.Cut, "300000 bytes") || got.Start != "{\"command\": \"\u202e" {
		t.Errorf("%v: %s", err, text)
	}
	if strings.ContainsRune(text, '\u202e') {
		t.Error("it turns the direction of writing")
	}
	f.set(func(f *fake) { a := *f.approvals[0]; a.Request, a.RequestBytes = nil, 0; f.approvals[0] = &a })
	if text := c.cat("approvals/17/request"); text != "" {
		t.Errorf("no request reads %q", text)
	}
}

func TestAHomeIsWrittenAsATilde(t *testing.T) {
	tree := &Tree{home: "/home/u"}
	for dir, want := range map[string]string{"/home/u": "~", "/home/u/shop": "~/shop", "/home/user": "/home/user", "/": "/", "": ""} {
		if got := tree.tilde(dir); got != want {
			t.Errorf("%s is written %s", dir, got)
		}
	}
	if got := (&Tree{home: "/"}).tilde("/src"); got != "/src" {
		t.Errorf("below a home of / it is written %s", got)
	}
}

// Whoever answers too late is told by whom it was answered, also on the
// descriptor that he wrote to.
func TestTheSecondAnswerIsRefused(t *testing.T) {
	c, _ := askingTree(t)
	c.put(approveFile, "yes")
	h := must(c.open("approvals/17/answer", Mode{Read: true, Write: true}))
	_, err := h.Write(c.ctx, []byte("no\n"))
	isKind(t, err, fault.Done, "approval 17 was approved by owner (pid 4242, /")
	if got, err := readAll(c.ctx, h, 3); err != nil || !strings.HasPrefix(got, "# last: answer: refused: approval 17 was approved") {
		t.Errorf("%q, %v", got, err)
	}
}

// A long answer is refused whole.
func TestAnAnswerHasABound(t *testing.T) {
	c, f := askingTree(t)
	f.question("shop", 2, "What?\n")
	isKind(t, c.write("approvals/18/answer", strings.Repeat("x\n", maxWhole)), fault.TooLarge, fmt.Sprint(maxWhole))
	isKind(t, c.write("approvals/18/answer", strings.Repeat("x", maxLine+1)), fault.TooLarge, fmt.Sprint(maxLine))
	c.put("approvals/18/answer", strings.Repeat("x", maxLine))
}
