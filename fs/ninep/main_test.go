package ninep

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// patience is how long anything may take before a test gives up. No test
// passes or fails by being faster than it.
const patience = 30 * time.Second

// TestMain fails the run if a goroutine outlives the tests. Fuzzing leaves some
// of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	before := runtime.NumGoroutine()
	code := m.Run()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(code)
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before && code == 0; runtime.Gosched() {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			fmt.Printf("%d goroutines are left of %d:\n%s\n", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
	}
	os.Exit(code)
}

// lines is a log that a test can look at.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testServer is a server with one socket.
type testServer struct {
	*Server
	path string
	log  *lines
}

// socketDir returns a directory whose path is short enough for sockets.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ninep-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// serve serves root until the test ends, and shows the log if it fails.
func serve(t testing.TB, root fs.Dir, opt Options) *testServer {
	t.Helper()
	path := filepath.Join(socketDir(t), "9p")
	log := &lines{}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := New(root, opt)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", log)
		}
	})
	return &testServer{Server: s, path: path, log: log}
}

// dialects runs a test in both.
func dialects(t *testing.T, test func(t *testing.T, d wire.Dialect)) {
	for _, d := range []wire.Dialect{wire.Linux, wire.Plain} {
		t.Run(d.String(), func(t *testing.T) { test(t, d) })
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// await waits for an event.
func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("gave up waiting for %s", what)
		panic("unreachable")
	}
}
