package wire

import (
	"encoding/binary"
	"math"

	"scvfs/ledger/fault"
)

var le = binary.LittleEndian

// coder reads or writes the fields of one message. After the first error it
// does nothing more.
type coder struct {
	b       []byte // what is left to read, or what was written
	writing bool
	dialect Dialect
	err     error
}

// take returns the next n bytes, nil if there are not as many.
func (c *coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.b) {
		c.fail(fault.Invalid, "the message ends before its fields do")
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

func (c *coder) fail(kind fault.Kind, format string, args ...any) {
	if c.err == nil {
		c.err = fault.New(kind, format, args...)
	}
}

func (c *coder) u8(v *uint8) {
	if c.writing {
		c.b = append(c.b, *v)
	} else if p := c.take(1); p != nil {
		*v = p[0]
	}
}

func (c *coder) u16(v *uint16) {
	if c.writing {
		c.b = le.AppendUint16(c.b, *v)
	} else if p := c.take(2); p != nil {
		*v = le.Uint16(p)
	}
}

func (c *coder) u32(v *uint32) {
	if c.writing {
		c.b = le.AppendUint32(c.b, *v)
	} else if p := c.take(4); p != nil {
		*v = le.Uint32(p)
	}
}

func (c *coder) u64(v *uint64) {
	if c.writing {
		c.b = le.AppendUint64(c.b, *v)
	} else if p := c.take(8); p != nil {
		*v = le.Uint64(p)
	}
}

// u32s and u64s are runs of fields.
func (c *coder) u32s(all ...*uint32) {
	for _, v := range all {
		c.u32(v)
	}
}

func (c *coder) u64s(all ...*uint64) {
	for _, v := range all {
		c.u64(v)
	}
}

func (c *coder) text(s *string) {
	if c.writing && len(*s) > math.MaxUint16 {
		c.fail(fault.TooLarge, "a text of %d bytes does not fit into a message; at most %d do", len(*s), math.MaxUint16)
		return
	}
	n := uint16(len(*s))
	if c.u16(&n); c.writing {
		c.b = append(c.b, *s...)
	} else if p := c.take(int(n)); p != nil {
		*s = string(p)
	}
}

func (c *coder) texts(all ...*string) {
	for _, s := range all {
		c.text(s)
	}
}

func (c *coder) qid(q *Qid) {
	c.u8(&q.Type)
	c.u32(&q.Version)
	c.u64(&q.Path)
}

// data is a run of bytes behind their number. It is not copied when read.
func (c *coder) data(p *[]byte) {
	if c.writing && uint64(len(*p)) > math.MaxUint32-DataHeader {
		c.fail(fault.TooLarge, "%d bytes do not fit into a message", len(*p))
		return
	}
	n := uint32(len(*p))
	if c.u32(&n); c.writing {
		c.b = append(c.b, *p...)
	} else {
		*p = c.take(int(n))
	}
}

// count is the number of names or qids of a walk: have of them when writing.
func (c *coder) count(have int) int {
	n := uint16(min(have, math.MaxUint16))
	c.u16(&n)
	if n > MaxWalk {
		c.fail(fault.TooLarge, "a walk of %d names is too long; at most %d are allowed", max(have, int(n)), MaxWalk)
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

func (c *coder) names(all *[]string) {
	n := c.count(len(*all))
	if !c.writing && n > 0 {
		*all = make([]string, n)
	}
	for i := range n {
		c.text(&(*all)[i])
	}
}

func (c *coder) qids(all *[]Qid) {
	n := c.count(len(*all))
	if !c.writing && n > 0 {
		*all = make([]Qid, n)
	}
	for i := range n {
		c.qid(&(*all)[i])
	}
}

// sized puts a 16 bit length before what inner codes, which must fill it.
func (c *coder) sized(inner func()) {
	var n uint16
	at := len(c.b)
	c.u16(&n)
	if c.writing {
		inner()
		if size := len(c.b) - at - 2; size <= math.MaxUint16 {
			le.PutUint16(c.b[at:], uint16(size))
		} else {
			c.fail(fault.TooLarge, "a record of %d bytes does not fit into a message", size)
		}
		return
	}
	part := c.take(int(n))
	if c.err != nil {
		return
	}
	rest := c.b
	c.b = part
	inner()
	if len(c.b) > 0 {
		c.fail(fault.Invalid, "a record is %d bytes longer than its fields", len(c.b))
	}
	c.b = rest
}
