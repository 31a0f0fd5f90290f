package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// The load tests' clients are this test binary again, as another process: a
// process that serves a mount must not be its client.
const clientVariable = "SCVFS_TEST_CLIENT"

func init() {
	role := os.Getenv(clientVariable)
	if role == "" {
		return
	}
	name, arg, _ := strings.Cut(role, " ")
	count, dir, _ := strings.Cut(arg, " ")
	n, err := strconv.Atoi(count)
	if err == nil {
		err = map[string]func(int, string) error{"walk": walkClient, "status": statusClient, "jobs": jobsClient}[name](n, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (w *world) client(role string, n int, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", clientVariable, role, n, dir))
	return cmd
}

// walkClient does n ReadDir, Stat and Open calls from several goroutines. A Go
// program interrupts its own threads with SIGURG all the time, so this is
// where a tree that answers EINTR shows.
func walkClient(n int, top string) error {
	var paths []string
	if err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		return err
	}
	var done atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		group.Go(func() {
			for i := done.Add(1); i <= int64(n); i = done.Add(1) {
				if err := touch(paths[int(i)%len(paths)], int(i)%3); err != nil {
					errs <- fmt.Errorf("call %d: %w", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// touch makes one call by raw system calls: package os would hide an EINTR.
func touch(path string, how int) error {
	switch how {
	case 0:
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		return nil
	case 1:
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer syscall.Close(fd)
		buf := make([]byte, 4096)
		if _, err := syscall.Read(fd, buf); err != nil && !errors.Is(err, syscall.EISDIR) {
			return &os.PathError{Op: "read", Path: path, Err: err}
		}
		return nil
	}
	fd, err := syscall.Open(filepath.Dir(path), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer syscall.Close(fd)
	if _, err := syscall.ReadDirent(fd, make([]byte, 8192)); err != nil {
		return &os.PathError{Op: "readdir", Path: filepath.Dir(path), Err: err}
	}
	return nil
}

func TestGoClientUnderLoadSeesNoEINTR(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 4\n").session()
	w.sh(`for i in 1 2 3 4 5 6; do echo "while :; do echo busy; sleep 0.01; done" > "$S/start"; done; cat "$J"/*/status > /dev/null`)
	calls := 100_000
	if testing.Short() {
		calls = 5_000
	}
	if out, err := w.client("walk", calls, w.mount).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// statusClient reads one changing status n times; each read must be one whole
// word that is possible.
func statusClient(n int, path string) error {
	seen := map[string]int{}
	for i := range n {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("read %d: %w", i, err)
		}
		seen[string(text)]++
	}
	for text := range seen {
		switch text {
		case "agent sh\n", "agent codex-with-a-long-name\n":
		default:
			return fmt.Errorf("%d reads gave %q; all: %v", seen[text], text, seen)
		}
	}
	if len(seen) != 2 {
		return fmt.Errorf("it never changed: %v", seen)
	}
	return nil
}

// The word of a file changes as fast as it can while it is read 30,000 times:
// no read may be empty, or half of one and half of the other.
func TestReadsOfAChangingFileAreWholeAndNeverEmpty(t *testing.T) {
	// No status changes as often, so the file is the session's label.
	w := newWorld(t, "").session()
	w.sh(`echo 'label agent sh' > "$S/ctl"`)
	reads := 30_000
	if testing.Short() {
		reads = 5_000
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	change := w.command("bash", `while [ ! -e stop ]; do echo 'label agent codex-with-a-long-name' > "$S/ctl"; echo 'label agent sh' > "$S/ctl"; done`)
	var said bytes.Buffer
	change.Stderr = &said
	if err := change.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Go(func() { <-stop; os.WriteFile(filepath.Join(w.place, "stop"), nil, 0o600); change.Wait() })
	out, err := w.client("status", reads, filepath.Join(w.mount, "sessions/shop/label")).CombinedOutput()
	close(stop)
	writer.Wait()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, said.String())
	}
}

// jobsClient reads the status of every job of a session in turn, n times in
// all; each must be one whole word that is possible. It ends with an error when
// no status ever changed under it.
func jobsClient(n int, dir string) error {
	changed := 0
	last := map[string]string{}
	for read := 0; read < n; {
		jobs, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			text, err := os.ReadFile(filepath.Join(dir, job.Name(), "status"))
			if err != nil {
				return err
			}
			switch word := string(text); word {
			case "running\n", "completed\n":
				if old := last[job.Name()]; old != "" && old != word {
					changed++
				}
				last[job.Name()] = word
			default:
				return fmt.Errorf("read %d: %s is %q", read, job.Name(), word)
			}
			read++
		}
	}
	if changed == 0 {
		return errors.New("no status changed while it was read")
	}
	return nil
}

// Statuses are read 100,000 times while the jobs start and end: none is empty,
// none mixed.
func TestReadsOfStatusWhileJobsEnd(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 2\n").session()
	reads := 100_000
	if testing.Short() {
		reads = 5_000
	}
	starter := w.command("bash", `while [ ! -e stop ]; do echo 'sleep 0.05' > "$S/start"; cat "$J"/*/wait > /dev/null; sleep 0.3; done`)
	w.sh(`echo 'sleep 0.5' > "$S/start"`)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := w.client("jobs", reads, filepath.Join(w.mount, "sessions/shop/jobs")).CombinedOutput()
	if stopped := os.WriteFile(filepath.Join(w.place, "stop"), nil, 0o600); stopped != nil {
		t.Fatal(stopped)
	}
	starter.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
