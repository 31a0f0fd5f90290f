package screen

import (
	"slices"
	"strings"
)

// text returns the frame as text: a line for each row, without the blanks at
// its end.
func (f *frame) text() string {
	var b strings.Builder
	b.Grow(f.rows * (f.cols + 1))
	for _, l := range f.lines {
		b.WriteString(l.text())
		b.WriteByte('\n')
	}
	return b.String()
}

// ansi returns the frame as text with colours, made from the cells. Each line
// stands for itself: it begins and ends in the default style.
func (f *frame) ansi() string {
	var b strings.Builder
	for _, l := range f.lines {
		styled := false
		for _, s := range spansOf(l.cells) {
			if params := s.style.params(); len(params) > 0 || styled {
				b.WriteString("\x1b[" + strings.Join(slices.Concat([]string{"0"}, params), ";") + "m")
				styled = len(params) > 0
			}
			b.WriteString(s.text)
		}
		if styled {
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
