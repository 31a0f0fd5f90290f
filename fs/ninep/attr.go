package ninep

import (
	"math"
	"syscall"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
)

const (
	blockSize = 4096

	// fsType is FUSE's, as the same tree has when it is mounted. At 9P's own,
	// GNU tail takes the tree for a local disk and waits for news by inotify,
	// which never come.
	fsType = 0x65735546

	// What df shows. A tree of control files has no size, but programs that
	// look for room before they write should find some.
	statBlocks = 1 << 18
	statFiles  = 1 << 20
)

func statfs() *wire.Rstatfs {
	return &wire.Rstatfs{
		FSType: fsType, BlockSize: blockSize, NameLen: maxName,
		Blocks: statBlocks, BFree: statBlocks, BAvail: statBlocks,
		Files: statFiles, FFree: statFiles,
	}
}

// sizeOf is the size that a client is told: that of what only grows, or never
// changes. Linux asks for ever for bytes that a size promised and a read does
// not give, so what can shrink has none.
func sizeOf(attr fs.Attr) uint64 {
	if attr.Append && attr.Type == fs.Regular || attr.Type == fs.Symlink {
		return uint64(max(attr.Size, 0))
	}
	return 0
}

// look returns where the fid of a request is, and the attributes there.
func (r *request) look() (*place, fs.Attr, error) {
	at, err := r.fid.place()
	if err != nil {
		return nil, fs.Attr{}, err
	}
	attr, err := at.node.Attr(r.ctx)
	return at, attr, err
}

// getattr is Tgetattr. It tells all, whatever was asked for.
func (r *request) getattr() (answer, error) {
	at, attr, err := r.look()
	if err != nil {
		return answer{}, err
	}
	size := r.s.sizeFor(attr)
	m := &wire.Rgetattr{
		Valid: wire.GetBasic, Qid: at.qid, Mode: typeBits(attr.Type) | attr.Perm&0o7777,
		UID: r.s.c.srv.uid, GID: r.s.c.srv.gid, NLink: 1,
		Size: size, BlockSize: blockSize, Blocks: (size + 511) / 512,
	}
	m.MtimeSec, m.MtimeNsec = stamp(attr.Mtime)
	m.CtimeSec, m.CtimeNsec = m.MtimeSec, m.MtimeNsec
	m.AtimeSec, m.AtimeNsec = m.MtimeSec, m.MtimeNsec
	if !attr.Atime.IsZero() {
		m.AtimeSec, m.AtimeNsec = stamp(attr.Atime)
	}
	return say(m)
}

// stamp splits a time; none is the epoch.
func stamp(t time.Time) (sec, nsec uint64) {
	if t.IsZero() {
		return 0, 0
	}
	return uint64(t.Unix()), uint64(t.Nanosecond())
}

func typeBits(t fs.Type) uint32 {
	switch t {
	case fs.Directory:
		return syscall.S_IFDIR
	case fs.Symlink:
		return syscall.S_IFLNK
	default:
		return syscall.S_IFREG
	}
}

// stat is Tstat.
func (r *request) stat() (answer, error) {
	at, attr, err := r.look()
	if err != nil {
		return answer{}, err
	}
	return say(&wire.Rstat{Stat: r.statOf(at, attr)})
}

// statOf says what 9P2000 knows of a node.
func (r *request) statOf(at *place, attr fs.Attr) wire.Stat {
	srv := r.s.c.srv
	s := wire.Stat{
		Qid: at.qid, Mode: attr.Perm & 0o777, Mtime: seconds(attr.Mtime), Atime: seconds(attr.Mtime),
		Length: sizeOf(attr), Name: at.name, UID: srv.user, GID: srv.group, MUID: srv.user,
	}
	if attr.Type == fs.Directory {
		s.Mode |= wire.DMDir
	}
	if !attr.Atime.IsZero() {
		s.Atime = seconds(attr.Atime)
	}
	return s
}

// seconds is a time as far as 32 bits tell it.
func seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(min(max(t.Unix(), 0), math.MaxUint32))
}

// record appends the record of a name in a directory to p.
func (r *request) record(dir *place, name string, p []byte) ([]byte, error) {
	at, err := r.step(dir, name)
	if err != nil {
		return p, err
	}
	attr, err := at.node.Attr(r.ctx)
	if err != nil {
		return p, err
	}
	return wire.AppendStat(p, r.statOf(at, attr))
}

// setattr is Tsetattr.
func (r *request) setattr(m *wire.Tsetattr) (answer, error) {
	_, attr, err := r.look()
	if err != nil {
		return answer{}, err
	}
	const written = wire.SetSize | wire.SetAtime | wire.SetMtime | wire.SetAtimeTo | wire.SetMtimeTo
	srv := r.s.c.srv
	if m.Valid&wire.SetMode != 0 && (m.Mode^attr.Perm)&0o7777 != 0 ||
		m.Valid&wire.SetUID != 0 && m.UID != srv.uid ||
		m.Valid&wire.SetGID != 0 && m.GID != srv.gid ||
		m.Valid&written != 0 && !writable(attr) {
		return no(syscall.EPERM)
	}
	return say(&wire.Rsetattr{})
}

// writable tells whether writers may set a size or times on the way, which
// means nothing.
func writable(attr fs.Attr) bool { return attr.Type == fs.Regular && attr.Perm&0o200 != 0 }

// wstat is Twstat. What is left as it is may be said again.
func (r *request) wstat(m *wire.Twstat) (answer, error) {
	at, attr, err := r.look()
	if err != nil {
		return answer{}, err
	}
	is, none, s := r.statOf(at, attr), wire.DontTouch(), m.Stat
	if changes(s.Kind, is.Kind, none.Kind) || changes(s.Dev, is.Dev, none.Dev) || changes(s.Qid, is.Qid, none.Qid) ||
		changes(s.Mode, is.Mode, none.Mode) || changes(s.Name, is.Name, none.Name) ||
		changes(s.UID, is.UID, none.UID) || changes(s.GID, is.GID, none.GID) || changes(s.MUID, is.MUID, none.MUID) {
		return no(syscall.EPERM)
	}
	written := s.Length != none.Length || s.Atime != none.Atime || s.Mtime != none.Mtime
	if written && !writable(attr) {
		return no(syscall.EPERM)
	}
	return say(&wire.Rwstat{})
}

// changes tells whether a field is to become another.
func changes[T comparable](to, is, none T) bool { return to != none && to != is }
