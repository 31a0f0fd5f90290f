package fusefs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const table = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:44 / /home/u/scv rw,nosuid,nodev,relatime shared:2 master:3 - fuse.scvfs scvfs rw,user_id=1000,group_id=1000,default_permissions
41 40 0:45 / /home/u/scv rw,nosuid - fuse.scvfs scvfs rw,user_id=0,group_id=0
42 27 0:46 / /mnt/with\040blank\134and\011tab rw - tmpfs odd\040one rw
43 27 0:x / /mnt/bad rw - tmpfs t rw
short line
44 27 0:47 / /mnt/no-separator rw tmpfs t rw
`

func TestParseMounts(t *testing.T) {
	all := parseMounts(table)
	if len(all) != 5 {
		t.Fatalf("%d mounts: %+v", len(all), all)
	}
	want := mounted{40, 27, 44, "/home/u/scv", "fuse.scvfs", "scvfs", 1000}
	if all[2] != want {
		t.Errorf("got %+v, want %+v", all[2], want)
	}
	if all[4].point != "/mnt/with blank\\and\ttab" || all[4].source != "odd one" || all[4].uid != -1 || all[4].ours() {
		t.Errorf("got %+v", all[4])
	}
}

func TestTheVisibleMountIsLast(t *testing.T) {
	all := parseMounts(table)
	for range 2 {
		at := stack(all, "/home/u/scv")
		if len(at) != 2 || at[1].device != 45 {
			t.Errorf("stacked as %+v", at)
		}
		all[2], all[3] = all[3], all[2] // whatever the table's order
	}
	if at := stack(all, "/home/u"); len(at) != 0 {
		t.Errorf("on a directory above: %+v", at)
	}
	loop := []mounted{{id: 1, parent: 2, point: "/x"}, {id: 2, parent: 1, point: "/x"}, {id: 3, parent: 3, point: "/x"}}
	if at := stack(loop, "/x"); len(at) != 3 {
		t.Errorf("of a loop: %+v", at)
	}
}

func TestTheRealTableCanBeRead(t *testing.T) {
	all, err := mounts()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(mountTable)
	if err != nil {
		t.Fatal(err)
	}
	// Others mount and unmount meanwhile, but never the root.
	if len(stack(all, "/")) == 0 && strings.Contains(string(text), " / / ") {
		t.Errorf("no root among %d mounts", len(all))
	}
}

// escape is what the kernel does to names in the table.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(" \t\n\\#", c) >= 0 {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestAnyNameComesBackUnescaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := "/" + rapid.StringMatching(`[ -~\t\n]{0,40}`).Draw(t, "name")
		line := "1 2 0:3 / " + escape(name) + " rw - fuse.scvfs " + escape(name) + " rw,user_id=5"
		got := parseMounts(line + "\n")
		want := mounted{1, 2, 3, name, "fuse.scvfs", name, 5}
		if len(got) != 1 || got[0] != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func FuzzParseMounts(f *testing.F) {
	f.Add(table)
	f.Add("1 1 0:1 / \\ rw - fuse.scvfs \\0 user_id=\n")
	f.Fuzz(func(t *testing.T, table string) {
		all := parseMounts(table)
		if len(all) > strings.Count(table, "\n")+1 {
			t.Errorf("%d mounts in %d lines", len(all), strings.Count(table, "\n")+1)
		}
		for _, m := range all {
			at := stack(all, m.point)
			if len(at) == 0 {
				t.Errorf("%+v is not on its own mount point", m)
			}
		}
	})
}
