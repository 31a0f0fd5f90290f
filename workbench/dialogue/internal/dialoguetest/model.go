package dialoguetest

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// model builds and starts the scripted model server, which lies beside the
// repository, and returns its address. Its prompts are its scripts.
func model(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mockmodel")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = Shared(t, "mockmodel")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the model server: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-q")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the model server says no address: %v", err)
	}
	return strings.TrimSpace(url)
}
