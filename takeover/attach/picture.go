package attach

import (
	"slices"

	"scvfs/ledger/fault"
	"scvfs/takeover/screen"
)

// style is how a cell looks, as far as pages tell.
type style struct {
	fg, bg                           screen.Color
	bold, italic, underline, inverse bool
}

// cell is one cell. The right half of a wide character has width 0 and no text.
type cell struct {
	text  string
	width int
	style style
}

var blank = cell{text: " ", width: 1}

// picture is a screen as the pages tell it. Its rows are replaced and never
// changed, so a copy of their slice is a copy of the picture.
type picture struct {
	cols, rows int
	lines      [][]cell // of cols cells each, or nil: blank
	cursor     *[2]int  // row and column; nil while hidden

	applicationCursor, bracketedPaste bool
}

// apply brings a page into the picture. Rows that do not lie in it are left
// out; fault.Invalid for a size that no screen has.
func (p *picture) apply(page *screen.Page, m *measure) error {
	if page.Cols < 1 || page.Cols > screen.MaxCols || page.Rows < 1 || page.Rows > screen.MaxRows {
		return fault.New(fault.Invalid, "the tree tells of a screen of %dx%d, which there is not", page.Cols, page.Rows)
	}
	if page.Full || p.cols != page.Cols || p.rows != page.Rows {
		p.cols, p.rows, p.lines = page.Cols, page.Rows, make([][]cell, page.Rows)
	}
	for _, r := range page.Lines {
		if r.Row >= 0 && r.Row < p.rows {
			p.lines[r.Row] = layout(r.Spans, p.cols, m)
		}
	}
	p.cursor, p.applicationCursor, p.bracketedPaste = page.Cursor, page.ApplicationCursor, page.BracketedPaste
	return nil
}

// copy returns the picture as it is now.
func (p *picture) copy() picture {
	c := *p
	c.lines = slices.Clone(p.lines)
	return c
}

// layout returns the cells of a row, cols in number.
func layout(spans []screen.Span, cols int, m *measure) []cell {
	cells := make([]cell, 0, cols)
	for _, s := range spans {
		st := style{s.FG, s.BG, s.Bold, s.Italic, s.Underline, s.Inverse}
		for _, r := range s.Text {
			g := m.of(r)
			if g.width == 0 {
				if g.text != "" {
					cells = joined(cells, g.text, st)
				}
				continue
			}
			cells = append(cells, cell{g.text, g.width, st})
			if g.width == 2 {
				cells = append(cells, cell{"", 0, st})
			}
		}
	}
	for len(cells) < cols {
		cells = append(cells, blank)
	}
	return cut(cells, 0, cols)
}

// maxMarks bounds the text of one cell, in bytes.
const maxMarks = 64

// joined adds a mark to the last character; without one, to a blank.
func joined(cells []cell, mark string, st style) []cell {
	i := len(cells) - 1
	if i >= 0 && cells[i].width == 0 {
		i--
	}
	if i < 0 {
		return append(cells, cell{" " + mark, 1, st})
	}
	if len(cells[i].text)+len(mark) <= maxMarks {
		cells[i].text += mark
	}
	return cells
}

// cut returns at most n cells from left on. The half of a wide character that
// an edge leaves is blank, in its style.
func cut(cells []cell, left, n int) []cell {
	if left >= len(cells) {
		return nil
	}
	part := cells[left:min(left+n, len(cells))]
	first, last := part[0].width == 0, part[len(part)-1].width == 2
	if !first && !last {
		return part
	}
	part = slices.Clone(part)
	if first {
		part[0] = cell{" ", 1, part[0].style}
	}
	if last {
		part[len(part)-1] = cell{" ", 1, part[len(part)-1].style}
	}
	return part
}

// pan returns where a window of n cells onto size begins, moved from edge as
// little as shows the cell at; at is below 0 when no cell has to be shown.
func pan(edge, n, size, at int) int {
	edge = max(0, min(edge, size-n))
	if size > n && at >= 0 {
		edge = max(min(edge, at), at-n+1)
	}
	return edge
}
