package proc

import (
	"os"
	"strconv"

	"scvfs/ledger/fault"
)

// Table is all processes at about one moment, zombies too. The kernel gives no
// snapshot: a process that forks while the table is read may be missing.
type Table []Stat

// Processes reads the table.
func Processes() (Table, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fault.New(fault.Internal, "the processes cannot be listed: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fault.New(fault.Internal, "the processes cannot be listed: %w", err)
	}
	t := make(Table, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := ReadStat(pid); err == nil {
			t = append(t, s)
		}
	}
	return t, nil
}

// Descendants returns the children of root, their children and so on, zombies
// too, without root itself.
func (t Table) Descendants(root int) []Stat {
	children := map[int][]int{}
	for i, s := range t {
		children[s.PPID] = append(children[s.PPID], i)
	}
	var found []Stat
	seen := map[int]bool{root: true}
	for next := []int{root}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for _, i := range children[parent] {
			if s := t[i]; !seen[s.PID] {
				seen[s.PID] = true
				found = append(found, s)
				next = append(next, s.PID)
			}
		}
	}
	return found
}

// Descendants returns the processes that descend from root and have not ended.
func Descendants(root int) ([]Stat, error) {
	t, err := Processes()
	if err != nil {
		return nil, err
	}
	var living []Stat
	for _, s := range t.Descendants(root) {
		if !s.Ended() {
			living = append(living, s)
		}
	}
	return living, nil
}
