package screen

import "unicode/utf8"

// vt10x has one rune and 24 bits of colour for a cell. What a cell of ours
// holds beyond that is kept in tables, and the cell has its number there: the
// whole style as the colour, and a character of several runes as a rune of the
// last private plane.

const (
	firstCluster = rune(0x100000)
	lastCluster  = rune(0x10fffc)
	filler       = rune(0x10fffd) // the right half of a wide character
	blank        = ' '

	maxClusters    = int(lastCluster-firstCluster) + 1
	maxStyles      = 1 << 18 // more than the cells of both screens
	maxClusterSize = 64      // bytes; marks beyond that are dropped
)

// styleID numbers a style in a pool. 0 is the default style.
type styleID uint32

// cluster is a character of more than one rune, or one that a cell cannot hold
// as it is.
type cluster struct {
	text  string
	width int
}

// pool numbers the styles and clusters that cells refer to.
type pool struct {
	styles   *table[Style]
	pointers []*Style // of each style's current number, for frames to keep
	clusters *table[cluster]
	mark     func(*usage) // marks what is in use
}

// usage is what the owner of a pool marks as in use.
type usage struct {
	styles   []bool
	clusters []bool
}

func (u *usage) cell(r rune, id styleID) {
	u.styles[id] = true
	if r >= firstCluster && r <= lastCluster {
		u.clusters[r-firstCluster] = true
	}
}

func newPool(mark func(*usage)) *pool {
	p := &pool{styles: newTable[Style](maxStyles), clusters: newTable[cluster](maxClusters), mark: mark}
	p.styleOf(Style{})
	return p
}

// styleOf returns the number of s; the default's when more styles are in use
// than the pool can number.
func (p *pool) styleOf(s Style) styleID {
	id, ok := p.styles.id(s, p.sweep)
	if !ok {
		return 0
	}
	if id == len(p.pointers) {
		p.pointers = append(p.pointers, nil)
	}
	if p.pointers[id] == nil || *p.pointers[id] != s {
		kept := s
		p.pointers[id] = &kept
	}
	return styleID(id)
}

// style returns what id stands for. Nothing changes it later.
func (p *pool) style(id styleID) *Style { return p.pointers[id] }

// runeOf returns the rune that stands for a cluster; its first rune when more
// clusters are in use than the pool can number.
func (p *pool) runeOf(c cluster) rune {
	if id, ok := p.clusters.id(c, p.sweep); ok {
		return firstCluster + rune(id)
	}
	r, _ := utf8.DecodeRuneInString(c.text)
	if r >= firstCluster {
		r = utf8.RuneError
	}
	return r
}

// cluster returns what a cell's rune stands for.
func (p *pool) cluster(r rune) (cluster, bool) {
	if i := int(r - firstCluster); i >= 0 && i < len(p.clusters.entries) {
		return p.clusters.entries[i], true
	}
	return cluster{}, false
}

// width returns the cells that a cell's rune takes; 0 for a filler.
func (p *pool) width(r rune) int {
	if r < 0x1100 {
		return 1
	}
	if r == filler {
		return 0
	}
	if c, ok := p.cluster(r); ok {
		return c.width
	}
	return max(runeWidth(r), 1)
}

// sweep forgets what is not in use.
func (p *pool) sweep() {
	u := &usage{styles: make([]bool, len(p.styles.entries)), clusters: make([]bool, len(p.clusters.entries))}
	u.styles[0] = true
	p.mark(u)
	p.styles.keep(u.styles)
	p.clusters.keep(u.clusters)
}
