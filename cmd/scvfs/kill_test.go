package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// killRounds is how often the kill test kills the daemon; scripts/soak asks
// for more.
func killRounds(t *testing.T) int {
	rounds := 20
	if text := os.Getenv("SCVFS_KILL_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("SCVFS_KILL_ROUNDS=%q: %v", text, err)
		}
		rounds = n
	}
	if testing.Short() {
		rounds = 3
	}
	return rounds
}

// The daemon is killed at random moments while jobs start, write, end and are
// cancelled. Every job whose address a client read must end as it should, its
// script must have run exactly once, its log must hold each line once, and
// nothing may be left running.
func TestKilledDaemonLosesAndDoublesNothing(t *testing.T) {
	w := newWorld(t, "[limits]\njobs = 8\n").session()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w.sh(`mkdir ran`)
	var jobs []string
	known := map[string]bool{}
	for round := range killRounds(t) {
		// A client that starts jobs until the daemon dies under it. What it
		// prints are the jobs that it was told of.
		client := w.command("bash", `for i in 1 2 3 4 5 6 7 8; do
exec 3<>"$S/start" || exit 0
printf 'echo $$ >> "ran/$SCV_RUN"; for i in $(seq 40); do echo line $i; sleep 0.01; done; echo end' >&3 || exit 0
read -r job <&3 || exit 0
exec 3>&-
echo "$job"
done 2>/dev/null`)
		out, err := client.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		told := make(chan string, 1)
		go func() {
			var b strings.Builder
			buf := make([]byte, 4096)
			for {
				n, err := out.Read(buf)
				b.Write(buf[:n])
				if err != nil {
					told <- b.String()
					return
				}
			}
		}()
		time.Sleep(time.Duration(random.IntN(900)) * time.Millisecond) // the random moment
		w.kill()
		client.Wait()
		for job := range strings.FieldsSeq(<-told) {
			if known[job] {
				t.Fatalf("round %d: the address %s was given twice", round, job)
			}
			known[job] = true
			jobs = append(jobs, job)
		}
		w.start()
	}
	if len(jobs) == 0 {
		t.Fatal("no job was ever started: the test shows nothing")
	}
	t.Logf("%d jobs were told of", len(jobs))
	w.sh(`for j in "$M"/active/*; do [ ! -e "$j" ] || cat "$j/wait" > /dev/null; done`)
	w.checkJobs(jobs)
	if left := w.processes(); len(left) != 1 {
		t.Fatalf("orphans, beside the daemon: %q", left)
	}
	w.want(`ls "$J" | wc -l | xargs test "$(ls ran | wc -l)" -eq && echo each`, "each\n")
}

// checkJobs verifies that each job completed, ran once, and logged each line
// once.
func (w *world) checkJobs(jobs []string) {
	w.t.Helper()
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
	}
	lines.WriteString("end\n")
	w.sh(`cat > expected <<'X'
` + lines.String() + `X
for job in ` + strings.Join(jobs, " ") + `; do
j="$M/sessions/${job%/*}/jobs/${job#*/}"
[ "$(cat "$j/status")" = completed ] || { echo "$job is $(cat "$j/state")"; exit 1; }
cmp "$j/result" expected || { echo "$job: result"; exit 1; }
grep -E '^(line|end)' "$j/log" | cmp - expected || { echo "$job: log"; cat "$j/log"; exit 1; }
for once in 'run started' 'turn 1 (' 'turn 1 ended' 'run ended'; do
[ "$(grep -cF -e "$once" "$j/log")" = 1 ] || { echo "$job: $once"; cat "$j/log"; exit 1; }
done
run=$(basename "$(readlink "$j/run")")
[ "$(wc -l < "ran/$run")" = 1 ] || { echo "$job ran $(wc -l < "ran/$run") times"; exit 1; }
done`)
}
