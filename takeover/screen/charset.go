package screen

// charsets are the four sets of a terminal and which of them is in use.
type charsets struct {
	sets [4]byte // the final byte that designated each; 0 and 'B' are ASCII
	gl   int     // which is in use
	next int     // which the next character alone is taken from, plus 1; 0: gl
}

// lineDrawing is DEC's special graphics set, from ` to ~.
var lineDrawing = [...]rune{
	'◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺',
	'⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}

// plain tells whether characters stand for themselves.
func (c *charsets) plain() bool {
	set := c.sets[c.gl]
	return c.next == 0 && set != '0' && set != 'A'
}

// translate returns what r stands for, ending a single shift.
func (c *charsets) translate(r rune) rune {
	set := c.sets[c.gl]
	if c.next > 0 {
		set = c.sets[c.next-1]
		c.next = 0
	}
	switch {
	case set == '0' && r >= '`' && r <= '~':
		return lineDrawing[r-'`']
	case set == 'A' && r == '#':
		return '£'
	}
	return r
}

// designate carries out ESC ( F and its kin, and tells whether it was one.
func (c *charsets) designate(inter, final byte) bool {
	switch inter {
	case '(':
		c.sets[0] = final
	case ')', '-':
		c.sets[1] = final
	case '*', '.':
		c.sets[2] = final
	case '+', '/':
		c.sets[3] = final
	default:
		return false
	}
	return true
}
