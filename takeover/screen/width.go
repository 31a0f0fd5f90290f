package screen

import (
	"unicode"

	"github.com/mattn/go-runewidth"
)

// The widths are those of xterm.js with its Unicode 11 table, for every
// character that the table knows; later characters have the width that
// go-runewidth gives them. Neither ambiguous width nor the locale plays a part,
// a variation selector widens nothing, and characters that a joiner joins take
// the cells of each: that is how the programs' authors see them in tmux and
// xterm.js.

// condition is go-runewidth's, set once: the library's own default follows the
// locale.
var condition = func() *runewidth.Condition {
	c := runewidth.NewCondition()
	c.EastAsianWidth = false
	c.StrictEmojiNeutral = true
	return c
}()

// zeroWidth, oneWide and twoWide are where xterm.js's table and go-runewidth's
// newer one differ over characters that both know.
var (
	zeroWidth = &unicode.RangeTable{
		R16: []unicode.Range16{
			{Lo: 0x0600, Hi: 0x0605, Stride: 1}, // Arabic number signs
			{Lo: 0x06dd, Hi: 0x08e2, Stride: 0x08e2 - 0x06dd},
			{Lo: 0x1160, Hi: 0x11ff, Stride: 1}, // Hangul vowels and finals
			{Lo: 0x1734, Hi: 0x1734, Stride: 1},
		},
		R32: []unicode.Range32{
			{Lo: 0x110bd, Hi: 0x110cd, Stride: 0x10},
			{Lo: 0x1171e, Hi: 0x1171e, Stride: 1},
			{Lo: 0xe0020, Hi: 0xe007f, Stride: 1}, // tags
		},
	}
	oneWide = &unicode.RangeTable{
		R16: []unicode.Range16{
			{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
			{Lo: 0x2028, Hi: 0x2029, Stride: 1},
			{Lo: 0x2630, Hi: 0x2637, Stride: 1}, // trigrams
			{Lo: 0x268a, Hi: 0x268f, Stride: 1},
			{Lo: 0x4dc0, Hi: 0x4dff, Stride: 1}, // hexagrams
			{Lo: 0xfffe, Hi: 0xffff, Stride: 1},
		},
		R32: []unicode.Range32{
			{Lo: 0x1d165, Hi: 0x1d166, Stride: 1}, // musical signs
			{Lo: 0x1d16d, Hi: 0x1d172, Stride: 1},
			{Lo: 0x1d300, Hi: 0x1d356, Stride: 1}, // Tai Xuan Jing symbols
			{Lo: 0x1d360, Hi: 0x1d376, Stride: 1}, // counting rods
		},
		LatinOffset: 1,
	}
	twoWide = &unicode.RangeTable{
		R32: []unicode.Range32{{Lo: 0x1f93b, Hi: 0x1f946, Stride: 0x1f946 - 0x1f93b}},
	}
)

// runeWidth returns how many cells r takes: 0 when it joins the one before it.
func runeWidth(r rune) int {
	switch {
	case r >= 0x20 && r < 0x7f || r >= 0xa1 && r < 0xad:
		return 1
	case r < 0xa0:
		return 0
	case r >= 0x2500 && r < 0x25fd: // lines, blocks and shapes, which screens are full of
		return 1
	case unicode.Is(oneWide, r):
		return 1
	case unicode.Is(zeroWidth, r):
		return 0
	case unicode.Is(twoWide, r):
		return 2
	}
	return condition.RuneWidth(r)
}

// hiddenControls are format characters that reorder or break the text around
// them, which no cell may do to its neighbours.
var hiddenControls = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // line, paragraph; bidi embeddings and overrides
		{Lo: 0x2066, Hi: 0x206f, Stride: 1}, // bidi isolates, deprecated shaping controls
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, // interlinear annotation
	},
	R32: []unicode.Range32{{Lo: 0xe0001, Hi: 0xe0001, Stride: 1}},
}

// printable tells whether r may be a part of a cell's text. Unknown and private
// characters may: fonts have pictures for them.
func printable(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return false
	case r < 0x2028:
		return true
	case r >= 0xd800 && r < 0xe000 || r&0xfffe == 0xfffe || r > unicode.MaxRune:
		return false
	}
	return !unicode.Is(hiddenControls, r)
}
