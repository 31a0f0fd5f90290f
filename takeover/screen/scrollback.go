package screen

import "strings"

// DefaultScrollback is how many lines a Screen keeps when it is not told.
const DefaultScrollback = 5000

// maxHistory bounds the history in bytes too, for wide screens full of colour.
const maxHistory = 8 << 20

// span is a run of cells of one style, as the history keeps them.
type span struct {
	text  string
	style *Style
}

// history keeps the lines that left the primary screen at its top: the newest
// limit of them, and no more than maxHistory bytes. Each has a number, counted
// from 0; those from first to before next are here.
type history struct {
	limit       int
	lines       [][]span // a ring: line n is at n % cap
	first, next uint64
	size        int // bytes
}

const minRing = 64

func (h *history) len() int { return int(h.next - h.first) }

func (h *history) at(n uint64) *[]span { return &h.lines[n%uint64(len(h.lines))] }

func (h *history) push(line []span) {
	if h.limit <= 0 {
		return
	}
	for h.len() >= h.limit {
		h.dropOldest()
	}
	if h.len() == len(h.lines) {
		h.grow()
	}
	*h.at(h.next) = line
	h.next++
	h.size += lineSize(line)
	for h.size > maxHistory && h.len() > 1 {
		h.dropOldest()
	}
}

func (h *history) grow() {
	old := *h
	h.lines = make([][]span, max(minRing, 2*len(old.lines)))
	for n := old.first; n < old.next; n++ {
		*h.at(n) = *old.at(n)
	}
}

func (h *history) dropOldest() {
	p := h.at(h.first)
	h.size -= lineSize(*p)
	*p = nil
	h.first++
}

// pop takes the newest line back.
func (h *history) pop() []span {
	h.next--
	p := h.at(h.next)
	line := *p
	h.size -= lineSize(line)
	*p = nil
	return line
}

// clear forgets all lines. Their numbers are not used again.
func (h *history) clear() {
	h.lines, h.first, h.size = nil, h.next, 0
}

// text returns the lines up to before number end, oldest first, each cut after
// its last character.
func (h *history) text(end uint64) []string {
	end = min(end, h.next)
	lines := make([]string, 0, max(int(end)-int(h.first), 0))
	for n := h.first; n < end; n++ {
		var b strings.Builder
		for _, s := range *h.at(n) {
			b.WriteString(s.text)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

const (
	spanSize = 24
	lineBase = 24
)

func lineSize(line []span) int {
	n := lineBase + len(line)*spanSize
	for _, s := range line {
		n += len(s.text)
	}
	return n
}
