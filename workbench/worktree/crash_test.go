package worktree

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scvfs/ledger/fault"
)

// await polls for what another process does.
func (b *bed) await(what string, is func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s did not come", what)
		}
	}
}

// processesWith lists the processes whose command line holds a text, without
// this one.
func processesWith(text string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if line, _ := os.ReadFile(f); pid != os.Getpid() && bytes.Contains(line, []byte(text)) {
			found = append(found, pid)
		}
	}
	return found
}

// makeForEver makes one worktree after another, and tells of each.
func makeForEver(root, repo, first string) {
	n, _ := strconv.Atoi(first)
	m := New(root)
	for ; ; n++ {
		fmt.Println("making", n)
		if _, err := m.Make(context.Background(), repo, names(n)); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
}

func TestSixteenAtOnceInOneRepository(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	linked := filepath.Join(b.dir, "linked")
	b.git(repo, "worktree", "add", "-q", "-b", "feature", linked)
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	others := New(b.m.root) // as another process would have
	start := time.Now()
	for round := range rounds {
		var all sync.WaitGroup
		made := make([]Worktree, 16)
		for i := range made {
			all.Go(func() {
				m, dir := b.m, repo
				if i%2 == 1 {
					m, dir = others, linked
				}
				wt, err := m.Make(context.Background(), dir, names(round*16+i))
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				made[i] = wt
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		for i, wt := range made {
			all.Go(func() {
				if len(wt.Notes) > 0 {
					t.Errorf("notes: %q", wt.Notes)
				}
				if err := b.m.Remove(context.Background(), wt, nil); err != nil {
					t.Errorf("round %d: %d: %v", round, i, err)
				}
			})
		}
		all.Wait()
	}
	t.Logf("16 worktrees made and removed at once, %d times: %s", rounds, time.Since(start).Round(time.Millisecond))
	b.git(repo, "worktree", "remove", linked)
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAStaleLockOfTheNewBranchDoesNotHinder(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	b.write(filepath.Join(repo, ".git", "refs", "heads", "scv", names(1)+".lock"), "")
	wt := b.make(repo, names(1))
	b.remove(wt)
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestARemovalThatAnotherGitHindersIsCarriedOn(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	wt := b.make(repo, names(1))
	held := filepath.Join(repo, ".git", "packed-refs.lock")
	b.write(held, "")
	if err := b.m.Remove(b.context(), wt, nil); !fault.Is(err, fault.Busy) {
		t.Errorf("Remove says %v", err)
	}
	if got, err := b.m.Get(wt.Name); err != nil || got.State != Removing {
		t.Errorf("meanwhile it is %q, %v", got.State, err)
	}
	b.must(os.Remove(held))
	b.remove(wt)
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestNothingIsLeftOfWhatWasCutOffByAKill(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	part := b.repo("part")
	b.git(repo, "submodule", "add", "-q", part, "part")
	for i := range 50 {
		b.write(filepath.Join(repo, "many", strconv.Itoa(i)), strings.Repeat("x", 1000))
	}
	b.git(repo, "add", ".")
	b.git(repo, "commit", "-qm", "many")
	tries := 25
	if testing.Short() {
		tries = 5
	}
	interrupted := 0
	for i := range tries {
		cmd := exec.Command(os.Args[0], "make", b.m.root, repo, strconv.Itoa(i*1000))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 100)
		if n, err := out.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), "making") {
			t.Fatalf("%q, %v", line[:n], err)
		}
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // a random moment is the point
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, wt := range b.m.List() {
			if wt.State != Ready {
				interrupted++
			}
		}
		if err := b.m.Recover(b.context()); err != nil {
			t.Fatalf("Recover: %v", err)
		}
		for _, wt := range b.m.List() {
			if wt.State != Ready || b.dirty(wt) || len(wt.Notes) > 0 {
				t.Errorf("after a kill: %+v", wt)
			}
			b.remove(wt)
		}
		if left := b.traces(repo); len(left) > 0 {
			t.Fatalf("left after kill %d: %q", i, left)
		}
	}
	t.Logf("%d of %d kills cut one off", interrupted, tries)
	b.await("the end of all their processes", func() bool { return len(processesWith(b.dir)) == 0 })
	b.make(repo, "last-00ffff")
}

func TestARemovalThatWasCutOffIsCarriedOn(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	wt := b.make(repo, names(1))
	r, err := b.m.load(wt.Name)
	if err != nil {
		t.Fatal(err)
	}
	r.State = Removing
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(wt.Path, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.m.Dirty(b.context(), wt); !fault.Is(err, fault.Busy) {
		t.Errorf("Dirty says %v", err)
	}
	if err := b.m.Recover(b.context()); err != nil {
		t.Fatal(err)
	}
	if left := b.traces(repo); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestRecoverLeavesAloneWhatALivingProcessMakes(t *testing.T) {
	b := newBed(t)
	repo := b.repo("shop")
	wt := b.make(repo, names(1))
	r, err := b.m.load(wt.Name)
	if err != nil {
		t.Fatal(err)
	}
	held, err := tryLock(r.place)
	if err != nil {
		t.Fatal(err)
	}
	defer held.done(r.place)
	r.State = Making
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.context(), 200*time.Millisecond)
	defer cancel()
	if err := New(b.m.root).Recover(ctx); err != nil {
		t.Errorf("Recover says %v", err)
	}
	if missing(wt.Path) {
		t.Error("it is gone")
	}
}

func TestOneBadRecordHidesNoOther(t *testing.T) {
	b := newBed(t)
	wt := b.make(b.repo("shop"), names(1))
	dir := filepath.Dir(wt.Path)
	b.write(filepath.Join(dir, names(2)+".json"), "{")
	b.write(filepath.Join(dir, names(3)+".json"), `{"v":1,"state":"ready","toplevel":"relative"}`)
	b.write(filepath.Join(dir, names(4)+".json"), `{"v":9}`)
	if err := os.Symlink(wt.Path+".json", filepath.Join(dir, names(5)+".json")); err != nil {
		t.Fatal(err)
	}
	if all := b.m.List(); len(all) != 1 || all[0].Name != wt.Name {
		t.Errorf("listed: %+v", all)
	}
	err := b.m.Recover(b.context())
	for i := 2; i <= 5; i++ {
		if err == nil || !strings.Contains(err.Error(), names(i)) {
			t.Errorf("Recover does not name %s: %v", names(i), err)
		}
	}
	if _, err := b.m.Get(names(2)); !fault.Is(err, fault.Internal) {
		t.Errorf("Get says %v", err)
	}
}
