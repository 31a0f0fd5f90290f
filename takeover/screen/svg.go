package screen

import (
	"encoding/xml"
	"fmt"
	"strings"
)

const (
	fontSize = 15 // the advance of common fixed fonts is 0.6 of it: cellWidth
	baseline = 15 // below the top of a cell
	fonts    = "'DejaVu Sans Mono','Menlo','Consolas','Noto Sans Mono','Liberation Mono',monospace"
)

// svg returns a picture of the frame: the cells with their colours and
// attributes, and the cursor.
func (f *frame) svg() string {
	fg, bg := defaultFG, defaultBG
	if f.modes.Reverse {
		fg, bg = bg, fg
	}
	w, h := f.cols*cellWidth, f.rows*cellHeight
	p := &picture{fg: fg, bg: bg}
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="%s" font-size="%d" xml:space="preserve">`+"\n", w, h, w, h, fonts, fontSize)
	if f.title != "" {
		p.b.WriteString("<title>" + escapeXML(f.title) + "</title>\n")
	}
	fmt.Fprintf(&p.b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", w, h, bg)
	for y, l := range f.lines {
		p.row(l.cells, y)
	}
	if f.modes.CursorVisible {
		p.cursor(f)
	}
	p.b.WriteString("</svg>\n")
	return p.b.String()
}

// picture is an SVG while it is drawn.
type picture struct {
	b      strings.Builder
	fg, bg rgb
}

func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// row draws a row: first all its backgrounds, so that no glyph that reaches
// over its cell is cut, then what is on them.
func (p *picture) row(cells []cell, y int) {
	for _, ground := range []bool{true, false} {
		for x := 0; x < len(cells); {
			end := x + 1
			for end < len(cells) && cells[end].style == cells[x].style {
				end++
			}
			fg, bg := p.colors(*cells[x].style)
			switch {
			case !ground:
				p.glyphs(cells[x:end], x, y, fg)
			case bg != p.bg:
				fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n",
					x*cellWidth, y*cellHeight, (end-x)*cellWidth, cellHeight, bg)
			}
			x = end
		}
	}
}

// colors returns what a style is drawn in.
func (p *picture) colors(s Style) (fg, bg rgb) {
	fg, bg = s.FG.drawn(p.fg), s.BG.drawn(p.bg)
	if s.Has(Inverse) {
		fg, bg = bg, fg
	}
	if s.Has(Hidden) {
		fg = bg
	}
	if s.Has(Dim) {
		for i := range fg {
			fg[i] = uint8((int(fg[i])*3 + int(bg[i])*2) / 5)
		}
	}
	return fg, bg
}

// glyphs draws the characters of cells of one style, and the lines at them.
func (p *picture) glyphs(cells []cell, x, y int, fg rgb) {
	style := *cells[0].style
	if style.Has(Hidden) {
		return
	}
	var shapes strings.Builder
	for i := 0; i < len(cells); i++ {
		c := &cells[i]
		px, py := (x+i)*cellWidth, y*cellHeight
		switch {
		case c.width == 0 || c.empty():
		case c.rest == "" && drawn(c.r):
			shape(&shapes, c.r, px, py)
		case c.rest == "" && c.r >= 0x2591 && c.r <= 0x2593:
			fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" fill-opacity="0.%d"/>`+"\n",
				px, py, cellWidth, cellHeight, fg, 25*(c.r-0x2590))
		case c.plain():
			n := 1
			for i+n < len(cells) && cells[i+n].plain() {
				n++
			}
			p.text(cells[i:i+n], px, py, fg)
			i += n - 1
		default:
			p.text(cells[i:i+1], px, py, fg)
		}
	}
	if shapes.Len() > 0 {
		fmt.Fprintf(&p.b, `<path fill="%s" d="%s"/>`+"\n", fg, shapes.String())
	}
	p.rules(style, x*cellWidth, y*cellHeight, len(cells)*cellWidth, fg)
}

// plain tells whether fixed fonts have the cell's character in their own width.
func (c *cell) plain() bool { return c.r < 0x250 && c.rest == "" && c.width == 1 }

// text draws characters one after the other, or one that a font may give
// another width in the middle of its cells.
func (p *picture) text(cells []cell, px, py int, fg rgb) {
	var s strings.Builder
	for i := range cells {
		cells[i].text(&s)
	}
	content := strings.TrimRight(s.String(), " ")
	style := cells[0].style
	attrs := ""
	if style.Has(Bold) {
		attrs += ` font-weight="bold"`
	}
	if style.Has(Italic) {
		attrs += ` font-style="italic"`
	}
	if n := len([]rune(content)); cells[0].plain() {
		attrs += fmt.Sprintf(` textLength="%d"`, n*cellWidth)
	} else {
		attrs += ` text-anchor="middle"`
		px += int(cells[0].width) * cellWidth / 2
	}
	fmt.Fprintf(&p.b, `<text x="%d" y="%d" fill="%s"%s>%s</text>`+"\n", px, py+baseline, fg, attrs, escapeXML(content))
}

// rules draws underlines, strikes and overlines.
func (p *picture) rules(s Style, x, y, w int, fg rgb) {
	line := func(at int, c rgb, dashes string) {
		if dashes != "" {
			dashes = fmt.Sprintf(` stroke-dasharray="%s"`, dashes)
		}
		fmt.Fprintf(&p.b, `<path stroke="%s"%s d="M%d %d.5h%d"/>`+"\n", c, dashes, x, y+at, w)
	}
	under := s.UnderlineColor.drawn(fg)
	switch s.Underline {
	case NoUnderline:
	case DoubleUnderline:
		line(16, under, "")
		line(18, under, "")
	case CurlyUnderline:
		fmt.Fprintf(&p.b, `<path stroke="%s" fill="none" d="M%d %dq2.25 -3 4.5 0%s"/>`+"\n",
			under, x, y+18, strings.Repeat("t4.5 0", max(2*w/cellWidth-1, 0)))
	case DottedUnderline:
		line(17, under, "1 2")
	case DashedUnderline:
		line(17, under, "5 4")
	default:
		line(17, under, "")
	}
	if s.Has(Strike) {
		line(cellHeight/2, fg, "")
	}
	if s.Has(Overline) {
		line(0, fg, "")
	}
}

// cursor draws the cursor in its shape, without hiding what is under it.
func (p *picture) cursor(f *frame) {
	x, y, w := f.x*cellWidth, f.y*cellHeight, cellWidth
	if f.lines[f.y].cells[f.x].width == 2 {
		w *= 2
	}
	h := cellHeight
	switch f.modes.CursorShape {
	case 3, 4:
		y, h = y+cellHeight-2, 2
	case 5, 6:
		w = 2
	}
	fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" fill-opacity="0.5"/>`+"\n", x, y, w, h, p.fg)
}

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes all
	return b.String()
}
