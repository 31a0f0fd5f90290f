package fusefs

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"scvfs/ledger/fault"
)

// mountTable is where the kernel lists this process's mounts.
const mountTable = "/proc/self/mountinfo"

// mounted is one line of the mount table.
type mounted struct {
	id, parent uint64
	device     uint32 // the minor number of its device, which is its FUSE connection's number too
	point      string
	kind       string // such as ext4 or fuse.scvfs
	source     string
	uid        int // who mounted it; -1 when the file system does not say
}

// ours tells whether it is a mount of this program, by whatever process.
func (m mounted) ours() bool { return m.kind == fsType }

// mounts returns all mounts that this process sees.
func mounts() ([]mounted, error) {
	table, err := os.ReadFile(mountTable)
	if err != nil {
		return nil, fault.New(fault.Internal, "the mount table cannot be read: %w", err)
	}
	return parseMounts(string(table)), nil
}

// mountsAt returns the mounts on path, the visible one last.
func mountsAt(path string) ([]mounted, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	return stack(all, path), nil
}

// stack returns the mounts on path from the lowest to the visible one. One
// that lies on another names it as its parent.
func stack(all []mounted, path string) []mounted {
	var at []mounted
	for _, m := range all {
		if m.point == path {
			at = append(at, m)
		}
	}
	below := func(m mounted) int {
		for i, other := range at {
			if other.id == m.parent && other.id != m.id {
				return i
			}
		}
		return -1
	}
	depth := func(m mounted) int {
		n := 0
		for i := below(m); i >= 0 && n < len(at); i = below(at[i]) {
			n++
		}
		return n
	}
	slices.SortStableFunc(at, func(a, b mounted) int { return cmp.Compare(depth(a), depth(b)) })
	return at
}

// parseMounts reads a mount table (proc_pid_mountinfo(5)). Lines that make no
// sense are left out.
func parseMounts(table string) []mounted {
	var all []mounted
	for line := range strings.Lines(table) {
		if m, ok := parseMount(strings.TrimSuffix(line, "\n")); ok {
			all = append(all, m)
		}
	}
	return all
}

// parseMount reads one line:
//
//	id parent major:minor root point options [tag...] - type source options
func parseMount(line string) (mounted, bool) {
	left, right, found := strings.Cut(line, " - ")
	head, tail := strings.Split(left, " "), strings.Split(right, " ")
	if !found || len(head) < 6 || len(tail) < 3 {
		return mounted{}, false
	}
	_, minor, found := strings.Cut(head[2], ":")
	device, err1 := strconv.ParseUint(minor, 10, 32)
	id, err2 := strconv.ParseUint(head[0], 10, 64)
	parent, err3 := strconv.ParseUint(head[1], 10, 64)
	if !found || err1 != nil || err2 != nil || err3 != nil {
		return mounted{}, false
	}
	m := mounted{
		id: id, parent: parent, device: uint32(device), point: unescape(head[4]),
		kind: unescape(tail[0]), source: unescape(tail[1]), uid: -1,
	}
	for option := range strings.SplitSeq(tail[2], ",") {
		if id, ok := strings.CutPrefix(option, "user_id="); ok {
			if uid, err := strconv.ParseUint(id, 10, 32); err == nil {
				m.uid = int(uid)
			}
		}
	}
	return m, true
}

// unescape undoes the octal escapes that stand for blanks and backslashes.
func unescape(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	var b strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(field[i])
	}
	return b.String()
}
