package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// harmless are the settings of a repository that change how content is read
// and written, and that can start nothing. The shadow takes over these alone.
var harmless = regexp.MustCompile(`^(core\.(filemode|symlinks|ignorecase|autocrlf|eol|safecrlf|checkroundtripencoding|precomposeunicode|protecthfs|protectntfs|trustctime|checkstat|bigfilethreshold|sparsecheckout|sparsecheckoutcone)|extensions\.objectformat)$`)

// harmlessValue is the form of their values; another one is left out.
var harmlessValue = regexp.MustCompile(`^[A-Za-z0-9._,-]{0,100}$`)

// copied are the files of a repository's info directory that the shadow needs:
// patterns and attributes, which name drivers but define none.
var copied = []string{"exclude", "attributes"}

// sparseFile says which part of the tree is checked out.
const sparseFile = "sparse-checkout"

// makeShadow makes the git directory that the worktree is filled and looked at
// through, unless it is there.
func (r *record) makeShadow(ctx context.Context) error {
	if !missing(filepath.Join(r.shadow(), "config")) {
		return nil
	}
	conf, err := r.shadowConfig(ctx)
	if err != nil {
		return err
	}
	for _, dir := range []string{"objects", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(r.shadow(), dir), 0o700); err != nil {
			return fileError("make", r.shadow(), err)
		}
	}
	info := map[string]string{sparseFile: filepath.Join(string(r.GitDir), "info", sparseFile)}
	for _, name := range copied {
		info[name] = filepath.Join(string(r.CommonDir), "info", name)
	}
	for name, from := range info {
		b, err := readSmall(from)
		if err != nil {
			continue // none, or none that git would take
		}
		if err := os.WriteFile(filepath.Join(r.shadow(), "info", name), b, 0o600); err != nil {
			return fileError("write", r.shadow(), err)
		}
	}
	for _, f := range []struct{ name, text string }{{"HEAD", r.Base + "\n"}, {"config", conf}} { // config last: it says that all is there
		if err := os.WriteFile(filepath.Join(r.shadow(), f.name), []byte(f.text), 0o600); err != nil {
			return fileError("write", r.shadow(), err)
		}
	}
	return nil
}

// shadowConfig is the shadow's configuration.
func (r *record) shadowConfig(ctx context.Context) (string, error) {
	var out bytes.Buffer
	err := command{
		dir: string(r.CommonDir), out: &out, args: []string{"config", "--null", "--list"},
		env: []string{"GIT_DIR=" + string(r.GitDir), "GIT_COMMON_DIR=" + string(r.CommonDir)},
	}.ok(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprint(&b, "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tlogallrefupdates = false\n")
	fmt.Fprintf(&b, "[lfs]\n\tstorage = %s\n", quoted(filepath.Join(string(r.CommonDir), "lfs")))
	for entry := range strings.SplitSeq(out.String(), "\x00") {
		key, value, set := strings.Cut(entry, "\n")
		section, name, _ := strings.Cut(key, ".")
		switch {
		case !harmless.MatchString(key):
		case !set:
			fmt.Fprintf(&b, "[%s]\n\t%s\n", section, name)
		case harmlessValue.MatchString(value):
			fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, quoted(value))
		}
	}
	return b.String(), nil
}

// quoted is a value as a configuration file holds it.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value) + `"`
}

// view is a work tree as it is seen through the shadow.
type view struct {
	r       *record
	tree    string // the work tree: the worktree's, or a submodule's in it
	objects string // the objects it is made of
	index   string // a copy of its index
}

// command is a git command on a view; it reads no configuration but the
// shadow's and the user's own.
func (v *view) command(args ...string) command {
	return command{dir: v.tree, args: args, limit: longLimit, env: []string{
		"GIT_DIR=" + v.r.shadow(), "GIT_WORK_TREE=" + v.tree, "GIT_INDEX_FILE=" + v.index, "GIT_OBJECT_DIRECTORY=" + v.objects,
	}}
}

// checkout fills the work tree and the index from the base commit.
func (r *record) checkout(ctx context.Context, held *lock) error {
	v := &view{r: r, tree: r.path(), objects: filepath.Join(string(r.CommonDir), "objects"), index: filepath.Join(string(r.GitDir), "index")}
	c := v.command("read-tree", "--reset", "-u", "--no-recurse-submodules", r.Base)
	c.held = []*lock{held}
	err := c.ok(ctx)
	if err != nil && strings.Contains(err.Error(), "smudge filter lfs failed") {
		c.env = append(c.env, "GIT_LFS_SKIP_SMUDGE=1")
		if err = c.ok(ctx); err == nil {
			r.Notes = append(r.Notes, "git-lfs has not all objects of the commit at hand, so its files are pointers: run git lfs pull in the worktree")
		}
	}
	return err
}

// open returns a view of a work tree with a copy of its index, and what takes
// the copy away. With no index, it is that of the commit.
func (r *record) open(ctx context.Context, tree, gitDir, objects, commit string) (*view, func(), error) {
	if err := r.makeShadow(ctx); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(r.shadow(), viewPrefix)
	if err != nil {
		return nil, nil, fileError("write", r.shadow(), err)
	}
	drop := func() { _ = os.RemoveAll(dir) }
	v := &view{r: r, tree: tree, objects: objects, index: filepath.Join(dir, "index")}
	err = copyIndex(filepath.Join(gitDir, "index"), v.index)
	if errors.Is(err, fs.ErrNotExist) {
		err = v.command("read-tree", commit).ok(ctx)
	}
	if err == nil {
		err = r.copyShared(gitDir)
	}
	if err != nil {
		drop()
		return nil, nil, fileError("copy the index of", tree, err)
	}
	return v, drop, nil
}

// viewPrefix begins the names of the directories that hold copied indexes.
const viewPrefix = "view-"

// maxIndex bounds a copied index, in bytes.
const maxIndex = 1 << 30

// copyIndex copies an index with its time of change: by that git knows which
// files may have changed after it was written without showing it.
func copyIndex(from, to string) error {
	src, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxIndex:
		return fault.New(fault.Denied, "%s is no index that git wrote", from)
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// copyShared copies the parts that a split index leaves to other files. They
// never change under their names.
func (r *record) copyShared(gitDir string) error {
	entries, err := os.ReadDir(gitDir)
	if err != nil {
		return nil // no git directory, no parts
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "sharedindex.") {
			continue
		}
		if err := copyIndex(filepath.Join(gitDir, e.Name()), filepath.Join(r.shadow(), e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
