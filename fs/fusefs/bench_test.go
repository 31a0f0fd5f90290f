package fusefs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Both benchmarks run the adapter and bare go-fuse in turns, against the same
// client program, and report the median of each: on a small machine the
// placement of client and server moves a round trip by a factor of ten, and it
// moves both alike. One iteration is one turn of each.
//
//	go test -run '^$' -bench . ./fs/fusefs

func BenchmarkOpenReadClose(b *testing.B) {
	compare(b, "read", "/f", 500, 10)
}

func BenchmarkListDirectories(b *testing.B) {
	compare(b, "list", "/jobs", 2, 10_000)
}

func compare(b *testing.B, role, path string, count, dirs int) {
	bare := mountBare(b, bareTree(dirs))
	ours := mountTree(b, scvfsTree(dirs), Options{})
	contestants := []*contestant{
		{name: "bare", client: hire(b, role, bare+path)},
		{name: "fusefs", client: hire(b, role, ours.Dir()+path)},
	}
	for _, c := range contestants {
		c.client.run(b, count) // warm up
	}
	for b.Loop() {
		for _, c := range contestants {
			c.times = append(c.times, c.client.run(b, count)/time.Duration(count))
		}
		slices.Reverse(contestants)
	}
	slices.SortFunc(contestants, func(x, y *contestant) int { return len(x.name) - len(y.name) })
	b.ReportMetric(0, "ns/op")
	for _, c := range contestants {
		b.ReportMetric(float64(c.median().Nanoseconds())/1000, c.name+"-us")
	}
	b.ReportMetric(float64(contestants[1].median())/float64(contestants[0].median()), "ratio")
}

type contestant struct {
	name   string
	client *worker
	times  []time.Duration
}

func (c *contestant) median() time.Duration {
	slices.Sort(c.times)
	return c.times[len(c.times)/2]
}

// worker is a client process that does a number of operations when asked.
type worker struct {
	in  io.Writer
	out *bufio.Reader
}

func hire(b *testing.B, role, path string) *worker {
	b.Helper()
	cmd := self(role, path)
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
			b.Error(err)
		}
	})
	return &worker{in, bufio.NewReader(out)}
}

// run returns how long count operations took.
func (w *worker) run(b *testing.B, count int) time.Duration {
	var ns int64
	fmt.Fprintln(w.in, count)
	if _, err := fmt.Fscanln(w.out, &ns); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// work is the worker's side.
func work(operation func() error) error {
	in := bufio.NewReader(os.Stdin)
	for {
		var count int
		if _, err := fmt.Fscanln(in, &count); err != nil {
			return nil // dismissed
		}
		begin := time.Now()
		for range count {
			if err := operation(); err != nil {
				return err
			}
		}
		fmt.Println(time.Since(begin).Nanoseconds())
	}
}

func workAtReading(path string) error {
	buf := make([]byte, 4096)
	return work(func() error {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		n, err := syscall.Read(fd, buf)
		if n != 10 {
			return fmt.Errorf("read %d bytes: %w", n, err)
		}
		return syscall.Close(fd)
	})
}

func workAtListing(path string) error {
	buf := make([]byte, 32<<10)
	return work(func() error {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		defer syscall.Close(fd)
		entries := 0
		for {
			n, err := syscall.ReadDirent(fd, buf)
			if err != nil {
				return fmt.Errorf("getdents: %w", err)
			}
			if n == 0 {
				break
			}
			_, found, _ := syscall.ParseDirent(buf[:n], -1, nil)
			entries += found
		}
		if entries != 10_000 {
			return fmt.Errorf("listed %d entries", entries)
		}
		return nil
	})
}
