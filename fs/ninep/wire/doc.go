// Package wire turns the messages of 9P2000 and 9P2000.L into bytes and back.
// It holds no connection and no state, so a server and a client share it.
//
// A frame is size[4] type[1] tag[2] body, little endian, where size counts
// itself. ReadHeader takes the first seven bytes off a connection and checks
// the size before anybody allocates; Decode makes a message of the body;
// Append makes a frame of a message. ReadMessage does it all for those who need
// not choose where a body is kept.
//
// # Invariants
//
//   - What Decode accepts, Append writes back byte for byte. The one exception
//     is a Tfsync without its last field, which some clients leave out.
//   - Decode takes no bytes after the last field, and allocates no more than
//     about the length of the body.
//   - Data of Twrite, Rread and Rreaddir is a part of the body that was given
//     to Decode, not a copy; all else is copied.
//
// # Errors
//
// They are fault.Error, and the kind says what a peer should do about them:
// fault.Invalid is a frame that breaks the protocol, after which nothing on the
// connection can be trusted; fault.Unsupported is a type that the dialect does
// not have, and fault.TooLarge a walk of too many names, both of which can be
// answered; an error of the connection itself is passed on as it is.
package wire
