package wire

// The messages of 9P2000.L that change names.

// Numbers of the messages of 9P2000.L that change names.
const (
	TypeTlcreate  Type = 14
	TypeTsymlink  Type = 16
	TypeTmknod    Type = 18
	TypeTrename   Type = 20
	TypeTlink     Type = 70
	TypeTmkdir    Type = 72
	TypeTrenameat Type = 74
	TypeTunlinkat Type = 76
)

// Requests and answers of 9P2000.L that change names.
type (
	// Tlcreate makes a file in the directory Fid and opens it as Fid.
	Tlcreate struct {
		Fid              uint32
		Name             string
		Flags, Mode, GID uint32
	}
	// Rlcreate is to Tlcreate what Rlopen is to Tlopen.
	Rlcreate struct {
		Qid    Qid
		IOUnit uint32
	}
	// Tsymlink makes a symbolic link in the directory Fid.
	Tsymlink struct {
		Fid          uint32
		Name, Target string
		GID          uint32
	}
	// Rsymlink says what was made.
	Rsymlink struct{ Qid Qid }
	// Tmknod makes a device in the directory DFid.
	Tmknod struct {
		DFid                    uint32
		Name                    string
		Mode, Major, Minor, GID uint32
	}
	// Rmknod says what was made.
	Rmknod struct{ Qid Qid }
	// Trename moves a file into the directory DFid.
	Trename struct {
		Fid, DFid uint32
		Name      string
	}
	// Rrename says that it is moved.
	Rrename struct{}
	// Tlink makes another name for a file in the directory DFid.
	Tlink struct {
		DFid, Fid uint32
		Name      string
	}
	// Rlink says that it is made.
	Rlink struct{}
	// Tmkdir makes a directory in the directory DFid.
	Tmkdir struct {
		DFid      uint32
		Name      string
		Mode, GID uint32
	}
	// Rmkdir says what was made.
	Rmkdir struct{ Qid Qid }
	// Trenameat moves a name from one directory into another.
	Trenameat struct {
		OldDirFid uint32
		OldName   string
		NewDirFid uint32
		NewName   string
	}
	// Rrenameat says that it is moved.
	Rrenameat struct{}
	// Tunlinkat removes a name of a directory; Flags is RemoveDir for one that
	// is a directory.
	Tunlinkat struct {
		DFid  uint32
		Name  string
		Flags uint32
	}
	// Runlinkat says that it is removed.
	Runlinkat struct{}
)

func (*Tlcreate) Type() Type  { return TypeTlcreate }
func (*Rlcreate) Type() Type  { return TypeTlcreate + 1 }
func (*Tsymlink) Type() Type  { return TypeTsymlink }
func (*Rsymlink) Type() Type  { return TypeTsymlink + 1 }
func (*Tmknod) Type() Type    { return TypeTmknod }
func (*Rmknod) Type() Type    { return TypeTmknod + 1 }
func (*Trename) Type() Type   { return TypeTrename }
func (*Rrename) Type() Type   { return TypeTrename + 1 }
func (*Tlink) Type() Type     { return TypeTlink }
func (*Rlink) Type() Type     { return TypeTlink + 1 }
func (*Tmkdir) Type() Type    { return TypeTmkdir }
func (*Rmkdir) Type() Type    { return TypeTmkdir + 1 }
func (*Trenameat) Type() Type { return TypeTrenameat }
func (*Rrenameat) Type() Type { return TypeTrenameat + 1 }
func (*Tunlinkat) Type() Type { return TypeTunlinkat }
func (*Runlinkat) Type() Type { return TypeTunlinkat + 1 }

func (m *Tlcreate) code(c *coder) {
	c.u32(&m.Fid)
	c.text(&m.Name)
	c.u32s(&m.Flags, &m.Mode, &m.GID)
}

func (m *Rlcreate) code(c *coder) { c.qid(&m.Qid); c.u32(&m.IOUnit) }

func (m *Tsymlink) code(c *coder) {
	c.u32(&m.Fid)
	c.texts(&m.Name, &m.Target)
	c.u32(&m.GID)
}

func (m *Rsymlink) code(c *coder) { c.qid(&m.Qid) }

func (m *Tmknod) code(c *coder) {
	c.u32(&m.DFid)
	c.text(&m.Name)
	c.u32s(&m.Mode, &m.Major, &m.Minor, &m.GID)
}

func (m *Rmknod) code(c *coder)  { c.qid(&m.Qid) }
func (m *Trename) code(c *coder) { c.u32s(&m.Fid, &m.DFid); c.text(&m.Name) }
func (m *Rrename) code(*coder)   {}
func (m *Tlink) code(c *coder)   { c.u32s(&m.DFid, &m.Fid); c.text(&m.Name) }
func (m *Rlink) code(*coder)     {}

func (m *Tmkdir) code(c *coder) {
	c.u32(&m.DFid)
	c.text(&m.Name)
	c.u32s(&m.Mode, &m.GID)
}

func (m *Rmkdir) code(c *coder) { c.qid(&m.Qid) }

func (m *Trenameat) code(c *coder) {
	c.u32(&m.OldDirFid)
	c.text(&m.OldName)
	c.u32(&m.NewDirFid)
	c.text(&m.NewName)
}

func (m *Rrenameat) code(*coder) {}

func (m *Tunlinkat) code(c *coder) {
	c.u32(&m.DFid)
	c.text(&m.Name)
	c.u32(&m.Flags)
}

func (m *Runlinkat) code(*coder) {}

// changeTypes make an empty message of each type here.
var changeTypes = []func() Message{
	blank[Tlcreate], blank[Rlcreate], blank[Tsymlink], blank[Rsymlink], blank[Tmknod], blank[Rmknod],
	blank[Trename], blank[Rrename], blank[Tlink], blank[Rlink], blank[Tmkdir], blank[Rmkdir],
	blank[Trenameat], blank[Rrenameat], blank[Tunlinkat], blank[Runlinkat],
}
