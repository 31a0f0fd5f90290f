package agent

import "bytes"

// MaxLine is the longest line that a parser takes; a longer one is skipped.
// Agents put whole files and answers on one line.
const MaxLine = 16 << 20

// Lines cuts output into lines and remembers what of the last one has come.
// Its fields are its state.
type Lines struct {
	Offset  int64  `json:"offset"`            // bytes taken
	Part    []byte `json:"part,omitempty"`    // the line that has not ended
	Skipped int64  `json:"skipped,omitempty"` // its length so far, when it is too long to keep
}

// Feed calls line for each line that ends in p, without its newline, with the
// count of bytes up to there. A line that was skipped is nil and has a length.
// The slice is only good until line returns.
func (l *Lines) Feed(p []byte, line func(end int64, text []byte, skipped int64)) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			l.keep(p)
			return
		}
		rest := p[n+1:]
		if l.Skipped == 0 && len(l.Part) == 0 && n <= MaxLine {
			l.Offset += int64(n + 1)
			line(l.Offset, trimReturn(p[:n]), 0)
		} else {
			l.keep(p[:n])
			l.Offset++
			l.end(line)
		}
		p = rest
	}
}

// Flush takes what has no newline after it for a line.
func (l *Lines) Flush(line func(end int64, text []byte, skipped int64)) {
	if len(l.Part) > 0 || l.Skipped > 0 {
		l.end(line)
	}
}

// keep adds to the line that has not ended.
func (l *Lines) keep(p []byte) {
	l.Offset += int64(len(p))
	switch {
	case l.Skipped > 0:
		l.Skipped += int64(len(p))
	case len(l.Part)+len(p) > MaxLine:
		l.Skipped = int64(len(l.Part) + len(p))
		l.Part = nil
	default:
		l.Part = append(l.Part, p...)
	}
}

// end hands the line over, and gives its memory back when it was a large one.
func (l *Lines) end(line func(end int64, text []byte, skipped int64)) {
	part, skipped := l.Part, l.Skipped
	l.Part, l.Skipped = nil, 0
	if skipped > 0 {
		line(l.Offset, nil, skipped)
		return
	}
	line(l.Offset, trimReturn(part), 0)
	if cap(part) <= 1<<20 {
		l.Part = part[:0]
	}
}

func trimReturn(p []byte) []byte { return bytes.TrimSuffix(p, []byte("\r")) }
