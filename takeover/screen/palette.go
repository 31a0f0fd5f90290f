package screen

// rgb is a colour as it is drawn.
type rgb [3]uint8

// The colours of a dark terminal, which programs are told when they ask and
// SVG draws.
var (
	defaultFG = rgb{0xd8, 0xd8, 0xd8}
	defaultBG = rgb{0x10, 0x10, 0x10}

	ansiColors = [16]rgb{
		{0x00, 0x00, 0x00},
		{0xcd, 0x31, 0x31},
		{0x0d, 0xbc, 0x79},
		{0xe5, 0xe5, 0x10},
		{0x24, 0x72, 0xc8},
		{0xbc, 0x3f, 0xbc},
		{0x11, 0xa8, 0xcd},
		{0xe5, 0xe5, 0xe5},
		{0x66, 0x66, 0x66},
		{0xf1, 0x4c, 0x4c},
		{0x23, 0xd1, 0x8b},
		{0xf5, 0xf5, 0x43},
		{0x3b, 0x8e, 0xea},
		{0xd6, 0x70, 0xd6},
		{0x29, 0xb8, 0xdb},
		{0xff, 0xff, 0xff},
	}
)

// palette returns colour i of the 256: 16 named ones, a cube of 6x6x6, and 24
// greys.
func palette(i uint8) rgb {
	switch {
	case i < 16:
		return ansiColors[i]
	case i < 232:
		i -= 16
		level := func(n uint8) uint8 {
			if n == 0 {
				return 0
			}
			return 55 + 40*n
		}
		return rgb{level(i / 36), level(i / 6 % 6), level(i % 6)}
	}
	grey := 8 + 10*(i-232)
	return rgb{grey, grey, grey}
}

// drawn returns the colour to draw c in; def where c is the default.
func (c Color) drawn(def rgb) rgb {
	if i, ok := c.Palette(); ok {
		return palette(i)
	}
	if r, g, b, ok := c.Direct(); ok {
		return rgb{r, g, b}
	}
	return def
}
