package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
	"scvfs/workbench/run/proc"
)

// abandoned creates a run and has another daemon start it, which is killed.
func abandoned(t *testing.T, b *bench, spec Spec) {
	t.Helper()
	if err := b.Create(spec, nil); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/proc/self/exe", "daemon", b.root, spec.Run)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = c.Process.Kill()
	_ = c.Wait()
	if line != "started\n" {
		t.Fatalf("the daemon said %q", line)
	}
}

// forge writes a run's holder or agent.
func forge(t *testing.T, b *bench, run, name string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(b.Path(run, name), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	abandoned(t, b, b.spec("r", "sh", "-c", "echo before; while ! [ -e "+gate+" ]; do sleep 0.01; done; echo after; exit 4"))
	p := b.adopt("r", Live)
	eventually(t, "its pid is known", func() bool { return p.PID() != 0 })
	eventually(t, "its agent is known to live", func() bool { return b.AgentAlive("r") })
	if again := b.adopt("r", Live); again != p {
		t.Error("adopted twice, it is two")
	}
	if o := b.Origin(p.PID()); o.Run != "r" {
		t.Errorf("its agent is %+v", o)
	}
	if err := b.Remove("r"); !fault.Is(err, fault.Busy) {
		t.Errorf("removing a live run: %v", err)
	}
	if _, err := b.Start("r"); !fault.Is(err, fault.Done) {
		t.Errorf("starting a live run: %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if x, ok := b.end(p); !ok || x.Code != 4 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if b.AgentAlive("r") || b.AgentAlive("none") {
		t.Error("an agent lives after its run")
	}
	if raw, _ := os.ReadFile(b.Path("r", "stdout")); string(raw) != "before\nafter\n" {
		t.Errorf("it wrote %q", raw)
	}
	if x, ok := b.adopt("r", Ended).Exit(); !ok || x.Code != 4 {
		t.Errorf("adopted after its end it ended with %+v, %v", x, ok)
	}
}

func TestAdoptedRunStops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "told")
	abandoned(t, b, b.spec("r", self("nasty", file)...))
	ids := tells(t, file, 5)
	if x, ok := b.stop(b.adopt("r", Live)); !ok || !x.Stopped {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	allGone(t, ids)
}

func TestDeadShimsLeftoversAreStopped(t *testing.T) {
	for name, daemonDies := range map[string]bool{"under its daemon": false, "before it is adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			other := bystander(t)
			file := filepath.Join(t.TempDir(), "told")
			spec := b.spec("r", self("nasty", file)...)
			var p Process
			if daemonDies {
				abandoned(t, b, spec)
			} else {
				p = b.start(spec)
			}
			ids := tells(t, file, 5)
			shim := b.shimOf("r")
			if err := proc.Signal(shim, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if daemonDies {
				eventually(t, "the shim is gone", func() bool { return !shim.Alive() })
				p = b.adopt("r", Dead)
			}
			x, ok := b.end(p)
			allGone(t, ids)
			if ok || x != (Exit{}) {
				t.Errorf("it ended with %+v, %v", x, ok)
			}
			if !other.Alive() {
				t.Error("a bystander is gone")
			}
			said := b.said()
			if strings.Count(said, "died without saying") != 1 {
				t.Errorf("it said %q", said)
			}
			b.adopt("r", Dead) // again: there is nothing left to stop
			if _, err := b.Start("r"); !fault.Is(err, fault.Done) {
				t.Errorf("starting a dead run: %v", err)
			}
		})
	}
}

func TestRunThatNeverStartedIsVoidForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "ran")
	if err := b.Create(b.spec("r", "touch", file), nil); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Standing("r"); err != nil || s != Never {
		t.Errorf("it stands as %v, %v", s, err)
	}
	if _, taken := b.holder("r"); taken {
		t.Error("asking how it stands took it")
	}
	for range 2 {
		if _, ok := b.end(b.adopt("r", Never)); ok {
			t.Error("a run that never started has an exit")
		}
	}
	c := exec.Command("/proc/self/exe", "shim", b.Path("r", "")) // the late shim
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != shimTaken || string(out) != `{"taken":true}` {
		t.Errorf("a late shim left with %d, saying %q", code, out)
	}
	if _, err := b.Start("r"); !fault.Is(err, fault.Done) {
		t.Errorf("starting a void run: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the agent ran")
	}
}

// One of a shim and an adopting manager gets the run, never both or none.
func TestShimAndVoidRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 20 {
		run := fmt.Sprintf("r-%d", i)
		if err := b.Create(b.spec(run, "sh", "-c", "echo ran"), nil); err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() {
			p, err := b.Start(run)
			if err == nil {
				<-p.Done()
			}
			started <- err
		}()
		time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		p, s, err := b.Adopt(run)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := b.end(p)
		startErr := <-started
		raw, _ := os.ReadFile(b.Path(run, "stdout"))
		void := s == Never
		if void != (string(raw) == "") || void != fault.Is(startErr, fault.Done) || void == ok {
			t.Errorf("adopted as %v with exit %v, started with %v, wrote %q", s, ok, startErr, raw)
		}
	}
}

func TestReusedNumbersAreNeverSignalled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	victim := bystander(t)
	for name, change := range map[string]func(*proc.ID){
		"later":   func(id *proc.ID) { id.Start-- }, // our shim was older, and the number was given away
		"earlier": func(id *proc.ID) { id.Start++ },
		"reboot":  func(id *proc.ID) { id.Boot = "another" },
	} {
		if err := b.Create(b.spec(name, "true"), nil); err != nil {
			t.Fatal(err)
		}
		forged := victim
		change(&forged)
		forge(t, b, name, shimName, holder{ID: forged})
		forge(t, b, name, agentName, forged)
		p := b.adopt(name, Dead)
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !victim.Alive() {
		t.Error("a stranger was signalled")
	}
}

func TestReboot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	victim := bystander(t)
	lived := victim
	lived.Boot = "another"
	for _, run := range []string{"lived", "ended", "untaken", "void"} {
		if err := b.Create(b.spec(run, "true"), nil); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(b.Path(run, specName))
		if err != nil {
			t.Fatal(err)
		}
		raw = []byte(strings.Replace(string(raw), victim.Boot, "another", 1))
		if err := os.WriteFile(b.Path(run, specName), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forge(t, b, "lived", shimName, holder{ID: lived})
	forge(t, b, "lived", agentName, lived)
	forge(t, b, "ended", shimName, holder{ID: lived})
	forge(t, b, "ended", exitName, Exit{Code: 3, Ended: time.Now()})
	forge(t, b, "void", shimName, holder{ID: lived, Void: true})
	b.adopt("lived", Dead)
	if x, ok := b.adopt("ended", Ended).Exit(); !ok || x.Code != 3 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	// A shim may have had it, and the disk not know.
	b.adopt("untaken", Dead)
	b.adopt("untaken", Dead)
	// This one was made void in its own boot.
	b.adopt("void", Never)
	if !victim.Alive() || b.said() != "" {
		t.Errorf("after a reboot something was signalled: %s", b.said())
	}
}

func TestBrokenRecordsSettle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		holder, exit string
		want         Standing
	}{
		"no-holder":  {"", "", Dead},
		"half":       {`{"pid":12`, "", Dead},
		"half-exit":  {`{"pid":0}`, `{"code":`, Dead},
		"empty-exit": {`{"pid":0}`, `{}`, Dead},
		"init":       {`{"pid":1,"start":0}`, "", Dead},
		"negative":   {`{"pid":-1,"start":0}`, "", Dead},
		"with-exit":  {"garbage", `{"code":2,"ended":"2026-01-02T03:04:05Z"}`, Ended},
	} {
		if err := b.Create(b.spec(name, "true"), nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.Path(name, shimName), []byte(c.holder), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.exit != "" {
			if err := os.WriteFile(b.Path(name, exitName), []byte(c.exit), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.adopt(name, c.want)
	}
	if err := os.Mkdir(b.Path("half-made", ""), 0o700); err != nil {
		t.Fatal(err)
	}
	b.adopt("half-made", Never)
	if _, _, err := b.Adopt("none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a run without a directory: %v", err)
	}
}

func TestClosedManagerLeavesItsRunsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := benchAt(t, b.root)
	p := first.start(b.spec("r", "sleep", "3600"))
	first.Close()
	if err := p.Stop(t.Context()); !fault.Is(err, fault.Gone) {
		t.Errorf("stopping through a closed manager: %v", err)
	}
	if _, err := first.Start("r"); err == nil {
		t.Error("a closed manager started a run")
	}
	// Its stop request may have reached the shim; another manager sees which.
	q, s, err := b.Adopt("r")
	if err != nil || s != Live && s != Ended {
		t.Fatalf("it is %v, %v", s, err)
	}
	if x, ok := b.stop(q); !ok || x.Code != -1 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}
