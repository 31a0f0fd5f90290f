package fs

import (
	"context"
	"path"
	"time"

	"scvfs/ledger/fault"
	"scvfs/workbench"
)

// lastingTTL is how long a transport may keep what never changes while the tree
// is served.
const lastingTTL = time.Hour

// site is where a node stands. Every node has one.
type site struct {
	t     *Tree
	path  string // from the mount point, for people
	ino   uint64
	scope scope
	// lasting says that the name means this thing, or nothing, as long as the
	// tree is served. Of a collection's children it must be said; see
	// "Caching" in the package comment.
	lasting bool

	readers readers
	may     func(who workbench.Caller, act string) error // nil: the owner alone
}

// child returns the site of a name below s.
func (s site) child(name string) site {
	s.path = path.Join(s.path, name)
	s.ino = childIno(s.ino, name)
	s.lasting, s.may = false, nil
	if s.readers == listers {
		s.readers = unsaid
	}
	return s
}

// forever says of a site that its name lasts.
func (s site) forever() site {
	s.lasting = true
	return s
}

// enter lets in who may look into a directory, once what closes there has
// settled.
func (s site) enter(ctx context.Context) error {
	if err := s.mayRead(ctx); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle waits until documents whose jobs could show here have become jobs.
func (s site) settle(ctx context.Context) error { return s.t.closings.wait(ctx, s.scope) }

// attr returns the attributes that depend on nothing but the site.
func (s site) attr(typ Type, perm uint32, mtime time.Time) Attr {
	a := Attr{Ino: s.ino, Type: typ, Perm: perm, Mtime: mtime}
	if s.lasting {
		a.EntryTTL = lastingTTL
	}
	return a
}

// missing is the error for a name that is not in s.
func (s site) missing(name string) error {
	return fault.New(fault.NotFound, "%s has no %s", s.path, shown(name))
}

// subject looks up what a directory shows. It returns fault.NotFound once that
// is gone, also when another thing has taken its name.
type subject[S any] func() (S, error)

// none is the subject of a directory that shows no single thing.
type none struct{}

func nothing() (none, error) { return none{}, nil }

// table describes a directory of fixed names.
type table[S any] struct {
	made    func(*Tree, S) time.Time // mtime of its constant files
	changed func(*Tree, S) time.Time // mtime of the others
	newest  func(*Tree, S) time.Time // its own mtime
	fixed   bool                     // its own mtime never changes
	rows    []row[S]
}

// row is one name of a table.
type row[S any] struct {
	name   string
	typ    Type
	hidden bool                // found by name only, because it blocks
	shown  func(*Tree, S) bool // nil: always

	readers readers            // besides the owner
	acts    map[string]rule[S] // that are open to agents

	// node makes the child; what it keeps of s is what identifies it.
	node func(d tableDir[S], at site, s S) Node
}

// tableDir is a directory made from a table.
type tableDir[S any] struct {
	site
	table *table[S]
	get   subject[S]
}

// Attr implements Node.
func (d tableDir[S]) Attr(ctx context.Context) (Attr, error) {
	s, err := d.now(ctx)
	if err != nil {
		return Attr{}, err
	}
	a := d.attr(Directory, 0o500, d.table.newest(d.t, s))
	if d.table.fixed {
		a.AttrTTL = lastingTTL
	}
	return a, nil
}

// Lookup implements Dir.
func (d tableDir[S]) Lookup(ctx context.Context, name string) (Node, error) {
	s, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	for i := range d.table.rows {
		if r := &d.table.rows[i]; r.name == name && (r.shown == nil || r.shown(d.t, s)) {
			at := r.open(d.child(name), d)
			at.lasting = r.shown == nil
			return guard(r.node(d, at, s)), nil
		}
	}
	return nil, d.missing(name)
}

// List implements Dir.
func (d tableDir[S]) List(ctx context.Context) ([]Entry, error) {
	s, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(d.table.rows))
	for i := range d.table.rows {
		if r := &d.table.rows[i]; !r.hidden && (r.shown == nil || r.shown(d.t, s)) {
			entries = append(entries, Entry{Name: r.name, Ino: childIno(d.ino, r.name), Type: r.typ})
		}
	}
	return entries, nil
}

// now waits for closing documents and looks the subject up.
func (d tableDir[S]) now(ctx context.Context) (S, error) {
	if err := d.enter(ctx); err != nil {
		var zero S
		return zero, err
	}
	return d.get()
}

// when binds a function of the subject to the directory's own.
func (d tableDir[S]) when(f func(*Tree, S) time.Time) func() (time.Time, error) {
	return func() (time.Time, error) {
		s, err := d.get()
		if err != nil {
			return time.Time{}, err
		}
		return f(d.t, s), nil
	}
}

// subdir is a row that holds a directory.
func subdir[S any](name string, node func(d tableDir[S], at site, s S) Node) row[S] {
	return row[S]{name: name, typ: Directory, node: node}
}

// collection is a directory whose names come and go.
type collection struct {
	site
	perm  uint32
	mtime func() (time.Time, error)
	fixed bool // neither names nor mtime ever change
	list  func() ([]Entry, error)
	find  func(name string) (Node, bool)
}

// Attr implements Node.
func (c collection) Attr(ctx context.Context) (Attr, error) {
	if err := c.enter(ctx); err != nil {
		return Attr{}, err
	}
	at, err := c.mtime()
	if err != nil {
		return Attr{}, err
	}
	a := c.attr(Directory, c.perm, at)
	if c.fixed {
		a.AttrTTL = lastingTTL
	}
	return a, nil
}

// Lookup implements Dir.
func (c collection) Lookup(ctx context.Context, name string) (Node, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if n, ok := c.find(name); ok {
		return guard(n), nil
	}
	return nil, c.missing(name)
}

// List implements Dir.
func (c collection) List(ctx context.Context) ([]Entry, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	return c.list()
}

// always makes an mtime of something that cannot fail.
func always(f func() time.Time) func() (time.Time, error) {
	return func() (time.Time, error) { return f(), nil }
}

var (
	_ Dir = tableDir[none]{}
	_ Dir = collection{}
)
