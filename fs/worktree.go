package fs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/worktree"
)

// worktreeTable is worktrees/<worktree>/.
var worktreeTable = table[worktree.Worktree]{
	made:    worktreeMade,
	changed: worktreeMade,
	newest:  worktreeMade,
	rows: []row[worktree.Worktree]{
		constant("path", func(_ *Tree, wt worktree.Worktree) string { return wt.Path }),
		constant("branch", func(_ *Tree, wt worktree.Worktree) string { return wt.Branch }),
		constant("repo", func(_ *Tree, wt worktree.Worktree) string { return wt.Toplevel }),
		line("dirty", func(t *Tree, wt worktree.Worktree) string { return t.bench.WorktreeDirty(wt.Name) }),
		text("users", func(t *Tree, wt worktree.Worktree) ([]byte, error) {
			users := strings.Join(t.bench.WorktreeUsers(wt.Name), "\n")
			if users != "" {
				users += "\n"
			}
			return []byte(users), nil
		}),
		ctl(nil,
			verb[worktree.Worktree]{syntax{"remove", "", "remove it, when nothing uses it and nothing in it is nowhere else"}, removeWorktree},
		),
	},
}

func worktreeMade(_ *Tree, wt worktree.Worktree) time.Time { return wt.Created }

func removeWorktree(ctx context.Context, t *Tree, wt worktree.Worktree, _ []string) error {
	return t.bench.RemoveWorktree(ctx, wt.Name)
}

// worktreesDir is worktrees/.
func worktreesDir(_ tableDir[none], at site, _ none) Node {
	return collection{
		site: at, perm: 0o500, mtime: always(at.t.lastChange),
		list: func() ([]Entry, error) {
			var entries []Entry
			for _, wt := range at.t.bench.Worktrees() {
				entries = append(entries, Entry{Name: wt.Name, Ino: worktreeIno(wt), Type: Directory})
			}
			return entries, nil
		},
		find: func(name string) (Node, bool) {
			wt, ok := at.t.bench.Worktree(name)
			if !ok {
				return nil, false
			}
			dir := at.child(name)
			dir.ino, dir.readers = worktreeIno(wt), at.t.worktreeReaders(name)
			return tableDir[worktree.Worktree]{site: dir, table: &worktreeTable, get: at.t.worktree(name, wt.Created)}, true
		},
	}
}

// worktreeReaders are the agents of the session that the worktree was made in,
// as long as the run is known that it was made for.
func (t *Tree) worktreeReaders(name string) readers {
	r, ok := t.bench.Run(name)
	if !ok {
		return nobody
	}
	return readers(r.Session)
}

// worktreeIno tells worktrees apart that had one name after the other.
func worktreeIno(wt worktree.Worktree) uint64 {
	return thingIno("worktree", wt.Name+" "+strconv.FormatInt(wt.Created.UnixNano(), 10))
}

// worktree finds a worktree, as long as it is the same one.
func (t *Tree) worktree(name string, made time.Time) subject[worktree.Worktree] {
	return func() (worktree.Worktree, error) {
		wt, ok := t.bench.Worktree(name)
		if !ok || !wt.Created.Equal(made) {
			return wt, fault.New(fault.NotFound, "worktree %s is no longer there", name)
		}
		return wt, nil
	}
}

// worktreeOf is the target of a job's link to its worktree.
func worktreeOf(t *Tree, j *ledger.Job) string {
	if j.Worktree == "" {
		return "" // nothing is asked of the disk for most jobs
	}
	if _, ok := t.bench.Worktree(j.Worktree); !ok {
		return ""
	}
	return "../../../../worktrees/" + j.Worktree
}
