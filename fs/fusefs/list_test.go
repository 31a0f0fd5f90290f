package fusefs

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

func bigFolder(n int) *folder {
	d := newFolder()
	for i := range n {
		d.add(fmt.Sprintf("name-%06d", i), newText("x"))
	}
	return d
}

func TestAListingIsCompleteAndInOrder(t *testing.T) {
	const n = 20_000
	s := mountTree(t, newFolder().add("many", bigFolder(n)).add("some", bigFolder(2000)), Options{})
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "name-%06d\n", i)
	}
	sh(t, s, `ls -U $M/many`).want(t, want.String())
	sh(t, s, `ls -aU $M/many | head -n 3`).want(t, ".\n..\nname-000000\n")
	sh(t, s, `ls $M/many | sort -u | wc -l; ls -l $M/some | tail -n +2 | wc -l`).want(t, "20000\n2000\n")
}

// counted counts how often it is listed.
type counted struct {
	*folder
	lists atomic.Int32
}

func (c *counted) List(ctx context.Context) ([]fs.Entry, error) {
	c.lists.Add(1)
	return c.folder.List(ctx)
}

// A listing takes many requests. Were each to ask the tree again, the time
// would grow with the square of the length.
func TestALongListingAsksTheTreeOnce(t *testing.T) {
	many := &counted{folder: bigFolder(100_000)}
	s := mountTree(t, newFolder().add("many", many), Options{})
	sh(t, s, `ls -U $M/many | wc -l`).want(t, "100000\n")
	if n := many.lists.Load(); n != 1 {
		t.Errorf("it was listed %d times", n)
	}
}

func TestSeekingInADirectory(t *testing.T) {
	need(t, "perl")
	root := newFolder().add("many", bigFolder(3000))
	s := mountTree(t, root, Options{})
	client(t, s, "perl", "-e", `
opendir(my $d, "$ENV{M}/many") or die;
my (@names, @at);
while (1) { push @at, telldir($d); my $n = readdir($d); last unless defined $n; push @names, $n }
for my $i (2999, 1500, 3, 2, 0, 1, 700) {
    seekdir($d, $at[$i]);
    my $n = readdir($d);
    die "at $i: $n, not $names[$i]" unless $n eq $names[$i];
}
print scalar(@names), "\n";
`).want(t, "3002\n")
}

func TestRewindingShowsWhatIsThereNow(t *testing.T) {
	need(t, "perl")
	dir := newFolder().add("one", newText("x"))
	s := mountTree(t, newFolder().add("d", dir), Options{})
	b := start(t, s, "perl", "-e", `
$| = 1;
opendir(my $d, "$ENV{M}/d") or die;
print "first: @{[grep !/^\./, readdir $d]};\n";
<STDIN>;
rewinddir $d;
print "second: @{[grep !/^\./, readdir $d]};\n";
`)
	b.says("first: one;")
	dir.add("two", newText("y"))
	fmt.Fprintln(b.stdin, "go on")
	b.says("second: one two;")
	b.wait()
}

// fickle changes between any two reads of a listing.
type fickle struct {
	*folder
	calls int
}

func (f *fickle) List(context.Context) ([]fs.Entry, error) {
	f.calls++
	var all []fs.Entry
	for i := range 5000 {
		all = append(all, fs.Entry{Name: fmt.Sprintf("call%d-%d", f.calls, i), Ino: newIno(), Type: fs.Regular})
	}
	return all, nil
}

func TestOneListingShowsOneState(t *testing.T) {
	s := mountTree(t, newFolder().add("d", &fickle{folder: newFolder()}), Options{})
	sh(t, s, `ls -U $M/d | cut -d- -f1 | sort | uniq -c | tr -d ' '`).want(t, "5000call1\n")
}

type listing struct {
	*folder
	entries []fs.Entry
	err     error
}

func (l listing) List(context.Context) ([]fs.Entry, error) { return l.entries, l.err }

func TestABadNameDoesNotSpoilAListing(t *testing.T) {
	entries := []fs.Entry{{Name: "good", Ino: newIno()}}
	for _, name := range []string{"", ".", "..", "a/b", "/", "nul\x00", strings.Repeat("n", 256)} {
		entries = append(entries, fs.Entry{Name: name, Ino: newIno()})
	}
	entries = append(entries, fs.Entry{Name: "also good", Ino: newIno()})
	s := mountTree(t, newFolder().add("d", listing{newFolder(), entries, nil}), Options{})
	sh(t, s, `ls -aU $M/d`).want(t, ".\n..\ngood\nalso good\n")
}

func TestAListingThatFailsSaysWhy(t *testing.T) {
	s := mountTree(t, newFolder().add("d", listing{newFolder(), nil, fault.New(fault.Timeout, "too slow")}), Options{})
	sh(t, s, `ls $M/d`).wantRefused(t, "Connection timed out")
}

func TestHiddenNamesAreFoundButNotListed(t *testing.T) {
	s := mountTree(t, newFolder().hide("secret", newText("found\n")).add("shown", newText("x")), Options{})
	sh(t, s, `ls $M; cat $M/secret`).want(t, "shown\nfound\n")
}
