package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figuresVariable names the file that a run's figures are appended to, one a
// line: figure, ours, beside, ratio, with tabs between. scripts/bench sets it.
const figuresVariable = "SCVFS_BENCH_FIGURES"

// pair is one figure: what we take in each round, and what something of the
// same shape takes in the same rounds.
type pair struct {
	name         string
	ours, beside []float64
	show         func(float64) string
}

// duel measures both sides round by round, who goes first alternating, and
// reports the medians. A benchmark decides nothing: it fails when something
// does not work, never because of a time.
func duel(b *testing.B, name string, ours, beside func() time.Duration) {
	b.Helper()
	p := &pair{name: name, show: showTime}
	for oursFirst := true; b.Loop(); oursFirst = !oursFirst {
		if oursFirst {
			p.ours = append(p.ours, float64(ours()))
			p.beside = append(p.beside, float64(beside()))
		} else {
			p.beside = append(p.beside, float64(beside()))
			p.ours = append(p.ours, float64(ours()))
		}
	}
	p.report(b)
}

// report writes the figure down.
func (p *pair) report(b *testing.B) {
	b.Helper()
	ours, beside := median(p.ours), median(p.beside)
	besides, ratio := "-", "-"
	b.ReportMetric(0, "ns/op")
	if beside > 0 {
		besides, ratio = p.show(beside), fmt.Sprintf("%.2f", ours/beside)
		b.ReportMetric(ours/beside, "ratio")
	}
	b.Logf("%s: %s, beside %s, ratio %s", p.name, p.show(ours), besides, ratio)
	file := os.Getenv(figuresVariable)
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	_, err = fmt.Fprintln(f, strings.Join([]string{p.name, p.show(ours), besides, ratio}, "\t"))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		b.Fatal(err)
	}
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// showTime shows nanoseconds with three digits.
func showTime(ns float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if ns >= unit.size {
			return digits(ns/unit.size) + " " + unit.name
		}
	}
	return digits(ns) + " ns"
}

// digits shows a number with about three digits.
func digits(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// showRate shows what one thing took as how many are done in a second.
func showRate(ns float64) string { return digits(1e9/ns) + "/s" }

// showSpeed shows what bigLog took as bytes in a second.
func showSpeed(ns float64) string { return digits(bigLog/ns) + " GB/s" }

func showMemory(bytes float64) string { return digits(bytes/(1<<20)) + " MiB" }
