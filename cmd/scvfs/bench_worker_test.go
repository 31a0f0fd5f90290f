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
	"syscall"
	"testing"
	"time"
)

// The other processes of a benchmark are this test binary again, as workers:
// what serves a mount must not be its client, and what makes a change must not
// be what waits to see it. A worker does its work as often as a line on its
// standard input says, answers with a line, and goes when its input ends, so
// that none outlives a benchmark that was killed.
const workerVariable = "SCVFS_BENCH_WORKER"

func init() {
	role, arg, ok := strings.Cut(os.Getenv(workerVariable), " ")
	if !ok {
		return
	}
	count, path, _ := strings.Cut(arg, " ")
	n, err := strconv.Atoi(count)
	work := map[string]func(int, string) error{
		"bare": serveBare, "read": workAtReading, "stat": workAtStatting, "list": workAtListing, "long": workAtListingLong,
		"copy": workAtCopying, "await": workAtAwaiting, "follow": workAtFollowing, "print": printMoments, "flood": workAtFlooding,
	}[role]
	if err == nil {
		err = work(n, path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker", role, path, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type worker struct {
	b   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// hire starts a worker; it is dismissed at the end of b.
func hire(b testing.TB, role string, n int, path string) *worker {
	b.Helper()
	cmd := workerCommand(b, role, n, path)
	cmd.Stderr = os.Stderr
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
		if err := cmd.Wait(); err != nil {
			b.Errorf("worker %s: %v", role, err)
		}
	})
	return &worker{b, cmd, in, bufio.NewReader(out)}
}

func workerCommand(b testing.TB, role string, n int, path string) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"="+workerTask(role, n, path))
	return cmd
}

func workerTask(role string, n int, path string) string {
	return fmt.Sprintf("%s %d %s", role, n, path)
}

// say gives the worker its next task; hear returns the answer.
func (w *worker) say(line string) {
	if _, err := fmt.Fprintln(w.in, line); err != nil {
		w.b.Fatal(err)
	}
}

func (w *worker) hear() string {
	w.b.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.b.Fatal("a worker gave up: ", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// hearNumber returns an answer that is a number of nanoseconds.
func (w *worker) hearNumber() int64 {
	w.b.Helper()
	n, err := strconv.ParseInt(w.hear(), 10, 64)
	if err != nil {
		w.b.Fatal(err)
	}
	return n
}

// timed has the worker do its work count times and returns what one took.
func (w *worker) timed(count int) time.Duration {
	w.b.Helper()
	w.say(strconv.Itoa(count))
	return time.Duration(w.hearNumber()) / time.Duration(count)
}

// tasks hands the lines of standard input to do, until they end.
func tasks(do func(line string) error) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := do(in.Text()); err != nil {
			return err
		}
	}
	return in.Err()
}

// work does an operation as often as each line says and answers how long all
// of them took.
func work(operation func() error) error {
	return tasks(func(line string) error {
		count, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		begin := time.Now()
		for range count {
			if err := operation(); err != nil {
				return err
			}
		}
		fmt.Println(time.Since(begin).Nanoseconds())
		return nil
	})
}

// workAtReading opens, reads and closes a file of size bytes.
func workAtReading(size int, path string) error {
	buf := make([]byte, 4096)
	return work(func() error {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		n, err := syscall.Read(fd, buf)
		if n != size {
			return fmt.Errorf("read %d bytes: %w", n, err)
		}
		return syscall.Close(fd)
	})
}

func workAtStatting(_ int, path string) error {
	var st syscall.Stat_t
	return work(func() error { return syscall.Lstat(path, &st) })
}

// workAtListing lists n names, as ls -f does.
func workAtListing(n int, path string) error {
	return work(func() error { return list(path, n, func(string) error { return nil }) })
}

// workAtListingLong lists n names and looks at each, as ls -l does.
func workAtListingLong(n int, path string) error {
	var st syscall.Stat_t
	return work(func() error {
		return list(path, n, func(name string) error { return syscall.Lstat(filepath.Join(path, name), &st) })
	})
}

func list(path string, want int, visit func(string) error) error {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer syscall.Close(fd)
	buf := make([]byte, 32<<10)
	found := 0
	for {
		n, err := syscall.ReadDirent(fd, buf)
		if err != nil {
			return fmt.Errorf("getdents: %w", err)
		}
		if n == 0 {
			break
		}
		_, _, names := syscall.ParseDirent(buf[:n], -1, nil)
		found += len(names)
		for _, name := range names {
			if err := visit(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if found != want {
		return fmt.Errorf("%d names where %d should be", found, want)
	}
	return nil
}

// workAtCopying reads a file of size bytes from its beginning to its end, in
// blocks as large as those of cat.
func workAtCopying(size int, path string) error {
	buf := make([]byte, 128<<10)
	return work(func() error {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		defer syscall.Close(fd)
		total := 0
		for {
			n, err := syscall.Read(fd, buf)
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			if total += n; n == 0 {
				break
			}
		}
		if total != size {
			return fmt.Errorf("read %d bytes of %d", total, size)
		}
		return nil
	})
}

// workAtAwaiting reads a file again and again until it says what the task
// says. It answers once as it begins, and once with the moment at which it saw
// it.
func workAtAwaiting(_ int, path string) error {
	return tasks(func(word string) error {
		fmt.Println("watching")
		for begin := time.Now(); ; {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.TrimSuffix(string(text), "\n") == word {
				fmt.Println(time.Now().UnixNano())
				return nil
			}
			if time.Since(begin) > patience {
				return fmt.Errorf("it says %q, never %q", text, word)
			}
		}
	})
}

// printMoments prints n lines, each the moment at which it is printed.
func printMoments(n int, _ string) error {
	for range n {
		time.Sleep(10 * time.Millisecond) // so that each line comes alone
		fmt.Printf("at %d\n", time.Now().UnixNano())
	}
	return nil
}

// workAtFollowing reads the lines of printMoments from a growing file as they
// come, and answers with how late each was, in nanoseconds, one a line.
func workAtFollowing(n int, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return tasks(func(string) error {
		var late []int64
		rest, buf, off := "", make([]byte, 64<<10), int64(0)
		for begin := time.Now(); len(late) < n; {
			if time.Since(begin) > patience {
				return fmt.Errorf("%d lines came where %d should", len(late), n)
			}
			k, err := f.ReadAt(buf, off)
			if err != nil && err != io.EOF {
				return err
			}
			now := time.Now().UnixNano()
			off += int64(k)
			lines := strings.SplitAfter(rest+string(buf[:k]), "\n")
			rest = lines[len(lines)-1]
			for _, line := range lines[:len(lines)-1] {
				var at int64
				if _, err := fmt.Sscanf(line, "at %d\n", &at); err == nil {
					late = append(late, now-at)
				}
			}
		}
		for _, ns := range late {
			fmt.Println(ns)
		}
		return nil
	})
}
