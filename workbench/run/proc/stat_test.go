package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func line(pid int, comm string, state byte, ppid, pgid, sid int, flags uint64, threads int, start uint64) string {
	return fmt.Sprintf("%d (%s) %c %d %d %d 0 -1 %d 1 2 3 4 5 6 7 8 20 0 %d 0 %d 10 11 18446744073709551615 1\n",
		pid, comm, state, ppid, pgid, sid, flags, threads, start)
}

func TestParseStatTakesAnyCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Stat{
			PID: rapid.IntRange(1, 1<<22).Draw(t, "pid"), State: rapid.SampledFrom([]byte("RSDTtZXI")).Draw(t, "state"),
			PPID: rapid.IntRange(0, 1<<22).Draw(t, "ppid"), PGID: rapid.IntRange(0, 1<<22).Draw(t, "pgid"), SID: rapid.IntRange(0, 1<<22).Draw(t, "sid"),
			Flags: rapid.Uint64().Draw(t, "flags"), Threads: rapid.IntRange(0, 1000).Draw(t, "threads"), Start: rapid.Uint64().Draw(t, "start"),
			Comm: rapid.OneOf(
				rapid.SampledFrom([]string{"", ") Z 1 1 1", "(a) (b", ")", "(", "a b", "x\n1 (y) R 2", "((()))"}),
				rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 15), func(b []byte) string { return string(b) }),
			).Draw(t, "comm"),
		}
		got, err := ParseStat([]byte(line(want.PID, want.Comm, want.State, want.PPID, want.PGID, want.SID, want.Flags, want.Threads, want.Start)))
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	})
}

func TestParseStatRefusesWhatIsNone(t *testing.T) {
	whole := line(5, "a", 'R', 1, 1, 1, 0, 1, 9)
	for _, text := range []string{
		"", "(", ")(", "5", "(a) R 1", "5 (a R 1 1 1", "x " + whole[2:], "0" + whole[1:], "-5" + whole[1:],
		strings.Replace(whole, " R ", " RR ", 1), strings.Replace(whole, " 9 ", " -9 ", 1), whole[:30],
	} {
		if s, err := ParseStat([]byte(text)); err == nil {
			t.Errorf("%q parsed as %+v", text, s)
		}
	}
}

func TestEndedAndKilled(t *testing.T) {
	for _, c := range []struct {
		s             Stat
		ended, killed bool
	}{
		{Stat{State: 'R', Threads: 1}, false, false},
		{Stat{State: 'T', Threads: 1}, false, false},
		{Stat{State: 'Z', Threads: 1}, true, false},
		{Stat{State: 'Z', Threads: 0}, true, false},
		{Stat{State: 'Z', Threads: 3}, false, false}, // its leader has left its threads
		{Stat{State: 'X'}, true, false},
		{Stat{State: 'R', Threads: 1, Flags: 0x4}, false, false},
		{Stat{State: 'R', Threads: 1, Flags: 0x400}, false, false},
		{Stat{State: 'R', Threads: 1, Flags: 0x40404 | 0x400}, false, true},
	} {
		if c.s.Ended() != c.ended || c.s.Killed() != c.killed {
			t.Errorf("%+v: ended %v, killed %v", c.s, c.s.Ended(), c.s.Killed())
		}
	}
}

func TestParseStatus(t *testing.T) {
	text := "Name:\tx\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t17\nPid:\t18\nUid:\t1000\t1001\t1002\t1003\nSigIgn:\t8000000000001001\n"
	s, err := ParseStatus([]byte(text))
	if err != nil || s.TGID != 17 || s.UID != 1001 || !s.Ignores(1) || !s.Ignores(13) || !s.Ignores(64) || s.Ignores(2) || s.Ignores(0) || s.Ignores(65) {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, text := range []string{"", "Tgid:\t17\n", "Uid:\t0\t0\t0\t0\n", strings.Replace(text, "17", "x", 1), strings.Replace(text, "8000", "wxyz", 1)} {
		if s, err := ParseStatus([]byte(text)); err == nil {
			t.Errorf("%q parsed as %+v", text, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(line(5, "a) (b", 'S', 1, 2, 3, 4, 5, 6)))
	if own, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("1 () "))
	f.Add([]byte("10()\xff 0 0 0 0 00 0 0 0 0 0 0 0 0 0 0 0 0 0 00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ParseStat(raw)
		if err != nil {
			return
		}
		again, err := ParseStat([]byte(line(s.PID, s.Comm, s.State, s.PPID, s.PGID, s.SID, s.Flags, s.Threads, s.Start)))
		if err != nil || again != s {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	if own, err := os.ReadFile("/proc/self/status"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("Tgid:\nUid:"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s, err := ParseStatus(raw); err == nil && (s.TGID <= 0 || s.UID < 0) {
			t.Fatalf("%q parsed as %+v", raw, s)
		}
	})
}
