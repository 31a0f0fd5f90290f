package activity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
)

// smallDisk mounts a tmpfs of 64 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("scvfs-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs a mount of tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("the small disk stays mounted: %v", err)
		}
	})
	return dir
}

// fill takes all room but free bytes, and returns what gives it back.
func fill(t *testing.T, dir string, free int64) (release func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	var n int64
	for ; err == nil; n++ {
		_, err = f.Write(buf)
	}
	if err := f.Truncate(max(0, (n-1)*4096-free)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

func checkSizes(t *testing.T, r *Recorder, dir string) {
	t.Helper()
	events, log := r.Size()
	for name, size := range map[string]int64{EventsFile: events, LogFile: log} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != size {
			t.Errorf("%s has %d bytes, and Size says %d", name, info.Size(), size)
		}
	}
}

func TestFullDiskLosesOnlyWhatItSaysAndGoesOn(t *testing.T) {
	for _, free := range []int64{0, 4096, 8192, 12288} {
		t.Run(fmt.Sprint(free), func(t *testing.T) {
			dir := smallDisk(t)
			var failures []error
			r := open(t, dir, Options{Failed: func(err error) { failures = append(failures, err) }})
			r.room = 4000
			r.Record(Event{Kind: agent.TurnStarted, Turn: 1, Text: "go"})
			release := fill(t, dir, free)
			const n = 300
			for i := range n {
				r.Parsed(int64(i+1), text(fmt.Sprintf("line %d %s", i, strings.Repeat("x", 100))))
				if i%10 == 9 {
					r.Flush()
				}
			}
			r.Record(Event{Kind: agent.TurnEnded, Turn: 1, Status: "completed"})
			if err := r.Save(n, nil); !fault.Is(err, fault.NoSpace) {
				t.Errorf("a checkpoint covers events that are not written: %v", err)
			}
			if len(failures) != 1 || !fault.Is(failures[0], fault.NoSpace) {
				t.Errorf("reported %d times: %v", len(failures), failures)
			}
			checkSizes(t, r, dir)
			release()
			r.Flush()
			checkSizes(t, r, dir)
			r.Parsed(n+1, text("after"))
			r.Record(Event{Kind: agent.RunEnded})
			all := recorded(t, dir)
			checkLoss(t, all, n)
			if e := all[len(all)-1]; e.Kind != agent.RunEnded || all[len(all)-2].Text != "after" || len(failures) != 1 {
				t.Errorf("the log does not go on: %+v, %v", e, failures)
			}
			before := read(t, dir, EventsFile)
			kill(r)
			r = open(t, dir, Options{})
			for i := range n {
				r.Parsed(int64(i+1), text("changed"))
			}
			r.Flush()
			if read(t, dir, EventsFile) != before {
				t.Error("a replay changes what was settled")
			}
		})
	}
}

// checkLoss checks that the events there are and the losses told of add up to
// all, in order.
func checkLoss(t *testing.T, all []Event, n int) {
	t.Helper()
	i, losses := 0, 0
	for _, e := range all {
		var lost int
		switch {
		case e.Src == nil || *e.Src > int64(n):
		case e.Kind == agent.Text:
			i++
			if want := fmt.Sprintf("line %d ", i-1); *e.Src != int64(i) || !strings.HasPrefix(e.Text, want) {
				t.Fatalf("after %d events comes %+v", i-1, e)
			}
		default:
			if _, err := fmt.Sscanf(e.Text, "%d events are lost here", &lost); err != nil || !strings.HasSuffix(e.Text, "no space left on device") {
				t.Fatalf("%q: %v", e.Text, err)
			}
			i += lost
			losses++
			if *e.Src != int64(i) {
				t.Errorf("a note of %d lost events stands at %d, not %d", lost, *e.Src, i)
			}
		}
	}
	if i != n || losses == 0 {
		t.Errorf("%d events of %d are accounted for, with %d notes of losses", i, n, losses)
	}
}

func TestLossIsToldAsSoonAsThereIsRoom(t *testing.T) {
	dir := smallDisk(t)
	r := open(t, dir, Options{})
	r.room = 0
	release := fill(t, dir, 0)
	for i := range 10 {
		r.Parsed(int64(i+1), text("x"))
	}
	release()
	r.Flush()
	want := "text:x\nnote:9 events are lost here: the log could not be written: no space left on device\n"
	if got := brief(recorded(t, dir)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := r.Save(10, nil); err != nil {
		t.Error(err)
	}
}

func TestShortFullDiskLosesNothing(t *testing.T) {
	dir := smallDisk(t)
	r := open(t, dir, Options{})
	release := fill(t, dir, 0)
	const n = 100
	for i := range n {
		r.Parsed(int64(i+1), text(fmt.Sprintf("line %d", i)))
		r.Flush()
	}
	release()
	r.Flush()
	all := recorded(t, dir)
	if len(all) != n || all[n-1].Text != fmt.Sprintf("line %d", n-1) {
		t.Errorf("%d events of %d", len(all), n)
	}
	checkSizes(t, r, dir)
	if err := r.Save(n, nil); err != nil {
		t.Error(err)
	}
}

func TestCloseOnAFullDiskSaysWhatIsLost(t *testing.T) {
	dir := smallDisk(t)
	r := open(t, dir, Options{})
	fill(t, dir, 0)
	r.Record(Event{Kind: agent.Note, Text: "x"}, Event{Kind: agent.RunEnded})
	if err := r.Close(); !fault.Is(err, fault.NoSpace) || !strings.Contains(err.Error(), "last 2 events") {
		t.Error(err)
	}
}
