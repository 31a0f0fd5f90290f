package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"scvfs/ledger/fault"
)

// Layout is where the program's files lie.
type Layout struct {
	State   string // the ledger, jobs and runs
	Config  string // the configuration file
	Runtime string // sockets
}

// NewLayout returns the layout that the XDG variables of the environment give.
// getenv is os.Getenv. Errors tell which variable is missing.
func NewLayout(getenv func(string) string) (Layout, error) {
	home := getenv("HOME")
	state, err := xdg(getenv, "XDG_STATE_HOME", home, ".local/state")
	if err != nil {
		return Layout{}, err
	}
	conf, err := xdg(getenv, "XDG_CONFIG_HOME", home, ".config")
	if err != nil {
		return Layout{}, err
	}
	l := Layout{State: filepath.Join(state, "scvfs"), Config: filepath.Join(conf, "scvfs", "config.toml")}
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && own(dir) {
		l.Runtime = filepath.Join(dir, "scvfs")
	} else {
		l.Runtime = filepath.Join(l.State, "run")
	}
	return l, nil
}

// own tells whether dir is a directory of this user: the variable can outlive
// the login that made the directory, or come along into another user's shell.
func own(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// xdg is a base directory: the variable when it is absolute, as its
// specification asks, else a place below the home.
func xdg(getenv func(string) string, variable, home, rest string) (string, error) {
	if dir := getenv(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if !filepath.IsAbs(home) {
		return "", fault.New(fault.Invalid, "neither %s nor HOME is set to an absolute path: set one, or name the directories by flags", variable)
	}
	return filepath.Join(home, rest), nil
}

// Expand replaces a leading ~ by the home directory.
func Expand(path, home string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' {
		return path, nil
	}
	if !filepath.IsAbs(home) {
		return "", fault.New(fault.Invalid, "%s cannot be resolved: HOME is not set to an absolute path", path)
	}
	return filepath.Join(home, rest), nil
}

// EnsureDir makes a directory that only this user can look into, with those
// above it. One that is there already must be that: no symbolic link, this
// user's own, closed to others; it is not changed.
func EnsureDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.Invalid, "%s cannot be made: %w", path, err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Invalid, "%s cannot be made: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fault.New(fault.Invalid, "%s cannot be used: %w", path, err)
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault.New(fault.Invalid, "%s is a symbolic link: name the directory itself", path)
	case !info.IsDir():
		return fault.New(fault.Invalid, "%s is no directory", path)
	case stat != nil && int(stat.Uid) != os.Getuid():
		return fault.New(fault.Invalid, "%s belongs to another user: name a directory of your own", path)
	case info.Mode().Perm()&0o077 != 0:
		return fault.New(fault.Invalid, "%s can be looked into by others, and it holds prompts and results: chmod 700 it", path)
	}
	return nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
