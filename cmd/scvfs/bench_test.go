package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The figures of docs/performance.md. Each is measured beside something of the
// same shape in alternating rounds, because a machine that does other things
// moves both alike; the ratio is what to look at. One iteration is one round:
//
//	go test -run '^$' -bench . -benchtime 11x ./cmd/scvfs
//
// scripts/bench runs them and writes the figures down.

// BenchmarkTree looks at a tree of 10,000 finished jobs beside a bare go-fuse
// server with the same names.
func BenchmarkTree(b *testing.B) {
	w := emptyWorld(b, "")
	log := w.fill(manyJobs)
	w.start()
	bare := w.bare(manyJobs)
	jobs := "/sessions/shop/jobs"
	for _, c := range []struct {
		name, role, path string
		n, count         int
	}{
		{"status", "read", jobs + "/job-5000/status", len("completed\n"), 500},
		{"stat", "stat", jobs + "/job-5000/status", 0, 500},
		{"list", "list", jobs, manyJobs, 2},
		{"list-long", "long", jobs, manyJobs, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			ours, beside := hire(b, c.role, c.n, w.mount+c.path), hire(b, c.role, c.n, bare+c.path)
			oneCPU(b, w.pid(), bareServer.cmd.Process.Pid, ours.cmd.Process.Pid, beside.cmd.Process.Pid)
			ours.timed(c.count)
			beside.timed(c.count)
			duel(b, c.name, func() time.Duration { return ours.timed(c.count) }, func() time.Duration { return beside.timed(c.count) })
		})
	}
	b.Run("log-read", func(b *testing.B) {
		ours := hire(b, "copy", bigLog, fmt.Sprintf("%s%s/job-%d/log", w.mount, jobs, manyJobs))
		beside := hire(b, "copy", bigLog, log)
		beside.timed(1) // into the page cache, which both read from
		p := &pair{name: "log-read", show: showSpeed}
		for b.Loop() {
			p.ours = append(p.ours, float64(ours.timed(1)))
			p.beside = append(p.beside, float64(beside.timed(1)))
		}
		p.report(b)
	})
	b.Run("memory-10000-jobs", func(b *testing.B) { w.weighDaemon(b, "memory-10000-jobs", bareServer) })
	b.Run("start", func(b *testing.B) {
		small := newWorld(b, "")
		duel(b, "start", w.restart, small.restart)
	})
}

// bareServer is the process that serves the bare tree of the last world.
var bareServer *worker

// bare mounts the bare tree beside the world's and returns its mount point.
func (w *world) bare(jobs int) string {
	w.t.Helper()
	point := filepath.Join(w.dir, "bare")
	if err := os.Mkdir(point, 0o700); err != nil {
		w.t.Fatal(err)
	}
	bareServer = hire(w.t, "bare", jobs, point)
	bareServer.hear() // ready
	return point
}

// oneCPU keeps processes on one CPU until the end of b. Where the scheduler puts
// a client and its server makes a round trip short or three times as long, and
// stays so for many rounds; this way each is the same switch between two
// processes.
func oneCPU(b *testing.B, pids ...int) {
	b.Helper()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Zero()
			one.Set(cpu) // the last one: the first has most of the interrupts
		}
	}
	keep := func(set *unix.CPUSet) {
		for _, pid := range pids {
			threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			if err != nil {
				b.Error(err)
			}
			for _, thread := range threads {
				tid, err := strconv.Atoi(thread.Name())
				if err != nil {
					b.Fatal(err)
				}
				// A thread that has ended meanwhile is all right; new ones inherit it.
				if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, unix.ESRCH) {
					b.Error(err)
				}
			}
		}
	}
	keep(&one)
	b.Cleanup(func() { keep(&all) })
}

// restart stops the daemon and returns how long the next takes to be ready.
func (w *world) restart() time.Duration {
	w.t.Helper()
	w.stop()
	begin := time.Now()
	w.start()
	return time.Since(begin)
}

// BenchmarkJobs runs jobs that do nothing, from the first write to the last
// ending, beside what Debian has for the same purpose. They promise less, see
// docs/performance.md.
func BenchmarkJobs(b *testing.B) {
	const jobs = 100
	for _, c := range []struct {
		name, need, script string
		slots              int
	}{
		{"jobs-tsp", "tsp", `for i in $(seq $N); do tsp sh -c true; done >ids; tsp -N 4 true >>ids; tsp -w`, 4},
		{"jobs-nq", "nq", `for i in $(seq $N); do nq -q sh -c true; done; nq -w`, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := exec.LookPath(c.need); err != nil {
				b.Skipf("%s is not installed: scripts/setup bench", c.need)
			}
			w := newWorld(b, fmt.Sprintf("[limits]\njobs = %d\n", c.slots)).session()
			spool := w.spool(b, c.slots)
			p := &pair{name: c.name, show: showRate}
			// Nothing is removed between the rounds: a file system that has just
			// freed many inodes makes new ones slowly.
			for first := 1; b.Loop(); first += jobs {
				p.ours = append(p.ours, w.each(jobs, fmt.Sprintf(`for i in $(seq $N); do echo true >"$S/start"; done
for i in $(seq %d %d); do read -r status <"$J/job-$i/wait"; [ "$status" = completed ] || { echo "job-$i is $status"; exit 1; }; done`,
					first, first+jobs-1)))
				p.beside = append(p.beside, w.each(jobs, spool+c.script))
			}
			p.report(b)
		})
	}
}

// each runs a script for n jobs and returns the nanoseconds that one took.
func (w *world) each(n int, script string) float64 {
	w.t.Helper()
	begin := time.Now()
	w.sh(fmt.Sprintf("N=%d\n", n) + script)
	return float64(time.Since(begin)) / float64(n)
}

// spool prepares the directory of tsp and nq, and ends tsp's server at last.
// It returns what their scripts begin with.
func (w *world) spool(b *testing.B, slots int) string {
	dir := filepath.Join(w.place, "spool")
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	env := fmt.Sprintf("export NQDIR=%[1]s TMPDIR=%[1]s TS_SLOTS=%[2]d TS_SOCKET=%[3]s/tsp.sock TS_MAXFINISHED=100\n", dir, slots, w.dir)
	b.Cleanup(func() {
		if _, err := os.Stat(w.dir + "/tsp.sock"); err == nil {
			w.sh(env + "tsp -K")
		}
	})
	return env
}

// BenchmarkChange is how soon another process, which reads in a loop, sees
// what a write to a control file does.
func BenchmarkChange(b *testing.B) {
	w := newWorld(b, "").session()
	native := filepath.Join(w.dir, "native")
	w.replace(native, "nothing")
	beside := hire(b, "await", 0, native)
	b.Run("ctl-label", func(b *testing.B) {
		ours := hire(b, "await", 0, w.mount+"/sessions/shop/label")
		n := 0
		next := func(word string) string { n++; return fmt.Sprintf("%s-%d", word, n) }
		duel(b, "ctl-label", func() time.Duration {
			word := next("label")
			return until(ours, word, func() { w.echo("label "+word, "sessions/shop/ctl") })
		}, func() time.Duration {
			word := next("native")
			return until(beside, word, func() { w.replace(native, word) })
		})
	})
	b.Run("ctl-cancel", func(b *testing.B) {
		ours := 0
		duel(b, "ctl-cancel", func() time.Duration {
			ours++
			dir := fmt.Sprintf("sessions/shop/jobs/job-%d/", ours)
			w.sh(fmt.Sprintf(`echo 'exec sleep 1000' >"$S/start"; until grep -q working "$M/%sstate"; do :; done`, dir))
			return until(hire(b, "await", 0, w.mount+"/"+dir+"status"), "cancelled", func() { w.echo("cancel", dir+"ctl") })
		}, func() time.Duration {
			w.replace(native, "running")
			sleep := exec.Command("sh", "-c", "exec sleep 1000")
			if err := sleep.Start(); err != nil {
				b.Fatal(err)
			}
			return until(beside, "cancelled", func() {
				sleep.Process.Signal(syscall.SIGTERM)
				sleep.Wait()
				w.replace(native, "cancelled")
			})
		})
	})
}

// until returns how long after the change began its watcher saw the word.
func until(watcher *worker, word string, change func()) time.Duration {
	watcher.say(word)
	watcher.hear() // watching
	begin := time.Now().UnixNano()
	change()
	return time.Duration(watcher.hearNumber() - begin)
}

// echo writes a line to a file of the tree, as a shell's echo does.
func (w *world) echo(line, path string) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.mount, path), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		w.t.Fatal(err)
	}
}

// replace gives a file new content, durably, as a program without a ledger
// would do it.
func (w *world) replace(path, text string) {
	w.t.Helper()
	f, err := os.Create(path + ".new")
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

// BenchmarkLine is how long after a job printed a line another process, which
// reads in a loop, has it out of log, beside a program that prints into a file.
func BenchmarkLine(b *testing.B) {
	const lines = 20
	w := newWorld(b, "").session()
	n := 0
	typical := func(follower *worker) time.Duration {
		var late []float64
		for range lines {
			late = append(late, float64(follower.hearNumber()))
		}
		return time.Duration(median(late))
	}
	duel(b, "log-line", func() time.Duration {
		n++
		printer := workerCommand(b, "print", lines, "")
		w.sh(fmt.Sprintf("mkfifo go%d", n))
		w.echo(fmt.Sprintf("read -r go <go%d; export %s='%s'; exec %s", n, workerVariable, workerTask("print", lines, ""), printer.Path), "sessions/shop/start")
		w.sh(fmt.Sprintf(`until grep -q working "$J/job-%d/state"; do :; done`, n))
		follower := hire(b, "follow", lines, fmt.Sprintf("%s/sessions/shop/jobs/job-%d/log", w.mount, n))
		follower.say("")
		w.sh(fmt.Sprintf("echo go >go%d", n))
		return typical(follower)
	}, func() time.Duration {
		path := filepath.Join(w.dir, "printed")
		out, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		defer out.Close()
		follower := hire(b, "follow", lines, path)
		follower.say("")
		printer := workerCommand(b, "print", lines, "")
		printer.Stdout = out
		if err := printer.Run(); err != nil {
			b.Fatal(err)
		}
		return typical(follower)
	})
}
