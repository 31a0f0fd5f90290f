package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fillSubmodules fetches and checks out the submodules that the commit names.
// What cannot be filled is a note. The processes that this starts are not
// bound to the repository's lock, because they wait for a network.
func (r *record) fillSubmodules(ctx context.Context, m *Manager, held *lock) error {
	if info, err := os.Lstat(filepath.Join(r.path(), ".gitmodules")); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	env, err := networkEnv(ctx)
	if err != nil {
		return err
	}
	c := command{dir: r.path(), env: env, held: []*lock{held}}
	err = r.initSubmodules(ctx, m, c)
	if err == nil {
		c.limit = longLimit
		c.args = []string{"submodule", "--quiet", "update", "--init", "--recursive", "--checkout"}
		err = c.ok(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.Notes = append(r.Notes, "not every submodule could be filled: "+err.Error())
	}
	return r.noteSubmodules(ctx)
}

// initSubmodules lists the submodules in the repository's configuration, which
// other worktrees write to as well.
func (r *record) initSubmodules(ctx context.Context, m *Manager, c command) error {
	repo, err := m.lockRepository(ctx, string(r.CommonDir))
	if err != nil {
		return err
	}
	defer repo.release()
	c.args = []string{"submodule", "--quiet", "init"}
	c.held = append(c.held, repo)
	return c.ok(ctx)
}

// networkEnv lets git fetch, by the means that the user's own and the
// machine's configuration name and by no others: the repository's could name
// programs. Local repositories are fetched from only where the user's own
// configuration always allows that, as git itself would have it.
func networkEnv(ctx context.Context) ([]string, error) {
	var out bytes.Buffer
	err := command{dir: "/", out: &out, env: []string{"GIT_DIR=/dev/null"}, args: []string{"config", "--null", "--show-scope", "--list"}}.ok(ctx)
	if err != nil {
		return nil, err
	}
	protocols, ssh := "https:http:ssh:git", "ssh"
	pairs := [][2]string{{"credential.helper", ""}}
	fields := strings.Split(out.String(), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		switch {
		case fields[i] != "global" && fields[i] != "system":
		case strings.HasPrefix(key, "credential."):
			pairs = append(pairs, [2]string{key, value})
		case key == "core.sshcommand":
			ssh = value
		case key == "protocol.file.allow" && value == "always":
			protocols += ":file"
		}
	}
	if own := os.Getenv("GIT_SSH_COMMAND"); own != "" {
		ssh = own
	}
	env := []string{
		"GIT_ALLOW_PROTOCOL=" + protocols, "GIT_SSH_COMMAND=" + ssh, "GIT_PROTOCOL_FROM_USER=0",
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(pairs)),
	}
	for i, p := range pairs {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+p[0], "GIT_CONFIG_VALUE_"+n+"="+p[1])
	}
	for _, name := range []string{"SSH_AUTH_SOCK", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env, nil
}

// submodule is one that is filled.
type submodule struct {
	name   string // its path in the work tree around it
	tree   string
	gitDir string
}

// noteSubmodules records the commits that the submodules were filled with:
// they came from outside, even when no branch of their remote has them.
func (r *record) noteSubmodules(ctx context.Context) error {
	v, _, drop, err := r.view(ctx)
	if err != nil {
		return err
	}
	defer drop()
	_, err = v.walk(ctx, func(s submodule, head string, _ *view) ([]string, error) {
		r.Submodules = append(r.Submodules, head)
		return nil, nil
	})
	return err
}

// submodules names what the submodules in a view hold that would be lost with
// them: changes, and commits that no remote has.
func (v *view) submodules(ctx context.Context) ([]string, error) {
	return v.walk(ctx, func(s submodule, head string, inner *view) ([]string, error) {
		found, err := inner.changes(ctx, head)
		if err == nil && len(found) == 0 {
			found, err = v.r.unpushed(ctx, s)
		}
		for i := range found {
			found[i] = filepath.Join(s.name, found[i])
		}
		return found, err
	})
}

// walk visits every filled submodule below a view, outer ones first, until a
// visit finds something. What stands in a submodule's place and is none counts
// as found.
func (v *view) walk(ctx context.Context, visit func(submodule, string, *view) ([]string, error)) ([]string, error) {
	links, err := v.gitlinks(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range links {
		s, odd := v.submodule(name)
		if odd != "" {
			return []string{odd}, nil
		}
		if s.gitDir == "" {
			continue
		}
		found, err := v.visit(ctx, s, visit)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// visit opens one submodule for a visit, and goes on into it.
func (v *view) visit(ctx context.Context, s submodule, visit func(submodule, string, *view) ([]string, error)) ([]string, error) {
	head, err := v.r.commit(ctx, "HEAD", "GIT_DIR="+s.gitDir)
	if err != nil {
		return nil, err
	}
	if head == "" {
		return []string{s.name + " (a submodule without a commit)"}, nil
	}
	inner, drop, err := v.r.open(ctx, s.tree, s.gitDir, filepath.Join(s.gitDir, "objects"), head)
	if err != nil {
		return nil, err
	}
	defer drop()
	found, err := visit(s, head, inner)
	if err == nil && len(found) == 0 {
		found, err = inner.walk(ctx, visit)
	}
	return found, err
}

// submodule looks at the place of one: filled (with a git directory), empty
// (without), or odd, in words.
func (v *view) submodule(name string) (s submodule, odd string) {
	s = submodule{name: name, tree: filepath.Join(v.tree, name)}
	if real, err := filepath.EvalSymlinks(s.tree); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && real != s.tree {
		return s, name + " (not the directory of a submodule)"
	}
	entries, err := os.ReadDir(s.tree)
	if err != nil && !missing(s.tree) {
		return s, name + " (not the directory of a submodule)"
	}
	if len(entries) == 0 {
		return s, ""
	}
	b, err := readSmall(filepath.Join(s.tree, ".git"))
	target, ok := strings.CutPrefix(firstLine(b), gitFileMark)
	if err != nil || !ok {
		return s, name + " (files in the place of a submodule)"
	}
	dir, err := filepath.EvalSymlinks(from(s.tree, target))
	if err != nil || !strings.HasPrefix(dir, filepath.Join(string(v.r.GitDir), "modules")+"/") {
		return s, name + " (another repository in the place of a submodule)"
	}
	s.gitDir = dir
	return s, ""
}

// unpushed names a submodule that holds commits which no remote has and which
// it was not filled with: its git directory goes with the worktree.
func (r *record) unpushed(ctx context.Context, s submodule) ([]string, error) {
	args := []string{"rev-list", "--max-count=1", "--ignore-missing", "--exclude=refs/tags/*", "--exclude=refs/remotes/*", "--all", "HEAD", "--not", "--remotes"}
	args = append(args, r.Submodules...)
	list := command{dir: s.tree, env: []string{"GIT_DIR=" + s.gitDir}, args: args, limit: longLimit}
	commit, err := list.line(ctx)
	if err != nil || commit == "" {
		return nil, err
	}
	return []string{"commit " + commit + " (not pushed)"}, nil
}
