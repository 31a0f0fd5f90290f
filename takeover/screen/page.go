package screen

// Page is what changed on a screen since a generation, for clients that draw it
// themselves. A client keeps the generation and asks for the next page with it.
type Page struct {
	Generation uint64 `json:"generation"`
	Cols       int    `json:"cols"`
	Rows       int    `json:"rows"`
	// Lines are the rows that changed; all of them when Full.
	Lines []Row `json:"lines"`
	// Full says that the client starts from a blank screen of Cols and Rows.
	Full bool `json:"full"`
	// Cursor is its row and column, from 0; nil while it is hidden.
	Cursor            *[2]int `json:"cursor,omitempty"`
	ApplicationCursor bool    `json:"application_cursor"`
	BracketedPaste    bool    `json:"bracketed_paste"`
}

// Row is one row of a page. Cells past its last span are blank.
type Row struct {
	Row   int    `json:"row"` // 0 is the top
	Spans []Span `json:"spans"`
}

// Span is a run of cells that look the same. Its text is printable; wide
// characters in it take two cells, and marks join the character before.
type Span struct {
	Text      string `json:"text"`
	FG        Color  `json:"fg,omitzero"`
	BG        Color  `json:"bg,omitzero"`
	Bold      bool   `json:"bold"`
	Italic    bool   `json:"italic"`
	Underline bool   `json:"underline"`
	Inverse   bool   `json:"inverse"`
}

// page returns what changed in f since a generation.
func (f *frame) page(after uint64) Page {
	p := Page{
		Generation: f.gen, Cols: f.cols, Rows: f.rows, Lines: []Row{},
		Full:              after < f.since || after > f.gen,
		ApplicationCursor: f.modes.ApplicationCursor, BracketedPaste: f.modes.BracketedPaste,
	}
	if f.modes.CursorVisible {
		p.Cursor = &[2]int{f.y, f.x}
	}
	for y, l := range f.lines {
		if p.Full || l.gen > after {
			p.Lines = append(p.Lines, Row{Row: y, Spans: l.spans()})
		}
	}
	return p
}

// spans returns the row's cells as spans that differ in what a Span can tell.
func (l *line) spans() []Span {
	out := []Span{}
	for _, s := range spansOf(l.cells) {
		next := Span{
			Text: s.text, FG: s.style.FG, BG: s.style.BG,
			Bold: s.style.Has(Bold), Italic: s.style.Has(Italic),
			Underline: s.style.Underline != NoUnderline, Inverse: s.style.Has(Inverse),
		}
		if n := len(out); n > 0 {
			last := out[n-1]
			last.Text = next.Text
			if last == next {
				out[n-1].Text += s.text
				continue
			}
		}
		out = append(out, next)
	}
	return out
}
