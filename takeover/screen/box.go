package screen

import (
	"fmt"
	"strings"
)

// Lines and blocks are drawn, not written, so that they meet whatever the font.

// armWeights holds U+2500 to U+257F: how heavy each arm of a character is, in pairs
// of bits: left, right, up, down; 1 is light, 2 heavy and 3 double.
var armWeights = [128]uint8{
	0x05, 0x0a, 0x50, 0xa0, 0x05, 0x0a, 0x50, 0xa0, 0x05, 0x0a, 0x50, 0xa0, 0x44, 0x48, 0x84, 0x88,
	0x41, 0x42, 0x81, 0x82, 0x14, 0x18, 0x24, 0x28, 0x11, 0x12, 0x21, 0x22, 0x54, 0x58, 0x64, 0x94,
	0xa4, 0x68, 0x98, 0xa8, 0x51, 0x52, 0x61, 0x91, 0xa1, 0x62, 0x92, 0xa2, 0x45, 0x46, 0x49, 0x4a,
	0x85, 0x86, 0x89, 0x8a, 0x15, 0x16, 0x19, 0x1a, 0x25, 0x26, 0x29, 0x2a, 0x55, 0x56, 0x59, 0x5a,
	0x65, 0x95, 0xa5, 0x66, 0x69, 0x96, 0x99, 0x6a, 0x9a, 0xa6, 0xa9, 0xaa, 0x05, 0x0a, 0x50, 0xa0,
	0x0f, 0xf0, 0x4c, 0xc4, 0xcc, 0x43, 0xc1, 0xc3, 0x1c, 0x34, 0x3c, 0x13, 0x31, 0x33, 0x5c, 0xf4,
	0xfc, 0x53, 0xf1, 0xf3, 0x4f, 0xc5, 0xcf, 0x1f, 0x35, 0x3f, 0x5f, 0xf5, 0xff, 0x44, 0x41, 0x11,
	0x14, 0x00, 0x00, 0x00, 0x01, 0x10, 0x04, 0x40, 0x02, 0x20, 0x08, 0x80, 0x09, 0x90, 0x06, 0x60,
}

// quarters holds U+2596 to U+259F: which quarters of the cell are full; 1 upper
// left, 2 upper right, 4 lower left, 8 lower right.
var quarters = [10]uint8{4, 8, 1, 13, 9, 7, 11, 2, 6, 14}

// box is a rectangle of a picture.
type box struct{ x, y, w, h int }

// path adds boxes to b as parts of a path.
func path(b *strings.Builder, x, y int, boxes ...box) {
	for _, r := range boxes {
		fmt.Fprintf(b, "M%d %dh%dv%dh%dz", x+r.x, y+r.y, r.w, r.h, -r.w)
	}
}

// drawn tells whether shape draws r.
func drawn(r rune) bool {
	return r >= 0x2500 && r <= 0x2590 && (r < 0x2571 || r > 0x2573) || r >= 0x2594 && r <= 0x259f
}

// shape adds a character that drawn told of to a path, for the cell at (x, y).
func shape(b *strings.Builder, r rune, x, y int) {
	const w, h = cellWidth, cellHeight
	switch n := int(r - 0x2580); {
	case r >= 0x256d && r <= 0x2570:
		arc(b, armWeights[r-0x2500], x, y)
	case r < 0x2580:
		arms(b, armWeights[r-0x2500], x, y)
	case r == 0x2580:
		path(b, x, y, box{0, 0, w, h / 2})
	case r <= 0x2588: // lower eighths
		top := h - (h*n+4)/8
		path(b, x, y, box{0, top, w, h - top})
	case r <= 0x258f: // left eighths, from seven down to one
		path(b, x, y, box{0, 0, (w*(16-n) + 4) / 8, h})
	case r == 0x2590:
		path(b, x, y, box{w / 2, 0, w - w/2, h})
	case r == 0x2594:
		path(b, x, y, box{0, 0, w, h / 8})
	case r == 0x2595:
		path(b, x, y, box{w - 1, 0, 1, h})
	default:
		for i, q := range [4]box{{0, 0, w / 2, h / 2}, {w / 2, 0, w - w/2, h / 2}, {0, h / 2, w / 2, h / 2}, {w / 2, h / 2, w - w/2, h / 2}} {
			if quarters[r-0x2596]&(1<<i) != 0 {
				path(b, x, y, q)
			}
		}
	}
}

// The middle of a cell: the pixel that light lines run through.
const midX, midY = cellWidth / 2, cellHeight/2 - 1

// arms draws the lines of a character from the middle of the cell to its edges.
func arms(b *strings.Builder, all uint8, x, y int) {
	left, right, up, down := all&3, all>>2&3, all>>4&3, all>>6&3
	for _, s := range strokes(left, up, down) {
		path(b, x, y, box{0, midY + s.at, midX + s.inner + 1, s.width})
	}
	for _, s := range strokes(right, up, down) {
		path(b, x, y, box{midX - s.inner, midY + s.at, cellWidth - midX + s.inner, s.width})
	}
	for _, s := range strokes(up, left, right) {
		path(b, x, y, box{midX + s.at, 0, s.width, midY + s.inner + 1})
	}
	for _, s := range strokes(down, left, right) {
		path(b, x, y, box{midX + s.at, midY - s.inner, s.width, cellHeight - midY + s.inner})
	}
}

// stroke is one line of an arm: where it lies beside the middle, its width, and
// how far beyond the middle it reaches.
type stroke struct{ at, width, inner int }

// strokes returns the lines of an arm. before and after are the arms across it,
// on the side of lower and of higher coordinates: a double line stops at them
// on its own side, and reaches the far one on the other.
func strokes(weight, before, after uint8) []stroke {
	switch weight {
	case 1:
		return []stroke{{0, 1, 0}}
	case 2:
		return []stroke{{-1, 3, 1}}
	case 3:
		reach := func(near, far uint8) int {
			switch {
			case near == 3:
				return -2
			case far == 3:
				return 2
			}
			return 0
		}
		return []stroke{{-2, 1, reach(before, after)}, {2, 1, reach(after, before)}}
	}
	return nil
}

// arc draws a rounded corner: two short lines and a bow between them, as a band
// of one pixel.
func arc(b *strings.Builder, all uint8, x, y int) {
	sx, sy := 1, 1
	if all&3 != 0 {
		sx = -1
	}
	if all>>4&3 != 0 {
		sy = -1
	}
	cx, cy := float64(x)+midX+.5, float64(y)+midY+.5
	ex, ey := float64(x), float64(y)
	if sx > 0 {
		ex += cellWidth
	}
	if sy > 0 {
		ey += cellHeight
	}
	const r = 4
	hx, hy := .5*float64(sx), .5*float64(sy)
	bx, by := cx+float64(sx)*r, cy+float64(sy)*r
	fmt.Fprintf(b, "M%g %gH%gQ%g %g %g %gV%gH%gV%gQ%g %g %g %gH%gz",
		ex, cy-hy, bx, cx-hx, cy-hy, cx-hx, by, ey, cx+hx, by, cx+hx, cy+hy, bx, cy+hy, ex)
}
