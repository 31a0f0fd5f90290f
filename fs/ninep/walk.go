package ninep

import (
	"strings"
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

const (
	maxName   = 255 // bytes, as on disk
	maxTarget = 4096
	maxLinks  = 40 // that one name may lead through, as in Linux
)

// attach makes a fid the root. Who the client says it is does not matter.
func (r *request) attach() (answer, error) {
	root := r.s.c.srv.root
	r.made.put(root, nil)
	return say(&wire.Rattach{Qid: root.qid})
}

// walk goes along the names, as far as there are any. Only the whole way makes
// a fid.
func (r *request) walk(m *wire.Twalk) (answer, error) {
	from, o, err := r.fid.now()
	if err != nil {
		return answer{}, err
	}
	if r.made == nil && o != nil {
		return no(syscall.EBADF) // an open fid stays where it is
	}
	at, qids := from, make([]wire.Qid, 0, len(m.Names))
	for i, name := range m.Names {
		next, err := r.step(at, name)
		switch {
		case err != nil && (i == 0 || r.s.extended):
			return answer{}, err
		case err != nil:
			if r.made != nil {
				r.s.abort(r.made)
			}
			return say(&wire.Rwalk{Qids: qids})
		}
		at, qids = next, append(qids, next.qid)
	}
	a := answer{message: &wire.Rwalk{Qids: qids}}
	if r.made != nil {
		r.made.put(at, nil)
	} else {
		r.fid.put(at, nil)
		a.undo = func() { r.fid.put(from, nil) }
	}
	return a, nil
}

// step goes to one name of a directory.
func (r *request) step(at *place, name string) (*place, error) {
	links := 0
	return r.stepThrough(at, name, &links)
}

// stepThrough is step within the resolution of a symbolic link.
func (r *request) stepThrough(at *place, name string, links *int) (*place, error) {
	dir, ok := at.node.(fs.Dir)
	switch {
	case !ok:
		return nil, refused(syscall.ENOTDIR)
	case name == "..":
		return at.parent(), nil
	case len(name) > maxName:
		return nil, refused(syscall.ENAMETOOLONG)
	case !goodName(name):
		return nil, refused(syscall.EINVAL)
	}
	node, err := dir.Lookup(r.ctx, name)
	if err != nil {
		return nil, err
	}
	attr, err := node.Attr(r.ctx)
	if err != nil {
		return nil, err
	}
	if what := unfit(node, attr); what != "" {
		return nil, r.s.c.srv.broken("lookup "+name, "%s", what)
	}
	p := &place{node: node, qid: qidOf(attr), name: name, up: at}
	if attr.Type == fs.Symlink && r.s.dialect == wire.Plain {
		return r.follow(p, links)
	}
	return p, nil
}

// goodName tells whether a name can be one of a file.
func goodName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName && !strings.ContainsAny(name, "/\x00")
}

// unfit says what a transport cannot live with in a node; empty if nothing.
func unfit(node fs.Node, attr fs.Attr) string {
	fits := false
	switch attr.Type {
	case fs.Directory:
		_, fits = node.(fs.Dir)
	case fs.Regular:
		_, fits = node.(fs.File)
	case fs.Symlink:
		_, fits = node.(fs.Link)
	}
	switch {
	case attr.Ino == 0:
		return "it has no inode number"
	case !fits:
		return "its type does not fit what it can do"
	}
	return ""
}

// qidOf says what a node is. The version is 0: Linux then caches nothing.
func qidOf(attr fs.Attr) wire.Qid { return wire.Qid{Type: qidType(attr.Type), Path: attr.Ino} }

func qidType(t fs.Type) uint8 {
	switch t {
	case fs.Directory:
		return wire.QTDir
	case fs.Symlink:
		return wire.QTSymlink
	default:
		return wire.QTFile
	}
}
