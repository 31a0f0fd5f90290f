package fs

import (
	"strconv"

	"scvfs/workbench"
)

// Name is a name in a directory, by the directory's inode number.
type Name struct {
	Dir  uint64
	Name string
}

// Stale returns the names that a change took out of the tree. A transport
// whose client keeps names (a kernel does, with the memory of all that was
// looked at below them) tells it to let go of them. They are not those that
// rmdir took, which the client knows of.
func Stale(c workbench.Change) []Name {
	top := func(name string) uint64 { return childIno(rootIno, name) }
	active := Name{top("active"), c.Session + "." + c.Job}
	switch c.Kind {
	case workbench.JobChanged:
		if c.State.Terminal() {
			return []Name{active}
		}
	case workbench.JobGone:
		if c.Run != "" {
			return []Name{active, {top("runs"), c.Run}}
		}
		return []Name{active}
	case workbench.SessionGone:
		return []Name{{top("sessions"), c.Session}}
	case workbench.ApprovalResolved: // it can still be found, though no listing shows it
		return []Name{{top("approvals"), strconv.FormatUint(c.Approval, 10)}}
	case workbench.WorktreeGone:
		return []Name{{top("worktrees"), c.Detail}}
	}
	return nil
}
