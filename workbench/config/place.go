package config

import (
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"
)

// place tells the lines of keys.
type place struct {
	path string
	meta *toml.MetaData
	top  map[string]toml.Primitive
}

// newPlace reads data again, which parses.
func newPlace(path string, data []byte) *place {
	p := &place{path: path}
	meta, err := toml.Decode(string(data), &p.top)
	if err != nil {
		p.top = nil
	}
	p.meta = &meta
	return p
}

// of returns file:line of a key, or of the innermost section around it that
// has a line, or else the file.
func (p *place) of(key ...string) string {
	in, line := p.top, 0
	for _, name := range key {
		at, ok := in[name]
		if !ok {
			break
		}
		if n := p.line(at); n > 0 {
			line = n
		}
		var inner map[string]toml.Primitive
		if p.meta.PrimitiveDecode(at, &inner) != nil {
			break
		}
		in = inner
	}
	if line == 0 {
		return p.path
	}
	return fmt.Sprintf("%s:%d", p.path, line)
}

// line asks the library for a value's line in the one way it tells: it names
// the place of a value that its receiver refuses.
func (p *place) line(at toml.Primitive) int {
	var refused toml.ParseError
	if errors.As(p.meta.PrimitiveDecode(at, refuser{}), &refused) {
		return refused.Position.Line
	}
	return 0
}

// refuser takes no value.
type refuser struct{}

var _ toml.Unmarshaler = refuser{}

var errRefused = errors.New("refused")

func (refuser) UnmarshalTOML(any) error { return errRefused }
