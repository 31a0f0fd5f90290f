package fs

import (
	"crypto/sha256"
	"encoding/binary"
)

// rootIno is the inode number of the top directory. Hashes never give it.
const rootIno = 1

// childIno returns the inode number of a name in a directory that is itself
// known by a number. The same directory and name give the same number after a
// restart.
func childIno(dir uint64, name string) uint64 {
	var room [128]byte
	b := binary.BigEndian.AppendUint64(room[:0], dir)
	sum := sha256.Sum256(append(b, name...))
	ino := binary.BigEndian.Uint64(sum[:8])
	if ino <= rootIno {
		ino += rootIno + 1
	}
	return ino
}

// thingIno returns the inode number of a thing that is known by an identity of
// its own wherever it is listed. No directory has number 0, so it is never a
// child's.
func thingIno(kind, identity string) uint64 {
	return childIno(0, kind+"\x00"+identity)
}
