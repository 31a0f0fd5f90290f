// Package origin says for which process of which machine a 9P request is made.
// A process number means something only where both sides have the same
// processes, so it goes with the machine's boot and the pid namespace.
//
// It is no proof: whoever speaks 9P can name any process. A server may take
// rights away by it, never give any.
package origin

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// here is what this process calls its boot and its pid namespace; empty where
// /proc does not tell.
var here = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + space
})

// Of names a process of this machine; 0 is one that is not known.
func Of(pid int) string {
	if here() == "" || pid <= 0 {
		return ""
	}
	return here() + "/" + strconv.Itoa(pid)
}

// PID returns the process that Of gave a name, as this process would call it;
// 0 for one of another machine or pid namespace, and for anything else.
func PID(name string) int {
	at, number, found := cutLast(name)
	if !found || here() == "" || at != here() {
		return 0
	}
	pid, err := strconv.ParseInt(number, 10, 32)
	if err != nil || pid <= 0 {
		return 0
	}
	return int(pid)
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
