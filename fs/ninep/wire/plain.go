package wire

// The messages that only 9P2000 has.

// Numbers of the messages of 9P2000.
const (
	TypeRerror  Type = 107
	TypeTopen   Type = 112
	TypeTcreate Type = 114
	TypeTstat   Type = 124
	TypeTwstat  Type = 126
)

// Requests and answers of 9P2000.
type (
	// Rerror refuses a request.
	Rerror struct{ Ename string }
	// Topen opens a fid for OREAD and so on.
	Topen struct {
		Fid  uint32
		Mode uint8
	}
	// Ropen says that it is open. IOUnit is how much one message moves at most;
	// 0 is as much as msize allows.
	Ropen struct {
		Qid    Qid
		IOUnit uint32
	}
	// Tcreate makes a file, or a directory if Perm has DMDir, in the directory
	// Fid, and opens it as Fid.
	Tcreate struct {
		Fid  uint32
		Name string
		Perm uint32
		Mode uint8
	}
	// Rcreate is to Tcreate what Ropen is to Topen.
	Rcreate struct {
		Qid    Qid
		IOUnit uint32
	}
	// Tstat asks for all that is known of a file.
	Tstat struct{ Fid uint32 }
	// Rstat tells it.
	Rstat struct{ Stat Stat }
	// Twstat changes what Stat does not leave alone (DontTouch).
	Twstat struct {
		Fid  uint32
		Stat Stat
	}
	// Rwstat says that it is changed.
	Rwstat struct{}
)

func (*Rerror) Type() Type  { return TypeRerror }
func (*Topen) Type() Type   { return TypeTopen }
func (*Ropen) Type() Type   { return TypeTopen + 1 }
func (*Tcreate) Type() Type { return TypeTcreate }
func (*Rcreate) Type() Type { return TypeTcreate + 1 }
func (*Tstat) Type() Type   { return TypeTstat }
func (*Rstat) Type() Type   { return TypeTstat + 1 }
func (*Twstat) Type() Type  { return TypeTwstat }
func (*Rwstat) Type() Type  { return TypeTwstat + 1 }

func (m *Rerror) code(c *coder) { c.text(&m.Ename) }
func (m *Topen) code(c *coder)  { c.u32(&m.Fid); c.u8(&m.Mode) }
func (m *Ropen) code(c *coder)  { c.qid(&m.Qid); c.u32(&m.IOUnit) }

func (m *Tcreate) code(c *coder) {
	c.u32(&m.Fid)
	c.text(&m.Name)
	c.u32(&m.Perm)
	c.u8(&m.Mode)
}

func (m *Rcreate) code(c *coder) { c.qid(&m.Qid); c.u32(&m.IOUnit) }
func (m *Tstat) code(c *coder)   { c.u32(&m.Fid) }
func (m *Rstat) code(c *coder)   { c.sized(func() { m.Stat.code(c) }) }
func (m *Twstat) code(c *coder)  { c.u32(&m.Fid); c.sized(func() { m.Stat.code(c) }) }
func (m *Rwstat) code(*coder)    {}

// plainTypes make an empty message of each type of 9P2000 alone.
var plainTypes = []func() Message{
	blank[Rerror], blank[Topen], blank[Ropen], blank[Tcreate], blank[Rcreate],
	blank[Tstat], blank[Rstat], blank[Twstat], blank[Rwstat],
}

// Stat is what 9P2000 knows of a file, in Rstat, Twstat and the data of a
// directory.
type Stat struct {
	Kind           uint16 // Plan 9's type of device
	Dev            uint32
	Qid            Qid
	Mode           uint32 // permission and DMDir
	Atime, Mtime   uint32 // seconds since 1970
	Length         uint64
	Name           string
	UID, GID, MUID string // names
}

// DontTouch returns a Stat that changes nothing when Twstat carries it.
func DontTouch() Stat {
	const none = 0xffffffff
	return Stat{
		Kind: 0xffff, Dev: none, Qid: Qid{Type: 0xff, Version: none, Path: 0xffffffffffffffff},
		Mode: none, Atime: none, Mtime: none, Length: 0xffffffffffffffff,
	}
}

func (s *Stat) code(c *coder) {
	c.sized(func() {
		c.u16(&s.Kind)
		c.u32(&s.Dev)
		c.qid(&s.Qid)
		c.u32s(&s.Mode, &s.Atime, &s.Mtime)
		c.u64(&s.Length)
		c.texts(&s.Name, &s.UID, &s.GID, &s.MUID)
	})
}

// AppendStat appends a record of a directory's data to b. It fails with
// fault.TooLarge when the texts are too long, and returns b as it was.
func AppendStat(b []byte, s Stat) ([]byte, error) {
	c := coder{b: b, writing: true}
	if s.code(&c); c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// ParseStats returns the records of a directory's data; fault.Invalid if it
// is anything else.
func ParseStats(data []byte) ([]Stat, error) {
	var all []Stat
	c := coder{b: data}
	for len(c.b) > 0 {
		var s Stat
		if s.code(&c); c.err != nil {
			return nil, c.err
		}
		all = append(all, s)
	}
	return all, nil
}
