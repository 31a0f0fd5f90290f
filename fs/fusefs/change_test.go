package fusefs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMkdirAndRmdirWhereTheyAreOffered(t *testing.T) {
	shop := workshop{newFolder()}
	shop.add("busy", newFolder())
	s := mountTree(t, workshop{newFolder().add("shop", shop)}, Options{})
	sh(t, s, `mkdir $M/shop/one && ls $M/shop && ls -a $M/shop/one`).want(t, "busy\none\n.\n..\n")
	sh(t, s, `mkdir -p $M/shop/one $M/shop/two`).want(t, "")
	sh(t, s, `mkdir $M/shop/one`).wantRefused(t, "File exists")
	sh(t, s, `mkdir "$M/shop/B A"`).wantRefused(t, "Invalid argument")
	sh(t, s, `rmdir $M/shop/one && ls $M/shop`).want(t, "busy\ntwo\n")
	sh(t, s, `stat $M/shop/one`).wantRefused(t, "No such file")
	sh(t, s, `mkdir $M/shop/one && rmdir $M/shop/two && ls $M/shop`).want(t, "busy\none\n")
	sh(t, s, `rmdir $M/shop/busy`).wantRefused(t, "Device or resource busy")
	sh(t, s, `rmdir $M/shop/nothing`).wantRefused(t, "No such file")
	sh(t, s, `ls $M/shop/busy; ls $M/shop`).want(t, "busy\none\n")
}

// Everything else that changes names or attributes fails, and the tree is as
// before, also where directories can be made.
func TestNothingElseChangesTheTree(t *testing.T) {
	ctl := &control{ino: newIno()}
	shop := workshop{newFolder()}
	shop.add("ctl", ctl).add("text", newText("content\n")).add("sub", newFolder()).add("link", link{newIno(), "text"})
	s := mountTree(t, workshop{newFolder().add("shop", shop).add("plain", newFolder().add("f", newText("f")).add("d", newFolder()))}, Options{})
	const look = `cd $M && ls -aRiF --file-type . && cat shop/text plain/f && stat -c '%n %a %u %g %Y %s' . shop shop/* plain plain/*`
	before := sh(t, s, look)
	before.want(t, before.stdout)
	t.Setenv("TMPDIR", t.TempDir())
	// In a directory without the mode for it the kernel refuses all but root
	// by itself, in other words.
	for _, c := range []struct{ script, why string }{
		{`echo x >$TMPDIR/x && mv $TMPDIR/x $M/shop/ctl`, "Operation not permitted"},
		{`mv $M/shop/text $M/shop/renamed`, "Operation not permitted"},
		{`mv $M/shop/text $M/shop/ctl`, "Operation not permitted"},
		{`mv $M/shop/sub $M/plain/`, "ermi"},
		{`rm -f $M/shop/text`, "Operation not permitted"},
		{`rm -f $M/shop/link`, "Operation not permitted"},
		{`rm -rf $M/plain`, "ermi"},
		{`rmdir $M/plain/d`, "ermi"},
		{`mkdir $M/plain/new`, "ermi"},
		{`echo x >$M/shop/new`, "Operation not permitted"},
		{`touch $M/shop/new`, "Operation not permitted"},
		{`ln $M/shop/text $M/shop/hard`, "Operation not permitted"},
		{`ln -s text $M/shop/soft`, "Operation not permitted"},
		{`mkfifo $M/shop/fifo`, "Operation not permitted"},
		{`sed -i s/a/b/ $M/shop/text`, "Operation not permitted"},
		{`sed -i s/a/b/ $M/shop/ctl`, "Operation not permitted"},
		{`chmod 777 $M/shop/text`, "Operation not permitted"},
		{`chmod 600 $M/shop`, "Operation not permitted"},
		{`chown 12345 $M/shop/ctl`, "Operation not permitted"},
		{`chgrp 12345 $M/shop/ctl`, "Operation not permitted"},
		{`touch $M/shop`, "Operation not permitted"},
		{`touch -h $M/shop/link`, "Operation not permitted"},
		{`install -m 600 /dev/null $M/shop/ctl`, "Operation not permitted"},
	} {
		sh(t, s, c.script).wantRefused(t, c.why)
	}
	sh(t, s, `chmod 600 $M/shop/ctl; chmod 700 $M/shop; touch $M/shop/ctl; truncate -s 99 $M/shop/ctl; chown $(id -u) $M/shop/ctl`).want(t, "")
	after := sh(t, s, look)
	after.want(t, before.stdout)
	if done := ctl.lines(); len(done) > 0 {
		t.Errorf("the control file did %q", done)
	}
	if got := shop.names(); !slices.Equal(got, []string{"ctl", "text", "sub", "link"}) {
		t.Errorf("the tree holds %q", got)
	}
}

func TestProgramsThatLookForAttributesAreQuiet(t *testing.T) {
	root := newFolder().add("f", newText("content\n")).add("ctl", &control{ino: newIno()})
	s := mountTree(t, root, Options{})
	out := t.TempDir()
	t.Setenv("OUT", out)
	sh(t, s, `cp -a $M $OUT/copy && cat $OUT/copy/f && chmod -R u+w $OUT/copy`).want(t, "content\n")
	sh(t, s, `ls -l $M >/dev/null; ls -lZ $M >/dev/null`).want(t, "")
	sh(t, s, `mv --version >/dev/null; cp --preserve=all $M/f $OUT/g && cat $OUT/g`).want(t, "content\n")
	t.Run("rsync", func(t *testing.T) {
		need(t, "rsync")
		sh(t, s, `rsync -aXA $M/ $OUT/rsynced/ && cat $OUT/rsynced/f && chmod -R u+w $OUT/rsynced`).want(t, "content\n")
	})
	t.Run("setfattr", func(t *testing.T) {
		need(t, "setfattr")
		sh(t, s, `setfattr -n user.x -v y $M/ctl`).wantRefused(t, "not supported")
	})
	t.Run("python", func(t *testing.T) {
		need(t, "python3")
		client(t, s, "python3", "-c", `
import os
f = os.environ["M"] + "/ctl"
for what in (lambda: os.getxattr(f, "user.x"), lambda: os.listxattr(f), lambda: os.setxattr(f, "user.x", b"y"), lambda: os.removexattr(f, "user.x")):
    try: print(what())
    except OSError as e: print(e.strerror)
`).want(t, strings.Repeat("Operation not supported\n", 4))
	})
}

func TestFsyncSucceeds(t *testing.T) {
	need(t, "python3")
	s := mountTree(t, newFolder().add("ctl", &control{ino: newIno()}), Options{})
	client(t, s, "python3", "-c", `
import os
fd = os.open(os.environ["M"] + "/ctl", os.O_WRONLY)
os.write(fd, b"x\n"); os.fsync(fd); os.fdatasync(fd); os.close(fd)
d = os.open(os.environ["M"], os.O_RDONLY)
os.fsync(d)
`).want(t, "")
}

func TestModesAreChecked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can ask as somebody else")
	}
	need(t, "setpriv")
	s := mountTree(t, newFolder().add("f", newText("mine")), Options{})
	if err := os.Chmod(filepath.Dir(s.Dir()), 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(script string) outcome {
		return client(t, s, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script)
	}
	as(`cat $M/f`).wantRefused(t, "Permission denied")
	as(`ls $M`).wantRefused(t, "Permission denied")
	sh(t, s, `cat $M/f`).want(t, "mine")
}
