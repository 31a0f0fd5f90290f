package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

func TestCreateRefusesWhatCannotStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bad := 0o1000
	for name, change := range map[string]func(*Spec){
		"name":           func(s *Spec) { s.Run = "../up" },
		"dot":            func(s *Spec) { s.Run = ".." },
		"no name":        func(s *Spec) { s.Run = "" },
		"no program":     func(s *Spec) { s.Argv = nil },
		"no argv[0]":     func(s *Spec) { s.Argv = []string{""} },
		"NUL":            func(s *Spec) { s.Argv = append(s.Argv, "a\x00b") },
		"NUL in env":     func(s *Spec) { s.Env = append(s.Env, "A=\x00") },
		"no name=":       func(s *Spec) { s.Env = append(s.Env, "A") },
		"other's tag":    func(s *Spec) { s.Env = append(s.Env, "SCV_RUN=other") },
		"relative":       func(s *Spec) { s.Dir = "here" },
		"stdin":          func(s *Spec) { s.Stdin = "pipe" },
		"no size":        func(s *Spec) { s.Stdin = StdinTTY },
		"half a size":    func(s *Spec) { s.Stdin, s.Cols = StdinTTY, 80 },
		"huge":           func(s *Spec) { s.Stdin, s.Cols, s.Rows = StdinTTY, 80, 1<<16 },
		"size of a file": func(s *Spec) { s.Cols, s.Rows = 80, 24 },
		"timeout":        func(s *Spec) { s.Timeout = -1 },
		"grace":          func(s *Spec) { s.Grace = -time.Second },
		"umask":          func(s *Spec) { s.Umask = &bad },
	} {
		spec := b.spec("r", "true")
		change(&spec)
		if err := b.Create(spec, nil); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Create(b.spec("r", "true"), strings.NewReader("x")); !fault.Is(err, fault.Invalid) {
		t.Errorf("input for nobody: %v", err)
	}
	if runs, err := b.List(); err != nil || len(runs) != 0 {
		t.Errorf("what was refused left %v, %v", runs, err)
	}
}

func TestCreateMakesAPrivateDirectoryOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec("r-1", "true")
	spec.Stdin = StdinFile
	if err := b.Create(spec, strings.NewReader("input")); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(spec, strings.NewReader("other")); !fault.Is(err, fault.Exists) {
		t.Errorf("made twice: %v", err)
	}
	modes := map[string]fs.FileMode{}
	_ = filepath.WalkDir(b.Path("r-1", ""), func(path string, d fs.DirEntry, _ error) error {
		info, err := os.Lstat(path)
		if err == nil {
			modes[d.Name()] = info.Mode()
		}
		return err
	})
	for name, mode := range map[string]fs.FileMode{
		"r-1": fs.ModeDir | 0o700, "tmp": fs.ModeDir | 0o700,
		"spec.json": 0o600, "stdin": 0o600, "stdout": 0o600, "stderr": 0o600,
	} {
		if modes[name] != mode {
			t.Errorf("%s has mode %v, not %v", name, modes[name], mode)
		}
	}
	if raw, _ := os.ReadFile(b.Path("r-1", "stdin")); string(raw) != "input" || len(modes) != 6 {
		t.Errorf("stdin holds %q, and the directory %v", raw, modes)
	}
}

var errBroken = errors.New("the pipe is broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec("r", "true")
	spec.Stdin = StdinFile
	if err := b.Create(spec, io.MultiReader(strings.NewReader("half"), broken{})); !errors.Is(err, errBroken) {
		t.Errorf("it was made: %v", err)
	}
	if runs, _ := b.List(); len(runs) != 0 {
		t.Errorf("it left %v", runs)
	}
}

func TestListSkipsWhatIsNoRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"b", "a", "c.d"} {
		if err := b.Create(b.spec(name, "true"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.root, ".hidden"), 0o700); err != nil {
		t.Fatal(err)
	}
	if runs, err := b.List(); err != nil || !slices.Equal(runs, []string{"a", "b", "c.d"}) {
		t.Errorf("the runs are %v, %v", runs, err)
	}
	if p := b.Path("../a", "spec.json"); p != "" {
		t.Errorf("there is a path %s outside", p)
	}
}

func TestRemoveTakesWhatAnAgentLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, []byte("kept"), 0o400); err != nil {
		t.Fatal(err)
	}
	b.end(b.start(b.spec("r", "sh", "-c",
		"cd $TMPDIR && mkdir -p a/b && echo x > a/b/c && ln -s "+outside+" link && ln -s "+filepath.Dir(outside)+" dir && chmod 0 a/b && chmod 0500 a")))
	if err := b.RemoveTmp("r"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(b.Path("r", "tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("tmp: %v", err)
	}
	if x, ok := b.adopt("r", Ended).Exit(); !ok || x.Code != 0 {
		t.Errorf("the rest is gone: %+v, %v", x, ok)
	}
	for range 2 {
		if err := b.Remove("r"); err != nil {
			t.Fatal(err)
		}
	}
	if runs, _ := b.List(); len(runs) != 0 {
		t.Errorf("it left %v", runs)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode() != 0o400 {
		t.Errorf("a file outside was touched: %v, %v", info, err)
	}
}

// Root is let into any directory, so the way round a forbidden one is tried by
// itself.
func TestUnlockLetsInAndStaysInside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700), os.Symlink(outside, filepath.Join(dir, "a/link")),
		os.Chmod(filepath.Join(dir, "a/b/c"), 0), os.Chmod(filepath.Join(dir, "a/b"), 0), os.Chmod(filepath.Join(dir, "a"), 0o500))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	unlock(root, "a")
	for path, want := range map[string]fs.FileMode{
		filepath.Join(dir, "a"): 0o700, filepath.Join(dir, "a/b"): 0o700, filepath.Join(dir, "a/b/c"): 0o700, outside: 0o500,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}

// onFullableDisk returns a directory on a file system of its own, of 1 MiB.
func onFullableDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("scvfs-test", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDiskLosesNoEnding(t *testing.T) {
	b := benchAt(t, filepath.Join(onFullableDisk(t), "runs"))
	q := b.start(b.spec("q", "sleep", "3600"))
	p := b.start(b.spec("r", "sh", "-c", "cat /dev/zero > $TMPDIR/fill; echo lost; exit 7"))
	if x, ok := b.end(p); !ok || x.Code != 7 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
	if free, err := DiskFree(b.root); err != nil || free > exitRoom {
		t.Errorf("there are %d bytes left, %v", free, err)
	}
	spec := b.spec("s", "true")
	spec.Stdin = StdinFile
	if err := b.Create(spec, strings.NewReader(strings.Repeat("x", 1<<16))); !fault.Is(err, fault.NoSpace) {
		t.Errorf("made on a full disk: %v", err)
	}
	if x, ok := b.stop(q); !ok || !x.Stopped {
		t.Errorf("stopping on a full disk: %+v, %v", x, ok)
	}
	if runs, _ := b.List(); !slices.Equal(runs, []string{"q", "r"}) {
		t.Errorf("the runs are %v", runs)
	}
	if err := b.RemoveTmp("r"); err != nil {
		t.Error(err)
	}
	if free, err := DiskFree(b.root); err != nil || free == 0 {
		t.Errorf("there are %d bytes left, %v", free, err)
	}
}

// A run that was made while there was room, and started when there is none,
// can be started later.
func TestStartOnAFullDiskTakesNothing(t *testing.T) {
	b := benchAt(t, filepath.Join(onFullableDisk(t), "runs"))
	if err := b.Create(b.spec("r", "true"), nil); err != nil {
		t.Fatal(err)
	}
	fill := filepath.Join(b.root, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if _, err := b.Start("r"); !fault.Is(err, fault.NoSpace) {
		t.Errorf("started on a full disk: %v", err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	p, err := b.Start("r")
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := b.end(p); !ok || x.Code != 0 {
		t.Errorf("it ended with %+v, %v", x, ok)
	}
}
