package wire

// The messages that both dialects have. The protocol's manual, section 5 of
// Plan 9's, names their fields; here they carry the same names.

// Numbers of the messages of both dialects.
const (
	TypeTversion Type = 100
	TypeTauth    Type = 102
	TypeTattach  Type = 104
	TypeTflush   Type = 108
	TypeTwalk    Type = 110
	TypeTread    Type = 116
	TypeRread    Type = 117
	TypeTwrite   Type = 118
	TypeTclunk   Type = 120
	TypeTremove  Type = 122
)

// Requests and answers of both dialects.
type (
	// Tversion begins a session and names the largest frame.
	Tversion struct {
		MSize   uint32
		Version string
	}
	// Rversion says what the session uses: no more than was asked for.
	Rversion struct {
		MSize   uint32
		Version string
	}
	// Tauth asks for a fid to prove an identity on. UID is 9P2000.L's.
	Tauth struct {
		AFid         uint32
		UName, AName string
		UID          uint32
	}
	// Rauth accepts.
	Rauth struct{ AQid Qid }
	// Tattach makes fid the root of the tree. UID is 9P2000.L's.
	Tattach struct {
		Fid, AFid    uint32
		UName, AName string
		UID          uint32
	}
	// Rattach says what the root is.
	Rattach struct{ Qid Qid }
	// Tflush gives up an earlier request.
	Tflush struct{ OldTag uint16 }
	// Rflush says that no answer to it will come from now on.
	Rflush struct{}
	// Twalk makes NewFid what the names lead to from Fid.
	Twalk struct {
		Fid, NewFid uint32
		Names       []string // at most MaxWalk
	}
	// Rwalk has a qid for each name that was found; NewFid is one only if all
	// were.
	Rwalk struct{ Qids []Qid }
	// Tread asks for at most Count bytes from Offset.
	Tread struct {
		Fid    uint32
		Offset uint64
		Count  uint32
	}
	// Rread holds them.
	Rread struct{ Data []byte }
	// Twrite gives bytes for Offset.
	Twrite struct {
		Fid    uint32
		Offset uint64
		Data   []byte
	}
	// Rwrite says how many were taken.
	Rwrite struct{ Count uint32 }
	// Tclunk gives up a fid, whatever the answer.
	Tclunk struct{ Fid uint32 }
	// Rclunk says that all went well.
	Rclunk struct{}
	// Tremove removes what a fid stands for and gives up the fid, whatever the
	// answer.
	Tremove struct{ Fid uint32 }
	// Rremove says that it is removed.
	Rremove struct{}
)

func (*Tversion) Type() Type { return TypeTversion }
func (*Rversion) Type() Type { return TypeTversion + 1 }
func (*Tauth) Type() Type    { return TypeTauth }
func (*Rauth) Type() Type    { return TypeTauth + 1 }
func (*Tattach) Type() Type  { return TypeTattach }
func (*Rattach) Type() Type  { return TypeTattach + 1 }
func (*Tflush) Type() Type   { return TypeTflush }
func (*Rflush) Type() Type   { return TypeTflush + 1 }
func (*Twalk) Type() Type    { return TypeTwalk }
func (*Rwalk) Type() Type    { return TypeTwalk + 1 }
func (*Tread) Type() Type    { return TypeTread }
func (*Rread) Type() Type    { return TypeRread }
func (*Twrite) Type() Type   { return TypeTwrite }
func (*Rwrite) Type() Type   { return TypeTwrite + 1 }
func (*Tclunk) Type() Type   { return TypeTclunk }
func (*Rclunk) Type() Type   { return TypeTclunk + 1 }
func (*Tremove) Type() Type  { return TypeTremove }
func (*Rremove) Type() Type  { return TypeTremove + 1 }

func (m *Tversion) code(c *coder) { c.u32(&m.MSize); c.text(&m.Version) }
func (m *Rversion) code(c *coder) { c.u32(&m.MSize); c.text(&m.Version) }

func (m *Tauth) code(c *coder) {
	c.u32(&m.AFid)
	c.texts(&m.UName, &m.AName)
	c.uid(&m.UID)
}

func (m *Rauth) code(c *coder) { c.qid(&m.AQid) }

func (m *Tattach) code(c *coder) {
	c.u32s(&m.Fid, &m.AFid)
	c.texts(&m.UName, &m.AName)
	c.uid(&m.UID)
}

func (m *Rattach) code(c *coder) { c.qid(&m.Qid) }
func (m *Tflush) code(c *coder)  { c.u16(&m.OldTag) }
func (m *Rflush) code(*coder)    {}
func (m *Twalk) code(c *coder)   { c.u32s(&m.Fid, &m.NewFid); c.names(&m.Names) }
func (m *Rwalk) code(c *coder)   { c.qids(&m.Qids) }
func (m *Tread) code(c *coder)   { c.u32(&m.Fid); c.u64(&m.Offset); c.u32(&m.Count) }
func (m *Rread) code(c *coder)   { c.data(&m.Data) }
func (m *Twrite) code(c *coder)  { c.u32(&m.Fid); c.u64(&m.Offset); c.data(&m.Data) }
func (m *Rwrite) code(c *coder)  { c.u32(&m.Count) }
func (m *Tclunk) code(c *coder)  { c.u32(&m.Fid) }
func (m *Rclunk) code(*coder)    {}
func (m *Tremove) code(c *coder) { c.u32(&m.Fid) }
func (m *Rremove) code(*coder)   {}

// uid is a field that only 9P2000.L has.
func (c *coder) uid(v *uint32) {
	if c.dialect == Linux {
		c.u32(v)
	}
}

// commonTypes make an empty message of each type of both dialects.
var commonTypes = []func() Message{
	blank[Tversion], blank[Rversion], blank[Tauth], blank[Rauth], blank[Tattach], blank[Rattach],
	blank[Tflush], blank[Rflush], blank[Twalk], blank[Rwalk], blank[Tread], blank[Rread],
	blank[Twrite], blank[Rwrite], blank[Tclunk], blank[Rclunk], blank[Tremove], blank[Rremove],
}
