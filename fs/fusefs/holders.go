package fusefs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// lastOf tells whether a process that closes a descriptor of an inode is seen
// to have no other one, nor any process below it. A close takes the descriptor
// out of its table before it asks us, so the one being closed is not counted.
//
// It errs on the side of no: another descriptor may be of another description
// of the same file, and what cannot be read counts as one. A descriptor that
// was handed to a stranger is not seen; what is written there later is a
// document of its own.
func (p process) lastOf(ino uint64) bool {
	want := "ino:\t" + strconv.FormatUint(ino, 10)
	if holds(p.pid, want) {
		return false
	}
	for below := []int{p.pid}; len(below) > 0; {
		children, ok := childrenOf(below[0])
		if !ok || slices.ContainsFunc(children, func(pid int) bool { return holds(pid, want) }) {
			return false
		}
		below = append(below[1:], children...)
	}
	return true
}

// childrenOf returns the children of a process; ok is false where the kernel
// does not tell them.
func childrenOf(pid int) (children []int, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil, os.IsNotExist(err) // it has ended
	}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join(dir, task.Name(), "children"))
		if err != nil {
			if _, gone := os.Stat(filepath.Join(dir, task.Name())); os.IsNotExist(gone) {
				continue
			}
			return nil, false
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children, true
}

// holds tells whether a process has, or may have, a descriptor of the inode.
func holds(pid int, want string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fdinfo"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return !os.IsNotExist(err) // it has ended
	}
	for _, e := range entries {
		info, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			if os.IsNotExist(err) {
				continue // closed meanwhile
			}
			return true
		}
		found, told := inodeOf(string(info), want)
		if found || !told {
			return true
		}
	}
	return false
}

// inodeOf looks for the line of an inode in /proc/PID/fdinfo/FD. told is false
// where the kernel does not tell inodes.
func inodeOf(info, want string) (found, told bool) {
	for line := range strings.Lines(info) {
		line = strings.TrimRight(line, "\n")
		if line == want {
			return true, true
		}
		told = told || strings.HasPrefix(line, "ino:")
	}
	return false, told
}
