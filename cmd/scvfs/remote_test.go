package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// remoteHost is a network namespace with an sshd, reached by a wire from
// another, with keys of their own: what docs/remote.md tells, and nothing of
// the user's is read or written.
type remoteHost struct {
	t         testing.TB
	dir       string
	near, far string // namespaces
	address   string
}

func newRemoteHost(t testing.TB) *remoteHost {
	t.Helper()
	for _, program := range []string{"ip", "ssh", "ssh-keygen", "/usr/sbin/sshd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no remote host here: %s is missing (scripts/setup test)", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("no remote host here: only root makes network namespaces")
	}
	dir, err := os.MkdirTemp("", "scvfs-remote-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	id := fmt.Sprint(os.Getpid())
	h := &remoteHost{t: t, dir: dir, near: "scvfs-n" + id, far: "scvfs-f" + id, address: "192.0.2.2"}
	if out, err := exec.Command("ip", "netns", "add", h.near).CombinedOutput(); err != nil {
		t.Skipf("no remote host here: a network namespace cannot be made: %s", bytes.TrimSpace(out))
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", h.near).Run() })
	h.must("ip", "netns", "add", h.far)
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", h.far).Run() })
	h.must("ip", "-n", h.near, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", h.far)
	for _, end := range []struct{ space, address string }{{h.near, "192.0.2.1/24"}, {h.far, h.address + "/24"}} {
		h.must("ip", "-n", end.space, "addr", "add", end.address, "dev", "wire")
		h.must("ip", "-n", end.space, "link", "set", "wire", "up")
		h.must("ip", "-n", end.space, "link", "set", "lo", "up")
	}
	h.serveSSH()
	return h
}

func (h *remoteHost) must(args ...string) {
	h.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		h.t.Fatalf("%q: %v: %s", args, err, out)
	}
}

func (h *remoteHost) path(name string) string { return filepath.Join(h.dir, name) }

// serveSSH starts sshd with a configuration of its own.
func (h *remoteHost) serveSSH() {
	h.t.Helper()
	for _, key := range []string{"host", "user"} {
		h.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", h.path(key))
	}
	public, err := os.ReadFile(h.path("host.pub"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("known", h.address+" "+string(public))
	user, err := os.ReadFile(h.path("user.pub"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("authorized", string(user))
	h.write("sshd", fmt.Sprintf(`ListenAddress %s:22
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
AllowStreamLocalForwarding yes
`, h.address, h.path("host"), h.path("authorized")))
	// Where sshd confines its part without rights, at a place that is built in.
	if os.Mkdir("/run/sshd", 0o755) == nil {
		h.t.Cleanup(func() { os.Remove("/run/sshd") })
	}
	h.background(nil, "ip", "netns", "exec", h.far, "/usr/sbin/sshd", "-D", "-e", "-f", h.path("sshd"))
}

func (h *remoteHost) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// background runs a process, and whatever it starts, until the end of the test
// or until it is told to end.
func (h *remoteHost) background(env []string, args ...string) (end func()) {
	h.t.Helper()
	log, err := os.OpenFile(h.path(filepath.Base(args[len(args)-1])+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			cmd.Wait()
		}
	}
	h.t.Cleanup(func() {
		end()
		if text, _ := os.ReadFile(log.Name()); h.t.Failed() {
			h.t.Logf("%q: %s", args, text)
		}
	})
	return end
}

// forward makes a local socket lead to one of the host, and waits until it
// does.
func (h *remoteHost) forward(local, remote string) (end func()) {
	h.t.Helper()
	end = h.background([]string{"SSH_AUTH_SOCK="}, "ip", "netns", "exec", h.near, "ssh", "-F", "/dev/null", "-N", "-i", h.path("user"),
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+h.path("known"), "-o", "GlobalKnownHostsFile=/dev/null",
		"-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes", "-o", "StreamLocalBindMask=0177",
		"-o", "ServerAliveInterval=15", "-o", "ConnectionAttempts=30", "-L", local+":"+remote, "root@"+h.address)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if nc, err := net.Dial("unix", local); err == nil {
			nc.Close()
			return end
		}
		if time.Now().After(deadline) {
			h.t.Fatal("ssh does not forward")
		}
	}
}

// Two workbenches, one here and one behind ssh, beside each other: the main
// job of docs/remote.md.
func TestRemoteWorkbenchBesideTheLocalOne(t *testing.T) {
	needFUSE(t)
	host := newRemoteHost(t)
	local, remote := emptyWorld(t, ""), emptyWorld(t, "")
	local.space, remote.space = host.near, host.far
	remote.args = []string{"--9p", "unix:" + remote.socket()}
	local.start()
	remote.start()
	local.session()
	remote.session()
	forwarded := filepath.Join(remote.dir, "forwarded.sock")
	end := host.forward(forwarded, remote.socket())
	far := remote.farMount(forwarded)

	n := filepath.Join(local.dir, "n")
	if err := os.Mkdir(n, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tree := range map[string]string{"here": local.mount, "there": far.dir} {
		if err := os.Symlink(tree, filepath.Join(n, name)); err != nil {
			t.Fatal(err)
		}
	}
	here := func(script string) string {
		t.Helper()
		return strings.ReplaceAll(local.sh("N="+n+"\n"+script), n, "$N")
	}
	got := here(`for h in here there; do
echo 'while [ ! -e go ]; do sleep 0.05; done; echo went' > $N/$h/sessions/shop/start; cat $N/$h/sessions/shop/start; done
until [ "$(grep -l running $N/*/sessions/*/jobs/*/status | wc -l)" = 2 ]; do sleep 0.05; done
grep -l running $N/*/sessions/*/jobs/*/status`)
	want := "shop/job-1\nshop/job-1\n$N/here/sessions/shop/jobs/job-1/status\n$N/there/sessions/shop/jobs/job-1/status\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = here(`tail -n +1 -s 0.1 -f $N/there/sessions/shop/jobs/job-1/log > tailed & t=$!
cat $N/there/sessions/shop/events > events & e=$!
echo 'touch go' > $N/there/sessions/shop/start; cat $N/there/sessions/shop/jobs/job-1/wait
until grep -qx went tailed; do sleep 0.05; done; until grep -q '"completed"' events; do sleep 0.05; done; kill $t; kill -KILL $e
wait $e 2> /dev/null; cat $N/there/sessions/shop/jobs/job-1/result; touch go; cat $N/here/sessions/shop/jobs/job-1/wait
echo cancel > $N/there/sessions/shop/jobs/job-1/ctl || tail -n 1 $N/there/sessions/shop/jobs/job-1/ctl` + " 2> /dev/null")
	want = "completed\nwent\ncompleted\n# last: cancel: refused: shop/job-1 already completed\n"
	if !strings.Contains(got, "already in progress") || strings.ReplaceAll(got, complaint(got), "") != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// What scvfs attach is made of: a terminal in files.
	here(takeoverWords + `C=$N/there/sessions/shop/conversations/sh-1; T=$C/takeover
echo attach > "$C/ctl"; typed "PS1=; stty -echo"; typed "echo typed from here"; shows "typed from here"; echo end > "$T/ctl"; until [ ! -e "$T" ]; do sleep 0.05; done`)

	// The line is cut and comes back.
	end()
	local.refused(`cat `+n+`/there/version`, "")
	host.forward(forwarded, remote.socket())
	if got := here(`cat $N/there/sessions/shop/jobs/job-1/status`); got != "completed\n" {
		t.Errorf("after a new ssh: %q", got)
	}
}

// complaint is the line of bash's about a refused write.
func complaint(out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "bash: ") {
			return line
		}
	}
	return ""
}
