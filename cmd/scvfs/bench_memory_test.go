package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// weight is what a process takes of the memory, in bytes: all of its resident
// pages, and its part of those that it shares.
type weight struct{ rss, pss float64 }

func weigh(t testing.TB, pid int) weight {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	var w weight
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "Rss:":
			w.rss = kib * 1024
		case "Pss:":
			w.pss = kib * 1024
		}
	}
	if w.rss == 0 || w.pss == 0 {
		t.Fatalf("the memory of process %d cannot be told from\n%s", pid, text)
	}
	return w
}

// weighDaemon reports the daemon's memory beside that of a bare go-fuse server
// that shows the same names.
func (w *world) weighDaemon(b *testing.B, name string, beside *worker) {
	p := &pair{name: name, show: showMemory}
	for b.Loop() {
		p.ours = append(p.ours, weigh(b, w.pid()).rss)
		p.beside = append(p.beside, weigh(b, beside.cmd.Process.Pid).rss)
	}
	p.report(b)
}

// BenchmarkMemory weighs a daemon at rest, what each running job adds to it,
// and the shim that holds a running job.
func BenchmarkMemory(b *testing.B) {
	const jobs = 50
	w := newWorld(b, fmt.Sprintf("[limits]\njobs = %d\n", jobs)).session()
	w.sh(`echo true >"$S/start"; cat "$J/job-1/wait"; grep -r . "$S" >/dev/null`)
	w.bare(1)
	b.Run("memory-idle", func(b *testing.B) { w.weighDaemon(b, "memory-idle", bareServer) })
	before := weigh(b, w.pid())
	w.sh(fmt.Sprintf(`for i in $(seq %d); do echo 'exec sleep 1000' >"$S/start"; done; while [ "$(cat "$J"/*/state | grep -c working)" != %[1]d ]; do sleep .1; done`, jobs))
	b.Run("memory-job", func(b *testing.B) {
		p := &pair{name: "memory-job", show: showMemory}
		for b.Loop() {
			p.ours = append(p.ours, (weigh(b, w.pid()).rss-before.rss)/jobs)
		}
		p.report(b)
	})
	b.Run("shim", func(b *testing.B) {
		rss := &pair{name: "memory-shim-rss", show: showMemory}
		pss := &pair{name: "memory-shim-pss", show: showMemory}
		idle := idleProgram(b)
		shims := w.shims()
		if len(shims) != jobs {
			b.Fatalf("%d shims for %d jobs", len(shims), jobs)
		}
		for b.Loop() {
			for _, pid := range shims {
				s := weigh(b, pid)
				rss.ours, pss.ours = append(rss.ours, s.rss), append(pss.ours, s.pss)
			}
			s := weigh(b, idle)
			rss.beside, pss.beside = append(rss.beside, s.rss), append(pss.beside, s.pss)
		}
		rss.report(b)
		pss.report(b)
	})
}

// shims returns the processes that hold the world's runs.
func (w *world) shims() []int {
	var pids []int
	for _, line := range w.processes() {
		pid, command, _ := strings.Cut(line, " ")
		if strings.Contains(command, " shim ") {
			n, err := strconv.Atoi(pid)
			if err != nil {
				w.t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// idleProgram starts a Go program that does nothing but wait for a signal, and
// returns its pid.
func idleProgram(b *testing.B) int {
	b.Helper()
	dir := b.TempDir()
	source := filepath.Join(dir, "idle.go")
	text := "package main\n\nimport (\n\t\"os\"\n\t\"os/signal\"\n)\n\nfunc main() {\n\tc := make(chan os.Signal, 1)\n\tsignal.Notify(c)\n\tos.Stdout.WriteString(\"ready\\n\")\n\t<-c\n}\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	program := filepath.Join(dir, "idle")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := out.Read(make([]byte, 16)); err != nil {
		b.Fatal(err)
	}
	return cmd.Process.Pid
}
