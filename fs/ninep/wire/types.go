package wire

import "fmt"

// Dialect is a version of the protocol.
type Dialect uint8

// The dialects.
const (
	Plain Dialect = iota // 9P2000, Plan 9's own
	Linux                // 9P2000.L, what Linux speaks
)

// String returns the version string by which clients ask for the dialect.
func (d Dialect) String() string {
	if d == Linux {
		return "9P2000.L"
	}
	return "9P2000"
}

// Unknown is the version that a server answers when it has none in common.
const Unknown = "unknown"

// Numbers of the protocol.
const (
	NoTag uint16 = 0xffff     // the tag of Tversion
	NoFid uint32 = 0xffffffff // no fid; afid of a client without authentication
	NoUID uint32 = 0xffffffff // n_uname of a client that gives a name only

	MaxWalk = 16 // names in one Twalk

	HeaderSize = 7  // bytes of a frame before its body
	DataHeader = 11 // bytes of a frame before the data of Rread and Rreaddir
	IOHeader   = 24 // what Plan 9 and Linux leave of msize for headers when they read and write
)

// Type is the type of a message, as its frame gives it. The answer to a
// request has the next number.
type Type uint8

// String returns the name of the type.
func (t Type) String() string {
	for _, d := range []Dialect{Linux, Plain} {
		if m := newMessage(d, t); m != nil {
			return fmt.Sprintf("%T", m)[len("*wire."):]
		}
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Message is a request (T…) or an answer (R…), always a pointer.
type Message interface {
	// Type returns the type of the message.
	Type() Type
	// code reads or writes the fields, as c says.
	code(c *coder)
}

// pointer is a message whose fields M has.
type pointer[M any] interface {
	*M
	Message
}

func blank[M any, P pointer[M]]() Message { return P(new(M)) }

// makers make an empty message of each type that a dialect has.
var makers = func() (all [2][256]func() Message) {
	for d, groups := range [2][][]func() Message{Plain: {commonTypes, plainTypes}, Linux: {commonTypes, linuxTypes, changeTypes, extensionTypes}} {
		for _, group := range groups {
			for _, maker := range group {
				all[d][maker().Type()] = maker
			}
		}
	}
	return all
}()

// newMessage returns an empty message of a type, nil if the dialect has none.
func newMessage(d Dialect, t Type) Message {
	if maker := makers[d&1][t]; maker != nil {
		return maker()
	}
	return nil
}

// Types of a file, as the first byte of a Qid has them.
const (
	QTDir     = 0x80
	QTSymlink = 0x02
	QTFile    = 0x00
)

// Qid is what a server says of a file's identity.
type Qid struct {
	Type    uint8
	Version uint32
	Path    uint64
}

// QidSize is the length of a Qid in bytes.
const QidSize = 13

// Bits of a Stat's mode above the nine of permission.
const DMDir = 0x80000000

// Modes of Topen and Tcreate.
const (
	ORead   = 0
	OWrite  = 1
	ORdWr   = 2
	OExec   = 3
	OTrunc  = 0x10
	OCExec  = 0x20
	ORClose = 0x40
)

// Flags of Tlopen and Tlcreate: Linux's own, whatever machine runs this.
const (
	LAccessMode = 3
	LReadOnly   = 0
	LWriteOnly  = 1
	LReadWrite  = 2
	LCreate     = 0o100
	LTruncate   = 0o1000
	LAppend     = 0o2000
	LNonBlock   = 0o4000
	LDirectory  = 0o200000
)

// What a Tsetattr sets.
const (
	SetMode    = 0x001
	SetUID     = 0x002
	SetGID     = 0x004
	SetSize    = 0x008
	SetAtime   = 0x010
	SetMtime   = 0x020
	SetCtime   = 0x040
	SetAtimeTo = 0x080 // to the time given; without it, to now
	SetMtimeTo = 0x100
)

const (
	// GetBasic is what a Tgetattr asks for, and an Rgetattr holds: all that
	// stat(2) shows.
	GetBasic = 0x7ff
	// RemoveDir is a flag of Tunlinkat: the name is a directory.
	RemoveDir = 0x200
)
