package run

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"scvfs/workbench/run/proc"
)

// Process 100 was the shim and 101 the agent, in session 100 and group 101.
func TestRelicsAreTheRunsAndNobodyElses(t *testing.T) {
	boot, err := proc.Boot()
	if err != nil {
		t.Fatal(err)
	}
	r := relics{
		dir:  "/runs/r",
		shim: proc.ID{PID: 100, Start: 1000, Boot: boot}, agent: proc.ID{PID: 101, Start: 1001, Boot: boot},
		known: map[proc.ID]bool{{PID: 300, Start: 3000, Boot: boot}: true},
	}
	p := func(pid, ppid, pgid, sid int, start uint64) proc.Stat {
		return proc.Stat{PID: pid, PPID: ppid, PGID: pgid, SID: sid, Start: start, State: 'S', Threads: 1}
	}
	zombie := func(s proc.Stat) proc.Stat {
		s.State = 'Z'
		return s
	}
	self := os.Getpid()
	for name, c := range map[string]struct {
		table         proc.Table
		tagged, holds []int
		want          []int
	}{
		"nothing left":                 {proc.Table{p(1, 0, 1, 1, 1), p(50, 1, 50, 50, 500)}, nil, nil, nil},
		"the agent":                    {proc.Table{p(101, 1, 101, 100, 1001)}, nil, nil, []int{101}},
		"its number, another":          {proc.Table{p(101, 1, 101, 100, 2000), p(102, 101, 101, 100, 2001)}, nil, nil, nil},
		"group of the living agent":    {proc.Table{p(101, 1, 101, 100, 1001), p(102, 1, 101, 100, 1002)}, nil, nil, []int{101, 102}},
		"group of a zombie agent":      {proc.Table{zombie(p(101, 1, 101, 100, 1001)), p(102, 1, 101, 7, 1002)}, nil, nil, []int{102}},
		"session of a zombie shim":     {proc.Table{zombie(p(100, 9, 100, 100, 1000)), p(105, 1, 105, 100, 1002)}, nil, nil, []int{105}},
		"session of another leader":    {proc.Table{p(100, 9, 100, 100, 5000), p(105, 1, 105, 100, 5002)}, nil, nil, nil},
		"session, nobody sure":         {proc.Table{p(105, 1, 105, 100, 5002)}, nil, nil, nil},
		"session, one holds":           {proc.Table{p(105, 1, 105, 100, 5002), p(106, 1, 106, 100, 5003)}, nil, []int{105}, []int{105, 106}},
		"session, one tagged":          {proc.Table{p(105, 1, 105, 100, 5002), p(106, 1, 106, 100, 5003)}, []int{106}, nil, []int{105, 106}},
		"tagged far away":              {proc.Table{p(200, 1, 200, 200, 5002), p(201, 1, 200, 200, 5002)}, []int{200}, nil, []int{200}},
		"holds far away":               {proc.Table{p(200, 1, 200, 200, 5002)}, nil, []int{200}, nil}, // tail -f of the owner
		"older than the shim":          {proc.Table{p(200, 1, 200, 200, 999)}, []int{200}, nil, nil},
		"descendants":                  {proc.Table{p(200, 1, 200, 200, 1002), p(201, 200, 201, 201, 1003), p(202, 201, 202, 202, 1004)}, []int{200}, nil, []int{200, 201, 202}},
		"descendants of a zombie":      {proc.Table{zombie(p(101, 1, 101, 100, 1001)), p(201, 101, 201, 201, 1003)}, nil, nil, []int{201}},
		"the first process":            {proc.Table{p(1, 0, 1, 100, 2000)}, []int{1}, []int{1}, nil},
		"the daemon and its children":  {proc.Table{p(200, 1, 200, 200, 1002), p(self, 200, 200, 200, 1003), p(201, self, 201, 201, 1004)}, []int{200, self}, nil, []int{200}},
		"a loop of reused numbers":     {proc.Table{p(200, 201, 200, 200, 1002), p(201, 200, 200, 200, 1002)}, []int{200}, nil, []int{200, 201}},
		"zombies are nobody any more":  {proc.Table{zombie(p(101, 1, 101, 100, 1001)), zombie(p(102, 1, 101, 100, 1002))}, []int{102}, nil, nil},
		"terminal of a living agent":   {proc.Table{p(101, 1, 101, 101, 1001), p(105, 1, 105, 101, 1002)}, nil, nil, []int{101, 105}},
		"terminal of another leader":   {proc.Table{p(101, 1, 101, 101, 2000), p(105, 1, 105, 101, 2002)}, nil, nil, nil},
		"terminal, one tagged":         {proc.Table{p(105, 1, 105, 101, 1002), p(106, 1, 106, 101, 1003)}, []int{106}, nil, []int{105, 106}},
		"known from before":            {proc.Table{p(300, 1, 300, 101, 3000), p(301, 1, 301, 101, 3001)}, nil, nil, []int{300, 301}},
		"known, and its number reused": {proc.Table{p(300, 1, 300, 101, 3003), p(301, 300, 300, 300, 3004)}, nil, nil, nil},
		"the agent that left its home": {proc.Table{p(101, 1, 300, 300, 1001), p(102, 1, 300, 300, 1002)}, nil, nil, []int{101}},
	} {
		in := func(pids []int) func(proc.Stat) bool {
			return func(s proc.Stat) bool { return slices.Contains(pids, s.PID) }
		}
		var got []int
		for _, s := range r.pick(c.table, in(c.tagged), in(c.holds)) {
			got = append(got, s.PID)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	// Of a run whose holder nobody can read, only tags tell.
	r.shim, r.agent = proc.ID{}, proc.ID{}
	got := r.pick(proc.Table{p(5, 0, 0, 0, 7), p(6, 1, 6, 6, 8)}, func(s proc.Stat) bool { return s.PID == 6 }, func(proc.Stat) bool { return true })
	if len(got) != 1 || got[0].PID != 6 {
		t.Errorf("without a holder: %v", got)
	}
}

func TestEndTreeTellsWhyItCannotLook(t *testing.T) {
	t.Parallel()
	lost := errors.New("no /proc")
	_, _, err := endTree(func() ([]proc.Stat, error) { return nil, lost }, time.Second)
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// A process may come while the last is being ended.
func TestEndTreeLooksAgain(t *testing.T) {
	t.Parallel()
	victims := []proc.ID{bystander(t), bystander(t), bystander(t)}
	looks := 0
	stopped, left, err := endTree(func() ([]proc.Stat, error) {
		if looks++; looks > len(victims) || looks == 2 {
			return nil, nil
		}
		s, err := proc.ReadStat(victims[looks-1].PID)
		return []proc.Stat{s}, err
	}, patience)
	if err != nil || len(left) != 0 || stopped != 2 || looks != 5 {
		t.Errorf("%d stopped, %v left, %v, after %d looks", stopped, left, err, looks)
	}
	if victims[0].Alive() || victims[2].Alive() || !victims[1].Alive() {
		t.Error("the wrong ones were ended")
	}
}
