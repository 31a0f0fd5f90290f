package ninep

import (
	"syscall"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

const (
	// dots is how many entries of 9P2000.L come before those of the tree.
	dots = 2
	// entryCost is about what an entry of a listing takes besides its name.
	entryCost = 48

	dtDir, dtFile, dtLink = 4, 8, 10 // types of entries, as Linux has them
)

// listing is an open directory. It keeps what was there when reading began, or
// began again at offset 0, so offsets stay true however the directory changes
// meanwhile. At the end of reading it keeps nothing.
type listing struct {
	turn    chan struct{} // held by the one read at a time; guards the below
	entries []fs.Entry
	listed  bool
	cost    int64 // bytes that the connection's listed counts
	next    int   // 9P2000: the entry that comes next
	off     uint64
}

func newListing() *listing { return &listing{turn: make(chan struct{}, 1)} }

// lock takes the turn.
func (l *listing) lock(r *request) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-r.ctx.Done():
		return r.interrupted()
	}
}

func (l *listing) unlock() { <-l.turn }

// take lists the directory anew. It needs the turn.
func (l *listing) take(r *request, at *place) error {
	c := r.s.c
	l.drop(c)
	dir, ok := at.node.(fs.Dir)
	if !ok {
		return refused(syscall.ENOTDIR)
	}
	entries, err := dir.List(r.ctx)
	if err != nil {
		return err
	}
	good := make([]fs.Entry, 0, len(entries))
	for _, e := range entries {
		if goodName(e.Name) {
			good = append(good, e)
			l.cost += entryCost + int64(len(e.Name))
		} else {
			_ = c.srv.broken("list", "%q is no name for a file", e.Name) // it is only left out
		}
	}
	l.entries, l.listed = good, true
	if c.listed.Add(l.cost) > maxListed {
		l.drop(c)
		return fault.New(fault.Limit, "too many long listings are being read on this connection; wait for some to end")
	}
	return nil
}

// drop keeps nothing.
func (l *listing) drop(c *conn) {
	if l.listed {
		c.listed.Add(-l.cost)
	}
	l.entries, l.listed, l.cost = nil, false, 0
}

// readdir is Treaddir. An entry's offset is one more than its place.
func (r *request) readdir(m *wire.Treaddir) (answer, error) {
	at, o, err := r.fid.opened()
	switch {
	case err != nil:
		return answer{}, err
	case o.listing == nil:
		return no(syscall.ENOTDIR)
	}
	l := o.listing
	if err := l.lock(r); err != nil {
		return answer{}, err
	}
	defer l.unlock()
	if m.Offset == 0 || !l.listed {
		if err := l.take(r, at); err != nil {
			return answer{}, err
		}
	}
	n := int(min(m.Count, r.s.msize-wire.DataHeader))
	b, err := r.room(n)
	if err != nil {
		return answer{}, err
	}
	got, err := l.fill(at, b.b[wire.DataHeader:][:0:n], m.Offset)
	if err != nil {
		b.free()
		return answer{}, err
	}
	if got == 0 {
		l.drop(r.s.c)
	}
	return data(b, wire.TypeRreaddir, got), nil
}

// fill appends whole entries to p, as far as there is room. There are none
// beyond the end.
func (l *listing) fill(at *place, p []byte, from uint64) (int, error) {
	all := uint64(dots + len(l.entries))
	for i := from; i < all; i++ {
		e := l.entry(at, i)
		if len(p)+wire.EntrySize(e.Name) > cap(p) {
			if i == from {
				return 0, refused(syscall.EINVAL)
			}
			break
		}
		var err error
		if p, err = wire.AppendEntry(p, e); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (l *listing) entry(at *place, i uint64) wire.Entry {
	e := wire.Entry{Offset: i + 1, Type: dtDir, Qid: at.qid, Name: "."}
	switch i {
	case 0:
	case 1:
		e.Qid, e.Name = at.parent().qid, ".."
	default:
		in := &l.entries[i-dots]
		e.Qid = wire.Qid{Type: qidType(in.Type), Path: in.Ino}
		e.Type, e.Name = dirType(in.Type), in.Name
	}
	return e
}

func dirType(t fs.Type) uint8 {
	switch t {
	case fs.Directory:
		return dtDir
	case fs.Symlink:
		return dtLink
	default:
		return dtFile
	}
}

// readRecords is Tread of a directory in 9P2000: whole stat records, from the
// start or from where the last read ended. A name that has gone since it was
// listed is left out.
func (r *request) readRecords(at *place, l *listing, off uint64, n int) (answer, error) {
	if err := l.lock(r); err != nil {
		return answer{}, err
	}
	defer l.unlock()
	if off == 0 {
		if err := l.take(r, at); err != nil {
			return answer{}, err
		}
		l.next, l.off = 0, 0
	} else if off != l.off {
		return no(syscall.EINVAL)
	}
	b, err := r.room(n)
	if err != nil {
		return answer{}, err
	}
	got, err := r.records(at, l, b.b[wire.DataHeader:][:0:n])
	if err != nil {
		b.free()
		return answer{}, err
	}
	if l.off += uint64(got); got == 0 {
		l.drop(r.s.c)
		l.next = 0
	}
	return data(b, wire.TypeRread, got), nil
}

// records appends records to p. One that fails is met again by the next read,
// if others came before it.
func (r *request) records(at *place, l *listing, p []byte) (int, error) {
	for ; l.next < len(l.entries); l.next++ {
		more, err := r.record(at, l.entries[l.next].Name, p)
		switch {
		case fault.Is(err, fault.NotFound):
			continue
		case err != nil && len(p) > 0:
			return len(p), nil
		case err != nil:
			return 0, err
		}
		if len(more) > cap(p) {
			if len(p) == 0 {
				return 0, refused(syscall.EINVAL)
			}
			break
		}
		p = more
	}
	return len(p), nil
}
