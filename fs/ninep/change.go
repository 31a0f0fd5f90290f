package ninep

import (
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

// Of all that changes names, a tree can offer mkdir and rmdir. The rest is
// refused with the errno that a FUSE mount of the tree gives.

// changeRefused is the answer to a change of a name that no tree offers.
func changeRefused(name string) syscall.Errno {
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	return syscall.EPERM
}

// mkdir is Tmkdir.
func (r *request) mkdir(m *wire.Tmkdir) (answer, error) {
	at, err := r.fid.place()
	if err != nil {
		return answer{}, err
	}
	made, err := r.makeDir(at, m.Name)
	if err != nil {
		return answer{}, err
	}
	return say(&wire.Rmkdir{Qid: made.qid})
}

func (r *request) makeDir(at *place, name string) (*place, error) {
	if _, ok := at.node.(fs.Dir); !ok {
		return nil, refused(syscall.ENOTDIR)
	}
	maker, ok := at.node.(fs.Maker)
	switch {
	case !ok || len(name) > maxName:
		return nil, refused(changeRefused(name))
	case !goodName(name):
		return nil, refused(syscall.EINVAL)
	}
	child, err := maker.Mkdir(r.ctx, name)
	if err != nil {
		return nil, err
	}
	attr, err := child.Attr(r.ctx)
	if err != nil {
		return nil, err
	}
	if what := unfit(child, attr); what != "" || attr.Type != fs.Directory {
		return nil, r.s.c.srv.broken("mkdir "+name, "what was made is no directory with an inode number")
	}
	return &place{node: child, qid: qidOf(attr), name: name, up: at}, nil
}

// createPlain is Tcreate, which opens what it makes. It makes directories.
func (r *request) createPlain(m *wire.Tcreate) (answer, error) {
	at, o, err := r.fid.now()
	switch {
	case err != nil:
		return answer{}, err
	case o != nil:
		return no(syscall.EBADF)
	case m.Perm&wire.DMDir == 0:
		return no(changeRefused(m.Name))
	case m.Mode != wire.ORead:
		return no(syscall.EISDIR)
	}
	made, err := r.makeDir(at, m.Name)
	if err != nil {
		return answer{}, err
	}
	r.fid.put(made, &file{mode: fs.Mode{Read: true}, listing: newListing()})
	return answer{
		message: &wire.Rcreate{Qid: made.qid, IOUnit: r.s.unit()},
		undo:    func() { r.fid.put(at, nil) },
	}, nil
}

// unlinkat is Tunlinkat.
func (r *request) unlinkat(m *wire.Tunlinkat) (answer, error) {
	at, err := r.fid.place()
	switch {
	case err != nil:
		return answer{}, err
	case m.Flags&wire.RemoveDir == 0:
		return no(changeRefused(m.Name))
	}
	if err := r.removeDir(at, m.Name); err != nil {
		return answer{}, err
	}
	return say(&wire.Runlinkat{})
}

// remove is Tremove of a fid that was forgotten. Whatever comes of it, the fid
// is discarded.
func (r *request) remove(f *fid) (answer, error) {
	closeErr := f.discard(clunked)
	at, err := f.place()
	switch {
	case err != nil:
		return answer{}, err
	case r.ctx.Err() != nil:
		return answer{}, r.interrupted()
	case at.up == nil || at.linked || at.qid.Type != wire.QTDir:
		return no(syscall.EPERM)
	}
	if err := r.removeDir(at.up, at.name); err != nil {
		return answer{}, err
	}
	if closeErr != nil {
		return answer{}, closeErr
	}
	return say(&wire.Rremove{})
}

// removeDir looks first what the name is, as a kernel would.
func (r *request) removeDir(at *place, name string) error {
	dir, ok := at.node.(fs.Dir)
	switch {
	case !ok:
		return refused(syscall.ENOTDIR)
	case len(name) > maxName:
		return refused(syscall.ENAMETOOLONG)
	case !goodName(name):
		return refused(syscall.EINVAL)
	}
	child, err := dir.Lookup(r.ctx, name)
	if err != nil {
		return err
	}
	attr, err := child.Attr(r.ctx)
	if err != nil {
		return err
	}
	remover, ok := at.node.(fs.Remover)
	switch {
	case attr.Type != fs.Directory:
		return refused(syscall.ENOTDIR)
	case !ok:
		return refused(syscall.EPERM)
	}
	return remover.Rmdir(r.ctx, name)
}
