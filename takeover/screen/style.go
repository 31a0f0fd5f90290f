package screen

import "encoding/json"

// Color is a colour of a cell: the default, one of the palette, or RGB.
type Color uint32

const (
	indexed Color = 1 << 24
	direct  Color = 2 << 24
)

// Default is the terminal's own foreground or background.
const Default Color = 0

// Index returns colour i of the 256-colour palette.
func Index(i uint8) Color { return indexed | Color(i) }

// RGB returns a direct colour.
func RGB(r, g, b uint8) Color {
	return direct | Color(r)<<16 | Color(g)<<8 | Color(b)
}

// Palette tells whether c is one of the palette, and which.
func (c Color) Palette() (i uint8, ok bool) { return uint8(c), c&^0xff == indexed }

// Direct tells whether c is an RGB colour, and which.
func (c Color) Direct() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&^0xffffff == direct
}

// MarshalJSON writes {"Index":n} or {"Rgb":[r,g,b]}, and null for Default.
func (c Color) MarshalJSON() ([]byte, error) {
	if i, ok := c.Palette(); ok {
		return json.Marshal(struct{ Index uint8 }{i})
	}
	if r, g, b, ok := c.Direct(); ok {
		return json.Marshal(struct{ Rgb [3]int }{[3]int{int(r), int(g), int(b)}})
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Color) UnmarshalJSON(b []byte) error {
	var v struct {
		Index *uint8
		Rgb   *[3]uint8
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch *c = Default; {
	case v.Index != nil:
		*c = Index(*v.Index)
	case v.Rgb != nil:
		*c = RGB(v.Rgb[0], v.Rgb[1], v.Rgb[2])
	}
	return nil
}

// Attr is a set of a cell's attributes.
type Attr uint8

// The attributes.
const (
	Bold Attr = 1 << iota
	Dim
	Italic
	Blink
	Inverse
	Hidden
	Strike
	Overline
)

// Underline is the shape of a cell's underline.
type Underline uint8

// The underlines, with SGR's numbers.
const (
	NoUnderline Underline = iota
	SingleUnderline
	DoubleUnderline
	CurlyUnderline
	DottedUnderline
	DashedUnderline
)

// Style is how a cell is drawn. The zero Style is the default.
type Style struct {
	FG, BG         Color
	UnderlineColor Color // Default: as the text
	Attr           Attr
	Underline      Underline
}

// Has tells whether all of a are set.
func (s Style) Has(a Attr) bool { return s.Attr&a == a }

// erased is the style of cells that are erased or scrolled in while s is in
// force: its background alone.
func (s Style) erased() Style { return Style{BG: s.BG} }

// sgr applies a select-graphic-rendition sequence. What it does not know, it
// leaves alone.
func (s *Style) sgr(params []param) {
	if len(params) == 0 {
		*s = Style{}
		return
	}
	for i := 0; i < len(params); {
		subs := 1
		for i+subs < len(params) && params[i+subs].sub {
			subs++
		}
		i += s.rendition(params[i:i+subs], params[i+subs:]) + subs
	}
}

// rendition applies one parameter with its subparameters and returns how many
// of the parameters behind it belong to it.
func (s *Style) rendition(p, behind []param) int {
	switch n := max(p[0].value, 0); {
	case n == 38 || n == 48 || n == 58:
		return s.extended(n, p[1:], behind)
	case n >= 30 && n <= 37:
		s.FG = Index(uint8(n - 30))
	case n >= 40 && n <= 47:
		s.BG = Index(uint8(n - 40))
	case n >= 90 && n <= 97:
		s.FG = Index(uint8(n - 90 + 8))
	case n >= 100 && n <= 107:
		s.BG = Index(uint8(n - 100 + 8))
	case n == 4 && len(p) > 1:
		s.Underline = SingleUnderline
		if v := p[1].value; v >= 0 && v <= int(DashedUnderline) {
			s.Underline = Underline(v)
		}
	default:
		s.attribute(n)
	}
	return 0
}

// switches are the attributes that a parameter sets and clears.
var switches = map[int]struct{ set, clear Attr }{
	1: {set: Bold}, 2: {set: Dim}, 3: {set: Italic}, 5: {set: Blink}, 6: {set: Blink},
	7: {set: Inverse}, 8: {set: Hidden}, 9: {set: Strike}, 53: {set: Overline},
	22: {clear: Bold | Dim}, 23: {clear: Italic}, 25: {clear: Blink}, 27: {clear: Inverse},
	28: {clear: Hidden}, 29: {clear: Strike}, 55: {clear: Overline},
}

func (s *Style) attribute(n int) {
	switch n {
	case 0:
		*s = Style{}
	case 4:
		s.Underline = SingleUnderline
	case 21:
		s.Underline = DoubleUnderline
	case 24:
		s.Underline = NoUnderline
	case 39:
		s.FG = Default
	case 49:
		s.BG = Default
	case 59:
		s.UnderlineColor = Default
	default:
		v := switches[n]
		s.Attr = s.Attr&^v.clear | v.set
	}
}

// extended sets a colour of the palette or an RGB one: 38:5:n, 38:2::r:g:b and
// 38:2:r:g:b with colons, or 38;5;n and 38;2;r;g;b with semicolons, which take
// parameters from behind.
func (s *Style) extended(which int, subs, behind []param) int {
	args, taken := subs, 0
	if len(subs) == 0 {
		for taken < len(behind) && taken < 4 && !behind[taken].sub {
			taken++
			if behind[0].value == 5 && taken == 2 {
				break
			}
		}
		args = behind[:taken]
	} else if len(subs) > 4 && subs[0].value == 2 {
		args = append([]param{subs[0]}, subs[2:5]...) // the colour space is of no use
	}
	var c Color
	switch {
	case len(args) >= 2 && args[0].value == 5:
		c = Index(uint8(max(args[1].value, 0)))
	case len(args) >= 4 && args[0].value == 2:
		c = RGB(uint8(max(args[1].value, 0)), uint8(max(args[2].value, 0)), uint8(max(args[3].value, 0)))
	default:
		return taken
	}
	switch which {
	case 38:
		s.FG = c
	case 48:
		s.BG = c
	default:
		s.UnderlineColor = c
	}
	return taken
}
