package wire

// What our own client and server add to 9P2000.L, so that a mount through 9P
// is what a FUSE mount of the tree itself is. A client asks for it by Extended;
// a server that does not know it answers 9P2000, and the client asks again for
// 9P2000.L. All messages of 9P2000.L stay as they are, but for this:
//
//   - A walk that does not get to its end is refused with the reason.
//   - Rgetattr has the true size of each file that is no stream.
//   - Rlopen's Qid has QTStream where reads wait for what comes next.
//   - Tattach's UName says which process it is for (package origin). What is
//     walked to from there is for that process too.
//   - Tshut is one close(2) of a file. Tclunk then only lets go: by itself it
//     closes nothing. A session that ends without it has been cut off.
const (
	Extended = "9P2000.L.scvfs"

	// QTStream marks an open stream.
	QTStream = 0x04

	TypeTshut Type = 80
)

// What a Tshut says of the process that closes, as fs.Closer does.
const (
	ShutOpener = 1 << iota // it opened the file
	ShutLast               // it has no other descriptor of the file, nor has any process below it
	ShutKilled             // it dies of a signal
)

type (
	// Tshut is one close(2) of one descriptor of an open file.
	Tshut struct{ Fid, Flags uint32 }
	// Rshut says that close(2) succeeds.
	Rshut struct{}
)

// Type implements Message.
func (*Tshut) Type() Type { return TypeTshut }

// Type implements Message.
func (*Rshut) Type() Type { return TypeTshut + 1 }

func (m *Tshut) code(c *coder) { c.u32s(&m.Fid, &m.Flags) }
func (m *Rshut) code(*coder)   {}

// extensionTypes make an empty message of each type here.
var extensionTypes = []func() Message{blank[Tshut], blank[Rshut]}
