package ledger

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"scvfs/ledger/fault"
)

// holdProcess opens the ledger and keeps it.
func holdProcess(dir string) error {
	_, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println("holding")
	_, err = io.Copy(io.Discard, os.Stdin) // until the test is over
	return err
}

var held *bolt.DB // until the process ends: a finalizer would close it

// flockProcess locks the ledger's file as another program would.
func flockProcess(dir string) (err error) {
	if held, err = bolt.Open(filepath.Join(dir, fileName), 0o600, nil); err != nil {
		return err
	}
	fmt.Println("holding")
	_, err = io.Copy(io.Discard, os.Stdin) // until the test is over
	return err
}

// commitProcess commits without an end, and prints what is acknowledged.
func commitProcess(dir string) error {
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	c, bad, err := l.Load()
	if found := Check(c, bad); err != nil || len(bad) > 0 || len(found) > 0 {
		return fmt.Errorf("load: %v %v %v", err, bad, found)
	}
	next := map[string]uint64{}
	for _, s := range c.Sessions {
		next[s.ID] = s.NextJob
	}
	var out sync.Mutex
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			id := fmt.Sprintf("s%d", g)
			for n := max(next[id], 1); ; n++ {
				serial := uint64(g+1)<<32 + n
				err := tryCommit(l, func(b *Batch) {
					s := aSession(id, uint64(g+1)<<32, n+1)
					b.PutSession(s)
					j := aJob(id, n, serial)
					j.Task = strings.Repeat("t", int(n%5)*700)
					b.PutJob(j)
				})
				out.Lock()
				if err != nil {
					fmt.Println("error:", err)
				}
				fmt.Println(id, n)
				out.Unlock()
			}
		})
	}
	all.Wait()
	return nil
}

func TestASecondDaemonIsToldWhoIsThere(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, "hold", dir)
	holder.expect(t, "holding")
	pid := holder.cmd.Process.Pid
	want := fmt.Sprintf("%s: another scvfs (pid %d) serves this state directory; stop it or use --state", dir, pid)
	_, err := Open(dir, Options{})
	if !fault.Is(err, fault.Busy) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if o, err := ReadOwner(dir); err != nil || o.PID != pid || time.Since(o.Since) > time.Hour {
		t.Errorf("the owner is %+v, %v", o, err)
	}
	holder.kill()
	if o, err := ReadOwner(dir); !fault.Is(err, fault.NotFound) {
		t.Errorf("after it was killed the owner is %+v, %v", o, err)
	}
	l := open(t, dir)
	if o, err := ReadOwner(dir); err != nil || o.PID != os.Getpid() {
		t.Errorf("the owner is %+v, %v", o, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, ownerName)); !os.IsNotExist(err) {
		t.Errorf("the owner file stays behind: %v", err)
	}
}

func TestASecondLedgerInThisProcessIsRefusedToo(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	refused(t, dir, fault.Busy, fmt.Sprintf("(pid %d)", os.Getpid()))
}

func TestAnotherProgramThatHoldsTheLockIsNamed(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	holder := start(t, "flock", dir)
	holder.expect(t, "holding")
	// As a daemon that was killed leaves it: the pid was used again.
	writeFile(t, filepath.Join(dir, ownerName), fmt.Sprintf(`{"pid":%d,"start":1}`, os.Getpid()))
	_, err := Open(dir, Options{})
	if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
	if locks, _ := os.ReadFile("/proc/locks"); strings.Contains(string(locks), fmt.Sprintf(" %d ", holder.cmd.Process.Pid)) &&
		!strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", holder.cmd.Process.Pid)) {
		t.Errorf("the kernel knows the holder, but the error does not: %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadOwnerBelievesNoLeftovers(t *testing.T) {
	start, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{fmt.Sprintf(`{"pid":%d,"start":%d,"since":"2026-11-29T12:00:00Z"}`, os.Getpid(), start), true},
		{fmt.Sprintf(`{"pid":%d,"start":%d}`, os.Getpid(), start+1), false},
		{`{"pid":0}`, false},
		{`{"pid":-1,"start":0}`, false},
		{`{`, false},
		{``, false},
		{strings.Repeat(" ", 5000), false},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, ownerName), tt.text)
		if o, err := ReadOwner(dir); (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%.60q: %+v, %v", tt.text, o, err)
		}
	}
	if _, err := ReadOwner(t.TempDir()); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a file: %v", err)
	}
}

func TestOwnerTellsSinceWhen(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if o, err := ReadOwner(dir); err != nil || !o.Since.Equal(noon) {
		t.Errorf("since %v, %v", o.Since, err)
	}
}

func TestParseStart(t *testing.T) {
	fields := "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
	for _, tt := range []struct {
		stat string
		want uint64
	}{
		{"12 (scvfs) " + fields, 4711},
		{"12 (a b) c) " + fields, 4711},
		{"12 ()) " + fields, 4711},
		{"", 0},
		{"12 (scvfs) S 1 2", 0},
		{"12 (scvfs) " + strings.Replace(fields, "4711", "-1", 1), 0},
		{"12 (scvfs)", 0},
	} {
		if got, err := parseStart([]byte(tt.stat)); got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%q: %d, %v", tt.stat, got, err)
		}
	}
}

func TestFindLock(t *testing.T) {
	locks := strings.Join([]string{
		"1: POSIX  ADVISORY  WRITE 10 fe:00:131 0 EOF",
		"2: -> FLOCK  ADVISORY  WRITE 11 fe:00:131 0 EOF",
		"3: FLOCK  ADVISORY  WRITE 12 fe:00:132 0 EOF",
		"4: FLOCK  ADVISORY  WRITE -1 fe:00:131 0 EOF",
		"5: FLOCK  ADVISORY  WRITE 13 fe:00:131 0 EOF",
		"6:",
	}, "\n")
	if pid, ok := findLock(strings.NewReader(locks), "fe:00:131"); pid != 13 || !ok {
		t.Errorf("got %d, %v", pid, ok)
	}
	if pid, ok := findLock(strings.NewReader(locks), "fe:00:133"); ok {
		t.Errorf("got %d", pid)
	}
}

func TestAKilledDaemonLosesNothingThatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for round := range 6 {
		p := start(t, "commit", dir)
		for range 40 + 60*round {
			if !p.lines.Scan() || strings.HasPrefix(p.lines.Text(), "error") {
				t.Fatalf("the process says %q (%v)", p.lines.Text(), p.lines.Err())
			}
			acknowledged[p.lines.Text()] = true
		}
		p.cmd.Process.Kill()
		for p.lines.Scan() { // what it said before it died
			acknowledged[p.lines.Text()] = true
		}
		p.kill()
	}
	l := open(t, dir)
	there := map[string]bool{}
	for _, j := range load(t, l).Jobs {
		there[fmt.Sprintf("%s %d", j.Session, j.Number)] = true
	}
	for job := range acknowledged {
		if fields := strings.Fields(job); len(fields) == 2 && !there[job] {
			t.Errorf("job %s is lost", job)
		}
	}
	if len(acknowledged) < 1000 {
		t.Errorf("only %d commits", len(acknowledged))
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"pid":12,"start":34,"since":"2026-11-29T12:00:00+01:00"}`))
	f.Add([]byte(`{"pid":1e3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := parseOwner(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(o)
		if err != nil {
			t.Skip("a year that JSON cannot hold")
		}
		if back, err := parseOwner(again); err != nil || back.PID != o.PID || back.Start != o.Start || !back.Since.Equal(o.Since) {
			t.Fatalf("%+v became %+v (%v)", o, back, err)
		}
	})
}

func FuzzParseStart(f *testing.F) {
	f.Add([]byte("12 (a b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		start, err := parseStart(stat)
		if err == nil && !strings.Contains(string(stat), fmt.Sprint(start)) && start != 0 {
			t.Fatalf("%d is not in %q", start, stat)
		}
	})
}
