package wire

import (
	"bufio"
	"errors"
	"io"

	"scvfs/ledger/fault"
)

// Header is the first seven bytes of a frame.
type Header struct {
	Size uint32 // of the whole frame
	Type Type
	Tag  uint16
}

// Body returns how many bytes follow the header.
func (h Header) Body() int { return int(h.Size) - HeaderSize }

// ReadHeader takes the header of the next frame off r. A frame of more than
// most bytes, or of fewer than a header has, is fault.Invalid. The error is
// io.EOF when the connection ends between two frames, io.ErrUnexpectedEOF when
// it ends within a header. r must have a buffer of at least HeaderSize.
func ReadHeader(r *bufio.Reader, most uint32) (Header, error) {
	p, err := r.Peek(HeaderSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(p) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return Header{}, err
	}
	h := Header{Size: le.Uint32(p), Type: Type(p[4]), Tag: le.Uint16(p[5:])}
	if h.Size < HeaderSize || h.Size > most {
		return h, fault.New(fault.Invalid, "a frame of %d bytes came; one has %d to %d here", h.Size, HeaderSize, most)
	}
	_, err = r.Discard(HeaderSize)
	return h, err
}

// ReadMessage reads the next frame off r and decodes it. Its errors are those
// of ReadHeader and Decode, and io.ErrUnexpectedEOF for half a frame. The
// header is that of the frame whenever one could be read.
func ReadMessage(r *bufio.Reader, d Dialect, most uint32) (Header, Message, error) {
	h, err := ReadHeader(r, most)
	if err != nil {
		return h, nil, err
	}
	body := make([]byte, h.Body())
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	m, err := Decode(d, h.Type, body)
	return h, m, err
}

// Decode makes a message of the body of a frame. Data of the message is a part
// of body. It fails with fault.Unsupported for a type that the dialect does not
// have, fault.TooLarge for a walk of too many names, and fault.Invalid for a
// body that is no message of the type.
func Decode(d Dialect, t Type, body []byte) (Message, error) {
	m := newMessage(d, t)
	if m == nil {
		return nil, fault.New(fault.Unsupported, "%s has no message of type %d", d, uint8(t))
	}
	c := coder{b: body, dialect: d}
	m.code(&c)
	if len(c.b) > 0 {
		c.fail(fault.Invalid, "the message has %d bytes after its last field", len(c.b))
	}
	if c.err != nil {
		return nil, fault.In(t.String(), "", c.err)
	}
	return m, nil
}

// Append appends the frame of a message to b. It fails with fault.TooLarge
// where a field is longer than its length can say, and returns b as it was.
func Append(b []byte, d Dialect, tag uint16, m Message) ([]byte, error) {
	start := len(b)
	c := coder{writing: true, dialect: d}
	c.b = append(b, 0, 0, 0, 0, byte(m.Type()), byte(tag), byte(tag>>8))
	m.code(&c)
	if c.err != nil {
		return b, fault.In(m.Type().String(), "", c.err)
	}
	le.PutUint32(c.b[start:], uint32(len(c.b)-start))
	return c.b, nil
}

// PutData makes an answer with data, of type Rread or Rreaddir, out of a
// buffer whose data begins at DataHeader, and returns the frame. It copies
// nothing.
func PutData(buf []byte, tag uint16, t Type, n int) []byte {
	frame := buf[:DataHeader+n]
	le.PutUint32(frame, uint32(len(frame)))
	frame[4] = byte(t)
	le.PutUint16(frame[5:], tag)
	le.PutUint32(frame[HeaderSize:], uint32(n))
	return frame
}
