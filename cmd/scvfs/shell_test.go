package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell plays the commands of testdata/rules over a 9P client, without a mount.
// It knows lists, pipes, groups, redirections and the commands below; paths
// below the mount point are the client's, all others the machine's. A command
// that it does not know runs as a program, with copies of the tree's files.
// What it cannot play fails the test, so that nothing is left out by accident.
type shell struct {
	t    *testing.T
	w    *world
	peer peer
	vars map[string]string
}

// cannot is the panic of what the shell cannot play.
type cannot string

// streams are what a command reads and writes, by number.
type streams map[int]io.ReadWriter

type nowhere struct{}

func (nowhere) Read([]byte) (int, error)    { return 0, io.EOF }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func newShell(t *testing.T, w *world, p peer) *shell {
	return &shell{t: t, w: w, peer: p, vars: map[string]string{
		"M": w.mount, "MOUNT": w.mount, "S": w.mount + "/sessions/shop", "J": w.mount + "/sessions/shop/jobs", "PWD": w.place,
	}}
}

// play runs one command line and returns what it prints, as world.typed does.
func (s *shell) play(line string) (out string) {
	defer func() {
		if why := recover(); why != nil {
			if c, ok := why.(cannot); ok {
				out = "cannot: " + string(c) + "\n"
				return
			}
			panic(why)
		}
	}()
	var b bytes.Buffer
	fds := streams{0: nowhere{}, 1: &b, 2: &b}
	opened := map[int]io.Closer{}
	p := &parser{s: s, rest: line}
	status := s.list(p.list(""), fds, opened)
	for _, f := range opened {
		f.Close()
	}
	out = plain(s.w, b.String())
	if status != 0 {
		out += fmt.Sprintf("=> %d\n", status)
	}
	return out
}

// The parts of a command line.
type (
	item struct { // one of a list; op is ";", "&&" or "||", which comes before it
		op   string
		pipe []phrase
	}
	phrase struct {
		words  []string
		group  []item // of ( ) or { }
		redirs []redir
	}
	redir struct {
		fd     int
		op, to string
	}
)

type parser struct {
	s    *shell
	rest string
}

func (p *parser) blank() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *parser) take(s string) bool {
	p.blank()
	if strings.HasPrefix(p.rest, s) {
		p.rest = p.rest[len(s):]
		return true
	}
	return false
}

func (p *parser) list(end string) (all []item) {
	op := ";"
	for {
		p.blank()
		if end != "" && p.take(end) || p.rest == "" {
			return all
		}
		it := item{op: op, pipe: []phrase{p.phrase()}}
		for !strings.HasPrefix(strings.TrimLeft(p.rest, " \t"), "||") && p.take("|") {
			it.pipe = append(it.pipe, p.phrase())
		}
		all = append(all, it)
		switch {
		case p.take("&&"):
			op = "&&"
		case p.take("||"):
			op = "||"
		case p.take(";"), p.take("\n"):
			op = ";"
		case p.take("&"):
			panic(cannot("&"))
		}
	}
}

func (p *parser) phrase() (c phrase) {
	switch {
	case p.take("("):
		c.group = p.list(")")
	case p.take("{ "):
		c.group = p.list("}")
	}
	for {
		p.blank()
		if p.rest == "" || strings.ContainsRune(";|&)\n", rune(p.rest[0])) {
			return c
		}
		if r, ok := p.redir(); ok {
			c.redirs = append(c.redirs, r)
			continue
		}
		c.words = append(c.words, p.word())
	}
}

// redir takes a redirection, if one comes.
func (p *parser) redir() (redir, bool) {
	fd, rest := -1, p.rest
	if rest[0] >= '0' && rest[0] <= '9' && len(rest) > 1 && (rest[1] == '<' || rest[1] == '>') {
		fd, rest = int(rest[0]-'0'), rest[1:]
	}
	for _, op := range []string{"<>", ">>", ">&", "<&", ">", "<"} {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		if fd < 0 {
			fd = map[byte]int{'<': 0, '>': 1}[op[0]]
		}
		p.rest = rest[len(op):]
		p.blank()
		return redir{fd, op, p.word()}, true
	}
	return redir{}, false
}

// word takes one word and expands it.
func (p *parser) word() string {
	var b strings.Builder
	quote := byte(0)
	for p.rest != "" {
		c := p.rest[0]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '$' && c != '\\':
			b.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && len(p.rest) > 1:
			if quote == '"' && !strings.ContainsRune(`"\$`, rune(p.rest[1])) {
				b.WriteByte(c)
			}
			p.rest = p.rest[1:]
			b.WriteByte(p.rest[0])
		case c == '$':
			b.WriteString(p.variable())
			continue
		case strings.ContainsRune(" \t\n;|&()<>", rune(c)):
			return b.String()
		default:
			b.WriteByte(c)
		}
		p.rest = p.rest[1:]
	}
	return b.String()
}

func (p *parser) variable() string {
	end := 1
	for end < len(p.rest) && (p.rest[end] >= 'A' && p.rest[end] <= 'Z') {
		end++
	}
	value, ok := p.s.vars[p.rest[1:end]]
	if !ok {
		panic(cannot("$" + p.rest[1:end]))
	}
	p.rest = p.rest[end:]
	return value
}

func (s *shell) list(all []item, fds streams, opened map[int]io.Closer) (status int) {
	for _, it := range all {
		if it.op == "&&" && status != 0 || it.op == "||" && status == 0 {
			continue
		}
		in := fds[0]
		for i, c := range it.pipe {
			mine := streams{}
			for fd, f := range fds {
				mine[fd] = f
			}
			mine[0] = in
			var b bytes.Buffer
			if i < len(it.pipe)-1 {
				mine[1], in = &b, &b
			}
			status = s.run(c, mine, fds, opened)
		}
	}
	return status
}

// run runs one command. exec changes the streams of its list.
func (s *shell) run(c phrase, mine, list streams, opened map[int]io.Closer) int {
	var closes []io.Closer
	defer func() {
		for _, f := range closes {
			f.Close() // which is all that a shell does about it
		}
	}()
	for _, r := range c.redirs {
		f, err := s.redirect(r, mine)
		if err != nil {
			fmt.Fprintf(mine[2], "sh: %s\n", strings.ToLower(words(err)))
			return 1
		}
		if mine[r.fd] = f; len(c.words) > 0 && c.words[0] == "exec" {
			list[r.fd] = f
		}
		if closer, ok := f.(io.Closer); ok && r.op[len(r.op)-1] != '&' {
			if len(c.words) > 0 && c.words[0] == "exec" {
				opened[r.fd] = closer
			} else {
				closes = append(closes, closer)
			}
		}
	}
	switch {
	case c.group != nil:
		return s.list(c.group, mine, opened)
	case len(c.words) == 0:
		return 0
	}
	return s.command(c.words[0], c.words[1:], mine)
}

func (s *shell) redirect(r redir, mine streams) (io.ReadWriter, error) {
	if r.op == ">&" || r.op == "<&" {
		fd, err := strconv.Atoi(r.to)
		if err != nil || mine[fd] == nil {
			panic(cannot(r.op + r.to))
		}
		return mine[fd], nil
	}
	path, tree := s.tree(r.to)
	read, write := r.op[0] == '<', r.op != "<"
	if tree {
		f, err := s.peer.open(path, read, write)
		if err == syscall.ENOENT && r.op[0] == '>' {
			err = s.peer.create(path)
		}
		return f, err
	}
	flags := os.O_RDONLY
	switch r.op {
	case ">":
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	case ">>":
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	case "<>":
		flags = os.O_RDWR | os.O_CREATE
	}
	return os.OpenFile(s.local(r.to), flags, 0o600)
}

// tree returns the names of a path below the mount point.
func (s *shell) tree(path string) ([]string, bool) {
	rest, ok := strings.CutPrefix(path, s.w.mount+"/")
	if !ok {
		return nil, path == s.w.mount
	}
	return strings.Split(rest, "/"), true
}

func (s *shell) local(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.w.place, path)
}

// words are those of an errno, as the C library has them.
func words(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return errnoWords(no)
	}
	return err.Error()
}

// read returns a file, wherever it is.
func (s *shell) read(name string) ([]byte, error) {
	path, tree := s.tree(name)
	if !tree {
		return os.ReadFile(s.local(name))
	}
	f, err := s.peer.open(path, true, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// command runs a command and returns its status.
func (s *shell) command(name string, args []string, fds streams) int {
	switch name {
	case "exec", "true", ":":
		return 0
	case "echo":
		return s.say(fds, strings.Join(args, " ")+"\n")
	case "printf":
		return s.say(fds, printf(args))
	case "cat":
		return s.cat(args, fds)
	case "ls":
		return s.ls(args, fds)
	case "mkdir", "rmdir":
		if _, tree := s.tree(args[0]); tree {
			return s.directory(name, args, fds)
		}
	case "stat":
		return s.stat(args, fds)
	case "why":
		return max(s.command("tail", []string{"-n", "1", args[0]}, fds), s.command("errors", []string{"1"}, fds))
	case "errors":
		return s.errors(args[0], fds)
	case "ends":
		return s.cat([]string{s.vars["J"] + "/" + args[0] + "/wait", s.vars["J"] + "/" + args[0] + "/result"}, fds)
	case "until_is":
		return s.untilIs(args[0], args[1])
	}
	return s.program(name, args, fds)
}

// put writes all of p; what a write leaves comes again, as programs do it.
func put(f io.Writer, p []byte) error {
	for len(p) > 0 {
		n, err := f.Write(p)
		if err != nil && err != io.ErrShortWrite {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (s *shell) say(fds streams, text string) int {
	if err := put(fds[1], []byte(text)); err != nil {
		fmt.Fprintf(fds[2], "sh: %s\n", strings.ToLower(words(err)))
		return 1
	}
	return 0
}

// printf knows %s, octal escapes and the usual ones.
func printf(args []string) string {
	format := args[0]
	text := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\033`, "\x1b", `\0`, "\x00", `\\`, `\`).Replace(format)
	if !strings.Contains(text, "%") {
		return text
	}
	panic(cannot("printf " + format))
}

func (s *shell) cat(args []string, fds streams) (status int) {
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, arg := range args {
		var data []byte
		var err error
		if arg == "-" {
			data, err = io.ReadAll(fds[0])
		} else {
			data, err = s.read(arg)
		}
		if err != nil {
			fmt.Fprintf(fds[2], "cat: %s: %s\n", arg, words(err))
			status = 1
			continue
		}
		if err := put(fds[1], data); err != nil {
			fmt.Fprintf(fds[2], "cat: write error: %s\n", words(err))
			return 1
		}
	}
	return status
}

func (s *shell) ls(args []string, fds streams) int {
	for _, arg := range args {
		path, tree := s.tree(arg)
		if !tree {
			panic(cannot("ls " + arg))
		}
		names, err := s.peer.list(path)
		if err == syscall.ENOTDIR || err == nil && names == nil && len(path) > 0 && path[len(path)-1] == "errors" {
			names, err = []string{arg}, nil
		}
		if err != nil {
			fmt.Fprintf(fds[2], "ls: cannot access '%s': %s\n", arg, words(err))
			return 2
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintln(fds[1], name)
		}
	}
	return 0
}

func (s *shell) directory(name string, args []string, fds streams) (status int) {
	for _, arg := range args {
		path, _ := s.tree(arg)
		say, act := "cannot create directory", s.peer.mkdir
		if name == "rmdir" {
			say, act = "failed to remove", s.peer.rmdir
		}
		if err := act(path); err != nil {
			fmt.Fprintf(fds[2], "%s: %s '%s': %s\n", name, say, arg, words(err))
			status = 1
		}
	}
	return status
}

// stat is stat -c %s.
func (s *shell) stat(args []string, fds streams) int {
	path, tree := s.tree(args[len(args)-1])
	if len(args) != 3 || args[0] != "-c" || args[1] != "%s" || !tree {
		panic(cannot("stat"))
	}
	size, err := s.peer.size(path)
	if err != nil {
		fmt.Fprintf(fds[2], "stat: %s\n", words(err))
		return 1
	}
	fmt.Fprintln(fds[1], size)
	return 0
}

func (s *shell) errors(n string, fds streams) int {
	data, err := s.read(s.w.mount + "/errors")
	if err != nil {
		return 1
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	last, _ := strconv.Atoi(n)
	for _, line := range lines[max(0, len(lines)-last):] {
		if parts := strings.SplitN(line, " ", 3); len(parts) == 3 {
			fmt.Fprintln(fds[1], strings.TrimSuffix(parts[2], "\n"))
		}
	}
	return 0
}

func (s *shell) untilIs(path, want string) int {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if data, err := s.read(path); err == nil && strings.TrimRight(string(data), "\n") == want {
			return 0
		}
	}
	s.t.Fatalf("%s does not become %q", path, want)
	return 1
}

// program runs one that knows nothing of the tree: it gets copies.
func (s *shell) program(name string, args []string, fds streams) int {
	args = slices.Clone(args)
	for i, arg := range args {
		if _, tree := s.tree(arg); !tree || name == "ln" {
			continue
		}
		data, err := s.read(arg)
		if err != nil {
			fmt.Fprintf(fds[2], "%s: %s: %s\n", name, arg, words(err))
			return 1
		}
		args[i] = filepath.Join(s.t.TempDir(), filepath.Base(arg))
		if err := os.WriteFile(args[i], data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		panic(cannot(name))
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.w.place
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = fds[0], &out, fds[2]
	err = cmd.Run()
	if werr := put(fds[1], out.Bytes()); werr != nil {
		fmt.Fprintf(fds[2], "%s: write error: %s\n", name, words(werr))
		return 1
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		panic(cannot(name + ": " + err.Error()))
	}
	return 0
}
