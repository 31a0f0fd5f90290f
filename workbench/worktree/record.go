package worktree

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// The suffixes of what lies beside a worktree.
const (
	recordSuffix = ".json"
	lockSuffix   = ".lock"
	shadowSuffix = ".git"
	newSuffix    = ".json.new" // a record that is being written
)

// maxRecord bounds a record and the small files of git's that are read.
const maxRecord = 256 << 10

// place is where a worktree lies: the directory of its repository, and its
// name. Where a worktree is follows from where its record is, never from what
// the record says.
type place struct{ dir, name string }

func (p place) path() string   { return filepath.Join(p.dir, p.name) }
func (p place) record() string { return p.path() + recordSuffix }
func (p place) lock() string   { return p.path() + lockSuffix }
func (p place) shadow() string { return p.path() + shadowSuffix }
func (p place) branch() string { return branchPrefix + p.name }
func (p place) ref() string    { return "refs/heads/" + p.branch() }

// record is what is known of a worktree, on disk.
type record struct {
	place `json:"-"`

	V          int       `json:"v"`
	State      State     `json:"state"`
	Origin     path      `json:"origin"`
	Toplevel   path      `json:"toplevel"`
	CommonDir  path      `json:"common_dir"`
	GitDir     path      `json:"git_dir,omitempty"`
	Base       string    `json:"base"`
	Branch     string    `json:"branch"` // for people; the name gives it
	Created    time.Time `json:"created"`
	Notes      []string  `json:"notes,omitempty"`
	Submodules []string  `json:"submodules,omitempty"` // commits that its submodules were filled with
}

// version is that of the record's form.
const version = 1

// path is an absolute path in JSON: as it is, or in base64 when it is not
// UTF-8, which JSON could not hold.
type path string

const base64Mark = "base64:"

// MarshalText implements encoding.TextMarshaler.
func (p path) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return []byte(p), nil
	}
	return []byte(base64Mark + base64.StdEncoding.EncodeToString([]byte(p))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *path) UnmarshalText(b []byte) error {
	s := string(b)
	if coded, ok := strings.CutPrefix(s, base64Mark); ok {
		raw, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return err
		}
		s = string(raw)
	}
	if s != "" && !filepath.IsAbs(s) {
		return errors.New("a path is not absolute")
	}
	*p = path(s)
	return nil
}

// readRecord reads the record of a place; fault.NotFound when there is none.
func readRecord(at place) (*record, error) {
	b, err := readSmall(at.record())
	if err != nil {
		return nil, fileError("read", at.record(), err)
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fault.New(fault.Internal, "%s is no record of a worktree: %w", at.record(), err)
	}
	r.place = at
	ok := r.V == version && (r.State == Making || r.State == Ready || r.State == Removing)
	if !ok || r.Toplevel == "" || r.CommonDir == "" || !isObject(r.Base) || r.Branch != at.branch() {
		return nil, fault.New(fault.Internal, "%s is no record that this version knows: look at %s yourself", at.record(), at.path())
	}
	return r, nil
}

// isObject tells whether s is the full name of a git object.
func isObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// write makes or replaces the record in one durable step. The worktree's lock
// is held, so nobody else writes the same scratch file.
func (r *record) write() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "record of worktree %s: %w", r.name, err)
	}
	scratch := r.path() + newSuffix
	err = writeDurable(scratch, append(b, '\n'))
	if err == nil {
		err = os.Rename(scratch, r.record())
	}
	if err == nil {
		err = syncDir(r.dir)
	}
	if err != nil {
		_ = os.Remove(scratch)
		return fileError("write", r.record(), err)
	}
	return nil
}

func writeDurable(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readSmall reads a small regular file, and follows no link to it.
func readSmall(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(b) > maxRecord {
		err = errors.New("too long")
	}
	return b, err
}

// worktree describes a record to the callers.
func (r *record) worktree() Worktree {
	wt := Worktree{
		Name: r.name, Path: r.path(), CWD: r.cwd(), Branch: r.branch(), Base: r.Base, Origin: string(r.Origin),
		Toplevel: string(r.Toplevel), CommonDir: string(r.CommonDir), GitDir: string(r.GitDir),
		State: r.State, Created: r.Created, Notes: r.Notes, Orphan: r.orphan(),
	}
	return wt
}

// cwd is the directory of the worktree that matches the one it was asked for.
func (r *record) cwd() string {
	rel, err := filepath.Rel(string(r.Toplevel), string(r.Origin))
	if err != nil || !filepath.IsLocal(rel) {
		return r.path()
	}
	return filepath.Join(r.path(), rel)
}

// orphan tells whether the origin repository is gone.
func (r *record) orphan() bool { return missing(filepath.Join(string(r.CommonDir), "objects")) }

// missing tells whether a path names nothing.
func missing(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// fileError puts a failed file operation into a sentence.
func fileError(verb, name string, err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return err
	}
	var perr *fs.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, "there is no %s", name)
	case errors.Is(err, fs.ErrExist):
		return fault.New(fault.Exists, "%s exists already", name)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.New(fault.NoSpace, "cannot %s %s: the disk is full; free some space", verb, name)
	}
	return fault.New(fault.Internal, "cannot %s %s: %w", verb, name, err)
}

// firstLine is a file's only line.
func firstLine(b []byte) string { return string(bytes.TrimRight(b, "\r\n")) }
