package wire

// The messages that only 9P2000.L has, but for those that change names.

// Numbers of the messages of 9P2000.L.
const (
	TypeRlerror      Type = 7
	TypeTstatfs      Type = 8
	TypeTlopen       Type = 12
	TypeTreadlink    Type = 22
	TypeTgetattr     Type = 24
	TypeTsetattr     Type = 26
	TypeTxattrwalk   Type = 30
	TypeTxattrcreate Type = 32
	TypeTreaddir     Type = 40
	TypeRreaddir     Type = 41
	TypeTfsync       Type = 50
	TypeTlock        Type = 52
	TypeTgetlock     Type = 54
)

// Requests and answers of 9P2000.L.
type (
	// Rlerror refuses a request, with Linux's number for the reason.
	Rlerror struct{ Errno uint32 }
	// Tstatfs asks for what statfs(2) shows.
	Tstatfs struct{ Fid uint32 }
	// Rstatfs tells it.
	Rstatfs struct {
		FSType, BlockSize                        uint32
		Blocks, BFree, BAvail, Files, FFree, FID uint64
		NameLen                                  uint32
	}
	// Tlopen opens a fid, with flags of open(2).
	Tlopen struct{ Fid, Flags uint32 }
	// Rlopen says that it is open. IOUnit is how much one message moves at
	// most; 0 is as much as msize allows.
	Rlopen struct {
		Qid    Qid
		IOUnit uint32
	}
	// Treadlink asks where a symbolic link leads.
	Treadlink struct{ Fid uint32 }
	// Rreadlink tells it.
	Rreadlink struct{ Target string }
	// Tgetattr asks for what stat(2) shows; Mask says for what of it.
	Tgetattr struct {
		Fid  uint32
		Mask uint64
	}
	// Rgetattr tells what Valid says.
	Rgetattr struct {
		Valid                   uint64
		Qid                     Qid
		Mode, UID, GID          uint32
		NLink, RDev             uint64
		Size, BlockSize, Blocks uint64
		AtimeSec, AtimeNsec     uint64
		MtimeSec, MtimeNsec     uint64
		CtimeSec, CtimeNsec     uint64
		BtimeSec, BtimeNsec     uint64
		Generation, DataVersion uint64
	}
	// Tsetattr changes what Valid says.
	Tsetattr struct {
		Fid, Valid, Mode, UID, GID                     uint32
		Size, AtimeSec, AtimeNsec, MtimeSec, MtimeNsec uint64
	}
	// Rsetattr says that it is changed.
	Rsetattr struct{}
	// Txattrwalk makes NewFid an extended attribute of Fid.
	Txattrwalk struct {
		Fid, NewFid uint32
		Name        string
	}
	// Rxattrwalk says how long it is.
	Rxattrwalk struct{ Size uint64 }
	// Txattrcreate makes Fid an extended attribute to write.
	Txattrcreate struct {
		Fid   uint32
		Name  string
		Size  uint64
		Flags uint32
	}
	// Rxattrcreate says that it can be written.
	Rxattrcreate struct{}
	// Treaddir asks for at most Count bytes of entries from Offset: 0, or that
	// of an entry after which to go on.
	Treaddir struct {
		Fid    uint32
		Offset uint64
		Count  uint32
	}
	// Rreaddir holds whole entries (ParseEntries).
	Rreaddir struct{ Data []byte }
	// Tfsync asks that what was written be safe.
	Tfsync struct{ Fid, DataOnly uint32 }
	// Rfsync says that it is.
	Rfsync struct{}
	// Tlock asks for a lock of a part of a file.
	Tlock struct {
		Fid           uint32
		LockType      uint8
		Flags         uint32
		Start, Length uint64
		ProcID        uint32
		ClientID      string
	}
	// Rlock says whether it is held: 0 is yes.
	Rlock struct{ Status uint8 }
	// Tgetlock asks who holds a lock.
	Tgetlock struct {
		Fid           uint32
		LockType      uint8
		Start, Length uint64
		ProcID        uint32
		ClientID      string
	}
	// Rgetlock tells it.
	Rgetlock struct {
		LockType      uint8
		Start, Length uint64
		ProcID        uint32
		ClientID      string
	}
)

func (*Rlerror) Type() Type      { return TypeRlerror }
func (*Tstatfs) Type() Type      { return TypeTstatfs }
func (*Rstatfs) Type() Type      { return TypeTstatfs + 1 }
func (*Tlopen) Type() Type       { return TypeTlopen }
func (*Rlopen) Type() Type       { return TypeTlopen + 1 }
func (*Treadlink) Type() Type    { return TypeTreadlink }
func (*Rreadlink) Type() Type    { return TypeTreadlink + 1 }
func (*Tgetattr) Type() Type     { return TypeTgetattr }
func (*Rgetattr) Type() Type     { return TypeTgetattr + 1 }
func (*Tsetattr) Type() Type     { return TypeTsetattr }
func (*Rsetattr) Type() Type     { return TypeTsetattr + 1 }
func (*Txattrwalk) Type() Type   { return TypeTxattrwalk }
func (*Rxattrwalk) Type() Type   { return TypeTxattrwalk + 1 }
func (*Txattrcreate) Type() Type { return TypeTxattrcreate }
func (*Rxattrcreate) Type() Type { return TypeTxattrcreate + 1 }
func (*Treaddir) Type() Type     { return TypeTreaddir }
func (*Rreaddir) Type() Type     { return TypeRreaddir }
func (*Tfsync) Type() Type       { return TypeTfsync }
func (*Rfsync) Type() Type       { return TypeTfsync + 1 }
func (*Tlock) Type() Type        { return TypeTlock }
func (*Rlock) Type() Type        { return TypeTlock + 1 }
func (*Tgetlock) Type() Type     { return TypeTgetlock }
func (*Rgetlock) Type() Type     { return TypeTgetlock + 1 }

func (m *Rlerror) code(c *coder) { c.u32(&m.Errno) }
func (m *Tstatfs) code(c *coder) { c.u32(&m.Fid) }

func (m *Rstatfs) code(c *coder) {
	c.u32s(&m.FSType, &m.BlockSize)
	c.u64s(&m.Blocks, &m.BFree, &m.BAvail, &m.Files, &m.FFree, &m.FID)
	c.u32(&m.NameLen)
}

func (m *Tlopen) code(c *coder)    { c.u32s(&m.Fid, &m.Flags) }
func (m *Rlopen) code(c *coder)    { c.qid(&m.Qid); c.u32(&m.IOUnit) }
func (m *Treadlink) code(c *coder) { c.u32(&m.Fid) }
func (m *Rreadlink) code(c *coder) { c.text(&m.Target) }
func (m *Tgetattr) code(c *coder)  { c.u32(&m.Fid); c.u64(&m.Mask) }

func (m *Rgetattr) code(c *coder) {
	c.u64(&m.Valid)
	c.qid(&m.Qid)
	c.u32s(&m.Mode, &m.UID, &m.GID)
	c.u64s(&m.NLink, &m.RDev, &m.Size, &m.BlockSize, &m.Blocks, &m.AtimeSec, &m.AtimeNsec, &m.MtimeSec, &m.MtimeNsec,
		&m.CtimeSec, &m.CtimeNsec, &m.BtimeSec, &m.BtimeNsec, &m.Generation, &m.DataVersion)
}

func (m *Tsetattr) code(c *coder) {
	c.u32s(&m.Fid, &m.Valid, &m.Mode, &m.UID, &m.GID)
	c.u64s(&m.Size, &m.AtimeSec, &m.AtimeNsec, &m.MtimeSec, &m.MtimeNsec)
}

func (m *Rsetattr) code(*coder)     {}
func (m *Txattrwalk) code(c *coder) { c.u32s(&m.Fid, &m.NewFid); c.text(&m.Name) }
func (m *Rxattrwalk) code(c *coder) { c.u64(&m.Size) }

func (m *Txattrcreate) code(c *coder) {
	c.u32(&m.Fid)
	c.text(&m.Name)
	c.u64(&m.Size)
	c.u32(&m.Flags)
}

func (m *Rxattrcreate) code(*coder) {}
func (m *Treaddir) code(c *coder)   { c.u32(&m.Fid); c.u64(&m.Offset); c.u32(&m.Count) }
func (m *Rreaddir) code(c *coder)   { c.data(&m.Data) }

func (m *Tfsync) code(c *coder) {
	c.u32(&m.Fid)
	if c.writing || len(c.b) > 0 {
		c.u32(&m.DataOnly)
	}
}

func (m *Rfsync) code(*coder) {}

func (m *Tlock) code(c *coder) {
	c.u32(&m.Fid)
	c.u8(&m.LockType)
	c.u32(&m.Flags)
	c.u64s(&m.Start, &m.Length)
	c.u32(&m.ProcID)
	c.text(&m.ClientID)
}

func (m *Rlock) code(c *coder) { c.u8(&m.Status) }

func (m *Tgetlock) code(c *coder) {
	c.u32(&m.Fid)
	c.u8(&m.LockType)
	c.u64s(&m.Start, &m.Length)
	c.u32(&m.ProcID)
	c.text(&m.ClientID)
}

func (m *Rgetlock) code(c *coder) {
	c.u8(&m.LockType)
	c.u64s(&m.Start, &m.Length)
	c.u32(&m.ProcID)
	c.text(&m.ClientID)
}

// linuxTypes make an empty message of each type here.
var linuxTypes = []func() Message{
	blank[Rlerror], blank[Tstatfs], blank[Rstatfs], blank[Tlopen], blank[Rlopen], blank[Treadlink], blank[Rreadlink],
	blank[Tgetattr], blank[Rgetattr], blank[Tsetattr], blank[Rsetattr], blank[Txattrwalk], blank[Rxattrwalk],
	blank[Txattrcreate], blank[Rxattrcreate], blank[Treaddir], blank[Rreaddir], blank[Tfsync], blank[Rfsync],
	blank[Tlock], blank[Rlock], blank[Tgetlock], blank[Rgetlock],
}

// Entry is one name of a directory, as the data of Rreaddir has it.
type Entry struct {
	Qid    Qid
	Offset uint64 // what a Treaddir goes on from after this entry
	Type   uint8  // DT_DIR and so on
	Name   string
}

func (e *Entry) code(c *coder) {
	c.qid(&e.Qid)
	c.u64(&e.Offset)
	c.u8(&e.Type)
	c.text(&e.Name)
}

// EntrySize returns how many bytes an entry with the name takes.
func EntrySize(name string) int { return QidSize + 8 + 1 + 2 + len(name) }

// AppendEntry appends an entry to the data of an Rreaddir. It fails with
// fault.TooLarge when the name is too long, and returns b as it was.
func AppendEntry(b []byte, e Entry) ([]byte, error) {
	c := coder{b: b, writing: true}
	if e.code(&c); c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// ParseEntries returns the entries in the data of an Rreaddir; fault.Invalid
// if it is anything else.
func ParseEntries(data []byte) ([]Entry, error) {
	var all []Entry
	c := coder{b: data}
	for len(c.b) > 0 {
		var e Entry
		if e.code(&c); c.err != nil {
			return nil, c.err
		}
		all = append(all, e)
	}
	return all, nil
}
