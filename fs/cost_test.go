package fs

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"
)

// Many lines in one write cost what they hold, not its square.
func TestALineCostsItsOwnLength(t *testing.T) {
	p := append([]byte("cancel\n"), bytes.Repeat([]byte("x"), 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if line, size := nextLine(p); line != "cancel" || size != 7 {
			t.Fatalf("%q, %d", line, size)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 10<<20 {
		t.Errorf("%d bytes for 100 lines of 7", got)
	}
}

// crowd is a session of n jobs, the middle one of which has all that a job can
// have.
func crowd(b *testing.B, n int) client {
	c, f := newShop(b)
	for range n {
		must(f.Start(c.ctx, "shop", draftOf("x")))
	}
	mid := uint64(n / 2)
	write(f.RunFile(f.run("shop", mid), "log"), "a line\n")
	f.converse("shop", mid, "sh-1")
	return c
}

// BenchmarkStatOfAJobsFiles looks all of a job's files up and stats them, in
// small and big crowds.
func BenchmarkStatOfAJobsFiles(b *testing.B) {
	for _, n := range []int{10, 10000} {
		c := crowd(b, n)
		job := must(c.at("sessions/shop/jobs/job-" + strconv.Itoa(n/2))).(Dir)
		for _, r := range jobTable.rows {
			node, err := job.Lookup(c.ctx, r.name)
			if err != nil {
				continue
			}
			b.Run(strconv.Itoa(n)+"/lookup/"+r.name, func(b *testing.B) {
				for b.Loop() {
					must(job.Lookup(c.ctx, r.name))
				}
			})
			b.Run(strconv.Itoa(n)+"/stat/"+r.name, func(b *testing.B) {
				for b.Loop() {
					must(node.Attr(c.ctx))
				}
			})
		}
	}
}

// BenchmarkStatOfTheTop stats what is drawn from the whole.
func BenchmarkStatOfTheTop(b *testing.B) {
	c := crowd(b, 10000)
	for _, name := range []string{"", "snapshot", "config", "active", "sessions", "sessions/shop", "sessions/shop/jobs"} {
		node := must(c.at(name))
		must(node.Attr(c.ctx)) // pays for what is kept
		b.Run("/"+name, func(b *testing.B) {
			for b.Loop() {
				must(node.Attr(c.ctx))
			}
		})
	}
}
