package fs

import (
	"context"
	"testing"

	"scvfs/ledger"
	"scvfs/workbench"
)

// The directories that Stale names are those of the tree.
func TestStaleNamesAreOfTheTree(t *testing.T) {
	tree, _ := newTree(t)
	for _, c := range []workbench.Change{
		{Kind: workbench.JobChanged, State: ledger.Completed, Session: "shop", Job: "job-1"},
		{Kind: workbench.JobGone, Session: "shop", Job: "job-1", Run: "sh-000000"},
		{Kind: workbench.SessionGone, Session: "shop"},
		{Kind: workbench.WorktreeGone, Detail: "sh-000000"},
		{Kind: workbench.ApprovalResolved, Approval: 17},
	} {
		names := Stale(c)
		if len(names) == 0 {
			t.Errorf("%s takes no name away", c.Kind)
		}
		for _, name := range names {
			if !hasDirectory(t, tree, name.Dir) {
				t.Errorf("%s: no directory of / has the inode number of %q", c.Kind, name.Name)
			}
		}
	}
	if names := Stale(workbench.Change{Kind: workbench.JobChanged, State: ledger.Working}); len(names) > 0 {
		t.Errorf("a job that goes on takes %v away", names)
	}
}

func hasDirectory(t *testing.T, tree *Tree, ino uint64) bool {
	t.Helper()
	entries, err := tree.Root().List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Ino == ino && e.Type == Directory {
			return true
		}
	}
	return false
}
