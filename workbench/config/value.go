package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	second = Duration(time.Second)
	minute = Duration(time.Minute)
	hour   = Duration(time.Hour)
)

// Duration is a length of time; in the file it is a text such as "1h30m".
type Duration time.Duration

// Duration returns it as the standard library's.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String returns it as the file spells it: "1h", not "1h0m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size is a number of bytes; in the file it is a number, or a text such as
// "4MiB".
type Size int64

var units = []struct {
	name string
	size Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns it in the largest unit that keeps it whole.
func (s Size) String() string {
	for _, u := range units {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0"
}

func parseSize(text string) (Size, bool) {
	for _, u := range units {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			return Size(n) * u.size, err == nil && n >= 0 && n <= int64(1<<62/u.size)
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Size(n), err == nil
}

// Terminal is the size of a terminal; in the file a text such as "120x40".
type Terminal struct{ Cols, Rows int }

// The bounds of a terminal's size.
const (
	MinCols, MaxCols = 20, 500
	MinRows, MaxRows = 5, 200
)

func (t *Terminal) set(from any) error {
	s, _ := from.(string)
	cols, rows, _ := strings.Cut(s, "x")
	c, errC := strconv.Atoi(cols)
	r, errR := strconv.Atoi(rows)
	if errC != nil || errR != nil || c < MinCols || c > MaxCols || r < MinRows || r > MaxRows {
		return fmt.Errorf(`takes a size from "%dx%d" to "%dx%d"`, MinCols, MinRows, MaxCols, MaxRows)
	}
	t.Cols, t.Rows = c, r
	return nil
}

func (t *Terminal) render() string { return fmt.Sprintf(`"%dx%d"`, t.Cols, t.Rows) }

type text struct {
	p     *string
	words []string // all there are; nil: any text on one line
	path  bool     // absolute, or in the home directory
}

func (v *text) set(from any) error {
	s, ok := from.(string)
	switch {
	case !ok || s == "" || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("takes a text on one line")
	case v.words != nil && !slices.Contains(v.words, s):
		return fmt.Errorf("takes one of %s", strings.Join(v.words, ", "))
	}
	if v.path && !filepath.IsAbs(s) && s != "~" && !strings.HasPrefix(s, "~/") {
		return fmt.Errorf("takes an absolute path, or one that begins with ~/")
	}
	*v.p = s
	return nil
}

func (v *text) render() string { return quote(*v.p) }

type count struct {
	p        *int
	min, max int
}

func (v *count) set(from any) error {
	n, ok := from.(int64)
	if !ok || n < int64(v.min) || n > int64(v.max) {
		return fmt.Errorf("takes a whole number from %d to %d", v.min, v.max)
	}
	*v.p = int(n)
	return nil
}

func (v *count) render() string { return strconv.Itoa(*v.p) }

type span struct {
	p        *Duration
	min, max Duration
}

func (v *span) set(from any) error {
	s, _ := from.(string)
	d, err := time.ParseDuration(s)
	if err != nil || Duration(d) < v.min || Duration(d) > v.max {
		return fmt.Errorf(`takes a duration from "%s" to "%s"`, v.min, v.max)
	}
	*v.p = Duration(d)
	return nil
}

func (v *span) render() string { return quote(v.p.String()) }

type volume struct {
	p        *Size
	min, max Size
}

func (v *volume) set(from any) error {
	var n Size
	ok := false
	switch from := from.(type) {
	case int64:
		n, ok = Size(from), true
	case string:
		n, ok = parseSize(from)
	}
	if !ok || n < v.min || n > v.max {
		return fmt.Errorf(`takes a size from %s to "%s", such as "4MiB" or a number of bytes`, strconv.Quote(v.min.String()), v.max)
	}
	*v.p = n
	return nil
}

func (v *volume) render() string {
	if *v.p == 0 {
		return "0"
	}
	return quote(v.p.String())
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
